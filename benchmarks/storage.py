"""What Dagster's storage takes in a year, with and without the job `delete_old_runs`.

`python -m benchmarks.storage FOLDER --tables 100 --storage Postgres` mirrors the tables twice and runs their checks
some times, as the sensor and the schedule do; what each of these has left in database and logs is multiplied by how
often a year has it.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import sqlalchemy
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteRepositoryOrigin
from dagster._core.storage.runs import SqliteRunStorage, SqlRunStorage

from benchmarks.dev_server import Storage, dagster_home
from benchmarks.many import ManyTables
from mirror_assets.config.load import load_config
from mirror_assets.definitions import build_definitions
from mirror_assets.orchestration.check_jobs import CHECKS
from mirror_assets.orchestration.jobs import build_jobs
from mirror_assets.orchestration.mirror_assets import MIRROR_ALL, MirrorAssets
from mirror_assets.orchestration.old_runs import delete_old_runs

_CHECK_RUNS, _SLICES = 12, 11
_RESULTS_A_DAY_MOST = 2 * 24 * 60
_DATABASE_BYTES = sqlalchemy.text("SELECT pg_database_size(current_database())")
_REPOSITORY = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("mirror_assets"), "__repository__")


@dataclass(frozen=True)
class Site:
    """The tables, and the Dagster instance that mirrors them."""

    lake: ManyTables
    instance: dg.DagsterInstance
    home: Path

    def run(self, job: str) -> int:
        """Run the job; return the bytes that its events, logs and records take."""
        before = self.bytes
        definitions = build_definitions(load_config(self.lake.config))
        tags = {".dagster/repository": _REPOSITORY.get_label()}
        done = definitions.resolve_job_def(job).execute_in_process(instance=self.instance, tags=tags)
        if not done.success:
            raise RuntimeError(f"{job} failed")
        # As when the process of a run ends: SQLite empties its journal, and deletes it.
        self.instance.event_log_storage.dispose()
        return self.bytes - before

    @property
    def bytes(self) -> int:
        """The bytes of all files of the instance, and of a database elsewhere."""
        files = sum(path.stat().st_size for path in self.home.rglob("*") if path.is_file())
        storage = self.instance.run_storage
        if isinstance(storage, SqliteRunStorage) or not isinstance(storage, SqlRunStorage):
            return files
        with storage.connect() as connection:
            return files + int(connection.execute(_DATABASE_BYTES).scalar_one())

    def results(self) -> int:
        """How many results of checks are recorded."""
        wanted = dg.EventRecordsFilter(dg.DagsterEventType.ASSET_CHECK_EVALUATION)
        return len(self.instance.get_event_records(wanted, limit=100_000))


@dataclass(frozen=True)
class Daily:
    """What a day writes: `many` times `each` bytes, which are there for so many days."""

    what: str
    each: float
    many: int
    kept_days: int = 30

    @property
    def mb(self) -> float:
        """Megabytes a day."""
        return self.each * self.many / 1e6


def main() -> None:
    """Measure, and print a year."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.storage", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tables", type=int, default=100)
    parser.add_argument("--slices-a-day", type=int, default=100, help="of each table")
    parser.add_argument("--storage", type=Storage, choices=list(Storage), default=Storage.SQLITE)
    given = parser.parse_args()
    lake = ManyTables.make(given.folder / "many", given.tables)
    one_commit_a_slice = "defaults: {slices: {max_commits: 1}}\n"
    lake.config.write_text(lake.config.read_text(encoding="utf-8") + one_commit_a_slice, encoding="utf-8")
    with dagster_home(given.folder / "dagster", lake.config, given.storage) as home:
        os.environ["DAGSTER_HOME"] = str(home.folder)
        _measure(lake, home.folder, given.slices_a_day)


def _measure(lake: ManyTables, home: Path, slices_a_day: int) -> None:
    tables = len(lake.names)
    with dg.DagsterInstance.get() as instance:
        site = Site(lake, instance, home)
        site.run(MIRROR_ALL)
        lake.commit()
        one = site.run(MIRROR_ALL) / tables
        for _ in range(_SLICES):
            lake.commit()
        of_slice = (site.run(MIRROR_ALL) / tables - one) / (_SLICES - 1)
        before = site.results()
        first = site.run(CHECKS)
        recorded = site.results() - before
        seconds, again = _timed(lambda: sum(site.run(CHECKS) for _ in range(_CHECK_RUNS)) / _CHECK_RUNS)
        of_result = (first - again) / max(1, recorded)
        _print(
            (
                Daily("slice", of_slice, slices_a_day * tables),
                Daily("table in a run that stays four hours", one - of_slice, 6 * tables),
                Daily("result of a check", of_result, min(recorded, _RESULTS_A_DAY_MOST)),
                Daily("run of checks", again, 288 if tables <= 100 else 48, kept_days=3),
            )
        )
        kept, ended = site.bytes, time.time() + 60
        mirror = MirrorAssets(load_config(lake.config))
        jobs = [job.name for job in build_jobs(mirror)]
        deleted = delete_old_runs(instance, mirror, jobs, _REPOSITORY, ended)
        print(f"a run of checks takes {seconds / _CHECK_RUNS:.1f} s here")
        print(f"{deleted} runs deleted: {kept / 1e6:.1f} MB before, {site.bytes / 1e6:.1f} MB behind it")


def _timed(work: Callable[[], float]) -> tuple[float, float]:
    began = time.monotonic()
    done = work()
    return time.monotonic() - began, done


def _print(daily: Sequence[Daily]) -> None:
    """Print what a day writes, and what is there after a year."""
    print("| what | KB each | a day | MB a day | MB after a year, all kept | with `delete_old_runs` |")
    print("| --- | --- | --- | --- | --- | --- |")
    for x in daily:
        each, year, kept = x.each / 1e3, x.mb * 365, x.mb * x.kept_days
        print(f"| {x.what} | {each:.1f} | {x.many:,} | {x.mb:.1f} | {year:,.0f} | {kept:,.0f} |")
    day, kept = sum(x.mb for x in daily), sum(x.mb * x.kept_days for x in daily)
    print(f"| all | | | {day:.1f} | {day * 365:,.0f} | {kept:,.0f} |")


if __name__ == "__main__":
    main()
