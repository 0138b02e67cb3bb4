"""Plans by example: what is planned, what is left out, and in which order."""

from __future__ import annotations

from dataclasses import replace

from mirror_assets.direct_lake.maintenance_plan import (
    MaintenanceInput,
    MaintenancePlan,
    StepKind,
    maintenance_plan,
    script,
)
from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets_tests.direct_lake.planned_tables import MB, file, snapshot, some, vacuum_plan
from mirror_assets_tests.errors import raises

_MONTH = {"month": "string"}
_SHORT = {"delta.deletedFileRetentionDuration": "interval 1 hour"}
_LONGER = "ALTER TABLE t SET TBLPROPERTIES (delta.deletedFileRetentionDuration = 'interval 3 days')"


def _statements(plan: MaintenancePlan) -> list[str]:
    return [step.statement for step in plan.steps]


def _left_out(plan: MaintenancePlan) -> dict[StepKind, str]:
    return {left_out.kind: left_out.why for left_out in plan.left_out}


def test_only_partitions_with_many_small_files_are_optimised() -> None:
    files = [
        *some(20, month="2024-01"),
        *some(3, month="2024-02"),
        *some(9, month="2024-03"),
        *some(1, month="2024-04"),
    ]
    plan = maintenance_plan(snapshot(files, _MONTH), MaintenanceInput())
    assert _statements(plan) == ["OPTIMIZE delta.`/lake/t` WHERE `month` IN ('2024-01', '2024-03')"]
    effect = plan.steps[0].effect
    assert effect is not None
    assert (effect.files_before, effect.files_after, effect.bytes_to_load) == (33, 6, 29 * MB)
    assert effect.rows_to_load == 2900
    assert plan.steps[0].why == "29 files in 2 partitions become about 2"


def test_the_guardrail_calls_for_more_where_most_files_go_per_byte() -> None:
    files = [*some(20, month="a"), *some(6, 5 * MB, month="b"), *some(6, MB, month="c"), *some(6, 50 * MB, month="d")]
    wanted = MaintenanceInput(table="t", max_files=15)
    plan = maintenance_plan(snapshot(files, _MONTH), wanted)
    assert _statements(plan) == ["OPTIMIZE t WHERE `month` IN ('a', 'c')"]
    fewer = maintenance_plan(snapshot(files, _MONTH), MaintenanceInput(table="t", max_files=9))
    assert _statements(fewer) == ["OPTIMIZE t WHERE `month` IN ('a', 'c', 'b')"]
    all_of_them = maintenance_plan(snapshot(files, _MONTH), MaintenanceInput(table="t", max_files=1))
    assert _statements(all_of_them) == ["OPTIMIZE t"]


def test_a_partition_that_optimize_leaves_alone_needs_no_predicate() -> None:
    files = [*some(20, month="a"), *some(1, month="b")]
    assert _statements(maintenance_plan(snapshot(files, _MONTH), MaintenanceInput(table="t"))) == ["OPTIMIZE t"]


def test_a_table_in_order_needs_nothing() -> None:
    plan = maintenance_plan(snapshot(some(5, 900 * MB)), MaintenanceInput())
    assert plan.steps == ()
    assert _left_out(plan) == {
        StepKind.OPTIMIZE: "not worth it: there would be 0 files fewer of 5",
        StepKind.REORG: "no file is known to have a deletion vector or a dropped column",
        StepKind.VACUUM: "it was not checked how long files are needed",
    }
    assert "nothing to do" in script(plan)


def test_fabric_writes_v_order() -> None:
    plan = maintenance_plan(snapshot(some(20)), MaintenanceInput(table="sales", vorder=True))
    assert _statements(plan) == ["OPTIMIZE sales VORDER"]


def test_what_is_switched_off_is_not_planned() -> None:
    files = [*some(20), file("hidden", 900 * MB, 1000, hidden=900)]
    plan = maintenance_plan(snapshot(files), MaintenanceInput(table="t", optimize=False))
    assert [step.kind for step in plan.steps] == [StepKind.REORG]
    plan = maintenance_plan(snapshot(files), MaintenanceInput(table="t", purge=False))
    assert [step.kind for step in plan.steps] == [StepKind.OPTIMIZE]


