"""Publishing on the loopback OneLake, beside a plain upload of the same bytes and Microsoft's way.

The server is a Python program on the same two cores, so only ratios mean something.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.contest import interleaved
from benchmarks.loopback import Remote, remote
from benchmarks.meter import peak
from benchmarks.result import Case, Outcome
from mirror_assets.landing.format import (
    ChangeCounts,
    CheckVerdict,
    Column,
    MarkerCounts,
    SliceKind,
    SliceRecord,
    StagedPart,
)
from mirror_assets.landing.names import AttemptFolder, SliceKey, TableName, attempt_id
from mirror_assets.landing.publish import publish
from mirror_assets.landing.staged_parts import upload_parts, write_record
from mirror_assets.landing.steps import drive
from mirror_assets.zones import LocalStore
from mirror_assets.zones.onelake.onelake_store import OneLakeStore

_TABLE = TableName("bench", "files")
_CHECK = "bench"
_MIB = 1 << 20
_SMALL = {"20 files of 1 MiB": (20, _MIB), "1 file of 64 MiB": (1, 64 * _MIB)}
_FULL = {"100 files of 1 MiB": (100, _MIB), "1 file of 256 MiB": (1, 256 * _MIB)}
_PLAIN = "plain upload"


@dataclass(frozen=True)
class _Staged:
    """Parts of a slice on this machine."""

    local_staging: LocalStore
    folder: AttemptFolder
    parts: tuple[StagedPart, ...]


def run(bench: Bench) -> Outcome:
    """Measure publishing of many small files and of a large one, and its memory."""
    cases: list[Case] = []
    notes: list[str] = []
    with remote() as server:
        for name, (count, size) in (_FULL if bench.is_full else _SMALL).items():
            staged = _parts(bench.folder / f"{count}", count, size)
            ways = _ways(server, staged)
            cases.append(Case(name, interleaved(bench.meter, ways, bench.rounds), _PLAIN))
            notes += _requests(name, server, ways, count)
        before, peak = _in_a_process(_memory, server, staged)
    notes.append(f"  peak memory of publishing {name}: {peak:.0f} MiB, {peak - before:.0f} more than before it")
    return Outcome("OneLake on this machine", cases, notes=notes)


def _ways(server: Remote, staged: _Staged) -> dict[str, Callable[[int], None]]:
    return {
        _PLAIN: lambda _: _plain(server, staged),
        "Microsoft's SDK way": lambda _: _as_microsoft(server, staged),
        "upload, stage and publish": lambda _: _publish(server, staged),
    }


def _requests(name: str, server: Remote, ways: Mapping[str, Callable[[int], None]], files: int) -> Iterator[str]:
    """Requests of each way, by kind; the server is a Python program on the same two cores, so they tell more."""
    for way, land in ways.items():
        server.requests()
        land(0)
        requested = server.requests()
        kinds = ", ".join(
            f"{number} {kind.value}" for kind, number in sorted(requested.items(), key=lambda one: -one[1])
        )
        yield f"  {name}, {way}: {sum(requested.values()) / files:.2f} requests a file ({kinds})"


def _plain(server: Remote, staged: _Staged) -> None:
    """What a script does: the SDK's upload_data, one file after another, to names that nobody protects."""
    clients = server.clients(server.new_item())
    for part in staged.parts:
        with staged.local_staging.open(staged.folder.part(part.name)) as file:
            clients.file(f"{_TABLE.folder}/{part.name}").upload_data(file, length=part.bytes, overwrite=True)


def _as_microsoft(server: Remote, staged: _Staged) -> None:
    """What Microsoft's Python SDK for open mirroring does: file by file, each whole in memory, in six requests.

    It looks for the folder and for the newest number, writes the file under a temporary name, and renames it.
    """
    clients = server.clients(server.new_item())
    folder = clients.folder(_TABLE.folder)
    folder.create_directory()
    for part in staged.parts:
        with staged.local_staging.open(staged.folder.part(part.name)) as file:
            data = file.read()
        folder.exists()
        names = [path.name.rpartition("/")[2] for path in clients.files.get_paths(folder.path_name, recursive=False)]
        number = max((int(name[:20]) for name in names if name[:20].isdigit()), default=0) + 1
        temporary = clients.file(f"{_TABLE.folder}/_{number:020}.parquet")
        temporary.create_file()
        temporary.append_data(data, 0)
        temporary.flush_data(len(data))
        temporary.rename_file(f"{temporary.file_system_name}/{folder.path_name}/{number:020}.parquet")


def _publish(server: Remote, staged: _Staged) -> None:
    store = OneLakeStore(server.clients(server.new_item()))
    record = _record(staged.folder, upload_parts(staged.local_staging, store, staged.folder, staged.parts))
    write_record(store, record)
    published = drive(publish(_TABLE, record, [_CHECK]), store)
    assert len(published.entries) == len(staged.parts)  # noqa: S101 a figure of nothing would mislead


def _parts(place: Path, count: int, size: int) -> _Staged:
    """Files of random bytes on this machine, as a slice's parts."""
    local_staging, folder = LocalStore(place), AttemptFolder(_TABLE, 1, attempt_id(0, os.urandom(10)))
    parts = []
    for index in range(count):
        name = f"part-{index:05d}.parquet"
        etag = local_staging.create(folder.part(name), os.urandom(size))
        parts.append(StagedPart(name=name, etag=etag, bytes=size, sha256=None, markers=MarkerCounts(inserts=1)))
    return _Staged(local_staging, folder, tuple(parts))


def _record(folder: AttemptFolder, parts: tuple[StagedPart, ...]) -> SliceRecord:
    return SliceRecord(
        table=str(_TABLE),
        slice=SliceKey(1, 0, 0),
        kind=SliceKind.SNAPSHOT,
        epoch=1,
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
        verdicts=(CheckVerdict(check=_CHECK, passed=True, etags=tuple(part.etag for part in parts)),),
    )


def _memory(server: Remote, staged: _Staged) -> tuple[float, float]:
    """Peak memory before and after a publication, in MiB; the first asks for a token and loads what is loaded late."""
    _publish(server, _parts(Path(staged.local_staging.root) / "small", 1, 1))
    before = peak(os.getpid())
    _publish(server, staged)
    return before / _MIB, peak(os.getpid()) / _MIB


def _in_a_process(
    measure: Callable[[Remote, _Staged], tuple[float, float]], server: Remote, staged: _Staged
) -> tuple[float, float]:
    """What `measure` gives in a new process, which has not held anything yet."""
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(measure, (server, staged))
