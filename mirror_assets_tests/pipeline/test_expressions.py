"""Conditions for rows, masks and derived columns: what lands, which expressions are refused, and that secrets stay."""

from __future__ import annotations

import json
import logging
import re
from itertools import cycle
from pathlib import Path

import pytest
from delta.tables import DeltaTable as SparkDeltaTable
from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from mirror_assets import redaction
from mirror_assets.config.errors import MISTAKES
from mirror_assets.config.variables import fill_sql
from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.landing.format import MarkerCounts, SliceKind
from mirror_assets.pipeline.doctor_in_spark import spark_reads
from mirror_assets.pipeline.errors import SOURCE_BROKE
from mirror_assets.pipeline.preview import landing_rows
from mirror_assets.pipeline.repair_table import repair_table
from mirror_assets.verify.reconciliation import ReconcileState
from mirror_assets_tests.errors import raises, raises_row
from mirror_assets_tests.expressions import bad, good
from mirror_assets_tests.lab import TABLE, Lab

SALT = "planted-secret '\\ of the lake"
MASK = "name: \"sha2(concat(name, '${SALT}'), 256)\""
TOTAL = "total: {sql: 'amount * id', type: 'decimal(20,2)'}"


@pytest.fixture(autouse=True)
def _salt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SALT", SALT)


def _configure(lab: Lab, *columns: str, where: str = "", more: str = "") -> None:
    lines = [f"where: {json.dumps(where)}"] if where else []
    lines += ["columns:", *(f"  {column}" for column in columns)] if columns else []
    lab.configure("\n    ".join([*lines, *([more] if more else [])]))


def _mirrored_rows(lab: Lab) -> list[dict[str, object]]:
    lab.replicator.poll()
    status = lab.replicator.table(TABLE)
    assert status is not None
    return sorted(DeltaTable(status.location).to_pyarrow_table().to_pylist(), key=lambda row: str(row["id"]))


def test_a_row_that_leaves_the_condition_is_deleted_and_one_that_enters_is_inserted(lab: Lab) -> None:
    _configure(lab, where="amount < 3 OR name = 'back'")
    lab.mirror()
    assert [row["id"] for row in _mirrored_rows(lab)] == [0, 1, 2, 3, 4, 5]
    lab.sql("UPDATE {t} SET amount = amount + 2.5 WHERE id IN (0, 1)", "UPDATE {t} SET name = 'back' WHERE id = 9")
    (mirrored,) = lab.mirror()
    assert mirrored.record.markers == MarkerCounts(inserts=1, updates=1, deletes=1)
    assert [row["id"] for row in _mirrored_rows(lab)] == [0, 2, 3, 4, 5, 9]
    assert lab.is_equal


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO {t} SELECT CAST(id + 100 AS INT), IF(id % 2 = 0, 'in', NULL), 1 FROM range(1000)",
        "UPDATE {t} SET name = IF(name = 'in', NULL, 'in')",
        "DELETE FROM {t} WHERE amount < 100",
    ],
    ids=["inserts", "updates", "deletes"],
)
def test_a_large_commit_lands_without_the_counts_of_its_log(lab: Lab, statement: str) -> None:
    """A commit of one kind would land unpaired, with counts that the log has of all rows."""
    lab.configure("where: \"name = 'in'\"\n    files: {target_rows: 10}")
    lab.sql("INSERT INTO {t} SELECT CAST(id + 20 AS INT), IF(id % 3 = 0, 'in', NULL), 1 FROM range(500)")
    lab.mirror()
    lab.sql(statement)
    lab.mirror()
    assert lab.is_equal
    assert {row["name"] for row in _mirrored_rows(lab)} <= {"in"}


def test_masks_and_derived_columns_land_as_their_expressions(lab: Lab) -> None:
    _configure(lab, MASK, TOTAL, where="id < 3")
    lab.mirror()
    lab.sql("UPDATE {t} SET amount = 2.25 WHERE id = 2")
    lab.mirror()
    escaped = SALT.replace("\\", "\\\\").replace("'", "\\'")
    source = lab.spark.sql(
        f"SELECT id, sha2(concat(name, '{escaped}'), 256) AS name, amount, "
        f"CAST(amount * id AS DECIMAL(20, 2)) AS total FROM delta.`{lab.uri}` WHERE id < 3 ORDER BY id"
    )
    assert _mirrored_rows(lab) == [row.asDict() for row in source.collect()]
    assert lab.is_equal


def test_keys_may_be_hashed(lab: Lab) -> None:
    _configure(lab, 'id: {sql: "sha2(string(id), 256)", type: string}')
    lab.mirror()
    lab.change()
    lab.mirror()
    assert lab.is_equal
    assert all(isinstance(row["id"], str) for row in _mirrored_rows(lab))


