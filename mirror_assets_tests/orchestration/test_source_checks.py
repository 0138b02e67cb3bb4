"""The check retention as Dagster runs it: a warning, then an error, and no Spark."""

from __future__ import annotations

import time
from pathlib import Path

import dagster as dg
import pytest

from mirror_assets.definitions import build_definitions
from mirror_assets.orchestration.asset_names import AssetKind, asset_key
from mirror_assets_tests.pipeline.paper import TABLE, Paper

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
