"""A range of a source's commits as people ask for it, and as the log has it."""

from __future__ import annotations

from dataclasses import dataclass

from mirror_assets.delta.errors import LogGap, RangeRefused
from mirror_assets.delta.points import Point, first_version, is_beyond, last_version, parse_point
from mirror_assets.delta.times import CommitTimes


@dataclass(frozen=True)
class Range:
    """Commits from `first` to `last`, both inclusive; None: from the first, to the newest.

    A range that goes beyond the newest commit is an error, unless it may be `clip`ped to what is there.
    """

    first: Point | None = None
    last: Point | None = None
    clip: bool = False

    @property
    def is_everything(self) -> bool:
        """Whether it leaves nothing out."""
        return self.first is None and self.last is None


@dataclass(frozen=True)
class Bounds:
    """The versions of a range; None where it is open. It is empty when `first` is behind `last`, by a clip only."""

    first: int | None
    last: int

    @property
    def is_empty(self) -> bool:
        """Whether no commit is in it."""
        return self.first is not None and self.first > self.last


EVERYTHING = Range()


def parse_range(first: str | None, last: str | None, *, clip: bool) -> Range:
    """The range between two points as they are written. Raises ValueError."""
    return Range(parse_point(first) if first else None, parse_point(last) if last else None, clip)


def resolve(uri: str, times: CommitTimes, requested: Range) -> Bounds:
    """The versions of the range in this log.

    Raises RangeRefused for a range that goes beyond the newest commit, ends before the log begins, or backwards; and
    LogGap for a log without its newest commit.
    """
    if not times.written:
        raise LogGap(uri, times.last)
    for name, point in (("from", requested.first), ("to", requested.last)):
        if point is not None and is_beyond(point, times) and not requested.clip:
            raise RangeRefused(uri, f"--{name} {point} lies behind its newest commit, version {times.last}", _CLIP)
    first = None if requested.first is None else first_version(requested.first, times)
    if requested.first is not None and first is None:
        first = times.last + 1  # clipped: nothing of it is there yet
    last = times.last if requested.last is None else last_version(requested.last, times)
    if last is None:
        raise RangeRefused(uri, f"--to {requested.last} lies before its log begins, at version {times.first}", _LATER)
    bounds = Bounds(first, min(last, times.last))
    if first is not None and bounds.last < first <= times.last:
        raise RangeRefused(
            uri, f"--from {requested.first} comes after --to {requested.last}", "give them the other way round."
        )
    return bounds


_CLIP = "wait for that commit, or add --clip to take what is there."
_LATER = "give a later --to."