def test_each_bad_expression_is_refused_with_its_line(lab: Lab) -> None:
    lab.spark.udf.register("ours", lambda name: name)
    expressions = bad(lab.spark)
    columns = (f"c{index}: {{sql: {json.dumps(sql)}, type: string}}" for index, sql in enumerate(expressions))
    _configure(lab, *columns, where="max(id) > 3")
    with raises_row(MISTAKES) as refused:
        lab.mirror()
    found = {problem.path: problem for problem in refused.value.facts["problems"]}
    for index, (sql, message) in enumerate(expressions.items()):
        problem = found.pop(f"tables.shop.orders.columns.c{index}")
        assert message in problem.message, (sql, problem.message)
        assert problem.line is not None
        assert json.dumps(sql) in lab.config_file.read_text().splitlines()[problem.line - 1]
    assert list(found) == ["tables.shop.orders.where"]
    assert lab.context.manifest() is None


def test_expressions_that_only_look_like_those_are_accepted(lab: Lab) -> None:
    columns = (f"c{index}: {{sql: {json.dumps(sql)}, type: string}}" for index, sql in enumerate(good(lab.spark)))
    _configure(lab, *columns, where="name <> 'now' -- or id = 1")
    spark_reads(lab.context, lab.context.log.state())


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ('total: "amount * id"', "set `type`: the source has no column 'total'"),
        ("__rowMarker__: {sql: id, type: int}", "has the name of the landing file's row marker"),
        ("id: 'NULL'", "a key can't be NULL"),
        ('id: {sql: "amount", type: double}', "can't be a key: floating-point numbers have no exact equality"),
        ("total: {sql: amount, type: 'struct<a: int>'}", "can't land"),
        ("at: {sql: name, type: timestamp}", "it reads a text as a timestamp"),
        ("total: {sql: amount, typ: int}", "unknown setting 'typ'; did you mean 'type'?"),
    ],
)
def test_each_bad_column_is_refused(lab: Lab, column: str, message: str) -> None:
    _configure(lab, column)
    with raises_row(MISTAKES, match=re.escape(message)):
        lab.mirror()


def test_a_row_that_an_expression_fails_for_stops_the_table_without_its_values(lab: Lab) -> None:
    _configure(lab, 'number: {sql: "CAST(name AS INT)", type: int}')
    lab.sql("UPDATE {t} SET name = 'private words' WHERE id = 3")
    with raises(SettingError, ErrorCode.EXPRESSION_FAILED, "CAST_INVALID_INPUT") as failed:
        lab.mirror()
    assert "private words" not in str(failed.value)
    assert failed.value.__cause__ is None
    assert lab.context.manifest() is None


@pytest.mark.parametrize(
    ("statement", "broken"),
    [
        ("ALTER TABLE {t} ADD COLUMNS (info.b INT)", "`info.b` was added"),
        ("ALTER TABLE {t} RENAME COLUMN country TO land", "`country` was renamed"),
        ("ALTER TABLE {t} DROP COLUMN country", "`country` was dropped"),
    ],
)
def test_only_columns_that_are_listed_or_used_can_break(lab: Lab, statement: str, broken: str) -> None:
    lab.sql(
        "ALTER TABLE {t} SET TBLPROPERTIES (delta.columnMapping.mode = 'name')",
        "ALTER TABLE {t} ADD COLUMNS (country STRING, note STRING, info STRUCT<a: INT>)",
        "UPDATE {t} SET country = IF(id < 5, 'DE', 'FR'), info = named_struct('a', id)",
    )
    _configure(lab, '- label: {sql: "info.a || name", type: string}', where="country = 'DE'", more="on_break: hold")
    lab.mirror()
    lab.sql(
        "ALTER TABLE {t} RENAME COLUMN note TO remark",
        "ALTER TABLE {t} DROP COLUMN amount",
        "DELETE FROM {t} WHERE id = 1",
    )
    lab.mirror()
    assert lab.is_equal
    assert [row["label"] for row in _mirrored_rows(lab)] == ["0n0", "2n2", "3n3", "4n4"]
    lab.sql(statement)
    with raises_row(SOURCE_BROKE, match=broken):
        lab.mirror()


