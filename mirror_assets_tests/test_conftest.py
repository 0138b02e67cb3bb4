"""What a test leaves behind reaches no other."""

from __future__ import annotations

import gc

import dagster as dg
import pytest


@pytest.fixture(scope="module")
def not_ended() -> list[dg.DagsterInstance]:
    """Two instances of Dagster that began before the test, one within the other, and have not ended."""
    instances = [dg.DagsterInstance.local_temp(), dg.DagsterInstance.local_temp()]
    for instance in instances:
        instance.__enter__()
    return instances


def test_instances_that_end_within_a_test_leave_no_storage(not_ended: list[dg.DagsterInstance]) -> None:
    while not_ended:
        not_ended.pop(0)
        gc.collect()
    assert dg.Definitions().get_repository_def(), "it asks the storage of defs state, which had ended with its instance"
