"""The lease: a hint that a run is working on a table, so that others skip it. Safety does not depend on it.

A run that overlooks it, or has another clock, does work twice and no harm: the manifest decides what lands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import Field

from mirror_assets.landing.errors import ManifestCorrupt
from mirror_assets.landing.format import Record, decode, encode
from mirror_assets.landing.names import TableName
from mirror_assets.landing.steps import Create, Replace, Steps, read
from mirror_assets.storage import Content, PathChanged, PathExists, PathMissing


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
    found = yield from _read(table)
    return found[0] if found else None


def take_lease(table: TableName, lease: Lease, may_replace: Callable[[Lease], bool]) -> Steps[Lease | None]:
    """Take the lease unless another holds one that may not be replaced; return the lease that is there then.

    None when another takes it at the same time.
    """
    found = yield from _read(table)
    if found is not None and found[0] is not None and not may_replace(found[0]):
        return found[0]
    try:
        if found is None:
            yield Create(table.lease, encode(lease))
        else:
            yield Replace(table.lease, encode(lease), found[1].etag)
    except (PathExists, PathChanged, PathMissing):
        return None
    return lease


def _read(table: TableName) -> Steps[tuple[Lease | None, Content] | None]:
    content = yield from read(table.lease)
    if content is None:
        return None
    try:
        return decode(Lease, table.lease, content.data), content
    except ManifestCorrupt:
        return None, content
