"""Calculated columns of a model as columns of its table, because Direct Lake has none (reference `direct-lake` §1).

Translates the DAX of the two cases that Microsoft's documentation names, joined texts and products. Anything else has
to be written in Spark SQL by a person.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from mirror_assets.column_types import MOST_DIGITS, Family, column_type, decimal_digits
from mirror_assets.features.direct_lake.layout import Advice, AdviceTopic
from mirror_assets.source.schema import Schema
from mirror_assets.sql_names import quoted

_NAME = re.compile(r"\s*([^=]+?)\s*=\s*(.+?)\s*", re.DOTALL)
# A column, with or without its table; a text; a number.
_OPERAND = r"(?:(?:'[^']+'|\w+)?\[(?P<column>[^\]]+)\]|\"(?P<text>(?:[^\"]|\"\")*)\"|(?P<number>\d+(?:\.\d+)?))"
_FIRST = re.compile(rf"\s*{_OPERAND}\s*")
_NEXT = re.compile(rf"\s*(?P<operator>[&*])\s*{_OPERAND}\s*")


@dataclass(frozen=True)
class CalculatedColumn:
    """A calculated column of a model: its name and its DAX."""

    name: str
    dax: str

    @classmethod
    def parse(cls, text: str) -> CalculatedColumn:
        """Parse `FullName=[FirstName] & " " & [LastName]`. Raises ValueError."""
        match = _NAME.fullmatch(text)
        if match is None:
            raise ValueError(f"expected NAME=DAX, got {text!r}")
        return cls(match[1], match[2])

    def advice(self, schema: Schema) -> Advice:
        """Return the line for `columns` that lands the values, or that none can be derived."""
        found = f"{self.name} is a calculated column, which Direct Lake on OneLake doesn't support"
        try:
            sql, kind = self._in_spark(schema)
        except ValueError as error:
            do = f"write `{self.dax}` as an expression of `columns` in mirror.yaml, in Spark SQL ({error})"
            return Advice(AdviceTopic.CALCULATED, found, do)
        line = f"{_yaml(self.name)}: {{sql: {_yaml(sql)}, type: {_yaml(kind)}}}"
        return Advice(AdviceTopic.CALCULATED, found, f"land it, by this line under `columns` in mirror.yaml: {line}")

    def _in_spark(self, schema: Schema) -> tuple[str, str]:
        """Return the expression in Spark SQL and its type. Raises ValueError for DAX that isn't translated."""
        operands, operators, at = list[re.Match[str]](), set[str](), 0
        while (match := (_NEXT if operands else _FIRST).match(self.dax, at)) is not None:
            operands.append(match)
            operators |= {match["operator"]} if len(operands) > 1 else set()
            at = match.end()
        if at < len(self.dax) or len(operators) > 1 or not operands:
            raise ValueError("only texts joined by & and products of columns are translated")
        values = [_operand(operand, schema) for operand in operands]
        if operators == {"*"}:
            return " * ".join(sql for sql, _ in values), _product([kind for _, kind in values])
        # DAX joins a blank as an empty text; `concat` would return NULL.
        return f"concat_ws('', {', '.join(sql for sql, _ in values)})", "string"


def calculated_advice(columns: Sequence[CalculatedColumn], schema: Schema) -> tuple[Advice, ...]:
    """Return the advice on each calculated column."""
    return tuple(column.advice(schema) for column in columns)


def _operand(match: re.Match[str], schema: Schema) -> tuple[str, str]:
    if match["text"] is not None:
        text = match["text"].replace('""', '"').replace("\\", "\\\\").replace("'", "\\'")
        return f"'{text}'", "string"
    if match["number"] is not None:
        whole, _, fraction = match["number"].partition(".")
        return match["number"], f"decimal({len(whole) + len(fraction)},{len(fraction)})"
    field = next((field for field in schema.fields if field.name.lower() == match["column"].lower()), None)
    if field is None:
        raise ValueError(f"the table has no column {match['column']}")
    return quoted(field.name), field.type


def _product(kinds: Sequence[str]) -> str:
    """Return the type of a product: as Spark's of decimals, without its rounding to 38 digits."""
    precision, scale = -1, 0
    for kind in kinds:
        if column_type(kind).family is Family.FLOAT:
            return "double"
        digits, fraction = decimal_digits(kind) or (column_type(kind).digits, 0)
        if not digits:
            raise ValueError(f"a product can't have a {kind}")
        precision += 1 + digits
        scale += fraction
    return f"decimal({min(precision, MOST_DIGITS)},{min(scale, MOST_DIGITS)})"


def _yaml(text: str) -> str:
    return text if re.fullmatch(r"[A-Za-z_]\w*", text) else json.dumps(text, ensure_ascii=False)
