"""The progress of a command: on a terminal, in a log, and not at all with JSON."""

from __future__ import annotations

import io
import sys
import time

import pytest

from mirror_assets.cli import progress
from mirror_assets.cli.output import note
from mirror_assets.cli.progress import described, showing_progress
from mirror_assets.telemetry.progress import WorkProgress, end_work, expect, working


def _half_done(work: WorkProgress) -> None:
    del work
    expect("shop.orders", [1000, 3000])
    expect("shop.items", ())
    end_work("shop.items")
    with working("shop.orders"):
        pass


class _Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def test_what_is_done_of_how_much_and_the_share_with_sparks_tasks() -> None:
    with showing_progress("slice", as_json=True) as work:
        _half_done(work)
        assert described(work, "slice", 0.0) == (0.25, "1 of 2 tables, 1 of 2 slices, 1,000 of 4,000 rows")
        with working("shop.orders"):
            share, text = described(work, "slice", 0.5)
    assert (share, text) == (0.625, "1 of 2 tables, 1 of 2 slices, 1,000 of 4,000 rows")


def test_a_backlog_that_is_not_planned_yet_is_estimated() -> None:
    with showing_progress("slice", as_json=True) as work:
        expect("shop.orders", [1000, 1000], later=2000)
        with working("shop.orders"):
            pass
        text = "1 of at least 2 slices, 1,000 of about 4,000 rows"
        assert described(work, "slice", 0.0) == (0.25, text)


def test_work_without_rows_is_counted_in_pieces() -> None:
    with showing_progress("scan", as_json=True) as work:
        expect("shop.orders", [1, 1])
        assert described(work, "scan", 0.5) == (0.0, "0 of 2 scans")
        with working("shop.orders"):
            assert described(work, "scan", 0.5) == (0.25, "0 of 2 scans")


def test_a_terminal_has_a_bar_with_an_estimate_that_ends_without_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "_POLL_SECONDS", 0.01)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    with showing_progress("slice", as_json=False) as work:
        _half_done(work)
        time.sleep(0.5)
        note("a message")
        time.sleep(0.2)
    shown = terminal.getvalue()
    assert "\x1b[2Ka message" in shown, "it is a line above the bar"
    assert "1,000 of 4,000 rows" in shown
    assert "25%" in shown
    assert "-:--:--" in shown or "0:0" in shown, "the time that is left"
    assert shown.rstrip("\n").endswith("\x1b[2K"), "the bar is erased"


@pytest.mark.parametrize(("as_json", "lines"), [(False, True), (True, False)])
def test_a_log_has_a_line_from_time_to_time_and_none_with_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], as_json: bool, lines: bool
) -> None:
    monkeypatch.setattr(progress, "_LINE_SECONDS", 0.05)
    with showing_progress("slice", as_json=as_json) as work:
        _half_done(work)
        time.sleep(0.2)
    shown = capsys.readouterr().err
    assert ("1 of 2 tables, 1 of 2 slices, 1,000 of 4,000 rows, about 0." in shown) is lines
    assert "\x1b" not in shown
