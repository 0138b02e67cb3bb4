"""A source at one version."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from mirror_assets.source.actions import Metadata, Protocol
from mirror_assets.source.row_counts import BYTES_PER_ROW
from mirror_assets.source.schema import Schema, parse_schema


@dataclass(frozen=True)
class SourceState:
    """A source at one version.

    `rows` is None if statistics are missing, or hidden rows are not counted. `stored_rows` includes the rows that
    deletion vectors hide, and is None if statistics are missing.
    """

    uri: str
    version: int
    timestamp_ms: int
    metadata: Metadata
    protocol: Protocol
    files: int
    bytes: int
    rows: int | None
    stored_rows: int | None
    digest: str = ""

    @property
    def table_id(self) -> str:
        """The table's id; another id means another table."""
        return self.metadata.table_id

    @property
    def schema_string(self) -> str:
        """The schema as Delta writes it, keys in canonical order."""
        return self.metadata.schema_string

    @cached_property
    def schema(self) -> Schema:
        """The schema. Raises SCHEMA_UNREADABLE."""
        return parse_schema(self.schema_string)

    @property
    def feed_enabled(self) -> bool:
        """Whether the table records its change data feed."""
        return self.metadata.feed_enabled

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The partition columns, in order."""
        return self.metadata.partition_columns

    @property
    def likely_rows(self) -> int:
        """The best estimate of the number of rows, for sizing files."""
        if self.rows is not None:
            return self.rows
        return self.bytes // BYTES_PER_ROW if self.stored_rows is None else self.stored_rows


def source_columns(state: SourceState) -> tuple[tuple[str, str], ...]:
    """Return the name and the type of every column, as Spark spells it."""
    return tuple((field.name, field.type) for field in state.schema.fields)
