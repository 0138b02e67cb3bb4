"""Find what of a table's columns Direct Lake can't load, by the schema, and by footers where they know more.

Rules: reference `direct-lake` §1.3 (Microsoft, Direct Lake overview, considerations and limitations).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from mirror_assets.direct_lake.footers.parquet_columns import ColumnNames, ParquetColumn
from mirror_assets.direct_lake.sql import quoted, table_at
from mirror_assets.source.schema import Field

# Unicode characters; a character takes at least a byte.
MOST_CHARACTERS = 32_764

_DECLARED_LENGTH = re.compile(r"(?:var)?char\((\d+)\)")
_FLOATS = ("float", "double")
_LOADED = ("tinyint", "smallint", "int", "bigint", "boolean", "date", "timestamp", "timestamp_ntz", *_FLOATS)


class Weight(str, Enum):
    """How sure it is that queries fail, or that the column can't be loaded."""

    FAILS = "fails"
    MAY_FAIL = "may fail"
    UNSEEN = "unseen"  # neither the log nor footers show it


class Rule(str, Enum):
    """What Direct Lake requires of a column."""

    COMPLEX = "complex"
    BINARY = "binary"
    UNKNOWN = "unknown"
    NAN = "nan"
    LENGTH = "length"
    UNIQUE = "unique"


@dataclass(frozen=True)
class TypeIssue:
    """What is, or may be, wrong with a column; `statement` is Spark SQL that finds out, None where nothing does."""

    column: str
    type: str
    rule: Rule
    weight: Weight
    message: str
    statement: str | None = None


@dataclass(frozen=True)
class TypeLint:
    """Checks the columns of the table at `uri`.

    `parquet` are its Parquet columns by path, where footers were read. `one_side` are columns on the one-side of a
    relationship, whose values must differ; `rows` are those stored, None when not known, `hidden` of them by deletion
    vectors.
    """

    uri: str
    names: ColumnNames
    partitioned_by: Sequence[str] = ()
    parquet: Mapping[str, ParquetColumn] = field(default_factory=dict)
    one_side: Sequence[str] = ()
    rows: int | None = None
    hidden: int = 0

    def issues(self) -> tuple[TypeIssue, ...]:
        """Return all issues, column by column in the table's order. Raises SettingError for an unknown `one_side`."""
        self.names.require(self.one_side)
        return tuple(issue for column in self.names.schema.fields for issue in self._of(column))

    def _of(self, column: Field) -> Iterator[TypeIssue]:
        if column.is_nested:
            message = "is complex: store its members as columns, or as JSON text, or leave it out of the model"
            yield _issue(column, Rule.COMPLEX, Weight.FAILS, message)
        elif column.type == "binary":  # Delta has no GUIDs: writers put them into binary or text
            message = "is binary, as a GUID may be: store it as text, or leave it out of the model"
            yield _issue(column, Rule.BINARY, Weight.FAILS, message)
        elif column.is_text:
            yield from self._length(column)
        elif column.type in _FLOATS:
            message = (
                "may hold NaN or infinity, which Direct Lake does not support, and footers don't tell: use DECIMAL"
            )
            test = f"isnan({quoted(column.name)}) OR abs({quoted(column.name)}) = double('infinity')"
            yield _issue(column, Rule.NAN, Weight.MAY_FAIL, message, self._select("count(*)", f"WHERE {test}"))
        elif column.type not in _LOADED and not column.type.startswith("decimal("):
            message = (
                f"has the type {column.type}, of which Microsoft says nothing: cast it, or leave it out of the model"
            )
            yield _issue(column, Rule.UNKNOWN, Weight.MAY_FAIL, message)
        if column.name in self.one_side:
            yield from self._unique(column)

    def _length(self, column: Field) -> Iterator[TypeIssue]:
        declared, stored = _DECLARED_LENGTH.fullmatch(column.type), self._stored(column)
        bounds = [int(declared[1])] if declared else []
        if stored is not None and stored.longest_bytes is not None:
            bounds.append(stored.longest_bytes)
        is_short = column.name in self.partitioned_by  # its values name folders
        if not is_short and min(bounds, default=MOST_CHARACTERS + 1) > MOST_CHARACTERS:
            message = f"may hold texts of more than {MOST_CHARACTERS:,} characters, the most that Direct Lake loads"
            statement = self._select(f"max(length({quoted(column.name)}))")
            yield _issue(column, Rule.LENGTH, Weight.UNSEEN, message, statement)

    def _unique(self, column: Field) -> Iterator[TypeIssue]:
        """Dictionaries prove some duplicates, and in tables of one row group that there are none."""
        stored, name = self._stored(column), quoted(column.name)
        bounds = stored.bounds if stored else None
        # Of files older than the column, all rows are nulls.
        if stored is not None and bounds is not None and bounds.least == stored.values == self.rows:
            return
        weight = Weight.UNSEEN
        message = "must be unique on the one-side of a relationship, which neither the log nor footers show"
        shown = None if stored is None or stored.nulls is None else stored.values - stored.nulls - self.hidden
        if bounds is not None and shown is not None and shown > bounds.most:
            weight = Weight.FAILS
            message = (
                f"has duplicates, at most {bounds.most:,} different values in {shown:,} rows: on the one-side of a "
                "relationship, where it must be unique, queries fail"
            )
        statement = self._select(f"{name}, count(*)", f"GROUP BY {name} HAVING count(*) > 1")
        yield _issue(column, Rule.UNIQUE, weight, message, statement)

    def _stored(self, column: Field) -> ParquetColumn | None:
        return self.parquet.get(column.physical_name or column.name)

    def _select(self, what: str, rest: str = "") -> str:
        return f"SELECT {what} FROM {table_at(self.uri)} {rest}".rstrip()  # noqa: S608 for people to run


def _issue(column: Field, rule: Rule, weight: Weight, message: str, statement: str | None = None) -> TypeIssue:
    return TypeIssue(column.name, column.type, rule, weight, message, statement)
