"""What is printed is what was said: no markup, no emoji, no broken lines in messages."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mirror_assets.cli.options import Exit
from mirror_assets.cli.output import as_table, note, note_errors, show_line, show_records, show_text
from mirror_assets.errors import ErrorRecord

_SAID = "/etc/mirror.yaml:100: tables.[bold]: expected :smile:"


def test_lines_of_a_file_are_no_emoji(capsys: pytest.CaptureFixture[str]) -> None:
    """Seen: rich printed `mirror.yaml:100:` as `mirror.yaml` and an emoji."""
    note(_SAID)
    show_line(_SAID)
    show_text(_SAID, _SAID)
    show_records(_SAID, ("what",), [(_SAID,)])
    shown = capsys.readouterr()
    assert shown.err.strip() == _SAID
    assert shown.out.count(_SAID) == 5


def test_cells_without_a_value_are_empty_and_fractions_have_one_digit(capsys: pytest.CaptureFixture[str]) -> None:
    show_records("Table", ("name", "count", "seconds"), [("one", 3, 0.25), ("two", None, 12.0)])
    *_, one, two, _ = capsys.readouterr().out.splitlines()
    assert [cell.strip() for cell in one.split("│")[1:-1]] == ["one", "3", "0.2"]
    assert [cell.strip() for cell in two.split("│")[1:-1]] == ["two", "", "12.0"]


def test_numbers_are_aligned_to_the_right_beside_empty_cells() -> None:
    table = as_table("Status", ("table", "landed"), [("orders", 12), ("new", None)])
    assert [column.justify for column in table.columns] == ["left", "right"]


def test_a_pipe_gets_whole_names_in_whole_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """Seen: a table of 200 characters cut the addresses of a lake."""
    address = f"abfss://{'w' * 120}@onelake.dfs.fabric.microsoft.com/{'t' * 120}"
    show_records("Tables", ("table", "address", "why"), [("sales.orders", address, "because " * 40)])
    shown = capsys.readouterr().out
    assert len(shown.splitlines()) == 6
    assert address in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize(("width", "is_table"), [(60, False), (120, True)])
def test_a_table_that_does_not_fit_is_a_line_for_each_cell(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int, is_table: bool
) -> None:
    monkeypatch.setattr("mirror_assets.cli.output._WIDE", width)
    columns = ("table", "version", "slices", "files", "inserts", "updates", "deletes", "seconds", "rows/s", "result")
    row = ("sales.order_items_[archive]", 12, 3, 4, 1000, 20, None, 1.5, 680, "mirrored")
    show_records("Mirrored", columns, [row])
    shown = capsys.readouterr().out
    assert ("┃" in shown) is is_table
    assert "sales.order_items_[archive]" in shown
    assert is_table or "rows/s: 680\nresult: mirrored\n" in shown
    assert max(map(len, shown.splitlines())) <= width


def test_an_error_of_many_tables_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    errors = [ErrorRecord(f"t{n}", "store_denied", "the store denies access.", "ask.", "setting") for n in range(9)]
    assert note_errors(errors) is Exit.BAD_SETTING
    assert capsys.readouterr().err == "error: the store denies access. Next: ask.\n"
    assert note_errors([errors[0], replace(errors[1], message="t1 is away.", family="retry")]) is Exit.FAILED
    assert capsys.readouterr().err.splitlines() == [
        "error: t0: the store denies access. Next: ask.",
        "error: t1 is away. Next: ask.",
    ]


def test_no_rows_are_a_line_not_an_empty_frame(capsys: pytest.CaptureFixture[str]) -> None:
    show_records("Pending slices", ("table", "slice"), [])
    assert capsys.readouterr().out == "Pending slices\nnone\n"
