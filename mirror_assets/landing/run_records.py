"""The records of runs: leases with heartbeats, and how often a table's runs have failed (docs/landing-folder.md).

A lease names the run that works on a table or on a batch of tables, so that no other run does the same work. A run
renews no lease: it writes one heartbeat file while it holds leases, and deletes the file when it has released the last
one. Safety does not depend on them: a run that misses a lease repeats work, but the manifest decides what lands.

The failure record counts failures since the last success. It is bound to the position at which they failed, and is void
as soon as anything lands. The process that mirrors the table deletes it when a complete plan has nothing to do. Every
instance, job and command sees it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import Field

from mirror_assets.errors import NEXT, Code
from mirror_assets.landing.format import Count, Manifest, Record, RecordedSlice
from mirror_assets.landing.names import SliceKey, TableName, heartbeat_path
from mirror_assets.landing.rebuild import RebuildRecord, read_rebuild
from mirror_assets.landing.state import read_manifest
from mirror_assets.landing.steps import drive, read_control_file, write_control_file
from mirror_assets.zones import Store

_LONGEST_MESSAGE = 4000


class Process(Record):
    """A process: its id, and its start in clock ticks of the kernel with this boot id and PID namespace.

    Without `/proc`, `boot` and `namespace` are empty.
    """

    host: str
    boot: str
    namespace: str
    pid: Annotated[int, Field(ge=1)]
    started: int


class Lease(Record):
    """`_leases/<table>.json`, or the lease of a batch of tables: a run, its process, and when it acquired the lease.

    For a batch, `code` is the mark of the definitions that the run was started for, and `tables` has its tables.
    `next_code` is the mark of newer definitions: the sensor sets it, and the run ends. Times are in ms since 1970.
    """

    format: Literal[2] = 2
    subject: str
    run: str
    process: Process
    since_ms: int
    code: str = ""
    next_code: str = ""
    tables: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Name the run, its subject and its process."""
        return f"run {self.run} works on {self.subject}, in process {self.process.pid} on {self.process.host}"


class Heartbeat(Record):
    """`_leases/_run-<id>.json`: the run holds leases. `beats` counts the writes, so that each changes the ETag."""

    format: Literal[1] = 1
    run: str
    process: Process
    beats: Count


def read_lease(store: Store, path: str) -> Lease | None:
    """Read the lease, also of a run that has ended; None if it is missing or unreadable."""
    return drive(read_control_file(Lease, path, is_hint=True), store).record


def take_lease(store: Store, path: str, lease: Lease, may_replace: Callable[[Lease], bool]) -> Lease | None:
    """Acquire the lease, unless it is held by another and may not be replaced; return the lease in force.

    Returns None if another process acquires it at the same time.
    """
    found = drive(read_control_file(Lease, path, is_hint=True), store)
    if found.record is not None and not may_replace(found.record):
        return found.record
    return lease if drive(write_control_file(found, lease), store) else None


def write_heartbeat(store: Store, run: str, process: Process) -> None:
    """Write the run's heartbeat file again. Raises what the store raises."""
    found = drive(read_control_file(Heartbeat, heartbeat_path(run), is_hint=True), store)
    beats = found.record.beats + 1 if found.record else 0
    drive(write_control_file(found, Heartbeat(run=run, process=process, beats=beats)), store)


class FailureRecord(Record):
    """`_failures/<table>.json`: the newest failure, and the number of failures since the last success.

    `epoch` and `generation` are the position at which it failed. `slice` and `rebuild` are the newest known values at
    this position: a later failure without them keeps them.
    """

    format: Literal[1] = 1
    table: str
    epoch: Annotated[int, Field(ge=0)]
    generation: Annotated[int, Field(ge=0)]
    count: Annotated[int, Field(ge=1)]
    failed_ms: int
    code: str
    message: str
    slice: RecordedSlice | None = None
    rebuild: str | None = None

    @property
    def counted(self) -> str:
        """Return `1 run of shop.orders failed`."""
        return f"{self.count} run{'' if self.count == 1 else 's'} of {self.table} failed"

    @property
    def reason(self) -> str:
        """The first part of the message, without the table's name."""
        return self.message.removeprefix(f"{self.table}: ").partition(NEXT)[0]

    @property
    def next_step(self) -> str:
        """The next step in the message, or an empty text."""
        return self.message.partition(NEXT)[2]

    def stands(self, manifest: Manifest | None, rebuild: RebuildRecord | None) -> bool:
        """Whether the failure still counts: nothing has landed since, and the table was not dropped."""
        if manifest is not None and _position(manifest, rebuild) > (self.epoch, self.generation):
            return False
        return not (rebuild is not None and rebuild.is_drop and rebuild.epoch > self.epoch)


def read_failure(store: Store, table: TableName) -> FailureRecord | None:
    """Read the record, void or not; None if it is missing or unreadable."""
    return drive(read_control_file(FailureRecord, table.failure_record, is_hint=True), store).record


def record_failure(
    store: Store,
    table: TableName,
    code: Code,
    message: str,
    now_ms: int,
    key: SliceKey | None = None,
    rebuild_because: str | None = None,
) -> None:
    """Count a failed run at the table's current position. Of two at the same time, one may be lost.

    `key` is the slice that failed, `rebuild_because` the reason why only a rebuild helps; both None if unknown. Raises
    ManifestCorrupt, and what a store raises.
    """
    rebuild = drive(read_rebuild(table), store)
    current = drive(read_manifest(table), store)
    manifest = current.manifest if current else None
    found = drive(read_control_file(FailureRecord, table.failure_record, is_hint=True), store)
    before = found.record if found.record and found.record.stands(manifest, rebuild) else None
    epoch, generation = _position(manifest, rebuild)
    record = FailureRecord(
        table=str(table),
        epoch=epoch,
        generation=generation,
        count=before.count + 1 if before else 1,
        failed_ms=now_ms,
        code=code.value,
        message=message[:_LONGEST_MESSAGE],
        slice=key or (before.slice if before else None),
        rebuild=rebuild_because or (before.rebuild if before else None),
    )
    drive(write_control_file(found, record), store)  # if another run was faster, its failure is recorded


def _position(manifest: Manifest | None, rebuild: RebuildRecord | None) -> tuple[int, int]:
    """Return epoch and generation of the manifest; without one, generation 0 of the rebuild record's epoch."""
    if manifest is not None:
        return manifest.epoch, manifest.generation
    return (rebuild.epoch if rebuild else 0), 0


def clear_failure(store: Store, table: TableName) -> None:
    """Delete the record, if it exists. Raises what a store raises."""
    if store.head(table.failure_record) is not None:
        store.delete(table.failure_record)
