"""What a table folder keeps of its generations, read whole, and what is wrong with that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from mirror_assets.landing.format import Manifest, SliceKind, is_next, load
from mirror_assets.landing.history import Generation, RollUp, content_hash, range_path
from mirror_assets.landing.names import HistoryRange, TableName
from mirror_assets.landing.roll_up import list_history
from mirror_assets.landing.steps import drive
from mirror_assets.storage import Store

_LISTINGS = 5


@dataclass(frozen=True)
class KeptHistory:
    """The generations that are kept of the manifest's epoch, in order, the manifest's own among them."""

    generations: tuple[Generation, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True)
class _Files:
    """The files of a history: roll-ups with the hash of each, then manifests behind them; whether any was gone."""

    roll_ups: tuple[tuple[HistoryRange, RollUp, str], ...]
    manifests: tuple[Manifest, ...]
    begins: bool
    is_whole: bool


def read_history(store: Store, table: TableName, manifest: Manifest) -> KeptHistory:
    """Everything that is kept of the manifest's epoch. Raises ManifestCorrupt."""
    for _ in range(_LISTINGS):
        files = _read(store, table, manifest.epoch)
        if files.is_whole:
            break  # else a publisher has rolled up what was listed: look again
    rolled = [generation for _, found, _ in files.roll_ups for generation in found.generations]
    kept = {generation.generation: generation for generation in map(Generation.of, (manifest, *files.manifests))}
    chain = [*_unbroken(rolled), *(kept[number] for number in sorted(kept))]
    problems = (
        *_roll_up_problems(table, files.roll_ups),
        *chain_problems(table, chain),
        *_end_problems(table, manifest, files),
    )
    return KeptHistory((*rolled, *(kept[number] for number in sorted(kept))), problems)


def chain_problems(table: TableName, generations: Sequence[Generation]) -> Iterator[str]:
    """What keeps each of the generations from following the one before: numbers, versions, chunks."""
    for before, after in pairwise(generations):
        if after.generation != before.generation + 1:
            yield f"{table.history(before.epoch, before.generation + 1)} is missing"
        elif after.first_number != before.next_number:
            yield f"generation {after.generation} starts at file {after.first_number}, not {before.next_number}"
        elif not is_next(after.key, after.chunk, before.loading):
            yield f"generation {after.generation} does not go on with what was {before.loading}"
        elif after.kind is not SliceKind.SNAPSHOT and after.key.first != before.covered + 1:
            yield f"slice {after.slice} does not follow version {before.covered}"


def _read(store: Store, table: TableName, epoch: int) -> _Files:
    listed = drive(list_history(table, epoch), store)
    roll_ups, manifests, is_whole = [], [], True
    rolled = max((kept.last for kept in listed if kept.is_roll_up), default=0)
    for kept in listed:
        path = range_path(table, kept)
        if kept.is_roll_up:
            found = load(store, RollUp, path)
            is_whole &= found is not None
            roll_ups += [(kept, found[0], content_hash(found[1].data))] if found else []
        elif kept.last > rolled:
            one = load(store, Manifest, path)
            is_whole &= one is not None
            manifests += [one[0]] if one else []
    return _Files(tuple(roll_ups), tuple(manifests), any(kept.first == 1 for kept in listed), is_whole)


def _unbroken(rolled: Sequence[Generation]) -> Sequence[Generation]:
    """The last of them without a gap: before that lie at most files that a late request has put back."""
    gaps = [index for index, (a, b) in enumerate(pairwise(rolled), 1) if b.generation != a.generation + 1]
    return rolled[gaps[-1] :] if gaps else rolled


def _roll_up_problems(table: TableName, roll_ups: Sequence[tuple[HistoryRange, RollUp, str]]) -> Iterator[str]:
    for kept, found, _ in roll_ups:
        if found.range != kept:
            yield f"{range_path(table, kept)} holds generations {found.range.first} to {found.range.last}"
    for (before, _, digest), (after, found, _) in pairwise(roll_ups):
        if after.first == before.last + 1 and found.before != digest:
            yield f"{range_path(table, before)} is not what it was when {range_path(table, after)} was written"


def _end_problems(table: TableName, manifest: Manifest, files: _Files) -> Iterator[str]:
    newest = max((manifest, *files.manifests), key=lambda one: one.generation)
    kept = next((one for one in files.manifests if one.generation == newest.generation), newest)
    if manifest != kept:
        yield f"{table.manifest} is not the newest generation ({newest.generation})"
    if manifest.generation != 1 and not files.begins:
        yield f"{table.history(newest.epoch, 1)} is missing"