@pytest.mark.parametrize("change", ["where", "expression", "salt", "type"])
def test_another_condition_or_expression_is_a_break(lab: Lab, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    _configure(lab, MASK, TOTAL, where="id < 5")
    lab.mirror()
    before = lab.manifest()
    assert lab.is_equal
    if change == "salt":
        monkeypatch.setenv("SALT", "another secret")
    mask, total = MASK.replace("256", "512") if change == "expression" else MASK, TOTAL
    total = total.replace("20,2", "20,3") if change == "type" else total
    _configure(lab, mask, total, where="id < 6" if change == "where" else "id < 5")
    assert lab.compare().state is ReconcileState.OUTDATED
    lab.mirror()
    assert lab.manifest().epoch == before.epoch + 1
    assert lab.is_equal


def test_a_repair_lands_only_what_other_settings_change(lab: Lab) -> None:
    _configure(lab, MASK, where="id < 5")
    lab.mirror()
    lab.replicator.poll()
    _configure(lab, MASK, where="id < 6", more="on_break: repair")
    repaired = repair_table(lab.context, lab.replicator, lambda _: None)
    assert repaired is not None
    assert (repaired.record.kind, repaired.record.markers) == (SliceKind.REPAIR, MarkerCounts(upserts=1))
    assert lab.is_equal
    assert lab.manifest().epoch == 1
    lab.change()
    lab.mirror()
    assert lab.is_equal
    assert lab.manifest().epoch == 1


def test_a_preview_shows_masked_rows_before_anything_has_landed(lab: Lab) -> None:
    _configure(lab, MASK, "note: {sql: \"to_json(named_struct('a', id))\", type: string}", where="id >= 8")
    rows = [json.loads(row) for row in landing_rows(lab.context, 10)]
    assert [(row["id"], row["note"]) for row in rows] == [(8, '{"a":8}'), (9, '{"a":9}')]
    assert all(len(row["name"]) == 64 for row in rows)
    assert len(landing_rows(lab.context, 1)) == 1
    assert lab.context.manifest() is None


def test_the_doctor_checks_expressions(lab: Lab) -> None:
    _configure(lab, MASK, where="id < current_date()")
    with raises_row(MISTAKES, match=r"tables\.shop\.orders\.where"):
        spark_reads(lab.context, lab.context.log.state())


def test_an_unset_variable_is_a_mistake(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SALT")
    _configure(lab, MASK)
    with raises_row(MISTAKES, match="environment variable SALT is not set"):
        lab.mirror()


def test_secrets_are_in_no_file_log_or_error(
    lab: Lab, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    said: list[str] = []
    with caplog.at_level(logging.DEBUG):
        _configure(lab, MASK, where="name <> '${SALT}'")
        lab.mirror(said.append)
        assert lab.is_equal
        for column in (
            "name: \"nme || '${SALT}'\"",
            'name: "name || \'${SALT}"',
            "name: \"boolean(name || '${SALT}')\"",
        ):
            _configure(lab, column)
            with pytest.raises(SettingError) as failed:
                lab.mirror(said.append)
            error: BaseException | None = failed.value
            while error is not None:
                said.append(f"{error} {error!r}")
                error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    printed = capfd.readouterr()
    texts = [caplog.text, printed.out, printed.err, repr(lab.context), repr(lab.config), *said]
    texts += [path.read_bytes().decode("latin-1") for path in Path(lab.root).rglob("*") if path.is_file()]
    assert len(texts) > 20
    assert not [text[:200] for text in texts if "planted-secret" in text]


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(st.text(min_size=1), min_size=1, max_size=20))
def test_any_value_of_a_variable_stands_for_itself_inside_quotes(spark: SparkSession, values: list[str]) -> None:
    literals = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(redaction, "_references", {})  # random texts may be in messages of other tests
        for value, quote in zip(values, cycle("'\""), strict=False):
            literals.append(fill_sql("where", f"{quote}${{V}}{quote}", {"V": value}))
    row = spark.range(1).select(*(F.expr(literal).alias(f"c{at}") for at, literal in enumerate(literals))).collect()[0]
    assert list(row) == values


_ROWS = (
    "INSERT INTO delta.`{}` (id, at) VALUES ({}, timestamp '2024-01-15T20:00:00-05:00'), "
    "({}, timestamp '2024-01-15T12:00:00Z')"
)


@pytest.mark.parametrize("changes", ["feed", "files"])
def test_rows_of_another_zones_day_are_read(spark: SparkSession, tmp_path: Path, changes: str) -> None:
    """A day of New York begins five hours later: a filter by the day that this session would generate loses rows."""
    lab, writer = Lab(spark, tmp_path), spark.newSession()
    writer.conf.set("spark.sql.session.timeZone", "America/New_York")
    made = SparkDeltaTable.create(writer).location(lab.uri).property("delta.enableChangeDataFeed", "true")
    made = made.addColumn("id", "INT").addColumn("at", "TIMESTAMP").partitionedBy("day")
    made.addColumn("day", "DATE", generatedAlwaysAs="CAST(at AS DATE)").execute()
    writer.sql(_ROWS.format(lab.uri, 1, 2))
    lab.configure(f"changes: {changes}\n    where: at >= timestamp '2024-01-16 00:00:00'")
    lab.mirror()
    assert [row["id"] for row in _mirrored_rows(lab)] == [1]
    writer.sql(_ROWS.format(lab.uri, 3, 4))
    lab.mirror()
    assert [row["id"] for row in _mirrored_rows(lab)] == [1, 3]
    writer.sql(f"DELETE FROM delta.`{lab.uri}` WHERE id = 1")
    lab.mirror()
    assert [row["id"] for row in _mirrored_rows(lab)] == [3]
    assert lab.is_equal
