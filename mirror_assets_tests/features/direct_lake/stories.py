"""Random histories of a table: its commits, and its files after each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from mirror_assets.features.direct_lake.framing import LogSpan
from mirror_assets.source.actions import Actions, CommitInfo, LiveFile, Metadata, Protocol, Tombstone, Vector
from mirror_assets.source.log import LoggedCommit
from mirror_assets.source.replay import Snapshot

_DAY = 86_400_000
Files = Mapping[str, LiveFile]


def live_file(path: str, rows: int | None = 10, size: int = 100, vector: Vector | None = None) -> LiveFile:
    """A file of an unpartitioned table."""
    return LiveFile(path, size, rows, 0, {}, vector, {})


def vector(name: str, rows: int = 1) -> Vector:
    """A deletion vector."""
    return Vector(name, f"{name}.bin", 34, rows)


def snapshot(version: int, files: Files) -> Snapshot:
    """A version with these files, eight hours after the one before."""
    metadata, protocol = Metadata("id", "{}"), Protocol(3, 7)
    return Snapshot("t", version, version * _DAY // 3, metadata, protocol, tuple(files.values()), ())


def commit(version: int, before: Files, after: Files, operation: str = "WRITE") -> LoggedCommit:
    """The commit that leads from the one to the other."""
    removed = [file for path, file in before.items() if after.get(path) != file]
    added = [file for path, file in after.items() if before.get(path) != file]
    tombstones = tuple(Tombstone(file.path, file.vector, version, file.bytes, file.rows) for file in removed)
    time = version * _DAY // 3
    return LoggedCommit(version, time, Actions(tuple(added), tombstones, info=CommitInfo(operation)))


@dataclass(frozen=True)
class Story:
    """A table's files at each version, from `first` on, and the operation that led there."""

    first: int
    states: Sequence[Files]
    operations: Sequence[str]

    @property
    def history(self) -> LogSpan:
        """The log's view of it."""
        pairs = zip(self.states, self.states[1:], self.operations[1:], strict=False)
        commits = (commit(self.first + step, *pair) for step, pair in enumerate(pairs, 1))
        return LogSpan(self.snapshot(self.first), tuple(commits))

    def snapshot(self, version: int) -> Snapshot:
        """The version as a whole."""
        return snapshot(version, self.states[version - self.first])


@st.composite
def stories(draw: st.DrawFn) -> Story:
    """Appends, rewrites, deletion vectors, OPTIMIZE, RESTORE and new statistics; some files have no row count."""
    story = Story(draw(st.integers(0, 3)), [_appended(draw, {}, 0)], ["WRITE"])
    states, operations = list(story.states), list(story.operations)
    steps = ("append", "rewrite", "hide", "OPTIMIZE", "RESTORE", "VACUUM END", "statistics")
    for version in range(1, draw(st.integers(0, 8)) + 1):
        step = draw(st.sampled_from(steps))
        states.append(_next(draw, states, version, step))
        operations.append(step)
    return replace(story, states=states, operations=operations)


def _next(draw: st.DrawFn, states: Sequence[Files], version: int, step: str) -> Files:
    now = states[-1]
    if step == "RESTORE":
        return draw(st.sampled_from(states))
    if step == "VACUUM END":
        return now
    some = {path for path in now if draw(st.booleans())}
    if step == "hide":
        return {path: _hidden(draw, file, version) if path in some else file for path, file in now.items()}
    if step == "statistics":
        return {path: replace(file, tags={"v": str(version)}) if path in some else file for path, file in now.items()}
    rest = now if step == "append" else {path: file for path, file in now.items() if path not in some}
    return _appended(draw, rest, version)


def _appended(draw: st.DrawFn, files: Files, version: int) -> Files:
    sizes = draw(st.lists(st.tuples(st.none() | st.integers(5, 50), st.integers(1, 999)), max_size=4))
    new = (live_file(f"{version}-{number}", rows, size) for number, (rows, size) in enumerate(sizes))
    return {**files, **{file.path: file for file in new}}


def _hidden(draw: st.DrawFn, file: LiveFile, version: int) -> LiveFile:
    return replace(file, vector=vector(f"{file.path}-{version}", draw(st.integers(1, 5))))
