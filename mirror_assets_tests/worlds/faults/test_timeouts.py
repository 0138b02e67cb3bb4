"""A service that is slower than the client waits: the request takes effect while it is asked again, or after that."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from mirror_assets.zones.onelake import clients
from mirror_assets_tests import figures
from mirror_assets_tests.worlds.faults.bench import Bench
from mirror_assets_tests.worlds.faults.kinds import CHANGING
from mirror_assets_tests.worlds.faults.scenarios import SCENARIOS, Work
from mirror_assets_tests.worlds.faults.trial import requests_of, require_done
from mirror_assets_tests.worlds.onelake import Delay, Fault, Moment

WAITS, TAKES = 0.5, 0.7


def slowed(bench: Bench, context: Work, at: int, moment: Moment) -> None:
    """The process with a slow service at one request; all is over when this returns."""
    bench.begin()
    fault = Fault(Delay(TAKES, moment), nth=at)
    bench.server.faults.add(fault)
    context.process(bench.store)
    deadline = time.monotonic() + 10
    while not any(fault in record.faults for record in bench.server.log.records):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    require_done(bench, context)


@pytest.mark.parametrize("moment", Moment)
def test_a_request_slower_than_its_timeout_lands_everything_once(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: Moment
) -> None:
    monkeypatch.setitem(clients._SETTINGS, "read_timeout", WAITS)
    impatient = Bench(bench.server)
    context = SCENARIOS[1].prepare(impatient, tmp_path)
    impatient.save()
    for at, record in enumerate(requests_of(impatient, context), 1):
        if record.operation in CHANGING:
            slowed(impatient, context, at, moment)
            figures.report("one fault on the loopback OneLake", "cases", 1, case="slower than the client waits")
            figures.report("one fault on the loopback OneLake", "exactly once", 1, case="slower than the client waits")
