"""Finds what an expression is made of in its parsed text: functions, names, and texts that are read as timestamps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.dialects.spark import Spark

from mirror_assets.encode.functions import (
    BY_SESSION,
    BY_TIME,
    DATE_AT,
    FORMS_REFUSED,
    LOOKUPS,
    MIXING,
    ONE_ROW,
    OWN_FUNCTION,
    PARSERS,
    TIMESTAMP_AT,
    VARIABLES,
    function_problem,
)
from mirror_assets.source.schema import Schema
from mirror_assets.source.sql_columns import names_read, parse_sql

_SUBQUERY = "it has a subquery; it must be computed from the columns of one row"
_BY_DAY = "a text that is a time without a day is one of today, so its value depends on the day"
_BY_TEXT = (
    "it reads a text as a timestamp, and a text that is a time without a day is one of today; give the format of the "
    "text, as in to_timestamp(text, 'yyyy-MM-dd HH:mm:ss')"
)
_COMPUTED_TEXT = (
    "its value depends on the time if it computes a text such as 'now', which it reads as a date or a timestamp; write "
    "the text without computing it"
)
# Spark replaces these by settings of its session before it reads the expression.
_SETTING = re.compile(r"\$\{\S+?\}")
_OF_ROWS = (exp.Window, exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls, exp.Distinct, exp.Order)
# The parts that an expression may have; names of functions are checked apart. All other parts of SQL are refused.
_COMPARED = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_COMPUTED = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv)
_BITS = (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseLeftShift, exp.BitwiseRightShift)
_TEXTS = (exp.DPipe, exp.Like, exp.ILike, exp.RegexpLike, exp.Escape, exp.Collate, exp.Concat)
_LITERALS = (exp.Literal, exp.RawString, exp.HexString, exp.Boolean, exp.Null, exp.Interval, exp.IntervalSpan)
_NAMES = (exp.Column, exp.Identifier, exp.Dot, exp.Var, exp.Star, exp.Bracket, exp.Lambda, exp.Kwarg)
_CALLS = (exp.Anonymous, exp.Cast, exp.TryCast, exp.Extract, exp.Trim, exp.Substring, exp.StrPosition, exp.Overlay)
_LOGIC = (
    exp.And,
    exp.Or,
    exp.Not,
    exp.Neg,
    exp.BitwiseNot,
    exp.Is,
    exp.In,
    exp.Between,
    exp.Case,
    exp.If,
    exp.Any,
)
_ALLOWED = (*_COMPARED, *_COMPUTED, *_BITS, *_TEXTS, *_LITERALS, *_NAMES, *_CALLS, *_LOGIC, exp.Paren, exp.Tuple)
# What Spark reads as a time that moves, in texts that don't depend on a row: special words, with or without a zone; and
# as one of today: a time without a day.
_NOW = re.compile(r"\s*(?:now|today|tomorrow|yesterday)\b.*", re.IGNORECASE | re.DOTALL)
_TIME_OF_DAY = re.compile(r"\s*(?:T\d{1,2}|T?\d{1,2}:).*", re.DOTALL)
_HAS_TEXT = re.compile(r"\b(?:string|variant|char|varchar)\b")
# A text beside an interval is read as a timestamp. One with a time alone is no `timestamp_ntz`, as it is no date.
_HAS_TIME, _HAS_DATE = re.compile(r"\b(?:timestamp|interval)\b"), re.compile(r"\b(?:date|timestamp_ntz)\b")
_KEY = re.compile(r"map<([^,<]+),.*")
_TIMESTAMP, _DATE = "CAST(NULL AS TIMESTAMP)", "CAST(NULL AS DATE)"


@dataclass(frozen=True)
class Reading:
    """A value in an expression that Spark may read as the type of another: both as texts that Spark understands alone.

    `constant`: whether the value reads no column. `literal`: its text, if it is one.
    """

    value: str
    beside: str
    constant: bool
    literal: str | None

    def problem(self, value: str, beside: str) -> str:
        """Return why the value, with these types, differs at each reading, or an empty text; an unknown type is both.

        Spark replaces special words in constants alone, and a time without a day in any text that becomes a timestamp.
        """
        target = _KEY.sub(r"\1", beside) if not value.startswith("map<") else beside
        has_time, has_date = (not target or kind.search(target) for kind in (_HAS_TIME, _HAS_DATE))
        if value == beside != "" or (value and not _HAS_TEXT.search(value)) or not (has_time or has_date):
            return ""
        if self.literal is not None:
            return BY_TIME if _NOW.fullmatch(self.literal) else _BY_DAY if _TIME_OF_DAY.fullmatch(self.literal) else ""
        return _COMPUTED_TEXT if self.constant else _BY_TEXT if has_time else ""


def part_problem(sql: str, schema: Schema) -> str:
    """Return why the parts of an expression make it differ at each reading, or an empty text. Raises SqlNotParsed."""
    tree = parse_sql(sql)
    if tree.selects[0].find(exp.Query, exp.Exists):
        return _SUBQUERY
    called = (OWN_FUNCTION if is_qualified else function_problem(name) for name, is_qualified in _calls(sql))
    columns = {field.name.lower() for field in schema.fields}
    unknown = (_unknown_name(name) for name in sorted(names_read(sql) - columns - {"*"}))
    parts = (_unchecked(node) for node in tree.selects[0].walk(prune=lambda node: isinstance(node, exp.DataType)))
    forms = (
        FORMS_REFUSED.get(f"{call.name.lower()}/{len(call.expressions)}", "") for call in tree.find_all(exp.Anonymous)
    )
    setting = BY_SESSION if _SETTING.search(sql) else ""
    return next((found for found in (*called, *forms, *unknown, *parts, setting) if found), "")


def called_functions(sql: str) -> list[str]:
    """Return the lower names of the functions that an expression calls by name. Raises SqlNotParsed."""
    return sorted({call.name.lower() for call in parse_sql(sql).find_all(exp.Anonymous)})


def readings(sql: str) -> list[Reading]:
    """Return the values that Spark may read as dates or timestamps because of what is beside. Raises SqlNotParsed."""
    tree = parse_sql(sql)
    found = [
        Reading(_alone(value), beside if isinstance(beside, str) else _alone(beside), not _has_column(value), text)
        for node in tree.walk(prune=lambda node: isinstance(node, exp.DataType))
        for value, beside in _beside(node)
        # A literal that a parser reads may have such a text inside.
        for text in [None if beside is node and isinstance(node, exp.Anonymous) else _text(value)]
    ]
    return list(dict.fromkeys(found))


def _calls(sql: str) -> Iterator[tuple[str, bool]]:
    """Yield each lower name before a parenthesis, as it is written, and whether it has a schema in front.

    By tokens: the parser may change a function or leave it out. `LIKE ANY (…)` calls no function.
    """
    tokens = [(token.token_type.name, token.text.lower()) for token in Spark().tokenize(sql)]
    for (before, _), (kind, name), (after, _) in zip([("", ""), *tokens], tokens, tokens[1:], strict=False):
        is_any = name in ("any", "all", "some") and before in ("LIKE", "ILIKE")
        if after == "L_PAREN" and not is_any and (kind == "IDENTIFIER" or re.match(r"[^\W\d]", name)):
            yield name, before == "DOT"


def _unknown_name(name: str) -> str:
    """Return why a name that is no column can't be read: a function without parentheses, or a variable."""
    why = function_problem(name)
    return why if why in (BY_TIME, BY_SESSION) else BY_SESSION


