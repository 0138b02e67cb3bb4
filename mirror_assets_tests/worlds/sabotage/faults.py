"""The faults, each with the world in which it matters and the check that finds it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from pyroaring import BitMap64
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from mirror_assets.encode import changes, columns, scan_reader
from mirror_assets.encode.columns import CHANGE_TYPE
from mirror_assets.encode.counted import Counted, ObservedRows
from mirror_assets.source import deletion_vectors, scan_builder, schema
from mirror_assets.source.commits import Commit
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.scan import ChosenRows, DifferingScans, RowKind, Scan, ScannedFile
from mirror_assets.source.schema import LandedColumn, Projection
from mirror_assets_tests.worlds.histories.bugs import with_text
from mirror_assets_tests.worlds.sabotage.worlds import World

Inject = Callable[[pytest.MonkeyPatch], None]
RECONCILE, NOBODY = "reconcile", "nobody"
CONSERVATION = "row_conservation"
_PAIRED = ("encode.changes.paired_rows", "encode.changes.landed_in_parts")


@dataclass(frozen=True)
class Fault:
    """A fault in a part of the product, planted in a world; `found_by` is the check that has to find it.

    `read_again`: the slice is read by the files that differ instead, which lands the right rows. A comparison takes
    seconds: of the faults that only it finds, `make test` has those that are `smoke`.
    """

    name: str
    part: str
    world: World
    inject: Inject
    found_by: str = CONSERVATION
    read_again: bool = False
    smoke: bool = False

    def __str__(self) -> str:
        return f"{self.part}: {self.name} ({self.world.value})"


def everywhere(right: Callable[..., Any], wrong: Callable[..., Any]) -> Inject:
    """Return a fault that replaces the function in each module that has it under its name."""
    name = right.__name__

    def inject(patch: pytest.MonkeyPatch) -> None:
        users = [one for key, one in sys.modules.items() if key.startswith("mirror_assets.")]
        users = [one for one in users if vars(one).get(name) is right]
        assert users, f"no module has {name}"
        for user in users:
            patch.setattr(user, name, wrong)

    return inject


def both(*faults: Inject) -> Inject:
    def inject(patch: pytest.MonkeyPatch) -> None:
        for fault in faults:
            fault(patch)

    return inject


def read_rows(change: Callable[[DataFrame], DataFrame]) -> Inject:
    """Return a fault of the reader: all that read scans get changed rows."""
    right = scan_reader.read_scan

    def read_scan(spark: SparkSession, scan: Scan, *, row_ids: bool = False) -> DataFrame:
        return change(right(spark, scan, row_ids=row_ids))

    return everywhere(right, read_scan)


def scanned(change: Callable[[list[ScannedFile]], list[ScannedFile]]) -> Inject:
    """Return a fault of the scans: of versions, of changes and of differences."""

    def changed(scan: Scan) -> Scan:
        return replace(scan, files=tuple(change(list(scan.files))))

    def scan_version(*arguments: Any) -> Scan:  # noqa: ANN401 passed on
        return changed(right_version(*arguments))

    def scan_changes(*arguments: Any, **options: Any) -> Scan:  # noqa: ANN401 passed on
        return changed(right_changes(*arguments, **options))

    def scan_differences(*arguments: Any) -> DifferingScans:  # noqa: ANN401 passed on
        found = right_differences(*arguments)
        return replace(found, before=changed(found.before), last=changed(found.last))

    right_version, right_changes = scan_builder.scan_version, scan_builder.scan_changes
    right_differences = scan_builder.scan_differences
    return both(
        everywhere(right_version, scan_version),
        everywhere(right_changes, scan_changes),
        everywhere(right_differences, scan_differences),
    )


def landed(**changes: Callable[[Column], Column]) -> Inject:
    """Return a fault of the encoder's conversion of these columns."""
    right = columns.landed_value

    def landed_value(column: LandedColumn, rows: DataFrame) -> Column:
        value = right(column, rows)
        return changes[column.name](value) if column.name in changes else value

    return everywhere(right, landed_value)


def _of(version: int) -> Callable[[ScannedFile], bool]:
    return lambda file: file.version == version


def _both_versions_swapped(files: list[ScannedFile]) -> list[ScannedFile]:
    swapped = {3: 4, 4: 3}
    return [replace(file, version=swapped.get(file.version, file.version)) for file in files]


def _rotated_partitions(files: list[ScannedFile]) -> list[ScannedFile]:
    east, west = {"area": "east"}, {"area": "west"}
    return [replace(file, partition=west if file.partition == east else east) for file in files]


