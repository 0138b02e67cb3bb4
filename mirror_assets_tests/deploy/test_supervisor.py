"""The services of compose.yaml, with its environment and Postgres, killed in turn: each comes back, commits land."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.postgres import PostgresMissing, postgres
from mirror_assets_tests.deploy.services import CODE, DAEMON, WEBSERVER
from mirror_assets_tests.deploy.supervisor import Supervisor
from mirror_assets_tests.worlds.kills.zone import Zone, until_landed

pytestmark = pytest.mark.soak
_LIMIT_SECONDS = 180.0


@pytest.fixture
def zone(tmp_path: Path) -> Zone:
    """A lake of three tables with an empty landing zone."""
    return Zone.make(tmp_path / "shop")


@pytest.fixture
def supervisor(zone: Zone, tmp_path: Path) -> Iterator[Supervisor]:
    try:
        with postgres(dict(os.environ)) as database:
            made = Supervisor(tmp_path / "home", zone.config, database)
            try:
                yield made
            finally:
                made.end()
    except PostgresMissing as missing:
        pytest.skip(str(missing))


def _seconds_until_back(supervisor: Supervisor, name: str, since: float) -> float:
    while not supervisor.is_back(name, since):
        assert time.time() - since < _LIMIT_SECONDS
        supervisor.supervise()
        time.sleep(0.5)
    return time.time() - since


def test_killed_services_come_back_and_commits_land(
    zone: Zone, supervisor: Supervisor, capsys: pytest.CaptureFixture[str]
) -> None:
    def report(line: str) -> None:
        with capsys.disabled():
            print(line)  # noqa: T201 the proof is to be read

    began = time.time()
    for name in (WEBSERVER, CODE, DAEMON):
        report(f"\n{name} works {_seconds_until_back(supervisor, name, began):.1f} s after the start")
    report(f"first load: {until_landed([zone], 300, supervisor.supervise):.1f} s")
    assert set(supervisor.check_health().values()) == {0}
    for name in (WEBSERVER, DAEMON, CODE):
        zone.commit()
        killed = time.time()
        supervisor.kill(name)
        zone.commit()
        back = _seconds_until_back(supervisor, name, killed)
        until_landed([zone], _LIMIT_SECONDS, supervisor.supervise)
        landed = time.time() - killed
        report(f"{name} killed: it works again {back:.1f} s later, every commit has landed {landed:.1f} s later")
    assert set(supervisor.check_health().values()) == {0}
    supervisor.end()
    assert not zone.problems()
