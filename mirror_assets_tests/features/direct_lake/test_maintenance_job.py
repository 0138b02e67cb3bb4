"""The job maintenance on real tables: what it runs, what it leaves alone, and what it refuses."""

from __future__ import annotations

import os
import time
from pathlib import Path

import dagster as dg
import pytest

from mirror_assets.config.load import parse_config
from mirror_assets.definitions import build_definitions
from mirror_assets.errors import ErrorCode
from mirror_assets.features.direct_lake import MAINTENANCE
from mirror_assets.features.direct_lake.errors import DirectLakeCode
from mirror_assets.features.direct_lake.with_dagster.maintenance_job import MAINTENANCE_OP, MaintenanceReport
from mirror_assets.orchestration.translator import AssetKind, asset_key
from mirror_assets.source.log import DeltaLog
from mirror_assets_tests.features.direct_lake.vacuums import FOR_SMALL_TABLES
from mirror_assets_tests.lab import TABLE, Lab


def _maintained(lab: Lab, settings: str) -> tuple[MaintenanceReport, list[dg.AssetObservation]]:
    """The table's report, and what was observed of its source by maintenance, oldest first."""
    lab.configure(table=settings)
    written = ", ".join(f'{name}: "{value}"' for name, value in FOR_SMALL_TABLES.items())
    lab.config_file.write_text(f"{lab.config_file.read_text()}spark: {{settings: {{{written}}}}}\n")
    job = build_definitions(lab.config).resolve_job_def(MAINTENANCE)
    with dg.DagsterInstance.ephemeral() as instance:
        result = job.execute_in_process(instance=instance, raise_on_error=False)
        seen = instance.fetch_observations(asset_key(AssetKind.SOURCE, TABLE), limit=20, ascending=True).records
    (report,) = result.output_for_node(MAINTENANCE_OP)
    assert result.success is (report.error is None)
    observed = [record.asset_observation for record in seen]
    return report, [one for one in observed if one is not None and one.partition is None]


def _numbers(observation: dg.AssetObservation, *names: str) -> list[object]:
    return [observation.metadata[name].value for name in names]


def _fragment(lab: Lab, commits: int = 9) -> None:
    for number in range(commits):
        lab.sql(f"INSERT INTO {{t}} VALUES ({1000 + number}, 'more', 1)")


def _age(lab: Lab, days: float) -> None:
    """Have every file be as old as after so many days."""
    at = time.time() - days * 86_400
    for path in Path(lab.uri).rglob("*.parquet"):
        os.utime(path, (at, at))


@pytest.mark.parametrize(
    ("requested", "is_there"),
    [("", False), (", maintenance: []", False), (", maintenance: [vacuum]", True)],
)
def test_there_is_no_job_and_no_schedule_where_no_table_asks(tmp_path: Path, requested: str, is_there: bool) -> None:
    text = f"landing_zone: {{path: ./zone}}\ntables: {{orders: {{source: ./lake, keys: [id]{requested}}}}}"
    definitions = build_definitions(parse_config(text.encode(), tmp_path / "mirror.yaml", {}))
    assert (MAINTENANCE in {job.name for job in definitions.resolve_all_job_defs()}) is is_there
    schedules = {schedule.name: schedule for schedule in definitions.schedules or []}
    assert (MAINTENANCE in schedules) is is_there
    if is_there:
        assert schedules[MAINTENANCE].default_status is dg.DefaultScheduleStatus.STOPPED


def test_optimize_runs_after_publishing_and_leaves_nothing_to_publish(mirrored: Lab) -> None:
    _fragment(mirrored)
    orphan = Path(mirrored.uri) / "orphan.parquet"
    orphan.touch()
    os.utime(orphan, (0, 0))
    landed = len(mirrored.files)
    report, (observed, _) = _maintained(mirrored, "maintenance: [optimize, vacuum]")
    assert report.error is None
    assert report.statements == (f"OPTIMIZE delta.`file://{mirrored.uri}`", f"VACUUM delta.`file://{mirrored.uri}`")
    assert len(mirrored.files) > landed, "what waited was mirrored first"
    assert not orphan.exists()
    predicted, before, after = _numbers(
        observed, "optimize_predicted_files_after", "optimize_live_files_before", "optimize_live_files_after"
    )
    assert isinstance(before, int)
    assert before >= 9
    assert after == predicted == 1
    files = mirrored.files
    mirrored.mirror()
    assert mirrored.files == files, "0 rows to publish"
    mirrored.replicator.poll()
    status = mirrored.replicator.table(TABLE)
    assert status is not None
    rows, kept = (mirrored.spark.read.format("delta").load(path) for path in (mirrored.uri, status.location))
    assert sorted(map(tuple, rows.collect())) == sorted(map(tuple, kept.collect()))