def _inverted(files: list[ScannedFile]) -> list[ScannedFile]:
    """The first vector chooses the other rows."""
    first = next(file for file in files if file.chosen)
    assert first.chosen is not None
    turned = replace(first, chosen=ChosenRows(first.chosen.rows, not first.chosen.are_read))
    return [turned if file is first else file for file in files]


def _vectors(change: Callable[[BitMap64], BitMap64]) -> Inject:
    right = deletion_vectors.read_vectors

    def read_vectors(*arguments: Any) -> Mapping[str, BitMap64]:  # noqa: ANN401 passed on
        return {id_: change(rows) for id_, rows in right(*arguments).items()}

    return everywhere(right, read_vectors)


def _other_version(back: int) -> Inject:
    right = scan_builder.scan_version

    def scan_version(log: DeltaLog, version: int, *arguments: Any) -> Scan:  # noqa: ANN401 passed on
        return right(log, version - back, *arguments)

    return everywhere(right, scan_version)


def _with_other_kinds(rows: DataFrame) -> DataFrame:
    """Return removed rows as added ones, and added ones as removed."""
    if CHANGE_TYPE not in rows.columns:
        return rows
    kind = F.col(CHANGE_TYPE)
    other = F.when(kind == "insert", "delete").when(kind == "delete", "insert").otherwise(kind)
    return rows.withColumn(CHANGE_TYPE, other)


def _without_first_new(files: list[ScannedFile]) -> list[ScannedFile]:
    first = next((file for file in files if file.kind is RowKind.INSERT), None)
    return [file for file in files if file is not first]


def _chunk_without_last(right: Callable[..., Scan] = scan_builder.scan_version) -> Inject:
    def scan_version(log: DeltaLog, version: int, part: Any = None) -> Scan:  # noqa: ANN401 passed on
        found = right(log, version, part) if part else right(log, version)
        is_chunk = part is not None and part.end is not None and part.end - part.first > 1
        return replace(found, files=found.files[:-1]) if is_chunk else found

    return everywhere(right, scan_version)


def _commits(change: Callable[[Commit], Commit]) -> Inject:
    right = DeltaLog.commits

    def commits(log: DeltaLog, *arguments: Any, **options: Any) -> tuple[Commit, ...]:  # noqa: ANN401 passed on
        return tuple(map(change, right(log, *arguments, **options)))

    return lambda patch: patch.setattr(DeltaLog, "commits", commits)


def _unplanned(version: int) -> Inject:
    return _commits(lambda one: replace(one, changes_data=False, rows=0) if one.version == version else one)


def _projection(change: Callable[[Projection], Projection]) -> Inject:
    right = columns.projected

    def projected(rows: DataFrame, projection: Projection) -> DataFrame:
        return right(rows, change(projection))

    return everywhere(right, projected)


def _float_as_double(patch: pytest.MonkeyPatch) -> None:
    right = schema.landing_type
    everywhere(right, lambda field, *given: "double" if field.type == "float" else right(field, *given))(patch)


def _lost_in_encoder(*, landing_only: bool = False) -> Inject:
    """Lose the row 78 between counting and pairing, and let the Observations count without it."""
    right_pairs, right_counted = changes.paired_rows, ObservedRows.counted

    def paired_rows(changes: DataFrame, *arguments: Any) -> DataFrame:  # noqa: ANN401 passed on
        return right_pairs(changes.where("id <> 78"), *arguments)

    def counted_without(observed: ObservedRows) -> Counted:
        found = right_counted(observed)
        landing = replace(found.landing, insert=found.landing.insert - 1)
        if landing_only:
            return replace(found, landing=landing)
        one_row = Counted.of_commit(6, replace(landing, insert=1, delete=0), landing).weighted
        return Counted(replace(found.scanned, insert=found.scanned.insert - 1), landing, found.weighted - one_row)

    def inject(patch: pytest.MonkeyPatch) -> None:
        everywhere(right_pairs, paired_rows)(patch)
        patch.setattr(ObservedRows, "counted", counted_without)

    return inject


def _neighbours_ids(files: list[ScannedFile]) -> list[ScannedFile]:
    return [replace(file, first_row_id=(file.first_row_id or 0) + 1) for file in files]


_LOST = read_rows(lambda rows: rows.where("id <> 9"))
_LOST_UPDATE = read_rows(lambda rows: rows.where("id <> 7"))

