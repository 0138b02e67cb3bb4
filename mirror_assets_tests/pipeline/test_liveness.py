"""Whether the process behind a lease is there: the process table decides where it can, else the lease's end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mirror_assets.landing.lease import Lease, Process
from mirror_assets.pipeline.liveness import has_ended, is_gone, this_process


def ended_process() -> Process:
    """A process of this machine that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return this_process().model_copy(update={"pid": process.pid})


def lease_of(process: Process, seconds: float) -> Lease:
    now = int(time.time() * 1000)
    return Lease(subject="t", run="1", process=process, since_ms=now, until_ms=now + int(seconds * 1000))


@pytest.mark.parametrize(("seconds", "is_over"), [(-1800, False), (-3601, True)])
def test_a_living_process_of_this_machine_holds_its_lease_for_an_hour_after_its_end(
    seconds: float, is_over: bool
) -> None:
    assert has_ended(this_process()) is False
    assert is_gone(lease_of(this_process(), seconds)) is is_over


def test_a_process_of_this_machine_that_has_ended_and_a_lease_that_was_released_are_gone_at_once() -> None:
    assert has_ended(ended_process()) is True
    assert is_gone(lease_of(ended_process(), 3600))
    assert is_gone(lease_of(this_process(), 60).model_copy(update={"until_ms": 0}))


def test_a_killed_process_that_nobody_has_waited_for_is_gone() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    started = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[19]
    mark = this_process().model_copy(update={"pid": process.pid, "started": int(started)})
    assert has_ended(mark) is False
    process.kill()
    deadline = time.monotonic() + 10
    while not has_ended(mark) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert has_ended(mark) is True
    process.wait()


def test_another_process_with_the_same_id_is_another() -> None:
    mine = this_process()
    assert has_ended(mine.model_copy(update={"started": mine.started - 1})) is True


@pytest.mark.parametrize("apart", ["boot", "namespace"])
def test_of_other_machines_and_containers_only_the_end_of_the_lease_is_known(apart: str) -> None:
    """Containers of one host have its name and boot, and their own process ids."""
    other = this_process().model_copy(update={apart: "another", "pid": 1})
    assert has_ended(other) is None
    assert not is_gone(lease_of(other, 1))
    assert is_gone(lease_of(other, -1))


def test_without_a_process_table_the_lease_decides() -> None:
    blind = Process(host="mac", boot="", namespace="", pid=os.getpid(), started=0)
    assert has_ended(blind) is None
