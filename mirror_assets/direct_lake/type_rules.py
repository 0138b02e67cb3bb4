"""Find columns that Direct Lake can't load, or perhaps can't, by the schema and the footers.

Rules: reference `direct-lake` §1.3 (Microsoft, Direct Lake overview, considerations and limitations).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from mirror_assets.direct_lake.columns import ColumnNames, ParquetColumn
from mirror_assets.source.schema import Field
from mirror_assets.source.sql_names import quoted, table_at
from mirror_assets.verify.direct_lake_types import unloadable_columns

# Unicode characters; each takes at least one byte.
MOST_CHARACTERS = 32_764

_DECLARED_LENGTH = re.compile(r"(?:var)?char\((\d+)\)")
_FLOATS = ("float", "double")
_LOADED = ("tinyint", "smallint", "int", "bigint", "boolean", "date", "timestamp", "timestamp_ntz", *_FLOATS)


class Certainty(str, Enum):
    """How certain it is that the column can't be loaded, or that queries fail."""

    FAILS = "fails"
    MAY_FAIL = "may fail"
    UNSEEN = "unseen"  # neither the log nor footers show it


@dataclass(frozen=True)
class TypeIssue:
    """A column that breaks a rule, or may; `statement` is a query that decides it, None if none is needed."""

    column: str
    type: str
    certainty: Certainty
    message: str
    statement: str | None = None

    def __str__(self) -> str:
        """The column, the message and the statement."""
        return f"{self.column} {self.message}{f' ({self.statement})' if self.statement else ''}"


@dataclass(frozen=True)
class TypeLint:
    """Checks the columns of the table at `uri`.

    `parquet` are its Parquet columns by path. `one_side` are columns on the one-side of a relationship, whose values
    must differ. `rows` are the stored rows, of which deletion vectors hide `hidden`.
    """

    uri: str
    names: ColumnNames
    partitioned_by: Sequence[str] = ()
    parquet: Mapping[str, ParquetColumn] = field(default_factory=dict)
    one_side: Sequence[str] = ()
    rows: int | None = None
    hidden: int = 0

    def issues(self) -> tuple[TypeIssue, ...]:
        """Return all issues, in the order of the table's columns. Raises SettingError for an unknown `one_side`."""
        self.names.require(self.one_side)
        fields = self.names.schema.fields
        unloadable = {found.column: found for found in unloadable_columns(fields)}
        issues: list[TypeIssue] = []
        for column in fields:
            if found := unloadable.get(column.name):
                issues.append(TypeIssue(column.name, column.type, Certainty.FAILS, found.message))
            else:
                issues.extend(self._values(column))
            if column.name in self.one_side:
                issues.extend(self._unique(column))
        return tuple(issues)

    def _values(self, column: Field) -> Iterator[TypeIssue]:
        name = quoted(column.name)
        if column.is_text:
            declared, stored = _DECLARED_LENGTH.fullmatch(column.type), self._stored(column)
            bounds = [int(declared[1])] if declared else []
            if stored is not None and stored.longest_bytes is not None:
                bounds.append(stored.longest_bytes)
            is_short = column.name in self.partitioned_by  # its values are names of folders
            if not is_short and min(bounds, default=MOST_CHARACTERS + 1) > MOST_CHARACTERS:
                message = f"may hold texts of more than {MOST_CHARACTERS:,} characters, the most that Direct Lake loads"
                statement = self._select(f"max(length({name}))")
                yield TypeIssue(column.name, column.type, Certainty.UNSEEN, message, statement)
        elif column.type in _FLOATS:
            message = "may hold NaN or infinity, which Direct Lake doesn't support and footers don't show: use DECIMAL"
            statement = self._select("count(*)", f"WHERE isnan({name}) OR abs({name}) = double('infinity')")
            yield TypeIssue(column.name, column.type, Certainty.MAY_FAIL, message, statement)
        elif column.type not in _LOADED and not column.type.startswith("decimal("):
            message = (
                f"has the type {column.type}, which Microsoft doesn't document: cast it, or leave it out of the model"
            )
            yield TypeIssue(column.name, column.type, Certainty.MAY_FAIL, message)

    def _unique(self, column: Field) -> Iterator[TypeIssue]:
        """Dictionaries prove some duplicates; in a table of one row group they can prove that there are none."""
        stored, name = self._stored(column), quoted(column.name)
        distinct = stored.distinct if stored else None
        # All rows of files that are older than the column are nulls.
        if stored is not None and distinct is not None and distinct.least == stored.values == self.rows:
            return
        certainty = Certainty.UNSEEN
        message = "must be unique on the one-side of a relationship, which neither the log nor footers show"
        shown = None if stored is None or stored.nulls is None else stored.values - stored.nulls - self.hidden
        if distinct is not None and shown is not None and shown > distinct.most:
            certainty = Certainty.FAILS
            message = (
                f"has duplicates, at most {distinct.most:,} different values in {shown:,} rows: queries fail if it is "
                "on the one-side of a relationship, where it must be unique"
            )
        statement = self._select(f"{name}, count(*)", f"GROUP BY {name} HAVING count(*) > 1")
        yield TypeIssue(column.name, column.type, certainty, message, statement)

    def _stored(self, column: Field) -> ParquetColumn | None:
        return self.parquet.get(column.physical_name or column.name)

    def _select(self, what: str, rest: str = "") -> str:
        return f"SELECT {what} FROM {table_at(self.uri)} {rest}".rstrip()  # noqa: S608 for people to run
