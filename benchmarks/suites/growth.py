"""How time, memory, tasks and threads grow: each subject at five sizes, each in a process of its own."""

from __future__ import annotations

import shutil
from collections.abc import Callable

from benchmarks.bench import Bench
from benchmarks.curve import Curve, GrowthPoint
from benchmarks.growth.point import measured_alone
from benchmarks.growth.subjects import SUBJECTS, Subject
from benchmarks.result import Outcome


def run_of(name: str) -> Callable[[Bench], Outcome]:
    """Return the suite of one subject."""
    subject = SUBJECTS[name]
    return lambda bench: Outcome(f"growth of {name}", curves=[curve(bench, subject)])


def curve(bench: Bench, subject: Subject) -> Curve:
    """Measure the sizes, from the smallest to the largest."""
    points = [_point(bench, subject, size) for size in bench.size(subject.small, subject.full)]
    return Curve(subject.title, subject.axis, points)


def _point(bench: Bench, subject: Subject, size: int) -> GrowthPoint:
    folder = bench.folder / ("all" if subject.one_table else f"{size}")
    if not folder.exists():
        folder.mkdir()
        subject.prepare(bench, folder, size)
    point = measured_alone(subject, folder, size)
    if not subject.one_table:
        shutil.rmtree(folder)
    print(f"  {subject.name}: {point}", flush=True)
    return point
