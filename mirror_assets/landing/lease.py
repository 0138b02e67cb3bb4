"""Leases: hints which run works on a table, or mirrors a batch of tables, so that no other does the same work.

Safety does not depend on them: a run that overlooks one does work twice and no harm, because the manifest decides what
lands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import Field

from mirror_assets.landing.format import Record
from mirror_assets.landing.hints import read_hint, write_hint
from mirror_assets.landing.steps import Steps


class Process(Record):
    """A process: its id and its start in clock ticks, as the kernel counts them that `boot` and `namespace` name.

    Without `/proc`, `boot` and `namespace` are empty.
    """

    host: str
    boot: str
    namespace: str
    pid: Annotated[int, Field(ge=1)]
    started: int


class Lease(Record):
    """`_leases/<table>.json`, or that of a batch of tables: a run, its process, since when, and until when at least.

    Of a batch, `code` is the load of the definitions that asked for the run, and `tables` the names of its tables.
    Times are in ms since 1970; `until_ms` is 0 when the run has let go of it.
    """

    format: Literal[1] = 1
    subject: str
    run: str
    process: Process
    since_ms: int
    until_ms: int
    code: str = ""
    tables: tuple[str, ...] = ()

    def __str__(self) -> str:
        """In words."""
        return f"run {self.run} works on {self.subject}, in process {self.process.pid} on {self.process.host}"


def read_lease(path: str) -> Steps[Lease | None]:
    """Read the lease, expired or not; None when there is no readable one."""
    return (yield from read_hint(Lease, path)).record


def take_lease(path: str, lease: Lease, may_replace: Callable[[Lease], bool]) -> Steps[Lease | None]:
    """Take or renew the lease unless another holds one that may not be replaced; return the lease that is there then.

    None when another takes it at the same time.
    """
    found = yield from read_hint(Lease, path)
    if found.record is not None and not may_replace(found.record):
        return found.record
    return lease if (yield from write_hint(found, lease)) else None