def test_a_table_that_was_never_mirrored_is_only_rewritten(lab: Lab) -> None:
    """If all of its files are there; one that isn't could not be mirrored anew either."""
    _fragment(lab, commits=8)
    gone = Path(lab.uri) / DeltaLog(lab.uri).snapshot().files[0].path
    kept = gone.rename(gone.with_suffix(".kept"))
    report, _ = _maintained(lab, "maintenance: [optimize]")
    assert report.error is not None
    assert (report.error.code, report.error.family) == (ErrorCode.DATA_FILE_MISSING.value, "stop")
    assert "rebuild" not in str(report.error)
    kept.rename(gone)
    report, observed = _maintained(lab, "maintenance: [optimize]")
    assert report.error is None
    assert len(observed) == 1
    assert not lab.folder.exists()


def test_what_does_not_pay_is_not_run(lab: Lab) -> None:
    version = DeltaLog(lab.uri).newest()
    report, observed = _maintained(lab, "maintenance: [optimize, purge]")
    assert (report.error, report.statements, observed) == (None, (), [])
    assert DeltaLog(lab.uri).newest() == version


def test_purge_rewrites_what_deletion_vectors_hide(lab: Lab) -> None:
    lab.sql(
        "ALTER TABLE {t} SET TBLPROPERTIES (delta.enableDeletionVectors = true)",
        "INSERT INTO {t} SELECT CAST(id AS INT), 'x', 1 FROM range(100, 200)",
        "DELETE FROM {t} WHERE id BETWEEN 110 AND 150",
    )
    report, _ = _maintained(lab, "maintenance: [purge]")
    assert report.statements == (f"REORG TABLE delta.`file://{lab.uri}` APPLY (PURGE)",)
    assert [file.path for file in DeltaLog(lab.uri).snapshot().files if file.vector] == []


def test_vacuum_is_refused_while_a_frame_needs_a_file_and_runs_when_none_does(lab: Lab) -> None:
    lab.sql(
        "ALTER TABLE {t} SET TBLPROPERTIES (delta.deletedFileRetentionDuration = 'interval 0 hours')",
        "UPDATE {t} SET amount = 7",
    )
    framed, newest = 1, DeltaLog(lab.uri).newest()
    lost = {file.path for file in DeltaLog(lab.uri).snapshot(framed).files}
    refused, observed = _maintained(lab, f"maintenance: [vacuum]\n    direct_lake: {{frames: [{framed}, {newest}]}}")
    assert refused.error is not None
    assert refused.error.code == DirectLakeCode.VACUUM_REFUSED.value
    assert "needed by frame v1" in str(refused.error)
    assert "SET TBLPROPERTIES (delta.deletedFileRetentionDuration = 'interval" in str(refused.error)
    assert (refused.statements, observed) == ((), [])
    assert all((Path(lab.uri) / path).exists() for path in lost)
    done, (vacuumed,) = _maintained(lab, f"maintenance: [vacuum]\n    direct_lake: {{frames: [{newest}]}}")
    assert done.error is None
    assert done.statements == (f"VACUUM delta.`file://{lab.uri}`",)
    assert not any((Path(lab.uri) / path).exists() for path in lost)
    before, after = _numbers(vacuumed, "vacuum_stored_files_before", "vacuum_stored_files_after")
    assert isinstance(before, int)
    assert isinstance(after, int)
    assert after < before
    assert lab.spark.read.format("delta").load(lab.uri).count() == 10


def test_files_that_were_just_rewritten_are_not_vacuumed(lab: Lab) -> None:
    """No model names a frame, and the retention of the table would let VACUUM delete them at once."""
    lab.sql("ALTER TABLE {t} SET TBLPROPERTIES (delta.deletedFileRetentionDuration = 'interval 0 hours')")
    _fragment(lab, commits=8)
    _age(lab, days=30)
    before = {file.path for file in DeltaLog(lab.uri).snapshot().files}
    report, _ = _maintained(lab, "maintenance: [optimize, vacuum]")
    assert report.error is None
    assert report.statements == (f"OPTIMIZE delta.`file://{lab.uri}`",)
    assert all((Path(lab.uri) / path).exists() for path in before)
