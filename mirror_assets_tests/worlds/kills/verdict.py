"""Whether everything has landed exactly once, and has become the source again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from mirror_assets.landing.format import Manifest
from mirror_assets.landing.names import PROCESSED, AttemptFolder, HistoryRange, landing_number
from mirror_assets.landing.state import read_manifest
from mirror_assets.landing.steps import drive
from mirror_assets.markers import ROW_MARKER, Marker
from mirror_assets.monitoring import TableState
from mirror_assets.verify.landed import file_continuity
from mirror_assets.zones import Store
from mirror_assets_tests.lab import TABLE
from mirror_assets_tests.worlds.kills.place import Place
from mirror_assets_tests.worlds.kills.source import Change

_LIMIT = 64 << 20
_SHOWN = 5


@dataclass(frozen=True)
class Verdict:
    """What landed in the end, and everything that is wrong with it."""

    versions: int
    files: int
    rows: int
    problems: tuple[str, ...]

    def __str__(self) -> str:
        what = f"{self.versions} versions, {self.files} landing files, {self.rows} rows"
        return f"{what}: {'; '.join(self.problems) or 'all landed exactly once, equal to the source'}"


def judge(place: Place) -> Verdict:
    """The verdict on a landing zone whose last run has ended well; the stand-in applies what is left."""
    current = drive(read_manifest(TABLE), place.store)
    if current is None:
        return Verdict(0, 0, 0, ("nothing was ever committed",))
    place.replicator.poll()
    place.eyes.expect(current.manifest.next_number - 1)
    files = dict(sorted(_landed(place.store)))
    rows = [(number, change) for number in files for change in _changes(pq.read_table(pa.BufferReader(files[number])))]
    problems = (
        *_number_problems(place, current.manifest, files),
        *_row_problems(place, rows),
        *_mirror_problems(place, current.manifest),
        *_staging_problems(place.store, current.manifest),
        *place.eyes.wrong,
    )
    return Verdict(place.source.tip + 1, len(files), len(rows), problems)


def _landed(store: Store) -> Iterator[tuple[int, bytes]]:
    """Every landing file, wherever the stand-in has put it."""
    for folder in (f"{TABLE.folder}/{PROCESSED}", TABLE.folder):
        for info in store.list(folder):
            if number := landing_number(info.name):
                yield number, store.read(info.path, _LIMIT).data


def _changes(table: pa.Table) -> Iterator[Change]:
    for row in table.to_pylist():
        marker = Marker(row.get(ROW_MARKER, Marker.INSERT))
        yield Change(marker, row["id"], None if marker is Marker.DELETE else row["amount"])


def _number_problems(place: Place, manifest: Manifest, files: dict[int, bytes]) -> Iterator[str]:
    """Numbers have no gap, no twin, and each file is the one that was seen to land."""
    missing = sorted(set(range(1, manifest.next_number)) - set(files))
    if missing:
        yield f"{missing} were committed and have not landed"
    for number, data in files.items():
        place.eyes.recognise(number, data)
    continuity = file_continuity(place.store, TABLE, applied=None)
    yield from continuity.problems
    if manifest.covered != place.source.tip:
        yield f"version {manifest.covered} is covered, and the source is at {place.source.tip}"


def _kept(store: Store) -> Iterator[Manifest]:
    """The manifests that are kept, in order, the first among them; a run is too short for roll-ups."""
    for info in store.list(TABLE.history_folder):
        if HistoryRange.parse(info.name) is None:
            continue
        yield Manifest.model_validate_json(store.read(info.path, _LIMIT).data)


def _row_problems(place: Place, rows: list[tuple[int, Change]]) -> Iterator[str]:
    """Each change of the source's feed is in one file, once; changes are in the order of their versions."""
    source = place.source
    first = next((kept for kept in _kept(place.store) if kept.loading is None), None)
    if first is None:
        yield "no generation is kept that has covered anything"
        return
    wanted = source.snapshot(first.covered) + source.changes(first.covered + 1, source.tip)
    found = Counter(change for _, change in rows)
    for text, differing in (("missing", wanted - found), ("too many", found - wanted)):
        if differing:
            yield f"{differing.total()} changes {text}, such as {list(differing)[:_SHOWN]}"
    versions = [c.amount for number, c in rows if c.amount is not None and number >= first.next_number]
    if versions != sorted(versions):
        yield "changes have landed in another order than that of their versions"


def _mirror_problems(place: Place, manifest: Manifest) -> Iterator[str]:
    """The stand-in has applied everything, and its table holds the source's rows."""
    status = place.replicator.table(TABLE)
    if status is None or status.state is not TableState.REPLICATING:
        yield f"the stand-in: {status}"
    elif not status.has_applied(manifest):
        yield f"the stand-in has applied {status.applied_number} of {manifest.next_number - 1} files"
    else:
        columns = ["id", "name", "amount"]
        mirror = DeltaTable(status.location).to_pyarrow_table(columns=columns).sort_by("id")
        if mirror.to_pylist() != place.source.rows().to_pylist():
            yield "mirror and source differ"


def _staging_problems(store: Store, manifest: Manifest) -> Iterator[str]:
    """What can't be committed any more is gone, but for the generation that committed last."""
    folders = (AttemptFolder.parse(TABLE, info.name) for info in store.list(TABLE.scratch))
    left = [folder.path for folder in folders if folder and folder.generation < manifest.generation]
    if left:
        yield f"{left} were never collected"