def _unchecked(node: exp.Expr) -> str:
    """Return why an expression can't have a part, or an empty text."""
    if isinstance(node, _OF_ROWS):
        return ONE_ROW
    is_name = isinstance(node, exp.Alias) and isinstance(node.parent, exp.Anonymous)
    is_type = isinstance(node, exp.DataType) and isinstance(node.parent, exp.Cast)
    if is_name or is_type or type(node) in _ALLOWED:
        return ""
    step = "element_at(array(a, b), 1) for array(a, b)[0]" if isinstance(node, exp.Array) else "in another way"
    return f"it has a part that can't be checked, which sqlglot calls {type(node).__name__}; write {step}"


def _beside(node: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr | str]]:
    """Yield the values in a part, each with one that decides what it is read as."""
    if isinstance(node, exp.Cast):
        if not node.is_type(exp.DataType.Type.TIME):  # sqlglot writes it as a timestamp
            yield node.this, node
    elif isinstance(node, exp.Extract):
        yield node.expression, _TIMESTAMP
    elif isinstance(node, exp.Bracket):
        yield node.expressions[0], node.this
    elif isinstance(node, exp.Anonymous):
        yield from _beside_in_call(node.name.lower(), node)
    else:
        for group in _groups(node):
            yield from _each_beside(group)


