"""Invented tables for plans, as a log describes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mirror_assets.features.direct_lake.vacuum import VacuumPlan
from mirror_assets.source.actions import LiveFile, Metadata, Protocol, Vector
from mirror_assets.source.replay import Snapshot
from mirror_assets.source.schema import canonical
from mirror_assets.source.source_files import StoredFile
from mirror_assets_tests.source.handmade import column, schema_string

MB = 10**6


def file(
    path: str,
    size: int = MB,
    rows: int | None = 100,
    hidden: int = 0,
    partition: Mapping[str, str | None] | None = None,
    cube: str | None = None,
) -> LiveFile:
    """A live file; with hidden rows it has a deletion vector."""
    vector = Vector(path, None, 34, hidden) if hidden else None
    return LiveFile(path, size, rows, 0, partition or {}, vector, {} if cube is None else {"ZCUBE_ID": cube})


def some(count: int, size: int = MB, **of: str | None) -> list[LiveFile]:
    """Equal files in one partition."""
    return [file(f"{list(of.values())}-{size}-{number}", size, partition=of) for number in range(count)]


def snapshot(
    files: Iterable[LiveFile],
    partitioned_by: Mapping[str, str] | None = None,
    features: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
) -> Snapshot:
    """A table of these files, and of an `id` besides its partition columns, given with their types in the log."""
    columns = partitioned_by or {}
    schema = schema_string(column("id"), *(column(name, kind) for name, kind in columns.items()))
    metadata = Metadata("id", canonical(schema), properties or {}, tuple(columns))
    return Snapshot("/lake/t", 7, 0, metadata, Protocol(3, 7, frozenset(features)), tuple(files), ())


def vacuum_plan(seconds: float = 0, statement: str | None = None, files: int = 1) -> VacuumPlan:
    """A plan of VACUUM that deletes files of 1,000 bytes, with the retention that keeps needed ones."""
    return VacuumPlan(
        uri="/lake/t",
        version=7,
        now=0,
        retention_seconds=0,
        deleted=tuple(StoredFile(str(number), 1_000, 0) for number in range(files)),
        threatened=(),
        lost=(),
        gone=(),
        oldest_needed=None,
        min_safe_retention_seconds=seconds,
        safe_until=None,
        resume_until=None,
        statement=statement,
    )
