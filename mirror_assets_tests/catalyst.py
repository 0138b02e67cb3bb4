"""What Spark's analyzer makes of an expression, by Catalyst's classes: the oracle of what is found by parsing it."""

from __future__ import annotations

from collections.abc import Iterator

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mirror_assets.encode.jvm import Jvm


def analyzed(rows: DataFrame, sql: str) -> JavaObject:
    """Return the expression of the analyzed plan. Raises what Spark's analyzer raises."""
    value = rows.select(F.expr(sql).alias("value"))
    return value._jdf.queryExecution().analyzed().projectList().apply(0).child()


def parts(rows: DataFrame, expression: JavaObject) -> Iterator[JavaObject]:
    """Yield the expression and all below it; of one that Spark replaces by another, both."""
    yield expression
    for child in items(expression.children()):
        yield from parts(rows, child)
    if is_a(rows, expression, "RuntimeReplaceable"):
        yield from parts(rows, expression.replacement())


def is_a(rows: DataFrame, expression: JavaObject, name: str) -> bool:
    """Return whether an expression has a class or trait of Catalyst."""
    kind = f"org.apache.spark.sql.catalyst.expressions.{name}"
    return bool(Jvm(rows.sparkSession).root.java.lang.Class.forName(kind).isInstance(expression))


def items(sequence: JavaObject) -> Iterator[JavaObject]:
    """Yield the items of a Scala sequence; by index, because py4j's iteration ends with an exception of 25 ms."""
    indexed = sequence.toIndexedSeq()
    return (indexed.apply(index) for index in range(indexed.length()))
