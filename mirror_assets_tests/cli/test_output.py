"""What is printed is what was said: no markup, no emoji, no broken lines in messages."""

from __future__ import annotations

import pytest

from mirror_assets.cli.output import as_table, note, show_line, show_records, show_text

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


def test_no_rows_are_a_line_not_an_empty_frame(capsys: pytest.CaptureFixture[str]) -> None:
    show_records("Pending slices", ("table", "slice"), [])
    assert capsys.readouterr().out == "Pending slices\nnone\n"
