"""What is deleted of old runs, and what stays."""

import time
from collections.abc import Collection, Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteRepositoryOrigin
from dagster._core.utils import make_new_run_id

from mirror_assets.config.load import parse_config
from mirror_assets.definitions import build_definitions
from mirror_assets.landing.names import TableName
from mirror_assets.orchestration.dagster_internals import keep_connections
from mirror_assets.orchestration.jobs import build_jobs
from mirror_assets.orchestration.mirror_assets import MirrorAssets, partitions_name
from mirror_assets.orchestration.old_runs import DELETE_OLD_RUNS, delete_old_runs
from mirror_assets.orchestration.translator import AssetKind, asset_key

TABLE = TableName(None, "orders")
CONFIG = "landing_zone: {path: ./landing}\ntables: {orders: {source: ./lake, keys: [id]}}\n"
OURS = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("ours"), "__repository__")
THEIRS = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("theirs"), "__repository__")


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test(temp_dir=str(tmp_path)) as opened:
        yield opened


def _run(instance: dg.DagsterInstance, partition: str, origin: RemoteRepositoryOrigin = OURS) -> str:
    """A run that lands the slice."""

    @dg.op
    def land(context: dg.OpExecutionContext) -> None:
        instance.add_dynamic_partitions(partitions_name(asset_key(AssetKind.LANDING, TABLE)), [partition])
        context.log_event(dg.AssetMaterialization(asset_key(AssetKind.LANDING, TABLE), partition=partition))

    @dg.job
    def mirror_all() -> None:
        land()

    tags = {".dagster/repository": origin.get_label()}
    return mirror_all.execute_in_process(instance=instance, tags=tags).run_id


def _deleted(instance: dg.DagsterInstance, mirror: MirrorAssets, origin: RemoteRepositoryOrigin, before: float) -> int:
    """How many runs of the mirror's jobs and assets were deleted."""
    return delete_old_runs(instance, mirror, [job.name for job in build_jobs(mirror)], origin, before)


@pytest.mark.parametrize("keeps", [False, True], ids=["", "with connections that are kept"])
def test_old_runs_go_with_events_logs_and_partitions(
    instance: dg.DagsterInstance, tmp_path: Path, *, keeps: bool
) -> None:
    if keeps:
        keep_connections(instance)
    config = parse_config(CONFIG.encode(), tmp_path / "mirror.yaml", {})
    slices = [f"1.{n}-{n}" for n in range(1, 5)]
    old, newest = (_run(instance, slices[n]) for n in (0, 1))
    middle = time.time()
    time.sleep(1.1)
    others = _run(instance, slices[2], THEIRS)
    logs = tmp_path / "storage" / old
    logs.mkdir(parents=True, exist_ok=True)
    (logs / "x.err").write_text("printed")
    assert _deleted(instance, MirrorAssets(config), THEIRS, middle) == 0
    assert _deleted(instance, MirrorAssets(config), OURS, middle) == 2
    assert {run.run_id for run in instance.get_runs()} == {others}
    assert set(instance.get_dynamic_partitions(partitions_name(asset_key(AssetKind.LANDING, TABLE)))) == {slices[2]}
    assert not list(tmp_path.rglob(f"*{old}*")), "no file of the run is left"
    assert not list(tmp_path.rglob(f"*{newest}*"))


def test_the_run_that_says_how_an_asset_is_stays(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    config = parse_config(CONFIG.encode(), tmp_path / "mirror.yaml", {})
    _, newest = _run(instance, "1.1-1"), _run(instance, "1.2-2")
    assert _deleted(instance, MirrorAssets(config), OURS, time.time() + 60) == 1
    assert [run.run_id for run in instance.get_runs()] == [newest]
    materialized = instance.get_latest_materialization_event(asset_key(AssetKind.LANDING, TABLE))
    assert materialized is not None
    assert materialized.run_id == newest


def _asset_run(instance: dg.DagsterInstance, *selected: dg.AssetKey, checks: Collection[dg.AssetCheckKey] = ()) -> str:
    """A run of assets, or of some of their checks, as Dagster's page of an asset launches it."""
    run = dg.DagsterRun(
        job_name="__ASSET_JOB",
        run_id=make_new_run_id(),
        status=dg.DagsterRunStatus.SUCCESS,
        asset_selection=frozenset(selected),
        asset_check_selection=frozenset(checks) if checks else None,
        tags={".dagster/repository": OURS.get_label()},
    )
    return instance.add_run(run).run_id


def test_runs_of_other_jobs_assets_and_mirrors_in_the_code_location_stay(
    instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    config = parse_config(CONFIG.replace("keys: [id]", "keys: [id], source_asset: lake/orders").encode(), tmp_path, {})
    ours, revenue = MirrorAssets(config), dg.AssetKey("revenue")
    landing, source = ours.key(AssetKind.LANDING, TABLE), ours.key(AssetKind.SOURCE, TABLE)
    assert source == dg.AssetKey(["lake", "orders"]), "an asset of the project"
    _asset_run(instance, landing)
    _asset_run(instance, landing, ours.key(AssetKind.CHANGES, TABLE))
    _asset_run(instance, checks=[dg.AssetCheckKey(landing, "lag")])
    kept = {
        _asset_run(instance, revenue),
        _asset_run(instance, revenue, landing),
        _asset_run(instance, source),
        _asset_run(instance, landing, checks=[dg.AssetCheckKey(revenue, "fresh")]),
        _asset_run(instance),
    }

    @dg.op
    def pay() -> None: ...

    for name in ("payroll", "sales_all"):  # a job of the project, and one of the mirror `sales`
        tags = {".dagster/repository": OURS.get_label()}
        job = dg.GraphDefinition(name, node_defs=[pay]).to_job()
        kept.add(job.execute_in_process(instance=instance, tags=tags).run_id)
    assert _deleted(instance, ours, OURS, time.time() + 60) == 3
    assert {run.run_id for run in instance.get_runs()} == kept
    assert _deleted(instance, MirrorAssets(config, name="sales"), OURS, time.time() + 60) == 1
    assert "payroll" in {run.job_name for run in instance.get_runs()}


def test_runs_are_kept_for_thirty_days_unless_the_settings_say_otherwise(tmp_path: Path) -> None:
    def jobs(setting: str) -> set[str]:
        text = f"{CONFIG}automation: {{{setting}}}\n"
        return {job.name for job in build_definitions(parse_config(text.encode(), tmp_path / "m.yaml", {})).jobs or []}

    assert DELETE_OLD_RUNS in jobs("batches: 1")
    assert DELETE_OLD_RUNS not in jobs("keep_runs_days: null")
