"""Runs operations on one table, one after another, and mirrors the history."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mirror_assets.delta.pairing import Run, runs_of
from mirror_assets.landing.format import MarkerCounts
from mirror_assets.mirroring.compare import reconcile_table
from mirror_assets.mirroring.run import MirroredSlice, mirror_table
from mirror_assets.replicator.reconciliation import ReconcileState
from mirror_assets_tests.lab import Lab
from mirror_assets_tests.operations.operation import Operation
from mirror_assets_tests.operations.source import Source

_PART = re.compile(r"part-(\d+)")


@dataclass(frozen=True)
class Done:
    """An operation that was run: its commits are those after `before`, up to `last`."""

    operation: Operation
    before: int
    last: int

    @property
    def versions(self) -> range:
        """Its commits."""
        return range(self.before + 1, self.last + 1)


@dataclass(frozen=True)
class Way:
    """A way to mirror a source beside others: where its changes come from, and in slices of how many commits."""

    name: str
    settings: str = ""
    keys: str = "[id]"
    is_net: bool = True

    def lab(self, source: Source, root: Path, commits: int) -> Lab:
        """A mirror of the source in a folder of its own, with nothing landed."""
        lab = Lab(source.spark, root / self.name)
        (lab.root / "lake").mkdir(parents=True)
        Path(lab.uri).symlink_to(source.uri)
        lab.configure(self.settings, f"slices: {{max_commits: {commits}}}\n  files: {{target_rows: 1}}", self.keys)
        return lab


FEED = Way("feed", is_net=False)
COMPACT = Way("compact", "compact: true")
TRACKED = Way("tracked", "changes: row_tracking")
KEYLESS = Way("keyless", "changes: row_tracking", keys="[]")


def perform(source: Source, operations: Sequence[Operation]) -> list[Done]:
    """Run them in order."""
    done: list[Done] = []
    for operation in operations:
        before = source.version
        operation.do(source)
        done.append(Done(operation, before, source.version))
    return done


def mirror_and_compare(lab: Lab) -> Iterator[MirroredSlice]:
    """Each slice after it has landed, was applied, and was compared with the source at its last version."""
    for mirrored in mirror_table(lab.work, lab.wait, lambda _: None):
        lab.replicator.poll()
        compared = reconcile_table(lab.work, lab.replicator)
        assert compared.state is ReconcileState.EQUAL, (mirrored.record.slice, compared)
        yield mirrored


def landed_by_version(slices: Sequence[MirroredSlice]) -> dict[int, MarkerCounts]:
    """Rows by marker of each commit, read from the parts that hold nothing else."""
    return {version: counts for mirrored in slices for version, counts in _of_slice(mirrored)}


def _of_slice(mirrored: MirroredSlice) -> Iterator[tuple[int, MarkerCounts]]:
    spreads, parts = mirrored.planned.spreads, mirrored.record.parts
    ends = [spread.first_part + spread.parts for spread in spreads]
    assert ends[:-1] == [spread.first_part for spread in spreads[1:]], "commits share a part"
    by_number = {_number(part.name): part.markers for part in parts}
    by_version = {
        version: [part for part in parts if part.version == version] for version in (s.version for s in spreads)
    }
    base = 0  # what is written as it is read may have fewer parts than were planned
    runs = runs_of(spreads) if any(by_version.values()) or not spreads else (Run(spreads),)
    for run in runs:
        as_read = run.unpaired and bool(by_version[run.first])  # else it changes keys, and was paired after all
        for spread in run.spreads:
            first = base + spread.first_part - run.first_part
            numbers = range(first, first + spread.parts)
            found = [by_number[number] for number in numbers if number in by_number]
            written = [part.markers for part in by_version[spread.version]]
            yield spread.version, sum(written if as_read else found, MarkerCounts())
        written_last = [_number(part.name) for part in by_version[run.last]]
        base = max(written_last, default=base - 1) + 1 if as_read else base + run.parts


def _number(name: str) -> int:
    found = _PART.match(name)
    assert found, name
    return int(found[1])
