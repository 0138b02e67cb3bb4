"""Publishing on the loopback OneLake, beside a plain upload of the same bytes: seconds, requests, peak memory.

`make bench-onelake`. The server is a Python program on the same two cores, so only ratios mean something.
"""

from __future__ import annotations

import os
import sys
import tempfile
import uuid
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from statistics import median

from benchmarks.contest import interleaved
from benchmarks.loopback import Remote, remote
from mirror_assets.landing.format import ChangeCounts, Column, MarkerCounts, SliceKind, SliceRecord, StagedPart, Verdict
from mirror_assets.landing.names import AttemptFolder, SliceKey, TableName, attempt_id
from mirror_assets.landing.parts import upload_parts, write_record
from mirror_assets.landing.publish import publish
from mirror_assets.landing.steps import drive
from mirror_assets.storage import LocalStore
from mirror_assets.storage.onelake.store import OneLakeStore

_TABLE = TableName("bench", "files")
_CHECK = "bench"
_MIB = 1 << 20
_ROUNDS = 5
_SETS = {"100 files of 1 MiB": (100, _MIB), "1 file of 256 MiB": (1, 256 * _MIB)}


def main() -> None:
    """Print the figures of each set of files."""
    with tempfile.TemporaryDirectory() as place, remote() as server:
        for name, (count, size) in _SETS.items():
            exchange, folder, parts = _parts(Path(place) / f"{count}", count, size)
            _compare(name, server, exchange, folder, parts)
        before, peak = _in_a_process(_memory, server, exchange, folder, parts)
        _say(f"peak memory of publishing 256 MiB: {peak:.0f} MiB, {peak - before:.0f} more than before it")


def _compare(
    name: str, server: Remote, exchange: LocalStore, folder: AttemptFolder, parts: tuple[StagedPart, ...]
) -> None:
    ways: dict[str, Callable[[int], None]] = {
        "plain upload": lambda _: _plain(server, exchange, folder, parts),
        "upload, stage and publish": lambda _: _publish(server, exchange, folder, parts),
    }
    seconds = interleaved(ways, _ROUNDS)
    total, base = sum(part.bytes for part in parts) / _MIB, median(seconds["plain upload"])
    for way, taken in seconds.items():
        server.requests()
        ways[way](0)
        asked = server.requests()
        shown = ", ".join(f"{number} {kind.value}" for kind, number in sorted(asked.items(), key=lambda one: -one[1]))
        _say(
            f"{name}: {way}: {median(taken):.2f} s ({min(taken):.2f} to {max(taken):.2f}), "
            f"{total / median(taken):.0f} MiB/s, {median(taken) / base:.2f} x plain; "
            f"{sum(asked.values()) / len(parts):.2f} requests a file ({shown})"
        )


def _plain(server: Remote, exchange: LocalStore, folder: AttemptFolder, parts: tuple[StagedPart, ...]) -> None:
    """What a script does: the SDK's upload_data, one file after another, to names that nobody protects."""
    clients = server.clients(server.new_item())
    for part in parts:
        with exchange.open(folder.part(part.name)) as file:
            clients.file(f"{_TABLE.folder}/{part.name}").upload_data(file, length=part.bytes, overwrite=True)


def _publish(server: Remote, exchange: LocalStore, folder: AttemptFolder, parts: tuple[StagedPart, ...]) -> None:
    store = OneLakeStore(server.clients(server.new_item()))
    record = _record(folder, upload_parts(exchange, store, folder, parts))
    write_record(store, record)
    published = drive(publish(_TABLE, record, [_CHECK]), store)
    assert len(published.entries) == len(parts)  # noqa: S101 a figure of nothing would mislead


def _parts(place: Path, count: int, size: int) -> tuple[LocalStore, AttemptFolder, tuple[StagedPart, ...]]:
    """Files of random bytes on this machine, as a slice's parts."""
    exchange, folder = LocalStore(place), AttemptFolder(_TABLE, 1, attempt_id(0, os.urandom(10)))
    parts = []
    for index in range(count):
        name = f"part-{index:05d}.parquet"
        etag = exchange.create(folder.part(name), os.urandom(size))
        parts.append(StagedPart(name=name, etag=etag, bytes=size, sha256=None, markers=MarkerCounts(inserts=1)))
    return exchange, folder, tuple(parts)


def _record(folder: AttemptFolder, parts: tuple[StagedPart, ...]) -> SliceRecord:
    return SliceRecord(
        table=str(_TABLE),
        slice=str(SliceKey(1, 0, 0)),
        kind=SliceKind.SNAPSHOT,
        life=1,
        generation=folder.generation,
        attempt=folder.attempt,
        incarnation=uuid.uuid4().hex,
        first_number=1,
        source_table_id="bench",
        source_schema="{}",
        keys=("id",),
        columns=(Column(name="id", type="bigint"),),
        first_commit_ms=None,
        last_commit_ms=None,
        read=ChangeCounts(insert=len(parts)),
        parts=parts,
        verdicts=(Verdict(check=_CHECK, passed=True, etags=tuple(part.etag for part in parts)),),
    )


def _memory(
    server: Remote, exchange: LocalStore, folder: AttemptFolder, parts: tuple[StagedPart, ...]
) -> tuple[float, float]:
    """Peak memory before and after a publication, in MiB; the first asks for a token and loads what is loaded late."""
    small = _parts(Path(exchange.root) / "small", 1, 1)
    _publish(server, *small)
    before = _peak()
    _publish(server, exchange, folder, parts)
    return before, _peak()


def _peak() -> float:
    """The process's peak memory in MiB, from /proc: getrusage counts what its parent held before it."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    (line,) = [line for line in lines if line.startswith("VmHWM:")]
    return int(line.split()[1]) / 1024


def _in_a_process(
    measure: Callable[[Remote, LocalStore, AttemptFolder, tuple[StagedPart, ...]], tuple[float, float]],
    *arguments: object,
) -> tuple[float, float]:
    """What `measure` gives in a new process, which has not held anything yet."""
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(measure, arguments)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    main()
