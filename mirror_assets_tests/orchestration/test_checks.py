"""Checks as Dagster shows them: staged slices, retention, and one that is repeated while a run works on the table."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import dagster as dg
import pytest

from mirror_assets.config.load import load_config
from mirror_assets.definitions import build_definitions
from mirror_assets.errors import SettingError
from mirror_assets.feature import SliceCheck
from mirror_assets.orchestration.checks import STAGED_CHECKS, merged, require_known, settled
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.translator import AssetKind, asset_key
from mirror_assets.pipeline.leases import leased
from mirror_assets.verify.check_result import CheckResult
from mirror_assets_tests.pipeline.paper import TABLE, Paper


def test_a_warning_is_shown_and_blocks_nothing(tmp_path: Path) -> None:
    checked = [
        ("1.0-3", (CheckResult("row_conservation", metadata={"commits_proved": 3}),)),
        ("1.4-4", (CheckResult("row_conservation", metadata={"commits_proved": 1}, warning="odd statistics"),)),
    ]
    found = merged("row_conservation", checked)
    assert (found.passed, found.warning, found.metadata["commits_proved"]) == (True, "slice 1.4-4: odd statistics", 4)
    check = next(check for check in STAGED_CHECKS if check.name == "row_conservation")
    result = check.result(MirrorAssets(Paper(tmp_path).config), TABLE, found)
    assert (result.passed, result.severity) == (True, dg.AssetCheckSeverity.WARN)
    assert result.description == "slice 1.4-4: odd statistics"
    assert result.metadata["warning"] == dg.TextMetadataValue("slice 1.4-4: odd statistics")


def test_a_check_of_the_project_is_an_asset_check_of_its_tables(tmp_path: Path) -> None:
    (tmp_path / "mirror.yaml").write_text(
        "landing_zone: {path: ./landing}\ntables:\n  orders: {source: ./orders, keys: [id]}\n"
        "  lines: {source: ./lines, keys: [id]}\n"
    )
    config = load_config(tmp_path / "mirror.yaml")
    ours = [
        SliceCheck("no_nulls", "No value is NULL.", lambda _: (), tables=("orders",)),
        SliceCheck("odd", "No row is odd.", lambda _: (), blocking=False),
    ]
    defs = build_definitions(config, features=ours)
    found = {
        (spec.asset_key.to_user_string(), spec.name): (spec.blocking, spec.description)
        for checks in defs.asset_checks or ()
        if isinstance(checks, dg.AssetChecksDefinition)
        for spec in checks.check_specs
        if spec.name in ("no_nulls", "odd")
    }
    assert found == {
        ("orders_changes", "no_nulls"): (True, "No value is NULL."),
        ("orders_changes", "odd"): (False, "No row is odd."),
        ("lines_changes", "odd"): (False, "No row is odd."),
    }
    assert require_known(config.with_features(ours), ["odd", "lag"]) == {"odd", "lag"}
    with pytest.raises(SettingError, match="no check is called 'odd'"):
        require_known(config, ["odd"])


@pytest.mark.parametrize(
    ("found", "ran", "passed"),
    [
        (["file 3 is missing", "file 4 is missing", ""], 3, True),
        (["file 3 is missing", "file 3 is missing", ""], 2, False),
        (["file 3 is missing", ""], 2, True),
        ([""], 1, True),
        (["a", "b", "c", ""], 3, False),
    ],
)
def test_a_failure_counts_when_it_is_the_same_twice(
    tmp_path: Path, found: Sequence[str], ran: int, passed: bool
) -> None:
    paper, runs, slept = Paper(tmp_path), list[str](), list[float]()

    def run() -> CheckResult:
        runs.append(found[len(runs)])
        return CheckResult("file_continuity", (runs[-1],) if runs[-1] else ())

    with leased(paper.context, "another run"):
        result = settled(paper.context, run, slept.append)
    assert (len(runs), result.passed) == (ran, passed)


def test_a_failure_counts_at_once_if_no_run_works_on_the_table(tmp_path: Path) -> None:
    paper, slept = Paper(tmp_path), list[float]()
    failed = CheckResult("file_continuity", ("a file is missing",))
    assert settled(paper.context, lambda: failed, slept.append) is failed
    assert not slept


_DAY = 86_400.0
_CHECK = dg.AssetCheckKey(asset_key(AssetKind.SOURCE, TABLE), "retention")


def _evaluated(paper: Paper) -> dg.AssetCheckEvaluation:
    job = dg.define_asset_job("only", dg.AssetSelection.checks(_CHECK))
    definitions = dg.Definitions.merge(build_definitions(paper.config), dg.Definitions(jobs=[job]))
    with dg.DagsterInstance.ephemeral() as instance:
        result = definitions.resolve_job_def("only").execute_in_process(instance=instance)
    (evaluation,) = result.get_asset_check_evaluations()
    return evaluation


@pytest.mark.parametrize(
    ("age", "settings", "passed", "severity", "said"),
    [
        (1, "", True, "WARN", "can be read until"),
        (5.5, "", False, "WARN", "for 36.0 hours"),
        (6.9, "", False, "ERROR", "SET TBLPROPERTIES (delta.deletedFileRetentionDuration = 'interval 14 days')"),
        (8, "on_break: hold", False, "ERROR", "may be deleted since"),
        (8, "retention: {warn_seconds: null, error_seconds: null}", True, "WARN", "may be deleted since"),
    ],
)
def test_the_settings_say_when_it_warns_and_when_it_fails(
    tmp_path: Path, age: float, settings: str, passed: bool, severity: str, said: str
) -> None:
    paper, made = Paper(tmp_path, settings), time.time() - age * _DAY
    paper.create(made - _DAY)
    paper.commit(1, made)
    paper.cover(0)
    evaluation = _evaluated(paper)
    assert (evaluation.passed, evaluation.severity.value) == (passed, severity)
    assert said in (evaluation.description or "")
