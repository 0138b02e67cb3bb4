"""A folder that is deleted by its identity: one that is made anew at the path meanwhile keeps all that is in it."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from mirror_assets.zones import LocalStore

_CALLS = frozenset(
    {"open", "os.listdir", "os.scandir", "os.fwalk", "os.remove", "os.rename", "os.rmdir", "shutil.rmtree"}
)
_ROUNDS = 30


class _Interruption:
    """Calls a function before the system call with a number, counted from 1, of this thread's work on files."""

    def __init__(self) -> None:
        self._left = 0
        self._act: Callable[[], object] = int

    def __call__(self, event: str, _: tuple[object, ...]) -> None:
        """What Python calls before each call that it audits."""
        if self._left and event in _CALLS:
            self._left -= 1
            if self._left == 0:
                self._act()

    @contextmanager
    def before(self, call: int, act: Callable[[], object]) -> Iterator[Callable[[], bool]]:
        """Interrupt that call; the function tells whether it came."""
        self._left, self._act = call, act
        try:
            yield lambda: self._left == 0
        finally:
            self._left = 0


@cache
def interruption() -> _Interruption:
    """The process's only one: an audit hook can't be taken away."""
    hook = _Interruption()
    sys.addaudithook(hook)
    return hook


def fill(folder: Path, text: str) -> None:
    """A table folder with two files of its own and one a level down."""
    (folder / "_mirror").mkdir(parents=True)
    for name in ("_mirror.json", "1.parquet", "_mirror/1.json"):
        (folder / name).write_text(text)


def content(folder: Path) -> dict[str, str]:
    """Every file of the folder."""
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_a_folder_that_is_recreated_at_any_moment_keeps_its_files(local: LocalStore) -> None:
    """Another rebuild deletes the folder and begins the next epoch in it, before each single call of the deletion."""
    folder, interrupted = Path(local.root) / "s.schema/t", 0

    def recreate() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        fill(folder, "new")

    for call in range(1, 100):
        shutil.rmtree(folder, ignore_errors=True)
        fill(folder, "old")
        identity = local.folder_identity("s.schema/t")
        with interruption().before(call, recreate) as came:
            local.delete_tree("s.schema/t", identity)
            if not came():
                break
        interrupted += 1
        assert content(folder) == {"_mirror.json": "new", "1.parquet": "new", "_mirror/1.json": "new"}, call
    assert interrupted >= 5
    assert not folder.exists()


def test_of_two_that_delete_a_folder_the_slower_leaves_the_new_one(local: LocalStore) -> None:
    """Two publishers find the old epoch's folder; the quicker begins the new epoch while the slower is still at it."""
    names = {f"t/{name}" for name in ("_metadata.json", "_mirror.json", "_mirror/1.json")}

    def recreate(identity: str | None) -> None:
        local.delete_tree("t", identity)
        for name in sorted(names):
            local.create(name, b"new")

    for _ in range(_ROUNDS):
        fill(Path(local.root) / "t", "old")
        time.sleep(0.005)  # the next folder may have the inode again, but is born later
        identity = local.folder_identity("t")
        with ThreadPoolExecutor(2) as pool:
            deletions = [pool.submit(local.delete_tree, "t", identity), pool.submit(recreate, identity)]
            for deletion in deletions:
                deletion.result()
        assert content(Path(local.root)) == dict.fromkeys(names, "new")
        local.delete_tree("t")


def test_all_that_is_in_a_folder_goes_links_as_links(local: LocalStore) -> None:
    folder, kept = Path(local.root) / "t", Path(local.root) / "kept"
    fill(folder, "old")
    fill(kept, "kept")
    (folder / "_mirror/folder").symlink_to(kept, target_is_directory=True)
    (folder / "file").symlink_to(kept / "1.parquet")
    local.delete_tree("t", local.folder_identity("t"))
    assert not folder.exists()
    assert len(content(kept)) == 3
