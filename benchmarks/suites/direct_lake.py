"""The report of a table of many files: the first one, and one whose footers are known. No Spark."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import DEVNULL
from subprocess import run as start

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from benchmarks.bench import Bench
from benchmarks.contest import interleaved
from benchmarks.result import Case, Outcome
from mirror_assets.features.direct_lake.footers import FooterReader
from mirror_assets.features.direct_lake.report import InspectedTable, table_report
from mirror_assets.source.log import DeltaLog

_FILES_A_COMMIT, _ROWS_A_FILE, _NUMBERS = 10, 2_000, 8
_PLAIN, _FIRST, _AGAIN = "footers by pyarrow", "first report", "report again, cached"
_COMMANDS = ("command, first", "command, cached")


def run(bench: Bench) -> Outcome:
    """Measure reports in this process, and as the command line gives them in one of its own."""
    files = bench.size(200, 1_000)
    uri, cache = _table(bench.folder / "sales", files), bench.folder / "cache"
    ways: dict[str, Callable[[int], object]] = {
        _PLAIN: lambda _: _footers(uri),
        _FIRST: lambda turn: _report(uri, cache / str(turn)),
        _AGAIN: lambda _: _report(uri, cache / "kept"),
    }
    _report(uri, cache / "kept")
    name = f"a table of {files:,} files"
    case = Case(name, interleaved(bench.meter, ways, bench.rounds), _PLAIN)
    return Outcome(
        "direct lake",
        [case],
        notes=[
            f"  {way}: {seconds:.2f} s"
            for way, seconds in zip(_COMMANDS, _commands(uri, cache / "command"), strict=True)
        ],
    )


def _table(folder: Path, files: int) -> str:
    """Twelve columns of numbers, texts and times; ten files a commit."""
    random = np.random.default_rng(1)
    texts = pa.array([f"text {number}" for number in range(500)])
    for commit in range(files // _FILES_A_COMMIT):
        rows = _FILES_A_COMMIT * _ROWS_A_FILE
        write_deltalake(
            folder,
            pa.table(
                {
                    "id": np.arange(commit * rows, (commit + 1) * rows),
                    "part": np.arange(rows) // _ROWS_A_FILE,
                    "text": texts.take(pa.array(random.integers(0, 500, rows))),
                    "at": pa.array(random.integers(0, 10**9, rows), pa.timestamp("us")),
                    **{f"n{number}": random.integers(0, 10 ** (number + 1), rows) for number in range(_NUMBERS)},
                }
            ),
            mode="append",
            partition_by=["part"],
        )
    return str(folder)


def _footers(uri: str) -> None:
    """What any report of row groups has to do at least."""
    for path in DeltaTable(uri).file_uris():
        pq.read_metadata(path)


def _report(uri: str, cache: Path) -> None:
    log = DeltaLog(uri)
    reader = FooterReader(uri, log.files, cache)
    table_report(InspectedTable(uri, log, reader, time.time()))


def _commands(uri: str, cache: Path) -> list[float]:
    """Seconds of the command line from its start to its end, without a cache and with one."""
    shutil.rmtree(cache, ignore_errors=True)
    command = [
        str(Path(sys.executable).with_name("mirror-assets")),
        "direct-lake",
        "report",
        uri,
        "--cache",
        str(cache),
    ]
    seconds = []
    for _ in _COMMANDS:
        began = time.perf_counter()
        start(command, check=True, stdout=DEVNULL)
        seconds.append(time.perf_counter() - began)
    return seconds