FAULTS = (
    # Reader
    Fault("a row is dropped", "reader", World.LOAD, _LOST, smoke=True),
    Fault("a row is dropped", "reader", World.CHUNKS, _LOST),
    Fault(
        "a row in place of another",
        "reader",
        World.LOAD,
        read_rows(lambda rows: rows.where("id <> 9").union(rows.where("id = 8"))),
        "key_uniqueness",
        smoke=True,
    ),
    Fault("an updated row is dropped, its old and its new state", "reader", World.FEED, _LOST_UPDATE, RECONCILE),
    Fault(
        "an added column is NULL",
        "reader",
        World.LOAD,
        read_rows(lambda rows: rows.withColumn("note", F.lit(None).cast("string"))),
        RECONCILE,
        smoke=True,
    ),
    Fault(
        "added rows are read as removed, and removed ones as added",
        "reader",
        World.FEED,
        read_rows(_with_other_kinds),
        read_again=True,
        smoke=True,
    ),
    # Scans
    Fault("a file is left out", "scan", World.LOAD, scanned(_without_first_new), smoke=True),
    Fault("a file is left out", "scan", World.APPENDS, scanned(_without_first_new), smoke=True),
    Fault("the last file of a chunk is left out", "scan", World.CHUNKS, _chunk_without_last()),
    Fault("a file is read twice", "scan", World.LOAD, scanned(lambda files: [*files, files[0]]), smoke=True),
    Fault("the files of the version before", "scan", World.LOAD, _other_version(1), RECONCILE),
    Fault("hidden rows are shown", "scan", World.LOAD, _vectors(lambda _: BitMap64()), smoke=True),
    Fault("a vector is inverted", "scan", World.LOAD, scanned(_inverted), smoke=True),
    Fault("the partition values of the neighbour file", "scan", World.LOAD, scanned(_rotated_partitions), RECONCILE),
    Fault("the row ids of the neighbour row", "scan", World.KEYLESS, scanned(_neighbours_ids), RECONCILE),
    Fault(
        "a commit that deletes is skipped",
        "scan",
        World.FEED,
        scanned(lambda files: [file for file in files if not _of(5)(file)]),
        read_again=True,
        smoke=True,
    ),
    Fault(
        "a commit that updates is skipped",
        "scan",
        World.FEED,
        scanned(lambda files: [file for file in files if not _of(8)(file)]),
    ),
    Fault(
        "the rows of two commits are exchanged",
        "scan",
        World.NET,
        scanned(_both_versions_swapped),
        RECONCILE,
        smoke=True,
    ),
    # Planner
    Fault("a commit is skipped", "planner", World.FEED, _unplanned(8), RECONCILE),
    # Encoder
    Fault(
        "an update lands as insert",
        "encoder",
        World.FEED,
        with_text(changes, _PAIRED, ("{Marker.UPDATE:d})", "{Marker.INSERT:d})")),
        smoke=True,
    ),
    Fault(
        "a key column is exchanged with a value",
        "encoder",
        World.FEED,
        landed(id=lambda _: F.col("place"), place=lambda _: F.col("id")),
        "row_order",
    ),
    Fault("a row is lost, and the Observations counted without it", "encoder", World.FEED, _lost_in_encoder()),
    Fault(
        "a row is lost, and the Observations counted without it",
        "encoder",
        World.FEED_WHERE,
        _lost_in_encoder(),
        smoke=True,
    ),
    Fault(
        "the same, and the count of rows to land is wrong alike",
        "encoder",
        World.FEED_WHERE,
        _lost_in_encoder(landing_only=True),
        "row_order",
    ),
    Fault(
        "the condition is turned round",
        "encoder",
        World.LOAD_WHERE,
        _projection(lambda one: replace(one, where=f"NOT ({one.where})")),
        RECONCILE,
        smoke=True,
    ),
    # Types
    Fault(
        "a decimal loses its fraction",
        "types",
        World.LOAD,
        landed(price=lambda value: value.cast("decimal(10,0)").cast("decimal(10,2)")),
        RECONCILE,
        smoke=True,
    ),
    Fault(
        "the type table says DOUBLE for FLOAT",
        "types",
        World.LOAD,
        _float_as_double,
        "schema_compatibility",
        smoke=True,
    ),
    Fault(
        "the same, and the encoder converts to it",
        "types",
        World.LOAD,
        both(_float_as_double, landed(weight=lambda value: value.cast("double"))),
        RECONCILE,
    ),
)
