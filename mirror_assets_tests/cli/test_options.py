"""Ranges on the command line: a point is checked before anything runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mirror_assets.cli import main


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["run", "--from", "yesterday"], "expected a version, or a time like"),
        (["plan", "--to", "2026-02-30"], "no such time: '2026-02-30'"),
        (["feed", "t", "--from", "2026-01-31 12:00:00 Mars/Base"], "is not a time zone"),
        (["feed", "t", "--limit", "0"], "0 is not in the range"),
    ],
)
def test_what_is_no_point_is_a_wrong_command_line(
    arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    assert why in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("where", [0, 1])
def test_the_configuration_is_named_before_or_after_the_command(
    where: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "my.yaml"
    file.write_text("landing_zone: {path: ./zone}\ntables: {shop.orders: {source: ./orders, keys: [id]}}\n")
    arguments = ["plan", "--table", "orders"]
    arguments[where:where] = ["--config", str(file)]
    assert main(arguments) == 2
    assert "has no table 'orders'. Next: use one of its tables; did you mean 'shop.orders'?" in capsys.readouterr().err


def test_run_refuses_an_unknown_table_before_it_loads_dagster(tmp_path: Path) -> None:
    """Seen: 3.2 s until a typo was refused."""
    file = tmp_path / "mirror.yaml"
    file.write_text("landing_zone: {path: ./zone}\ntables: {shop.orders: {source: ./orders, keys: [id]}}\n")
    program = (
        "import sys; from mirror_assets.cli import main; "
        "code = main(['run', '--config', sys.argv[1], '--table', 'shop.odrers']); "
        "sys.exit(code + ('dagster' in sys.modules) * 10 + ('pyspark' in sys.modules) * 20)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "did you mean 'shop.orders'?" in done.stderr
