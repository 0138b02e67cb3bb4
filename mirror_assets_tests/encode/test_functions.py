"""The functions that an expression may call, compared with the installed Spark's own."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from mirror_assets.encode.functions import DATE_AT, PARSERS, TIMESTAMP_AT, function_problem
from mirror_assets.encode.jvm import Jvm
from mirror_assets_tests.catalyst import analyzed, items, parts

_CATALYST = "org.apache.spark.sql.catalyst.expressions."
_NOT_ONE_ROW = ("aggregate.AggregateFunction", "Generator", "WindowFunction", "Nondeterministic")
_UNDECIDED = "not in the list"


@pytest.fixture(scope="module")
def functions(spark: SparkSession) -> list[str]:
    return [row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect() if row[0].isidentifier()]


def test_every_function_of_the_installed_spark_is_decided_on(functions: list[str]) -> None:
    """Add a new one to `encode/functions.py`: to those that may be called, or with the reason why not."""
    assert [name for name in functions if _UNDECIDED in function_problem(name)] == []
    assert _UNDECIDED in function_problem("ours")


def test_no_function_of_many_rows_or_with_random_values_may_be_called(
    spark: SparkSession, functions: list[str]
) -> None:
    java, refused = Jvm(spark).root.java.lang.Class, list[str]()
    kinds = [java.forName(f"{_CATALYST}{name}") for name in _NOT_ONE_ROW]
    for name in functions:
        found = spark.catalog.getFunction(f"`{name}`").className or ""  # some of Python have none
        if found.startswith(_CATALYST) and any(kind.isAssignableFrom(java.forName(found)) for kind in kinds):
            refused.append(name)
    assert {"rand", "sum", "stack", "row_number", "shuffle"} <= set(refused)
    # Their classes make generators, and are none themselves.
    refused += ["explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer"]
    assert [name for name in refused if not function_problem(name)] == []


@pytest.mark.soak
def test_the_arguments_that_are_read_as_times_are_those_of_sparks_input_types(
    spark: SparkSession, functions: list[str]
) -> None:
    rows, found = spark.createDataFrame([], "a STRING, b STRING, c STRING, d STRING"), dict[str, set[int]]()
    for name in functions:
        for count in range(1, 5):
            call = f"`{name}`({', '.join('abcd'[:count])})"
            if not function_problem(name) and name not in PARSERS and (read := _read_as_times(rows, call)):
                found.setdefault(f"{name}/{count}", set()).update(read)
    known = {**DATE_AT, **TIMESTAMP_AT}
    assert len(found) > 30
    for form, positions in found.items():
        assert positions <= set(known.get(form, known.get(form.partition("/")[0], ()))), form


def _read_as_times(rows: DataFrame, call: str) -> set[int]:
    """Return the positions of texts in a call that Spark casts to dates or timestamps."""
    try:
        casts = [part for part in parts(rows, analyzed(rows, call)) if part.getClass().getSimpleName() == "Cast"]
    except (PySparkException, Py4JJavaError):
        return set()
    times = (cast.child() for cast in casts if str(cast.dataType().simpleString()) in ("date", "timestamp"))
    return {"abcd".index(str(child.name())) for child in times if not list(items(child.children()))}
