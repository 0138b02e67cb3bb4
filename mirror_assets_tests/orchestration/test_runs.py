"""Assets that two code locations of one Dagster instance have in common."""

from collections.abc import Iterator

import dagster as dg
import pytest
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin
from dagster._core.storage.tags import REPOSITORY_LABEL_TAG

from mirror_assets.errors import SettingError
from mirror_assets.landing.names import TableName
from mirror_assets.orchestration.runs import FAILING_TAG, require_own_assets, tag_failing

_TABLES = [TableName("sales", f"t{number:03}") for number in range(5)]
_KEY = dg.AssetKey(["shop", "orders_landing"])
# Dagster stores the location of such a run as a tag, and leaves it out of `run.tags`.
_OURS = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("ours"), "__repository__")
_CHECKS = dg.DagsterRun(job_name="checks", remote_job_origin=RemoteJobOrigin(_OURS, "checks"))


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test() as opened:
        yield opened


def _land(instance: dg.DagsterInstance, location: str) -> list[str]:
    """Land something in a run of the location; return the messages of checks of ours meanwhile."""
    found = list[str]()

    @dg.op
    def land(context: dg.OpExecutionContext) -> None:
        context.log_event(dg.AssetMaterialization(_KEY))
        try:
            require_own_assets(instance, _CHECKS, [dg.AssetKey("other"), _KEY])
        except SettingError as error:
            found.append(str(error))

    @dg.job
    def mirror_all() -> None:
        land()

    tags = {REPOSITORY_LABEL_TAG: f"__repository__@{location}"}
    assert mirror_all.execute_in_process(instance=instance, tags=tags).success
    return found


def test_another_code_location_that_materializes_our_asset_is_named(instance: dg.DagsterInstance) -> None:
    (message,) = _land(instance, "theirs")
    assert "asset shop/orders_landing also belongs to the code location theirs" in message


def test_our_own_runs_and_those_that_have_ended_share_nothing(instance: dg.DagsterInstance) -> None:
    assert _land(instance, "ours") == []
    _land(instance, "theirs")
    require_own_assets(instance, _CHECKS, [_KEY])  # a location that was renamed has no running run


@pytest.mark.parametrize(
    ("failing", "tag"),
    [
        (_TABLES[:2], "sales.t000, sales.t001"),
        (_TABLES, "5 tables: sales.t000, sales.t001, sales.t002, …"),
        ([], "none"),
    ],
)
def test_the_running_runs_of_a_job_are_tagged_with_the_tables_that_fail(
    instance: dg.DagsterInstance, failing: list[TableName], tag: str
) -> None:
    run = instance.create_run_for_job(dg.job(name="j")(lambda: None), status=dg.DagsterRunStatus.STARTED)
    ended = instance.create_run_for_job(dg.job(name="j")(lambda: None), status=dg.DagsterRunStatus.SUCCESS)
    instance.add_run_tags(run.run_id, {FAILING_TAG: "others"})
    tag_failing(instance, "j", {}, [str(name) for name in failing])
    found, other = instance.get_run_by_id(run.run_id), instance.get_run_by_id(ended.run_id)
    assert found is not None
    assert other is not None
    assert found.tags[FAILING_TAG] == tag
    assert FAILING_TAG not in other.tags
