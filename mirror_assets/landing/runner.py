"""The runner record: a hint which run mirrors a batch of tables, so that no second one is started for nothing.

Like a lease it saves work, and safety does not depend on it. Unlike a lease it may be taken from a living run: the run
that takes it replaces the other, which sees that and ends.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from mirror_assets.landing.errors import ManifestCorrupt
from mirror_assets.landing.format import Record, decode, encode
from mirror_assets.landing.names import runner_record
from mirror_assets.landing.steps import Create, Replace, Steps, read
from mirror_assets.storage import Content, PathChanged, PathExists, PathMissing


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
    found, _ = yield from _read(batch)
    return found


def take_over(runner: Runner) -> Steps[None]:
    """Write the record in the place of any other, also of one that is being renewed."""
    while True:
        _, content = yield from _read(runner.batch)
        if (yield from _write(runner, content)):
            return


def renew(runner: Runner) -> Steps[bool]:
    """Write the record again; return False when another run has taken over."""
    found, content = yield from _read(runner.batch)
    if found is not None and found.run != runner.run:
        return False
    yield from _write(runner, content)  # whoever was faster is seen at the next renewal
    return True


def _read(batch: int) -> Steps[tuple[Runner | None, Content | None]]:
    content = yield from read(runner_record(batch))
    if content is None:
        return None, None
    try:
        return decode(Runner, runner_record(batch), content.data), content
    except ManifestCorrupt:
        return None, content


def _write(runner: Runner, content: Content | None) -> Steps[bool]:
    """Write the record unless another has changed what was read; return whether it is written."""
    path = runner_record(runner.batch)
    try:
        if content is None:
            yield Create(path, encode(runner))
        else:
            yield Replace(path, encode(runner), content.etag)
    except (PathExists, PathChanged, PathMissing):
        return False
    return True
