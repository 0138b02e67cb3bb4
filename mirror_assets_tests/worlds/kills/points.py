"""The moments of a run at which it is killed on purpose: at which write, on which side of its effect."""

from __future__ import annotations

import fnmatch
import re
from dataclasses import dataclass
from enum import Enum


class Write(Enum):
    """What changes a landing zone."""

    PUT = "put"
    """A file written whole: a control file, or an uploaded part."""
    RENAME = "rename"
    DELETE = "delete"
    SPARK = "Spark's"
    NOTHING = "only asked"


class Side(Enum):
    """Where the kill is, seen from the write's effect."""

    BEFORE = "before"
    HALF = "half-way"
    """A folder is deleted file by file on a local disk."""
    AFTER = "after"
    LATE = "late"
    """The write is on its way: it takes effect when whoever comes next has ended."""


@dataclass(frozen=True)
class Point:
    """At the `nth` write of this kind whose path fits the pattern, in which `*` also stands for slashes.

    `left` counts only renames that leave so many staged parts behind.
    """

    name: str
    write: Write
    path: str
    side: Side
    nth: int = 1
    left: int | None = None

    @property
    def is_sure(self) -> bool:
        """Whether every run comes to it, if what was done before has been chosen well."""
        return self.write is not Write.NOTHING

    def fits(self, write: Write, path: str) -> bool:
        """Whether a request counts. Where nothing has to be written, all do."""
        return self.write in (write, Write.NOTHING) and fnmatch.fnmatchcase(path, self.path)

    def __str__(self) -> str:
        return self.name


_REQUEST = re.compile(r"(before|after|late) request ([0-9]+)")
_RECORD, _MANIFEST, _KEPT = "*/slice.json", "*/_mirror.json", "*/_mirror/*.json"
_LANDED, _ATTEMPT, _PART = "*/orders/0*.parquet", "*_scratchPad/*", "*/parts/*part-*.parquet"
_SPARKS = "*/parts/*_temporary/*.parquet"

_DECLARED = Point("keys declared, nothing committed", Write.PUT, "*/_metadata.json", Side.AFTER)
_AFTER_ENCODING = (
    Point("encoded, no slice.json yet", Write.PUT, _RECORD, Side.BEFORE),
    Point("slice.json written, not judged", Write.PUT, _RECORD, Side.AFTER),
    Point("judged, verdicts not written", Write.PUT, _RECORD, Side.BEFORE, nth=2),
    Point("verdicts written", Write.PUT, _RECORD, Side.AFTER, nth=2),
    Point("nothing collected", Write.DELETE, _ATTEMPT, Side.BEFORE),
    Point("collected, nothing committed", Write.DELETE, _ATTEMPT, Side.AFTER),
    Point("manifest not swapped", Write.PUT, _MANIFEST, Side.BEFORE),
    Point("manifest swapped", Write.PUT, _MANIFEST, Side.AFTER),
    Point("generation kept, nothing renamed", Write.PUT, _KEPT, Side.AFTER),
    Point("first rename not done", Write.RENAME, _LANDED, Side.BEFORE),
    Point("first rename done", Write.RENAME, _LANDED, Side.AFTER),
    Point("between renames", Write.RENAME, _LANDED, Side.AFTER, left=1),
    Point("last rename done, not yet seen to be", Write.RENAME, _LANDED, Side.AFTER, left=0),
)
_LATE = (
    Point("manifest's swap on its way", Write.PUT, _MANIFEST, Side.LATE),
    Point("first rename on its way", Write.RENAME, _LANDED, Side.LATE),
    Point("last rename on its way", Write.RENAME, _LANDED, Side.LATE, left=0),
    Point("slice.json on its way", Write.PUT, _RECORD, Side.LATE),
)

# In an order in which each point is met: the first is a first slice, and redo comes before anything else.
ON_DISK = (
    _DECLARED,
    Point("while Spark encodes", Write.SPARK, _SPARKS, Side.AFTER),
    *_AFTER_ENCODING,
    Point("in collection", Write.DELETE, _ATTEMPT, Side.HALF),
)
UPLOADED = (
    _DECLARED,
    Point("first part not uploaded", Write.PUT, _PART, Side.BEFORE),
    Point("second part uploaded", Write.PUT, _PART, Side.AFTER, nth=2),
    *_AFTER_ENCODING,
    *_LATE,
)
DIRECT = (
    _DECLARED,
    Point("while Spark writes a part", Write.SPARK, _SPARKS, Side.BEFORE, nth=2),
    Point("while Spark moves a part", Write.RENAME, _PART, Side.BEFORE),
    Point("second part moved by Spark", Write.RENAME, _PART, Side.AFTER, nth=2),
    *_AFTER_ENCODING,
    *_LATE,
)


def at_request(number: int, side: Side) -> Point:
    """The run's request with this number, whatever it asks for."""
    return Point(f"{side.value} request {number}", Write.NOTHING, "*", side, nth=number)


def named(name: str) -> Point:
    """The point with this name."""
    if match := _REQUEST.fullmatch(name):
        return at_request(int(match[2]), Side(match[1]))
    return next(point for point in (*ON_DISK, *UPLOADED, *DIRECT) if point.name == name)
