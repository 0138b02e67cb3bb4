"""Columns of every type, each with two values and what must be in the mirror of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo


@dataclass(frozen=True)
class Case:
    """A column's name and type; a low and a high value in SQL, and as they are in the mirror."""

    name: str
    type: str
    low: str
    high: str
    landed_low: object
    landed_high: object


_FIRST, _LAST = datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)  # noqa: DTZ001 one has no zone

NUMBERS = (
    Case("byte", "TINYINT", "-128", "127", -128, 127),
    Case("short", "SMALLINT", "-32768", "32767", -32768, 32767),
    Case("int", "INT", "-2147483648", "2147483647", -(2**31), 2**31 - 1),
    Case("long", "BIGINT", "-9223372036854775808", "9223372036854775807", -(2**63), 2**63 - 1),
    Case("float", "FLOAT", "float('-0.0')", "float('NaN')", -0.0, math.nan),
    Case("double", "DOUBLE", "double('-0.0')", "double('NaN')", -0.0, math.nan),
    Case("wide", "DOUBLE", "double('-Infinity')", "1.7976931348623157E308D", -math.inf, 1.7976931348623157e308),
    Case("cents", "DECIMAL(9, 2)", "-9999999.99", "0.01", Decimal("-9999999.99"), Decimal("0.01")),
    Case(
        "eighteen", "DECIMAL(18, 4)", "-1.0001", "99999999999999.9999", Decimal("-1.0001"), Decimal("9" * 14 + ".9999")
    ),
    Case("digits", "DECIMAL(38, 0)", f"-{'9' * 38}BD", f"{'9' * 38}BD", Decimal("-" + "9" * 38), Decimal("9" * 38)),
    Case(
        "fraction",
        "DECIMAL(38, 38)",
        f"-0.{'9' * 38}BD",
        f"0.{'0' * 37}1BD",
        Decimal(f"-0.{'9' * 38}"),
        Decimal("1E-38"),
    ),
    Case("flag", "BOOLEAN", "false", "true", False, True),
)

TEXTS = (
    Case("text", "STRING", "''", r"'nul \u0000, line\n, \U0001F9CA'", "", "nul \0, line\n, \U0001f9ca"),
    Case("char", "CHAR(5)", "''", "'ab'", "     ", "ab   "),
    Case("varchar", "VARCHAR(3)", "''", "'abc'", "", "abc"),
    Case("bytes", "BINARY", "X''", "X'00FF'", b"", b"\0\xff"),
)

TIMES = (
    Case("date", "DATE", "DATE'0001-01-01'", "DATE'9999-12-31'", date(1, 1, 1), date(9999, 12, 31)),
    Case(
        "zoned",
        "TIMESTAMP",
        "TIMESTAMP'0001-01-01 00:00:00Z'",
        "TIMESTAMP'9999-12-31 23:59:59.999999Z'",
        _FIRST.replace(tzinfo=ZoneInfo("UTC")),
        _LAST.replace(tzinfo=ZoneInfo("UTC")),
    ),
    Case(
        "unzoned",
        "TIMESTAMP_NTZ",
        "TIMESTAMP_NTZ'0001-01-01 00:00:00'",
        "TIMESTAMP_NTZ'9999-12-31 23:59:59.999999'",
        _FIRST.replace(tzinfo=ZoneInfo("UTC")),
        _LAST.replace(tzinfo=ZoneInfo("UTC")),
    ),
)

NESTED = (
    Case(
        "variant",
        "VARIANT",
        "parse_json('null')",
        """parse_json('{"a": [1, null, "x"]}')""",
        "null",
        '{"a":[1,null,"x"]}',
    ),
    Case(
        "deep",
        "ARRAY<STRUCT<m: MAP<STRING, ARRAY<STRUCT<d: DATE, n: INT>>>>>",
        "array()",
        "array(named_struct('m', map('', array(named_struct('d', DATE'2020-02-29', 'n', NULL)))), NULL)",
        "[]",
        '[{"m":{"":[{"d":"2020-02-29"}]}},null]',
    ),
    Case(
        "inside",
        "STRUCT<t: TIMESTAMP, u: TIMESTAMP_NTZ, b: BINARY, f: DOUBLE, e: STRUCT<x: INT>>",
        "named_struct('t', TIMESTAMP'0001-01-01 00:00:00Z', 'u', NULL, 'b', X'', 'f', double('NaN'), 'e', NULL)",
        "named_struct('t', TIMESTAMP'9999-12-31 23:59:59.999999Z', 'u', TIMESTAMP_NTZ'2020-01-01 00:00:00.000001', "
        "'b', X'00FF', 'f', double('-Infinity'), 'e', named_struct('x', NULL))",
        '{"t":"0001-01-01T00:00:00.000000Z","b":"","f":"NaN"}',
        '{"t":"9999-12-31T23:59:59.999999Z","u":"2020-01-01T00:00:00.000001","b":"AP8=","f":"-Infinity","e":{}}',
    ),
)

MAPS = (
    Case("by_flag", "MAP<BOOLEAN, INT>", "map()", "map(true, NULL)", "{}", '{"true":null}'),
    Case("by_double", "MAP<DOUBLE, INT>", "map()", "map(double('NaN'), 1)", "{}", '{"NaN":1}'),
    Case("by_decimal", "MAP<DECIMAL(10, 2), INT>", "map(0.00BD, 1)", "map(1.50BD, 1)", '{"0.00":1}', '{"1.50":1}'),
    Case(
        "by_date",
        "MAP<DATE, INT>",
        "map(DATE'0001-01-01', 1)",
        "map(DATE'9999-12-31', 1)",
        '{"0001-01-01":1}',
        '{"9999-12-31":1}',
    ),
    Case(
        "by_time",
        "MAP<TIMESTAMP, INT>",
        "map()",
        "map(TIMESTAMP'2020-01-01 00:00:00.000001Z', 1)",
        "{}",
        '{"2020-01-01T00:00:00.000001Z":1}',
    ),
    Case("by_bytes", "MAP<BINARY, INT>", "map(X'', 1)", "map(X'00FF', 1)", '{"":1}', '{"AP8=":1}'),
    Case(
        "by_struct",
        "MAP<STRUCT<d: DATE, s: STRING>, ARRAY<MAP<BINARY, INT>>>",
        "map()",
        "map(named_struct('d', DATE'2020-01-01', 's', 'x'), array(map(X'FF', 1)))",
        "{}",
        r'{"{\"d\":\"2020-01-01\",\"s\":\"x\"}":[{"/w==":1}]}',
    ),
    Case("by_list", "MAP<ARRAY<INT>, INT>", "map(array(), 1)", "map(array(1, NULL), 1)", '{"[]":1}', '{"[1,null]":1}'),
    Case(
        "maps_inside",
        "STRUCT<`odd key`: MAP<DATE, INT>, plain: INT>",
        "named_struct('odd key', NULL, 'plain', 1)",
        "named_struct('odd key', map(DATE'2020-01-01', NULL), 'plain', NULL)",
        '{"plain":1}',
        '{"odd key":{"2020-01-01":null}}',
    ),
)

# No backtick: UPDATE of a table with a change feed fails on it, in Delta itself.
NAMES = tuple(
    Case(name, "STRING", "'a'", "'b'", "a", "b")
    for name in (
        "with space",
        ",;{}()=",
        "dotted.name",
        "tab\tbed",
        "名前 é",
        "_metadata",
        "__part",
        "__is_new",
        "0",
        "select",
    )
)

CASES = NUMBERS + TEXTS + TIMES + NESTED + MAPS + NAMES
