"""Find columns that Direct Lake can't load, or perhaps can't, by the schema and the footers.

Rules: reference `direct-lake` §1.3 (Microsoft, Direct Lake overview, considerations and limitations).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum

from mirror_assets.column_types import Family
from mirror_assets.features.direct_lake.column_sizes import ColumnNames, ParquetColumn
from mirror_assets.sql_names import quoted, table_at

# Unicode characters; each takes at least one byte.
MOST_CHARACTERS = 32_764

_DECLARED_LENGTH = re.compile(r"(?:var)?char\((\d+)\)")


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


def type_issues(
    uri: str,
    names: ColumnNames,
    partitioned_by: Collection[str] = (),
    columns: Iterable[ParquetColumn] = (),
) -> tuple[TypeIssue, ...]:
    """Return all issues of the table at `uri`, in the order of its columns; `columns` are those of its files."""
    fields, longest = names.schema.fields, {column.path: column.longest_bytes for column in columns}
    issues = []
    for column in fields:
        name, kind = quoted(column.name), column.type
        family, why_not = column.kind.family, column.kind.direct_lake
        if why_not:
            issues.append(TypeIssue(column.name, kind, Certainty.FAILS, why_not))
        elif family is Family.TEXT:
            declared = _DECLARED_LENGTH.fullmatch(kind)
            lengths = (int(declared[1]) if declared else None, longest.get(column.physical_name or column.name))
            most = min((length for length in lengths if length is not None), default=MOST_CHARACTERS + 1)
            # Values of partition columns are names of folders, which are short.
            if column.name not in partitioned_by and most > MOST_CHARACTERS:
                message = (
                    f"may hold texts of more than {MOST_CHARACTERS:,} characters, the most that Direct Lake loads; a "
                    f"mirror can land left({name}, {MOST_CHARACTERS})"
                )
                statement = f"SELECT max(length({name})) FROM {table_at(uri)}"  # noqa: S608 for people to run
                issues.append(TypeIssue(column.name, kind, Certainty.UNSEEN, message, statement))
        elif family is Family.FLOAT:
            message = (
                "may hold NaN or infinity, which Direct Lake doesn't support and footers don't show: use DECIMAL, in a "
                f"mirror by `{column.name}: {{sql: try_cast({name} AS DECIMAL(18,4)), type: 'decimal(18,4)'}}`"
            )
            test = f"isnan({name}) OR abs({name}) = double('infinity')"
            statement = f"SELECT count(*) FROM {table_at(uri)} WHERE {test}"  # noqa: S608 for people to run
            issues.append(TypeIssue(column.name, kind, Certainty.MAY_FAIL, message, statement))
        elif why_not is None:
            message = f"has the undocumented type {kind}: cast it, or leave it out of the model"
            issues.append(TypeIssue(column.name, kind, Certainty.MAY_FAIL, message))
    return tuple(issues)
