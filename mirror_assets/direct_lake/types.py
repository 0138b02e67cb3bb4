"""What of a table's columns Direct Lake can't load, told from the schema, and from footers where they know more.

Rules: reference `direct-lake` §1.3 (Microsoft, Direct Lake overview, considerations and limitations).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from mirror_assets.delta.schema import Field
from mirror_assets.direct_lake.footers.columns import ParquetColumn
from mirror_assets.direct_lake.footers.mapping import ColumnNames
from mirror_assets.direct_lake.sql import quoted, table_at

# Unicode characters; a character takes at least a byte.
MOST_CHARACTERS = 32_764

_DECLARED_LENGTH = re.compile(r"(?:var)?char\((\d+)\)")
_FLOATS = ("float", "double")
_LOADED = ("tinyint", "smallint", "int", "bigint", "boolean", "date", "timestamp", "timestamp_ntz", *_FLOATS)


class Weight(str, Enum):
    """How sure it is that queries fail, or the column is not to be had."""

    FAILS = "fails"
    MAY_FAIL = "may fail"
    UNSEEN = "unseen"  # neither the log nor footers tell


class Rule(str, Enum):
    """What Direct Lake asks of a column."""

    COMPLEX = "complex"
    BINARY = "binary"
    UNKNOWN = "unknown"
    NAN = "nan"
    LENGTH = "length"
    UNIQUE = "unique"


@dataclass(frozen=True)
class TypeFinding:
    """What is, or may be, wrong with a column; `statement` is Spark SQL that tells more, None where nothing does."""

    column: str
    type: str
    rule: Rule
    weight: Weight
    message: str
    statement: str | None = None


@dataclass(frozen=True)
class TypeLint:
    """The columns of the table at `uri`.

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

    def results(self) -> tuple[TypeFinding, ...]:
        """All findings, column by column in the table's order. Raises ColumnUnknown for an unknown `one_side`."""
        self.names.require(self.one_side)
        return tuple(result for column in self.names.schema.fields for result in self._of(column))

    def _of(self, column: Field) -> Iterator[TypeFinding]:
        if column.is_nested:
            yield self._fails(column, Rule.COMPLEX, "is complex: store its members as columns, or as JSON text")
        elif column.type == "binary":  # Delta has no GUIDs: writers put them into binary or text
            yield self._fails(column, Rule.BINARY, "is binary, as a GUID may be: store it as text")
        elif column.is_text:
            yield from self._length(column)
        elif column.type in _FLOATS:
            yield self._nan(column)
        elif column.type not in _LOADED and not column.type.startswith("decimal("):
            message = (
                f"has the type {column.type}, of which Microsoft says nothing: cast it, or leave it out of the model"
            )
            yield TypeFinding(column.name, column.type, Rule.UNKNOWN, Weight.MAY_FAIL, message)
        if column.name in self.one_side:
            yield from self._unique(column)

    def _fails(self, column: Field, rule: Rule, what: str) -> TypeFinding:
        return TypeFinding(column.name, column.type, rule, Weight.FAILS, f"{what}, or leave it out of the model")

    def _nan(self, column: Field) -> TypeFinding:
        test = f"isnan({quoted(column.name)}) OR abs({quoted(column.name)}) = double('infinity')"
        return TypeFinding(
            column.name,
            column.type,
            Rule.NAN,
            Weight.MAY_FAIL,
            "may hold NaN or infinity, which Direct Lake does not support, and footers don't tell: use DECIMAL",
            self._select("count(*)", f"WHERE {test}"),
        )

    def _length(self, column: Field) -> Iterator[TypeFinding]:
        declared, stored = _DECLARED_LENGTH.fullmatch(column.type), self._stored(column)
        bounds = [int(declared[1])] if declared else []
        if stored is not None and stored.longest_bytes is not None:
            bounds.append(stored.longest_bytes)
        is_short = column.name in self.partitioned_by  # its values name folders
        if not is_short and min(bounds, default=MOST_CHARACTERS + 1) > MOST_CHARACTERS:
            yield TypeFinding(
                column.name,
                column.type,
                Rule.LENGTH,
                Weight.UNSEEN,
                f"may hold texts of more than {MOST_CHARACTERS:,} characters, the most that Direct Lake loads",
                self._select(f"max(length({quoted(column.name)}))"),
            )

    def _unique(self, column: Field) -> Iterator[TypeFinding]:
        """Dictionaries prove some duplicates, and in tables of one row group that there are none."""
        stored = self._stored(column)
        bounds = stored.bounds if stored else None
        # Of files older than the column, all rows are nulls.
        if stored is not None and bounds is not None and bounds.least == stored.values == self.rows:
            return
        shown = None if stored is None or stored.nulls is None else stored.values - stored.nulls - self.hidden
        if bounds is not None and shown is not None and shown > bounds.most:
            yield TypeFinding(
                column.name,
                column.type,
                Rule.UNIQUE,
                Weight.FAILS,
                f"has duplicates, at most {bounds.most:,} different values in {shown:,} rows: on the one-side of a "
                "relationship, where it must be unique, queries fail",
                self._duplicates(column),
            )
            return
        yield TypeFinding(
            column.name,
            column.type,
            Rule.UNIQUE,
            Weight.UNSEEN,
            "must be unique on the one-side of a relationship, which neither the log nor footers show",
            self._duplicates(column),
        )

    def _stored(self, column: Field) -> ParquetColumn | None:
        return self.parquet.get(column.physical_name or column.name)

    def _duplicates(self, column: Field) -> str:
        name = quoted(column.name)
        return self._select(f"{name}, count(*)", f"GROUP BY {name} HAVING count(*) > 1")

    def _select(self, what: str, rest: str = "") -> str:
        return f"SELECT {what} FROM {table_at(self.uri)} {rest}".rstrip()  # noqa: S608 for people to run
