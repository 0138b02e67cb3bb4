"""The lease: a hint that a run is working on a table, so that others skip it. Safety does not depend on it.

A run that overlooks it, or has another clock, does work twice and no harm: the manifest decides what lands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import Field

from mirror_assets.landing.format import Record
from mirror_assets.landing.hints import read_hint, write_hint
from mirror_assets.landing.names import TableName
from mirror_assets.landing.steps import Steps


class Lease(Record):
    """`_leases/<table>.json`: who works on the table (a run, in a process on a host), and until when at least."""

    format: Literal[1] = 1
    table: str
    run: str
    host: str
    pid: Annotated[int, Field(ge=1)]
    until_ms: int

    def __str__(self) -> str:
        """In words."""
        return f"run {self.run} works on {self.table}, in process {self.pid} on {self.host}"


def read_lease(table: TableName) -> Steps[Lease | None]:
    """Read the lease, expired or not; None when there is no readable one."""
    return (yield from read_hint(Lease, table.lease)).record


def take_lease(table: TableName, lease: Lease, may_replace: Callable[[Lease], bool]) -> Steps[Lease | None]:
    """Take the lease unless another holds one that may not be replaced; return the lease that is there then.

    None when another takes it at the same time.
    """
    found = yield from read_hint(Lease, table.lease)
    if found.record is not None and not may_replace(found.record):
        return found.record
    return lease if (yield from write_hint(found, lease)) else None
