"""The runner record: a hint which run mirrors a batch of tables, so that no second one is started for nothing.

Like a lease it saves work, and safety does not depend on it. Unlike a lease it may be taken from a living run: the run
that takes it replaces the other, which sees that and ends.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from mirror_assets.landing.format import Record
from mirror_assets.landing.hints import read_hint, write_hint
from mirror_assets.landing.names import runner_record
from mirror_assets.landing.steps import Steps


class Runner(Record):
    """`_leases/_batch-<n>.json`: the run, in a process on a host, since when, and until when at least.

    `code` identifies the load of the definitions that asked for the run; times are in ms since 1970.
    """

    format: Literal[1] = 1
    batch: Annotated[int, Field(ge=0)]
    run: str
    code: str
    host: str
    pid: Annotated[int, Field(ge=1)]
    since_ms: int
    until_ms: int


def read_runner(batch: int) -> Steps[Runner | None]:
    """Read the record, expired or not; None when there is no readable one."""
    return (yield from read_hint(Runner, runner_record(batch))).record


def take_over(runner: Runner) -> Steps[None]:
    """Write the record in the place of any other, also of one that is being renewed."""
    while True:
        found = yield from read_hint(Runner, runner_record(runner.batch))
        if (yield from write_hint(found, runner)):
            return


def renew(runner: Runner) -> Steps[bool]:
    """Write the record again; return False when another run has taken over."""
    found = yield from read_hint(Runner, runner_record(runner.batch))
    if found.record is not None and found.record.run != runner.run:
        return False
    yield from write_hint(found, runner)  # whoever was faster is seen at the next renewal
    return True
