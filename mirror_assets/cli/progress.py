"""Shows the progress of a command: a bar with an estimate on a terminal, otherwise a line each half a minute."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from mirror_assets.cli.json_log import is_json
from mirror_assets.cli.output import note
from mirror_assets.encode.session import finished_share
from mirror_assets.orchestration.units import count, duration
from mirror_assets.telemetry.progress import WorkProgress, following_progress

_POLL_SECONDS, _LINE_SECONDS = 0.5, 30.0


@contextmanager
def showing_progress(piece: str, *, as_json: bool) -> Iterator[WorkProgress]:
    """Show the progress of the block's work, whose pieces are called `piece`; with JSON, show nothing."""
    with following_progress() as work:
        if as_json or is_json():
            yield work
            return
        show, ended = _show_bar if sys.stderr.isatty() else _show_lines, threading.Event()
        thread = threading.Thread(target=show, args=(work, piece, ended), name="progress", daemon=True)
        thread.start()
        try:
            yield work
        finally:
            ended.set()
            thread.join()


def _show_bar(work: WorkProgress, piece: str, ended: threading.Event) -> None:
    columns = TextColumn("{task.description}"), BarColumn(20), TaskProgressColumn(), TimeRemainingColumn()
    console, most = Console(stderr=True, highlight=False, emoji=False), 0.0
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)
        while not ended.wait(_POLL_SECONDS):
            share, text = described(work, piece, finished_share())
            most = max(most, share)  # a stage that follows has more tasks to do
            bar.update(task, description=text, completed=most, total=1.0 if most else None)


def _show_lines(work: WorkProgress, piece: str, ended: threading.Event) -> None:
    began = time.monotonic()
    while not ended.wait(_LINE_SECONDS):
        share, text = described(work, piece, finished_share())
        left = (time.monotonic() - began) * (1 - share) / share if share else None
        note(text if left is None else f"{text}, about {duration(left)} left")


def described(work: WorkProgress, piece: str, running_share: float) -> tuple[float, str]:
    """Return the share of the work that is done, and what is done of how much; `running_share` is that of Spark."""
    tables = list(work.values())
    done, running = sum(one.weight for one in tables), sum(one.running for one in tables)
    later = sum(one.later for one in tables)
    total = done + running + sum(sum(one.left) for one in tables) + later
    pieces = sum(one.pieces for one in tables)
    all_pieces = pieces + sum(len(one.left) + bool(one.running) for one in tables)
    ended = sum(one.has_ended for one in tables)
    parts = [f"{ended:,} of {count(len(tables), 'table')}"] if len(tables) > 1 else []
    if all_pieces:
        parts.append(f"{pieces:,} of {'at least ' if later else ''}{count(all_pieces, piece)}")
    if total > all_pieces:
        parts.append(f"{done:,} of {'about ' if later else ''}{total:,} rows")
    return (done + running * running_share) / total if total else 0.0, ", ".join(parts)
