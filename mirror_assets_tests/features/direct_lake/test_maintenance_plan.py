"""Plans by example: what is planned, what is omitted and why, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.features.direct_lake.maintenance_plan import (
    MaintenanceStep,
    PartitionKey,
    RewriteEffect,
    StepKind,
    literal,
    partition_predicate,
    rewrite_steps,
    script,
    vacuum_steps,
)
from mirror_assets.source.actions import LiveFile
from mirror_assets_tests.errors import raises
from mirror_assets_tests.features.direct_lake.planned_tables import MB, file, snapshot, some, vacuum_plan

_MONTH = {"month": "string"}
_SHORT = {"delta.deletedFileRetentionDuration": "interval 1 hour"}
_LONGER = "ALTER TABLE t SET TBLPROPERTIES (delta.deletedFileRetentionDuration = 'interval 3 days')"


def _statements(steps: Iterable[MaintenanceStep]) -> list[str]:
    return [step.statement for step in steps if step.statement]


def _omitted(steps: Iterable[MaintenanceStep]) -> dict[StepKind, str]:
    return {step.kind: step.why for step in steps if not step.statement}


def test_only_partitions_with_many_small_files_are_optimized() -> None:
    counts = {"2024-01": 20, "2024-02": 3, "2024-03": 9, "2024-04": 1}
    files = [one for month, count in counts.items() for one in some(count, month=month)]
    step, _ = rewrite_steps(snapshot(files, _MONTH), "t")
    assert step.statement == "OPTIMIZE t WHERE `month` = '2024-01' OR `month` = '2024-03'"
    assert step.effect == RewriteEffect(33, 6, rows_to_load=2900, bytes_to_load=29 * MB)
    assert step.why == "29 files in 2 partitions become about 2"


_HIDDEN = file("hidden", 900 * MB, 1000, hidden=900)
_BY_MONTH = [*some(20, month="a"), *some(6, 5 * MB, month="b"), *some(1, month="c")]
_DOTTED = [*(file(str(number), partition={"a.b": str(number // 20)}) for number in range(23))]
_NEW_IN_CUBES = [*(file(f"new{number}", MB) for number in range(9)), file("old", 5 * MB, cube="a")]


@pytest.mark.parametrize(
    ("files", "columns", "options", "statements"),
    [
        (some(5, 900 * MB), None, {}, []),
        (some(20), None, {"vorder": True}, ["OPTIMIZE t VORDER"]),
        # A capacity's limit calls for more partitions, and a partition of one file needs no condition.
        (_BY_MONTH, _MONTH, {}, ["OPTIMIZE t WHERE `month` = 'a'"]),
        (_BY_MONTH, _MONTH, {"max_files": 8}, ["OPTIMIZE t WHERE `month` = 'a'"]),
        (_BY_MONTH, _MONTH, {"max_files": 7}, ["OPTIMIZE t"]),
        ([*some(20), _HIDDEN], None, {}, ["OPTIMIZE t"]),  # it purges all files that it rewrites
        ([*some(20), _HIDDEN], None, {"optimize": False}, ["REORG TABLE t APPLY (PURGE)"]),
        ([*some(20), _HIDDEN], None, {"purge": False}, ["OPTIMIZE t"]),
        ([*_DOTTED, file("h", 2000 * MB, 10, 9, {"a.b": "3"})], {"a.b": "string"}, {}, ["REORG TABLE t APPLY (PURGE)"]),
    ],
)
def test_statements_of_a_plan(
    files: list[LiveFile], columns: Mapping[str, str] | None, options: dict[str, bool], statements: list[str]
) -> None:
    assert _statements(rewrite_steps(snapshot(files, columns), "t", **options)) == statements  # type: ignore[arg-type]


def test_omitted_steps_have_reasons() -> None:
    assert _omitted(rewrite_steps(snapshot(some(5, 900 * MB)), "t")) == {
        StepKind.OPTIMIZE: "not worth it: there would be 0 files fewer of 5",
        StepKind.REORG: "no file is known to have a deletion vector or a dropped column",
    }
    assert (
        "Delta ignores a condition"
        in _omitted(rewrite_steps(snapshot(_DOTTED, {"a.b": "string"}), "t"))[StepKind.OPTIMIZE]
    )
    few_hidden = [file(str(number), 400 * MB, 1000, hidden=30) for number in range(3)]
    assert _omitted(rewrite_steps(snapshot(few_hidden), "t"))[StepKind.REORG] == (
        "not worth it: 5% or less of the 3 files with any is hidden or dropped"
    )


def test_a_clustered_table_takes_no_condition_and_no_reorg() -> None:
    step, _ = rewrite_steps(snapshot(_NEW_IN_CUBES, features=["clustering"]), "t")
    assert step.statement == "OPTIMIZE t"
    assert step.why == "10 files become about 1; Delta clusters a table below 100 GiB again as a whole"
    in_one_cube = [file("1", MB, hidden=60, cube="a"), file("2", MB, cube="a")]
    steps = rewrite_steps(snapshot(in_one_cube, features=["clustering"]), "t")
    assert not _statements(steps)
    assert _omitted(steps)[StepKind.REORG].startswith("Delta leaves it to OPTIMIZE")


def test_a_catalog_maintains_its_table() -> None:
    managed = snapshot(some(20), features=["catalogManaged"])
    steps = [*rewrite_steps(managed, "t"), *vacuum_steps(managed, "t", vacuum_plan(), rewritten=False)]
    assert list(_omitted(steps)) == [StepKind.OPTIMIZE, StepKind.REORG, StepKind.VACUUM]
    assert list(_omitted(rewrite_steps(managed, "t", optimize=False))) == [StepKind.REORG]
    assert not _statements(steps)


def test_partitions_with_many_hidden_rows_are_purged() -> None:
    files = [
        file("a1", 400 * MB, 1000, hidden=400, partition={"month": "a"}),
        file("a2", 400 * MB, 1000, hidden=1, partition={"month": "a"}),
        file("b1", 400 * MB, 1000, hidden=1, partition={"month": "b"}),
        file("c1", 400 * MB, 1000, partition={"month": "c"}),
    ]
    _, step = rewrite_steps(snapshot(files, _MONTH), "t")
    assert step.statement == "REORG TABLE t WHERE `month` = 'a' APPLY (PURGE)"
    assert step.why == "in 2 files 401 rows are hidden by deletion vectors"
    assert step.effect == RewriteEffect(4, 3, rows_to_load=1599, bytes_to_load=800 * MB)


def test_dropped_columns_are_purged() -> None:
    files = [file("a", 400 * MB), file("b", 400 * MB), file("c", 600 * MB)]
    _, step = rewrite_steps(snapshot(files), "t", dropped={"a": 100 * MB, "c": 200 * MB})
    assert step.statement == "REORG TABLE t APPLY (PURGE)"
    assert step.why == "in 2 files 300,000,000 bytes are dropped columns"
    assert step.effect is not None
    assert (step.effect.bytes_to_load, step.effect.rows_to_load) == (1000 * MB, 200)


def test_vacuum_keeps_needed_files_by_the_tables_property() -> None:
    (step,) = vacuum_steps(snapshot([]), "t", vacuum_plan(3600, files=12), rewritten=True)
    kept = "files that are no longer live are kept for 168.0 hours, and 1.0 hours are needed"
    assert (step.statement, step.why) == ("VACUUM t", f"deletes 12 files of 12,000 bytes; {kept}")
    short = snapshot([], properties=_SHORT)
    retention, vacuum = vacuum_steps(short, "t", vacuum_plan(2 * 86_400, _LONGER), rewritten=True)
    assert [retention.statement, vacuum.statement] == [_LONGER, "VACUUM t"]
    assert vacuum.why.startswith("deletes old files; ")


@pytest.mark.parametrize(
    ("seconds", "files", "rewritten", "why"),
    [
        (7200, 1, False, "delta.deletedFileRetentionDuration is below the 2.0 hours that are needed"),
        (0, 0, False, "no file is old enough to be deleted"),
        # All needed files were live when VACUUM was planned, but no longer after OPTIMIZE.
        (0, 1, True, "models still use files that were just replaced"),
        (0, 1, False, ""),
    ],
)
def test_vacuum_is_omitted_if_it_would_delete_needed_files(
    seconds: float, files: int, rewritten: bool, why: str
) -> None:
    plan = vacuum_plan(seconds, files=files)
    (step,) = vacuum_steps(snapshot([], properties=_SHORT), "t", plan, rewritten=rewritten)
    assert bool(step.statement) is (why == "")
    assert why in step.why


def test_an_unreadable_property_is_an_error() -> None:
    table = snapshot([], properties={"delta.deletedFileRetentionDuration": "soon"})
    with raises(SettingError, ErrorCode.SOURCE_UNFIT, match="^the property "):
        vacuum_steps(table, "t", vacuum_plan(), rewritten=False)


def test_the_script_is_sql_with_reasons() -> None:
    table = snapshot([*some(19), file("without statistics", rows=None)])
    rewrites = rewrite_steps(table, "t")
    vacuum = vacuum_steps(table, "t", vacuum_plan(60), rewritten=True)
    assert script("t", 7, [*rewrites, *vacuum]) == (
        "-- t at version 7\n"
        "\n"
        "-- 1. optimize: 20 files become about 1\n"
        "-- files 20 -> about 1; Direct Lake loads an unknown number of rows again; no row is mirrored again\n"
        "OPTIMIZE t;\n"
        "\n"
        "-- 2. vacuum: deletes 1 files of 1,000 bytes; files that are no longer live are kept for 168.0 hours, "
        "and 0.1 hours are needed\n"
        "VACUUM t;\n"
        "\n"
        "-- no reorg: no file is known to have a deletion vector or a dropped column\n"
    )
    assert script("t", 7, []) == "-- t at version 7\n-- nothing to do\n"


_TWO = {"year": "integer", "month": "string"}


@pytest.mark.parametrize(
    ("types", "keys", "condition"),
    [
        ({"m": "string"}, [("a",)], "`m` = 'a'"),
        ({"m": "string"}, [("a",), (None,), ("b",)], "`m` = 'a' OR `m` IS NULL OR `m` = 'b'"),
        ({"a b`c": "long"}, [("-5",)], "`a b``c` = -5"),
        (
            _TWO,
            [("2024", "01"), (None, "02")],
            "`year` = 2024 AND `month` = '01' OR `year` IS NULL AND `month` = '02'",
        ),
    ],
)
def test_a_condition_selects_each_partition(types: dict[str, str], keys: list[PartitionKey], condition: str) -> None:
    assert partition_predicate(snapshot([], types).metadata, keys) == condition


@pytest.mark.parametrize(
    ("value", "kind", "written"),
    [
        ("it's \\ so", "string", r"'it\'s \\ so'"),
        ("x", "varchar(3)", "'x'"),
        ("1", "tinyint", "1"),
        ("true", "boolean", "true"),
        ("1.50", "decimal(5,2)", "1.50"),
        ("1.1", "float", "CAST('1.1' AS FLOAT)"),
        ("NaN", "double", "CAST('NaN' AS DOUBLE)"),
        ("2024-01-02", "date", "DATE '2024-01-02'"),
        ("2024-01-02T03:04:05.006000Z", "timestamp", "TIMESTAMP '2024-01-02T03:04:05.006000Z'"),
        ("2024-01-02 03:04:05", "timestamp_ntz", "TIMESTAMP_NTZ '2024-01-02 03:04:05'"),
    ],
)
def test_a_value_is_written_as_its_type(value: str, kind: str, written: str) -> None:
    assert literal(value, kind) == written
