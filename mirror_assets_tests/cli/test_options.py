"""Ranges on the command line: a point is checked before anything runs."""

from __future__ import annotations

import json
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


_TABLES = "landing_zone: {path: ./zone}\ntables:\n" + "".join(
    f"  {name}: {{source: ./none, keys: [id]}}\n" for name in ("sales.orders", "sales.items", "hr.people", "flat")
)


@pytest.mark.parametrize(
    ("arguments", "chosen"),
    [
        (["sales.orders"], ["sales.orders"]),
        (["sales.*", "hr.people"], ["sales.orders", "sales.items", "hr.people"]),
        (["hr.people", "--table", "sales.*"], ["hr.people", "sales.orders", "sales.items"]),
        (["--table", "hr.*", "hr.people"], ["hr.people"]),
        (["[fh]*"], ["hr.people", "flat"]),
        ([], ["sales.orders", "sales.items", "hr.people", "flat"]),
    ],
)
@pytest.mark.parametrize("command", ["plan", "status", "run", "doctor --no-spark"])
def test_tables_are_arguments_or_options_names_or_patterns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, arguments: list[str], chosen: list[str]
) -> None:
    (tmp_path / "mirror.yaml").write_text(_TABLES)
    main([*command.split(), *arguments, "--config", str(tmp_path / "mirror.yaml"), "--json"])
    found = [line.get("table") or line["subject"] for line in json.loads(capsys.readouterr().out)]
    assert list(dict.fromkeys(name for name in found if "/" not in name)) == chosen


@pytest.mark.parametrize(
    ("typed", "meant"), [("slaes.*", "sales.*"), ("sales.order", "sales.orders"), ("orders", "sales.orders")]
)
@pytest.mark.parametrize("command", ["plan", "status", "run", "check", "reconcile", "doctor", "history"])
def test_what_matches_no_table_is_an_error_with_a_near_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, typed: str, meant: str
) -> None:
    (tmp_path / "mirror.yaml").write_text(_TABLES)
    assert main([command, "flat", typed, "--config", str(tmp_path / "mirror.yaml")]) == 2
    assert f"has no table {typed!r}. Next: use one of its tables; did you mean {meant!r}?" in capsys.readouterr().err
