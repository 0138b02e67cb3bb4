"""Expressions that are refused with a part of the message, and those that only look like them, for any Spark."""

from __future__ import annotations

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

_BAD = {
    "rand()": "would differ at each reading",
    "uuid()": "would differ at each reading",
    "current_timestamp()": "depends on the time",
    "unix_timestamp()": "depends on the time",
    "timestamp 'now'": "depends on the time",
    "current_user()": "depends on the session",
    "spark_partition_id()": "would differ at each reading",
    "input_file_name()": "would differ at each reading",
    "aes_encrypt(name, '0000111122223333')": "has a random part",
    "sum(amount)": "computed from one row",
    "row_number() OVER (ORDER BY id)": "computed from one row",
    "explode(array(1, 2))": "computed from one row",
    "(SELECT max(id) FROM range(3))": "has a subquery",
    "id IN (SELECT id FROM range(3))": "has a subquery",
    "nme": "`nme` cannot be resolved. Did you mean one of the following? [`name`",
    "shorten(name)": "`shorten` on search path",
    "name ||": "Syntax error at or near end of input (line 1, character 8 of the expression)",
    "named_struct('a', 1)": "can't land; to land it as text, use to_json",
    "array(name)": "can't land; to land it as text, use to_json",
    "raise_error('no')": "raises errors",
    "reflect('java.util.UUID', 'randomUUID')": "not Spark's own",
    "ours(name)": "not Spark's own",
    "name, id": "Syntax error at or near ','",
    "*": "Invalid usage of '*'",
    ":p": "unbound parameter",
    "map('a', uuid())['a']": "would differ at each reading",
    "current_timestamp": "depends on the time",
    "identifier('id')": "it reads a column that isn't found in its text",
    "name !< 'a'": "sqlglot can't parse it; put names into backticks, or write it in another way (line 1, character",
    **dict.fromkeys(
        (
            *("cast('now' as timestamp)", "date'today'", "timestamp_ltz 'yesterday'", "to_date('today')"),
            *(
                "TIMESTAMP_NTZ /* id */ ' Tomorrow'",
                "date 'today' -- by day",
                "'NOW'::timestamp",
                "try_to_timestamp('now')",
            ),
            *("date_add('today', id)", "timestamp '2020-01-01' < 'now'", "to_timestamp(concat('n', 'ow'))"),
            "if(id = 1, timestamp '2020-01-01', 'now')",
            "date_add(lower('TODAY'), id)",
            *("timestamp_ntz '2020-01-01' = 'now'", "from_json('{\"at\": \"09:30\"}', 'at timestamp').at"),
        ),
        "depends on the time",
    ),
    **dict.fromkeys(
        (
            *("cast('09:30' as timestamp)", "timestamp '09:30'", "to_timestamp('T9')", "timestamp_ltz ' 9:30:10'"),
            *("timestamp '2020-01-01' < '09:30'", "date_trunc('DAY', '09:30')", "'09:30' + interval 1 day"),
        ),
        "a text that is a time without a day is one of today",
    ),
    **dict.fromkeys(
        (
            *(
                "cast(name as timestamp)",
                "to_timestamp(name)",
                "name < timestamp '2020-01-01'",
                "date_trunc('DAY', name)",
            ),
            *("hour(name)", "name + interval 1 hour", "timestamp '2020-01-01' IN (name)", "extract(hour FROM name)"),
            *("coalesce(name, timestamp '2020-01-01')", "map(timestamp '2020-01-01', 1)[name]"),
            *("case name when timestamp '2020-01-01' then 1 end", "timestamp '2020-01-01' between name and name"),
            "timestampadd(HOUR, 1, name)",
            *("zip_with(array(name), array(timestamp '2020-01-01'), (x, y) -> x < y)[0]", "timestamp(name)"),
            *("transform(array(name), x -> x::timestamp)[0]", "from_json(name, 'at timestamp').at"),
            "try_variant_get(parse_json(name), '$', 'timestamp')",
        ),
        "give the format of the text, as in to_timestamp(text, 'yyyy-MM-dd HH:mm:ss')",
    ),
}

_GOOD = (
    *("if(name = 'now', 'today', '09:30')", "name /* date 'today' */ -- cast('now' as date)", "\"timestamp 'now'\""),
    *("timestamp '2020-01-01 09:30'", "date '2020-01-01'", "to_timestamp(name, 'HH:mm')", "cast('now' as string)"),
    *("time '09:30'", "cast(name as date)", "timestamp_seconds(id)", "cast('2020-01-01T09:30' as timestamp)"),
    *("case name when '09:30' then 'now' end", "from_json(name, 'at timestamp', map('timestampFormat', 'HH:mm')).at"),
    *("case name when 'a' then timestamp '2020-01-01' end", "date_format(timestamp '2020-01-01', name)"),
    *("from_utc_timestamp(timestamp '2020-01-01', name)", "name || timestamp '2020-01-01'", "to_json(struct(*))"),
    *("filter(split(name, ','), x -> x <> name)[0]", "aggregate(array(1), 0, (sum, x) -> sum + x)"),
    "zip_with(array(name), array(date '2020-01-01'), (x, y) -> concat(x, y))[0]",
    *("date '2020-01-01' < timestamp '2020-01-01'", "timestampadd(DAY, id, timestamp '2020-01-01')", "hash(*)"),
    *("filter(array(1, 2), ID -> ID > id)[0]", "concat('', name) < 'today'", "string(to_date(name, 'yyyy'))"),
)

# By a part of an expression, one that a Spark understands only if it knows the part.
_NEWER = {"::": "'1'::int", "variant": "parse_json('1')", "time '09:30'": "time '09:30'"}


def bad(spark: SparkSession) -> dict[str, str]:
    """What is wrong with each expression that is refused, of those with parts that this Spark knows."""
    return {sql: message for sql, message in _BAD.items() if _is_known(spark, sql)}


def good(spark: SparkSession) -> tuple[str, ...]:
    """What is the same at each reading, and looks as if it weren't."""
    return tuple(sql for sql in _GOOD if _is_known(spark, sql))


def _is_known(spark: SparkSession, sql: str) -> bool:
    try:
        for part, asked in _NEWER.items():
            if part in sql:
                spark.range(1).selectExpr(asked).schema  # noqa: B018 - it has Spark resolve it
    except PySparkException:
        return False
    return True
