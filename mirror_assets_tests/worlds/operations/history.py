"""Runs operations on one table, one after another, and mirrors the history."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mirror_assets.landing.format import MarkerCounts
from mirror_assets.pipeline.land_slice import ProcessedSlice
from mirror_assets.pipeline.reconcile_table import reconcile_table
from mirror_assets.verify.reconciliation import ReconcileState
from mirror_assets_tests.lab import Lab
from mirror_assets_tests.landed_slices import landed_slices
from mirror_assets_tests.worlds.operations.operation import Operation
from mirror_assets_tests.worlds.operations.source import Source

_PART = re.compile(r"part-(\d+)")


@dataclass(frozen=True)
class Done:
    """An operation that was run: its commits are those after `before`, up to `last`."""

    operation: Operation
    before: int
    last: int

    @property
    def versions(self) -> range:
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
FILES = Way("files", "changes: files")
KEYLESS = Way("keyless", "changes: row_tracking", keys="[]")


def perform(source: Source, operations: Sequence[Operation]) -> list[Done]:
    done: list[Done] = []
    for operation in operations:
        before = source.version
        operation.do(source)
        done.append(Done(operation, before, source.version))
    return done


def mirror_and_compare(lab: Lab) -> Iterator[ProcessedSlice]:
    """Each slice after it has landed, was applied, and was compared with the source at its last version."""
    for mirrored in landed_slices(lab.context, lab.replicator):
        lab.replicator.poll()
        compared = reconcile_table(lab.context, lab.replicator)
        assert compared.state is ReconcileState.EQUAL, (mirrored.record.slice, compared)
        yield mirrored


def landed_by_version(slices: Sequence[ProcessedSlice]) -> dict[int, MarkerCounts]:
    """Rows by marker of each commit, read from the parts that hold nothing else."""
    return {version: counts for mirrored in slices for version, counts in _of_slice(mirrored)}


def _of_slice(mirrored: ProcessedSlice) -> Iterator[tuple[int, MarkerCounts]]:
    """A slice of net changes, or a snapshot, counts as its last commit."""
    assignments, parts = mirrored.planned.assignments, mirrored.record.parts
    assert all(part.first_version == part.last_version for part in parts), "commits share a part"
    for assignment in assignments:
        written = [part.markers for part in parts if part.version in (assignment.version, None)]
        yield assignment.version, sum(written, MarkerCounts())
