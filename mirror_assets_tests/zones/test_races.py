"""Several writers at once: of all that start from one ETag, or want one name, exactly one wins."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from mirror_assets.zones import LocalStore, PathChanged, PathExists, PathMissing, Store

WRITERS = 6
ROUNDS = 15


def won(act: Callable[[], object]) -> bool:
    """Whether the act succeeded; being refused is losing."""
    try:
        act()
    except (PathChanged, PathExists, PathMissing):
        return False
    return True


def all_at_once(acts: Sequence[Callable[[], object]]) -> list[bool]:
    """Which of the acts won, when all start together."""
    gate = threading.Barrier(len(acts))

    def run(act: Callable[[], object]) -> bool:
        gate.wait()
        return won(act)

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(run, acts))


def test_one_replace_wins_per_etag(store: Store) -> None:
    etag = store.create("a/file", b"start")
    for _ in range(ROUNDS):
        acts = [partial(store.replace, "a/file", b"by %d" % writer, etag) for writer in range(WRITERS)]
        wins = all_at_once(acts)
        assert wins.count(True) == 1
        content = store.read("a/file", 100)
        assert content.data == b"by %d" % wins.index(True)
        etag = content.etag


def test_one_create_wins(store: Store) -> None:
    for name in range(ROUNDS):
        wins = all_at_once([partial(store.create, f"a/{name}", b"by %d" % writer) for writer in range(WRITERS)])
        assert wins.count(True) == 1
        assert store.read(f"a/{name}", 100).data == b"by %d" % wins.index(True)


def test_one_rename_wins_a_target(store: Store) -> None:
    for name in range(ROUNDS):
        etags = [store.create(f"a/{name}-{writer}", b"by %d" % writer) for writer in range(WRITERS)]
        wins = all_at_once(
            [partial(store.rename, f"a/{name}-{writer}", f"a/{name}", etag) for writer, etag in enumerate(etags)]
        )
        assert wins.count(True) == 1
        winner = wins.index(True)
        assert store.read(f"a/{name}", 100).data == b"by %d" % winner
        assert [store.head(f"a/{name}-{writer}") is None for writer in range(WRITERS)] == wins


def test_one_rename_takes_a_source(store: Store) -> None:
    for name in range(ROUNDS):
        etag = store.create(f"a/{name}", b"x")
        wins = all_at_once(
            [partial(store.rename, f"a/{name}", f"a/{name}-{writer}", etag) for writer in range(WRITERS)]
        )
        assert wins.count(True) == 1
        assert [store.head(f"a/{name}-{writer}") is not None for writer in range(WRITERS)] == wins


def test_a_reader_sees_whole_contents_with_their_etag(store: Store) -> None:
    """A read during a replace gives the old or the new content, never a mix, under the ETag of that content."""
    etag = store.create("a/file", b"0" * 5_000)
    etags, stop = {etag: b"0"}, threading.Event()
    seen: list[tuple[str, bytes]] = []

    def watch() -> None:
        while not stop.is_set():
            content = store.read("a/file", 10_000)
            seen.append((content.etag, content.data))

    with ThreadPoolExecutor(1) as pool:
        watcher = pool.submit(watch)
        for turn in range(1, 40):
            letter = b"%d" % (turn % 10)
            etag = store.replace("a/file", letter * 5_000, etag)
            etags[etag] = letter
        stop.set()
        watcher.result()
    assert len(etags) == 40
    assert all(data == etags[etag] * 5_000 for etag, data in seen)


def count_up(root: str, worker: int, workers: int) -> int:
    """Add one to the counter 40 times, once all workers are there; how often a replace was refused."""
    store, turns, refused = LocalStore(Path(root)), 40, 0
    store.create(f"ready/{worker}", b"")
    while any(store.head(f"ready/{other}") is None for other in range(workers)):
        time.sleep(0.001)
    while turns:
        content = store.read("a/counter", 100)
        if won(partial(store.replace, "a/counter", b"%d" % (int(content.data) + 1), content.etag)):
            turns -= 1
        else:
            refused += 1
    return refused


def test_processes_lose_no_update(local: LocalStore) -> None:
    local.create("a/counter", b"0")
    with ProcessPoolExecutor(3, mp_context=get_context("spawn")) as pool:
        refused = sum(pool.map(count_up, [local.root] * 3, range(3), [3] * 3))
    assert local.read("a/counter", 100).data == b"120"
    assert refused > 0, "the processes never met, so nothing was shown"
