"""Ranges on the command line: a point is checked before anything runs."""

from __future__ import annotations

import pytest

from mirror_assets.cli import main


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["run", "--from", "yesterday"], "expected a version, or a time like"),
        (["plan", "--to", "2026-02-30"], "there is no such time"),
        (["feed", "t", "--from", "2026-01-31 12:00:00 Mars/Base"], "is no time zone"),
        (["feed", "t", "--limit", "0"], "expected a whole number from 1 on"),
    ],
)
def test_what_is_no_point_is_a_wrong_command_line(
    arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    assert why in " ".join(capsys.readouterr().err.split())