def _beside_in_call(name: str, call: exp.Anonymous) -> Iterator[tuple[exp.Expr, exp.Expr | str]]:
    values = [_value(argument) for argument in call.expressions]
    if name in PARSERS:
        if not any("'timestampFormat'" in option.sql(Spark) for option in values[2:]):
            yield values[0], call
        return
    names = (name, f"{name}/{len(values)}")
    for positions, kind in ((TIMESTAMP_AT, _TIMESTAMP), (DATE_AT, _DATE)):
        for at in next((positions[one] for one in names if one in positions), ()):
            if at < len(values):
                yield values[at], kind
    if name in LOOKUPS:
        yield values[1], values[0]
    elif name == "map":
        yield from (*_each_beside(values[::2]), *_each_beside(values[1::2]))
    elif name not in MIXING and not any(one in TIMESTAMP_AT for one in names):
        yield from _each_beside(values)


def _groups(node: exp.Expr) -> Iterator[list[exp.Expr]]:
    """Yield the values that Spark gives one type in a part, which is no function."""
    if isinstance(node, (*_COMPARED, *_COMPUTED)):
        yield [node.this, node.expression]
    elif isinstance(node, exp.In):
        yield [node.this, *node.expressions]
    elif isinstance(node, exp.Between):
        yield [node.this, node.args["low"], node.args["high"]]
    elif isinstance(node, exp.Case):
        branches, default, value = node.args["ifs"], node.args.get("default"), node.this
        yield [*(branch.args["true"] for branch in branches), *([default] if default else [])]
        if value:
            yield [value, *(branch.this for branch in branches)]


def _each_beside(group: Sequence[exp.Expr]) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    return ((value, beside) for value in group for beside in group if beside is not value)


def _value(argument: exp.Expr) -> exp.Expr:
    """Return the value of an argument: of `a AS b`, `b => a` and `x -> a`, it is `a`."""
    if isinstance(argument, (exp.Alias, exp.Lambda)):
        argument = argument.this
    return argument.expression if isinstance(argument, exp.Kwarg) else argument


def _text(value: exp.Expr) -> str | None:
    inner = value.unnest()
    is_text = isinstance(inner, exp.RawString) or (isinstance(inner, exp.Literal) and inner.is_string)
    return str(inner.this) if is_text else None


def _has_column(value: exp.Expr) -> bool:
    return next(value.find_all(exp.Column, exp.Star), None) is not None


def _alone(value: exp.Expr) -> str:
    """Return a part as a text that Spark understands outside the lambda functions around it."""
    copy = exp.Paren(this=value.copy())
    for column, copied in zip(list(value.find_all(exp.Column)), list(copy.find_all(exp.Column)), strict=True):
        if text := _stand_in(column, value):
            fields = "".join(f".{part.sql(Spark)}" for part in column.parts[1:])
            copied.replace(exp.Var(this=f"{text}{fields}"))
    return copy.sql(Spark, normalize_functions=False, comments=False)


def _stand_in(column: exp.Column, value: exp.Expr) -> str:
    """Return a value with the type of a lambda function's variable, from the arguments; empty for a column."""
    inside = {id(node) for node in value.find_all(exp.Lambda)}
    around, name = column.find_ancestor(exp.Lambda), column.parts[0].name.lower()
    while around is not None:
        variables = [variable.name.lower() for variable in around.expressions]
        if name in variables:
            call = around.parent
            if id(around) in inside or not isinstance(call, exp.Anonymous):
                return ""
            arguments = [_alone(one) for one in call.expressions if not isinstance(one, exp.Lambda)]
            kinds = VARIABLES.get(call.name.lower(), ())
            at = variables.index(name)
            return kinds[at].format(*arguments) if at < len(kinds) else ""
        around = around.find_ancestor(exp.Lambda)
    return ""
