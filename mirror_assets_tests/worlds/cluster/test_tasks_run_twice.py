"""Slices land right, and pass their checks, where Spark runs tasks twice and its counts double."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mirror_assets_tests import figures
from mirror_assets_tests.quick_jvm import ENVIRONMENT
from mirror_assets_tests.worlds.cluster.tasks_run_twice import CASES, KILL, SPECULATE, Outcome

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]


def _outcomes(folder: Path, how: str) -> list[Outcome]:
    command = [sys.executable, "-m", "mirror_assets_tests.worlds.cluster.tasks_run_twice", str(folder), how]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, env=os.environ | ENVIRONMENT)
    assert ended.returncode == 0, ended.stderr[-5000:]
    found = [Outcome(**json.loads(line)) for line in ended.stdout.splitlines() if line.startswith("{")]
    assert [outcome.case for outcome in found] == list(CASES)
    for outcome in found:
        figures.report(f"tasks run twice: {how}", "seconds", outcome.seconds, case=outcome.case)
        assert outcome.is_equal, outcome
        assert not outcome.by_files, f"the feed's count was refused: {outcome}"
    return found


def test_an_executor_killed_in_the_second_stage_blocks_no_right_slice(tmp_path: Path) -> None:
    for outcome in _outcomes(tmp_path, KILL):
        assert outcome.killed, f"the stage ended too soon: {outcome}"
        assert outcome.again > 0, f"Spark computed no stage again: {outcome}"
        # Without this the test would prove nothing.
        assert outcome.observed > outcome.counted, f"the Observation was right: {outcome}"


def test_speculative_tasks_block_no_right_slice(tmp_path: Path) -> None:
    outcomes = _outcomes(tmp_path, SPECULATE)
    assert sum(outcome.speculative for outcome in outcomes) > 0, "Spark started no task a second time"
