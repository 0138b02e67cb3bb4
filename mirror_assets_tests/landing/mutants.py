"""The protocol with a rule taken away, and the schedule that breaks it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from mirror_assets.landing import generations, rebuild, recover
from mirror_assets.landing.format import Manifest, encode
from mirror_assets.landing.names import AttemptFolder, TableName
from mirror_assets.landing.rebuild import RebuildRecord
from mirror_assets.landing.state import VersionedManifest, read_manifest
from mirror_assets.landing.steps import Create, Delete, DeleteTree, FolderIdentity, ListFolder, Replace, Steps
from mirror_assets.zones import PathChanged, PathExists, Store
from mirror_assets.zones.errors import PATH_EXISTS
from mirror_assets_tests.landing.cases import chained, first, following, keyed, restaged, run, runs
from mirror_assets_tests.landing.chunk_cases import gone_on_with
from mirror_assets_tests.landing.damage import foreign_file, lost_part, manifest_lost, rewritten_part, unchecked_part
from mirror_assets_tests.landing.rebuild_cases import (
    rebuilt,
    rebuilt_beside_a_publisher,
    rebuilt_beside_a_run,
    rebuilt_twice,
)
from mirror_assets_tests.landing.roll_up_cases import rolled_up, rolled_up_again, rolled_up_and_lost
from mirror_assets_tests.landing.schedules import Case
from mirror_assets_tests.landing.staging import TABLE
from mirror_assets_tests.zones.memory import MemoryStore


class CarelessSwap(MemoryStore):
    """It replaces whatever is there."""

    def replace(self, path: str, data: bytes, etag: str) -> str:
        head = self.head(path)
        return super().replace(path, data, head.etag if head else etag)


class CarelessCreate(MemoryStore):
    """It creates over what is there."""

    def create(self, path: str, data: bytes) -> str:
        head = self.head(path)
        return super().replace(path, data, head.etag) if head else super().create(path, data)


class CarelessSource(MemoryStore):
    """It moves whatever is at the source."""

    def rename(self, source: str, target: str, etag: str) -> None:
        head = self.head(source)
        super().rename(source, target, head.etag if head else etag)


class CarelessTarget(MemoryStore):
    """It moves over what is at the target."""

    def rename(self, source: str, target: str, etag: str) -> None:
        if self.head(source):
            self.delete(target)
        super().rename(source, target, etag)


class CarelessReplace(Replace):
    """It replaces whatever is there."""

    def perform(self, store: Store) -> str:
        head = store.head(self.path)
        return store.replace(self.path, self.data, head.etag if head else self.etag)


def nothing(*_: object) -> Steps[None]:
    yield from ()


def unfenced(record: RebuildRecord | None, _rebuild_epoch: int | None) -> int:
    return record.epoch if record is not None and record.is_loading else 1


def always(*_: object) -> Steps[bool]:
    yield from ()
    return True


def no_numbers(*_: object) -> Steps[list[int]]:
    yield from ()
    return []


def delete_first(table: TableName, manifest: Manifest) -> Steps[None]:
    following = yield from generations._following(table, manifest, 0, None)
    if following is None:
        return
    for number in range(2, following.range.last + 1):
        yield from Delete(table.history(manifest.epoch, number))
    yield from generations._keep(table.roll_up(manifest.epoch, 1, following.range.last), encode(following))


def just_read(table: TableName, _rebuild_epoch: int | None = None) -> Steps[VersionedManifest | None]:
    return (yield from read_manifest(table))


def collect_all(attempts: Sequence[AttemptFolder], _manifest: Manifest) -> Steps[None]:
    for folder in attempts:
        yield from DeleteTree(folder.path)


def collect_late(_attempts: object, manifest: Manifest) -> Steps[None]:
    yield from recover.collect((yield from recover.list_attempts(TABLE)), manifest)


def commit_and_believe(table: TableName, manifest: Manifest, current: VersionedManifest | None) -> Steps[None]:
    data = encode(manifest)
    try:
        yield from Replace(table.manifest, data, current.etag) if current else Create(table.manifest, data)
    except (PathChanged, PathExists):
        return


def keep_history_last(table: TableName, manifest: Manifest) -> Steps[None]:
    for entry in manifest.entries:
        yield from recover._land(table, manifest, entry)
    yield from recover._keep_history(table, manifest)


def create_manifest(table: TableName, manifest: Manifest, etag: str | None) -> Steps[None]:
    data = encode(manifest)
    yield from Create(table.manifest, data) if etag is None else Replace(table.manifest, data, etag)


def drop_unasked(table: TableName, record: RebuildRecord) -> Steps[None]:
    identity = yield from FolderIdentity(table.folder)
    for info in (yield from ListFolder(table.scratch)):
        if not (yield from rebuild._may_be_snapshot(table, info, record)):
            yield from DeleteTree(info.path)
    yield from DeleteTree(table.folder, identity)


def delete_any(request: DeleteTree, store: Store) -> None:
    store.delete_tree(request.folder)


def same_id(zone: MemoryStore) -> Case:
    """Two runs whose attempts have one id; that the second finds its parts written is not the point."""
    return replace(runs(zone), publishers=(run("a", (7, 1)), run("a", (7, 1))), refusals=(PATH_EXISTS,))


def patch(name: str, mutant: object) -> tuple[str, object]:
    return f"mirror_assets.landing.{name}", mutant


@dataclass(frozen=True)
class Mutant:
    """A rule taken away from the store or from the code, the schedule that breaks then, and what it ends in."""

    rule: str
    story: str
    case: Callable[[MemoryStore], Case]
    broken: str
    store: type[MemoryStore] = MemoryStore
    patch: tuple[str, object] | None = None
    sound: Callable[[MemoryStore], Case] | None = None

    def __str__(self) -> str:
        return self.rule


MUTANTS = (
    Mutant(
        "1: commit is compare-and-swap",
        "A lands; B, which planned before, swaps its manifest over A's: both own the number",
        following,
        "was not published by this mirror",
        store=CarelessSwap,
    ),
    Mutant(
        "1: the first commit is put-if-absent",
        "A lands; B, which saw no manifest, creates its own over A's",
        first,
        "was not published by this mirror",
        store=CarelessCreate,
    ),
    Mutant(
        "2: redo comes before plan",
        "A commits and dies; B, which did not finish that, collects A's part as garbage",
        chained,
        "neither staged nor landed",
        patch=patch("publish.recover", just_read),
    ),
    Mutant(
        "3: a rename names the source's ETag",
        "a part is put back late under its staged name, and B lands it again, its number having been removed",
        partial(restaged, parts=2),
        "second time",
        store=CarelessSource,
    ),
    Mutant(
        "3: a rename needs its target free",
        "A lands over a file that somebody else put there",
        foreign_file,
        "overwritten",
        store=CarelessTarget,
    ),
    Mutant(
        "4: garbage is judged by generation",
        "A deletes what B is about to commit, and its own",
        following,
        "in the end only",
        patch=patch("publish.collect", collect_all),
    ),
    Mutant(
        "5: an attempt has its id alone",
        "A commits; B fails to stage under the same id, and clears away what it takes for its own",
        same_id,
        "neither staged nor landed",
        sound=runs,
    ),
    Mutant(
        "keys are added by compare-and-swap",
        "A declares the keys; B, which has seen none declared, declares others in their place",
        partial(keyed, keys=(("id",), ("other",))),
        "declared keys were changed",
        patch=patch("metadata.Replace", CarelessReplace),
    ),
    Mutant(
        "a refused commit is read back",
        "A commits; B's swap is refused, and it lands its part all the same",
        following,
        "was not published by this mirror",
        patch=patch("publish._commit", commit_and_believe),
    ),
    Mutant(
        "parts are looked at before the commit",
        "a part that was rewritten is committed, and can't land",
        rewritten_part,
        "neither staged nor landed",
        patch=patch("publish._require_parts", nothing),
    ),
    Mutant(
        "a verdict counts for the parts that it was given for",
        "a part lands that no check has seen",
        unchecked_part,
        "landed",
        patch=patch("publish._require_verdicts", lambda *_: None),
    ),
    Mutant(
        "a part is lost unless its number has landed",
        "B takes the missing part for landed, and lands the next number",
        lost_part,
        "gap",
        patch=patch("recover._has_landed", always),
    ),
    Mutant(
        "history is kept before a file lands",
        "A lands a file and dies, and nobody can tell whose the file is",
        manifest_lost,
        "can't be recognised",
        patch=patch("recover.redo", keep_history_last),
    ),
    Mutant(
        "a roll-up is there before what it holds is deleted",
        "A dies between the two, and a file that waits can't be recognised any more",
        rolled_up,
        "can't be recognised",
        patch=patch("publish.roll_up", delete_first),
    ),
    Mutant(
        "the newest generation is not rolled up",
        "the manifest is lost, and no generation is there to make it again from",
        partial(rolled_up_and_lost, kept=0),
        "the manifest is missing",
        sound=rolled_up_and_lost,
    ),
    Mutant(
        "a roll-up stays while one of its files does",
        "B deletes the older roll-up, and a file of it still waits",
        rolled_up_again,
        "can't be recognised",
        patch=patch("generations.landed_numbers", no_numbers),
    ),
    Mutant(
        "a chunk begins where the one before ended",
        "A lands a chunk; B, which had planned the same one, stages and lands it behind A's",
        gone_on_with,
        "landed",
        patch=patch("publish.is_next", lambda *_: True),
    ),
    Mutant(
        "publishers wait for a rebuild",
        "A drops the folder; B goes on there with what the ended epoch had committed",
        rebuilt_beside_a_run,
        "gap",
        patch=patch("recover._first_that_counts", unfenced),
    ),
    Mutant(
        "a manifest of an ended epoch counts for nothing",
        "it is put back late, and the rebuild can't commit its snapshot",
        rebuilt,
        "in the end only",
        patch=patch("publish.put_manifest", create_manifest),
    ),
    Mutant(
        "a rebuild looks again before it drops",
        "A is through; B, which began with it and was slow, drops the new epoch",
        rebuilt_twice,
        "had not ended",
        patch=("mirror_assets_tests.landing.rebuild_cases.drop_table_folder", drop_unasked),
    ),
    Mutant(
        "a drop names the folder",
        "B's drop of the old folder arrives when A has loaded the new one",
        rebuilt_twice,
        "had not ended",
        patch=patch("steps.DeleteTree.perform", delete_any),
    ),
    Mutant(
        "garbage is listed before the rebuild record is read",
        "B, still in the ended epoch, lists and collects generation 1 of the next",
        rebuilt_beside_a_publisher,
        "neither staged nor landed",
        patch=patch("publish.collect", collect_late),
    ),
    Mutant(
        "what a rebuild cleared away is not lost",
        "B misses its part, which A has cleared away with the rest of the epoch, and calls for a person",
        rebuilt_beside_a_publisher,
        "neither staged nor landed",
        patch=patch("recover._require_current", nothing),
    ),
)