def test_a_condition_that_delta_ignores_is_not_written() -> None:
    files = [file(str(number), partition={"a.b": str(number // 20)}) for number in range(23)]
    files.append(file("h", 2000 * MB, 10, 9, {"a.b": "3"}))
    plan = maintenance_plan(snapshot(files, {"a.b": "string"}), MaintenanceInput(table="t"))
    assert [step.statement for step in plan.steps] == ["REORG TABLE t APPLY (PURGE)"]
    assert "Delta ignores a condition" in _left_out(plan)[StepKind.OPTIMIZE]


def test_a_clustered_table_takes_no_predicate() -> None:
    files = [*(file(f"new{number}", MB) for number in range(9)), file("old", 5 * MB, cube="a")]
    plan = maintenance_plan(snapshot(files, features=["clustering"]), MaintenanceInput(table="t"))
    (step,) = plan.steps
    assert step.statement == "OPTIMIZE t"
    assert step.why == "10 files become about 1; Delta clusters a table below 100 GiB again as a whole"


def test_hidden_rows_in_one_cube_are_left_to_optimize() -> None:
    files = [file("1", MB, hidden=60, cube="a"), file("2", MB, cube="a")]
    plan = maintenance_plan(snapshot(files, features=["clustering"]), MaintenanceInput(table="t"))
    assert not plan.steps
    assert _left_out(plan)[StepKind.REORG].startswith("Delta leaves it to OPTIMIZE")


def test_a_table_of_a_catalog_is_left_to_it() -> None:
    wanted = MaintenanceInput(vacuum=vacuum_plan(0))
    plan = maintenance_plan(snapshot(some(20), features=["catalogManaged"]), wanted)
    assert not plan.steps
    assert set(_left_out(plan)) == {StepKind.OPTIMIZE, StepKind.REORG, StepKind.VACUUM}


def test_many_hidden_rows_are_purged_where_they_are() -> None:
    files = [
        file("a1", 400 * MB, 1000, hidden=400, partition={"month": "a"}),
        file("a2", 400 * MB, 1000, hidden=1, partition={"month": "a"}),
        file("b1", 400 * MB, 1000, hidden=1, partition={"month": "b"}),
        file("c1", 400 * MB, 1000, partition={"month": "c"}),
    ]
    plan = maintenance_plan(snapshot(files, _MONTH), MaintenanceInput(table="t"))
    (step,) = plan.steps
    assert step.statement == "REORG TABLE t WHERE `month` = 'a' APPLY (PURGE)"
    assert step.why == "in 2 files 401 rows are hidden by deletion vectors"
    assert step.effect is not None
    assert (step.effect.files_before, step.effect.files_after) == (4, 3)
    assert (step.effect.rows_to_load, step.effect.bytes_to_load) == (1599, 800 * MB)


def test_few_hidden_rows_are_not_worth_a_reload() -> None:
    files = [file(str(number), 400 * MB, 1000, hidden=30) for number in range(3)]
    plan = maintenance_plan(snapshot(files), MaintenanceInput())
    assert not plan.steps
    assert _left_out(plan)[StepKind.REORG] == "not worth it: 5% or less of the 3 files with any is hidden or dropped"


def test_dropped_columns_are_purged() -> None:
    files = [file("a", 400 * MB), file("b", 400 * MB), file("c", 600 * MB)]
    dropped = {"a": 100 * MB, "c": 200 * MB}
    plan = maintenance_plan(snapshot(files), MaintenanceInput(table="t", dropped=dropped))
    (step,) = plan.steps
    assert step.statement == "REORG TABLE t APPLY (PURGE)"
    assert step.why == "in 2 files 300,000,000 bytes are dropped columns"
    assert step.effect is not None
    assert (step.effect.bytes_to_load, step.effect.rows_to_load) == (1000 * MB, 200)


def test_what_optimize_has_purged_is_not_purged_again() -> None:
    files = [file(str(number), MB, 1000, hidden=500) for number in range(10)]
    plan = maintenance_plan(snapshot(files), MaintenanceInput(table="t"))
    (step,) = plan.steps
    assert step.kind is StepKind.OPTIMIZE
    assert step.effect is not None
    assert step.effect.rows_to_load == 5000


def test_rows_without_statistics_are_not_foretold() -> None:
    plan = maintenance_plan(snapshot([file(str(number), rows=None) for number in range(10)]), MaintenanceInput())
    assert plan.steps[0].effect is not None
    assert plan.steps[0].effect.rows_to_load is None
    assert "loads an unknown number of rows again" in script(plan)


def test_vacuum_comes_last_and_its_retention_before_it() -> None:
    files = [*some(20), file("hidden", 900 * MB, 1000, hidden=900), file("full", 1800 * MB)]
    longer = MaintenanceInput(table="t", vacuum=vacuum_plan(2 * 86_400, _LONGER))
    plan = maintenance_plan(snapshot(files, properties=_SHORT), longer)
    assert _statements(plan) == ["OPTIMIZE t", _LONGER, "VACUUM t"]
    assert plan.steps[-1].why.startswith("deletes old files; ")
    plan = maintenance_plan(snapshot(files), MaintenanceInput(table="t", vacuum=vacuum_plan(files=12)))
    assert _statements(plan) == ["OPTIMIZE t", "VACUUM t"]
    assert plan.steps[-1].why.startswith("deletes 12 files of 12,000 bytes; ")


def test_vacuum_goes_by_the_tables_property_alone() -> None:
    plan = maintenance_plan(snapshot([]), MaintenanceInput(table="t", vacuum=vacuum_plan(3600)))
    assert _statements(plan) == ["VACUUM t"]
    assert plan.steps[0].why == (
        "deletes 1 files of 1,000 bytes; files that are no longer live are kept for 168.0 hours, "
        "and 1.0 hours are needed"
    )


def test_vacuum_is_left_out_where_it_would_delete_what_is_needed() -> None:
    too_short = maintenance_plan(snapshot([], properties=_SHORT), MaintenanceInput(vacuum=vacuum_plan(7200)))
    assert not too_short.steps
    assert _left_out(too_short)[StepKind.VACUUM] == (
        "delta.deletedFileRetentionDuration is below the 2.0 hours that are needed"
    )


def test_vacuum_does_not_delete_what_the_plan_has_just_replaced() -> None:
    """The guard asked for nothing, for all that is needed was live; it will not be after OPTIMIZE."""
    plan = maintenance_plan(snapshot(some(20), properties=_SHORT), MaintenanceInput(table="t", vacuum=vacuum_plan(0)))
    assert _statements(plan) == ["OPTIMIZE t"]
    assert "models still use files" in _left_out(plan)[StepKind.VACUUM]
    alone = MaintenanceInput(table="t", vacuum=vacuum_plan(0))
    assert _statements(maintenance_plan(snapshot([], properties=_SHORT), alone)) == ["VACUUM t"]
    behind = replace(alone, rewritten=True)
    assert not maintenance_plan(snapshot([], properties=_SHORT), behind).steps
    assert _statements(maintenance_plan(snapshot([]), behind)) == ["VACUUM t"]


def test_an_unreadable_property_is_said() -> None:
    table = snapshot([], properties={"delta.deletedFileRetentionDuration": "soon"})
    with raises(SettingError, ErrorCode.SOURCE_UNFIT, match="^the property "):
        maintenance_plan(table, MaintenanceInput(vacuum=vacuum_plan(0)))


def test_the_script_is_sql_with_reasons() -> None:
    plan = maintenance_plan(snapshot(some(20)), MaintenanceInput(table="t", vacuum=vacuum_plan(60)))
    assert script(plan) == (
        "-- t at version 7\n"
        "\n"
        "-- 1. optimize: 20 files become about 1\n"
        "-- files 20 -> about 1; Direct Lake loads 2,000 rows again; no row is mirrored again\n"
        "OPTIMIZE t;\n"
        "\n"
        "-- 2. vacuum: deletes 1 files of 1,000 bytes; files that are no longer live are kept for 168.0 hours, "
        "and 0.1 hours are needed\n"
        "VACUUM t;\n"
        "\n"
        "-- no reorg: no file is known to have a deletion vector or a dropped column\n"
    )
