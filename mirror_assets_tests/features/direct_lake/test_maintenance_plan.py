"""Plans by example: what is planned, what is omitted and why, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

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
from mirror_assets.features.direct_lake.vacuum import VacuumPlan
from mirror_assets.source.actions import LiveFile, Metadata, Protocol, Vector
from mirror_assets.source.replay import Snapshot
from mirror_assets.source.schema import canonical
from mirror_assets.source.source_files import StoredFile
from mirror_assets_tests.errors import raises
from mirror_assets_tests.source.handmade import column, schema_string

_MB = 10**6


def _file(
    path: str,
    size: int = _MB,
    rows: int | None = 100,
    hidden: int = 0,
    partition: Mapping[str, str | None] | None = None,
    cube: str | None = None,
) -> LiveFile:
    """A live file; with hidden rows it has a deletion vector."""
    vector = Vector(path, None, 34, hidden) if hidden else None
    return LiveFile(path, size, rows, 0, partition or {}, vector, {} if cube is None else {"ZCUBE_ID": cube})


def _some(count: int, size: int = _MB, **of: str | None) -> list[LiveFile]:
    """Equal files in one partition."""
    return [_file(f"{list(of.values())}-{size}-{number}", size, partition=of) for number in range(count)]


def _table(
    files: Iterable[LiveFile],
    partitioned_by: Mapping[str, str] | None = None,
    features: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
) -> Snapshot:
    """A table of these files, and of an `id` besides its partition columns, given with their types in the log."""
    columns = partitioned_by or {}
    schema = schema_string(column("id"), *(column(name, kind) for name, kind in columns.items()))
    metadata = Metadata("id", canonical(schema), properties or {}, tuple(columns))
    return Snapshot("/lake/t", 7, 0, metadata, Protocol(3, 7, frozenset(features)), tuple(files), ())


def _vacuum_plan(seconds: float = 0, statement: str | None = None, files: int = 1) -> VacuumPlan:
    """A plan of VACUUM that deletes files of 1,000 bytes, with the retention that keeps needed ones."""
    return VacuumPlan(
        uri="/lake/t",
        version=7,
        now=0,
        retention_seconds=0,
        deleted=tuple(StoredFile(str(number), 1_000, 0) for number in range(files)),
        threatened=(),
        lost=(),
        gone=(),
        oldest_needed=None,
        min_safe_retention_seconds=seconds,
        safe_until=None,
        resume_until=None,
        statement=statement,
    )


_MONTH = {"month": "string"}
_SHORT = {"delta.deletedFileRetentionDuration": "interval 1 hour"}
_LONGER = "ALTER TABLE t SET TBLPROPERTIES (delta.deletedFileRetentionDuration = 'interval 3 days')"


def _statements(steps: Iterable[MaintenanceStep]) -> list[str]:
    return [step.statement for step in steps if step.statement]


def _omitted(steps: Iterable[MaintenanceStep]) -> dict[StepKind, str]:
    return {step.kind: step.why for step in steps if not step.statement}


def test_only_partitions_with_many_small_files_are_optimized() -> None:
    counts = {"2024-01": 20, "2024-02": 3, "2024-03": 9, "2024-04": 1}
    files = [one for month, count in counts.items() for one in _some(count, month=month)]
    step, _ = rewrite_steps(_table(files, _MONTH), "t")
    assert step.statement == "OPTIMIZE t WHERE `month` = '2024-01' OR `month` = '2024-03'"
    assert step.effect == RewriteEffect(33, 6, rows_to_load=2900, bytes_to_load=29 * _MB)
    assert step.why == "29 files in 2 partitions become about 2"


_HIDDEN = _file("hidden", 900 * _MB, 1000, hidden=900)
_BY_MONTH = [*_some(20, month="a"), *_some(6, 5 * _MB, month="b"), *_some(1, month="c")]
_DOTTED = [*(_file(str(number), partition={"a.b": str(number // 20)}) for number in range(23))]
_NEW_IN_CUBES = [*(_file(f"new{number}", _MB) for number in range(9)), _file("old", 5 * _MB, cube="a")]


@pytest.mark.parametrize(
    ("files", "columns", "options", "statements"),
    [
        (_some(5, 900 * _MB), None, {}, []),
        (_some(20), None, {"vorder": True}, ["OPTIMIZE t VORDER"]),
        # A capacity's limit calls for more partitions, and a partition of one file needs no condition.
        (_BY_MONTH, _MONTH, {}, ["OPTIMIZE t WHERE `month` = 'a'"]),
        (_BY_MONTH, _MONTH, {"max_files": 8}, ["OPTIMIZE t WHERE `month` = 'a'"]),
        (_BY_MONTH, _MONTH, {"max_files": 7}, ["OPTIMIZE t"]),
        ([*_some(20), _HIDDEN], None, {}, ["OPTIMIZE t"]),  # it purges all files that it rewrites
        ([*_some(20), _HIDDEN], None, {"optimize": False}, ["REORG TABLE t APPLY (PURGE)"]),
        ([*_some(20), _HIDDEN], None, {"purge": False}, ["OPTIMIZE t"]),
        (
            [*_DOTTED, _file("h", 2000 * _MB, 10, 9, {"a.b": "3"})],
            {"a.b": "string"},
            {},
            ["REORG TABLE t APPLY (PURGE)"],
        ),
    ],
)
def test_statements_of_a_plan(
    files: list[LiveFile], columns: Mapping[str, str] | None, options: dict[str, bool], statements: list[str]
) -> None:
    assert _statements(rewrite_steps(_table(files, columns), "t", **options)) == statements  # type: ignore[arg-type]


def test_omitted_steps_have_reasons() -> None:
    assert _omitted(rewrite_steps(_table(_some(5, 900 * _MB)), "t")) == {
        StepKind.OPTIMIZE: "not worth it: there would be 0 files fewer of 5",
        StepKind.REORG: "no file is known to have a deletion vector or a dropped column",
    }
    assert (
        "Delta ignores a condition"
        in _omitted(rewrite_steps(_table(_DOTTED, {"a.b": "string"}), "t"))[StepKind.OPTIMIZE]
    )
    few_hidden = [_file(str(number), 400 * _MB, 1000, hidden=30) for number in range(3)]
    assert _omitted(rewrite_steps(_table(few_hidden), "t"))[StepKind.REORG] == (
        "not worth it: 5% or less of the 3 files with any is hidden or dropped"
    )


def test_a_clustered_table_takes_no_condition_and_no_reorg() -> None:
    step, _ = rewrite_steps(_table(_NEW_IN_CUBES, features=["clustering"]), "t")
    assert step.statement == "OPTIMIZE t"
    assert step.why == "10 files become about 1; Delta clusters a table below 100 GiB again as a whole"
    in_one_cube = [_file("1", _MB, hidden=60, cube="a"), _file("2", _MB, cube="a")]
    steps = rewrite_steps(_table(in_one_cube, features=["clustering"]), "t")
    assert not _statements(steps)
    assert _omitted(steps)[StepKind.REORG].startswith("Delta leaves it to OPTIMIZE")


def test_a_catalog_maintains_its_table() -> None:
    managed = _table(_some(20), features=["catalogManaged"])
    steps = [*rewrite_steps(managed, "t"), *vacuum_steps(managed, "t", _vacuum_plan(), rewritten=False)]
    assert list(_omitted(steps)) == [StepKind.OPTIMIZE, StepKind.REORG, StepKind.VACUUM]
    assert list(_omitted(rewrite_steps(managed, "t", optimize=False))) == [StepKind.REORG]
    assert not _statements(steps)


def test_partitions_with_many_hidden_rows_are_purged() -> None:
    files = [
        _file("a1", 400 * _MB, 1000, hidden=400, partition={"month": "a"}),
        _file("a2", 400 * _MB, 1000, hidden=1, partition={"month": "a"}),
        _file("b1", 400 * _MB, 1000, hidden=1, partition={"month": "b"}),
        _file("c1", 400 * _MB, 1000, partition={"month": "c"}),
    ]
    _, step = rewrite_steps(_table(files, _MONTH), "t")
    assert step.statement == "REORG TABLE t WHERE `month` = 'a' APPLY (PURGE)"
    assert step.why == "in 2 files 401 rows are hidden by deletion vectors"
    assert step.effect == RewriteEffect(4, 3, rows_to_load=1599, bytes_to_load=800 * _MB)


def test_dropped_columns_are_purged() -> None:
    files = [_file("a", 400 * _MB), _file("b", 400 * _MB), _file("c", 600 * _MB)]
    _, step = rewrite_steps(_table(files), "t", dropped={"a": 100 * _MB, "c": 200 * _MB})
    assert step.statement == "REORG TABLE t APPLY (PURGE)"
    assert step.why == "in 2 files 300,000,000 bytes are dropped columns"
    assert step.effect is not None
    assert (step.effect.bytes_to_load, step.effect.rows_to_load) == (1000 * _MB, 200)


def test_vacuum_keeps_needed_files_by_the_tables_property() -> None:
    (step,) = vacuum_steps(_table([]), "t", _vacuum_plan(3600, files=12), rewritten=True)
    kept = "files that are no longer live are kept for 168.0 hours, and 1.0 hours are needed"
    assert (step.statement, step.why) == ("VACUUM t", f"deletes 12 files of 12,000 bytes; {kept}")
    short = _table([], properties=_SHORT)
    retention, vacuum = vacuum_steps(short, "t", _vacuum_plan(2 * 86_400, _LONGER), rewritten=True)
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
    plan = _vacuum_plan(seconds, files=files)
    (step,) = vacuum_steps(_table([], properties=_SHORT), "t", plan, rewritten=rewritten)
    assert bool(step.statement) is (why == "")
    assert why in step.why


def test_an_unreadable_property_is_an_error() -> None:
    table = _table([], properties={"delta.deletedFileRetentionDuration": "soon"})
    with raises(SettingError, ErrorCode.SOURCE_UNFIT, match="^the property "):
        vacuum_steps(table, "t", _vacuum_plan(), rewritten=False)


def test_the_script_is_sql_with_reasons() -> None:
    table = _table([*_some(19), _file("without statistics", rows=None)])
    rewrites = rewrite_steps(table, "t")
    vacuum = vacuum_steps(table, "t", _vacuum_plan(60), rewritten=True)
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
    assert partition_predicate(_table([], types).metadata, keys) == condition


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
