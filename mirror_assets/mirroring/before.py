"""What a slice of changes follows: one that has landed, or one that is staged ahead of it."""

from __future__ import annotations

from dataclasses import dataclass

from mirror_assets.landing.format import Manifest, SliceKind, SliceRecord


@dataclass(frozen=True)
class Before:
    """The version covered, and the source's schema and id there.

    `columns` are those that land by then; `dropped`, those that the mirror has from earlier slices of its life.
    `is_start`: no row has landed by then, because the mirror began without a snapshot; then schema and id are those of
    the next version, the first to land.
    `is_planned`: a slice of changes up to that version was planned just now, so what a plan looks for is known of it.
    """

    covered: int
    schema_string: str
    table_id: str
    columns: frozenset[str]
    dropped: frozenset[str] = frozenset()
    is_start: bool = False
    is_planned: bool = False

    @property
    def witness(self) -> int:
        """The version at which the source has this schema and id."""
        return self.covered + 1 if self.is_start else self.covered

    @classmethod
    def landed(cls, manifest: Manifest) -> Before:
        """What has landed."""
        return cls(
            covered=manifest.covered,
            schema_string=manifest.source_schema,
            table_id=manifest.source_table_id,
            columns=frozenset(column.name for column in manifest.live_columns),
            dropped=frozenset(manifest.dropped),
            is_start=_is_start(manifest, manifest.landed_rows),
        )

    @classmethod
    def staged(cls, record: SliceRecord, before: Before | None) -> Before:
        """What will have landed when the staged slice has, behind `before`."""
        columns = frozenset(column.name for column in record.columns)
        known = before.columns | before.dropped if before else frozenset()
        return cls(
            covered=record.key.last,
            schema_string=record.source_schema,
            table_id=record.source_table_id,
            columns=columns,
            dropped=known - columns,
            is_start=_is_start(record, record.markers.total),
            is_planned=record.key.first > 0,
        )


def _is_start(newest: Manifest | SliceRecord, rows: int) -> bool:
    return newest.generation == 1 and newest.kind is not SliceKind.SNAPSHOT and rows == 0
