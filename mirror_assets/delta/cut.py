"""Cutting commits into slices, and a slice's rows into parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

from mirror_assets.delta.commits import Commit
from mirror_assets.delta.read_rows import ReadRows

# A commit with this share of the rows of a part is worth one of its own, if that saves pairing its rows.
_ENOUGH = 8


@dataclass(frozen=True)
class Limits:
    """What a slice may hold at most; a single commit beyond a limit is a slice of its own."""

    max_commits: int
    max_rows: int
    max_bytes: int

    def __post_init__(self) -> None:
        """Raise ValueError for a limit that would let nothing through."""
        for limit in fields(self):
            if getattr(self, limit.name) < 1:
                raise ValueError(f"{limit.name} must be at least 1")


@dataclass(frozen=True)
class CommitSpread:
    """Where a commit's rows go: parts `first_part` to `first_part + parts - 1`.

    `unpaired`: the parts are its own, and its rows land without being paired, if what the log says of it is true.
    `told` is what the log alone tells of such a commit's rows, or None.
    """

    version: int
    first_part: int
    parts: int
    unpaired: bool = False
    told: ReadRows | None = None


def cut_commits(
    commits: Iterable[Commit], limits: Limits, last_versions: frozenset[int]
) -> tuple[tuple[Commit, ...], ...]:
    """The commits in groups, in order: each as long as the limits allow, none going on behind one of `last_versions`.

    A cut depends only on what comes after the cut before it, so planning from any cut on gives the same groups.
    """
    groups: list[list[Commit]] = []
    rows = size = 0
    for commit in commits:
        group = groups[-1] if groups else []
        fits = (
            len(group) < limits.max_commits
            and rows + commit.rows <= limits.max_rows
            and size + commit.bytes <= limits.max_bytes
        )
        if not group or not fits or group[-1].version in last_versions:
            groups.append([])
            rows = size = 0
        groups[-1].append(commit)
        rows, size = rows + commit.rows, size + commit.bytes
    return tuple(tuple(group) for group in groups)


def spread_commits(commits: Sequence[Commit], target_rows: int) -> tuple[CommitSpread, ...]:
    """Parts for every commit that changes data: small ones share a part, a large one has some to itself.

    Parts in order hold commits in order; a part holds about `target_rows` at most (docs/encoding.md).
    """
    spreads: list[CommitSpread] = []
    part = filled = 0
    started = False
    for commit in commits:
        if not commit.changes_data:
            continue
        unpaired = not commit.mixes and commit.rows > target_rows // _ENOUGH
        alone = unpaired or commit.rows > target_rows
        if started and (alone or filled + commit.rows > target_rows):
            part, filled, started = part + 1, 0, False
        parts = parts_for(commit.rows, target_rows)
        spreads.append(CommitSpread(commit.version, part, parts, unpaired, commit.told if unpaired else None))
        if alone:
            part += parts
        else:
            filled, started = filled + commit.rows, True
    return tuple(spreads)


def parts_for(rows: int, target_rows: int) -> int:
    """How many parts the rows need, at least one. Raises ValueError for a target below 1."""
    if target_rows < 1:
        raise ValueError("target_rows must be at least 1")
    return max(1, -(-rows // target_rows))
