"""Help and completion of every command, without what takes long to import."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from mirror_assets.cli import main
from mirror_assets.cli.commands import app

_MAIN = "import sys; from mirror_assets.cli import main; sys.exit(main())"
_SETTINGS = "landing_zone: {path: ./landing}\ntables: {shop.orders: {source: ./orders, keys: [id]}}\n"


def _commands(group: click.Group = app, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, command in group.commands.items():
        yield (*above, name)
        if isinstance(command, click.Group):
            yield from _commands(command, (*above, name))


@pytest.mark.parametrize("command", list(_commands()), ids=" ".join)
def test_every_command_shows_examples_that_name_it(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*command, "--help"])
    shown = capsys.readouterr().out
    assert ended.value.code == 0
    assert "..." not in shown.replace("[ARGS]...", "").replace("[TABLE]...", ""), (
        "a summary is too long for the list of commands"
    )
    examples = shown.partition("Examples:")[2].strip().splitlines()
    assert examples
    assert all(line.split()[: len(command) + 1] == ["mirror-assets", *command] for line in examples)


@pytest.mark.parametrize("command", [(), *_commands()], ids=" ".join)
def test_help_fits_a_narrow_terminal_and_cuts_no_summary(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen in the list of commands: `status  Show the status of each table: health, landed version,...`."""
    monkeypatch.setenv("COLUMNS", "60")
    with pytest.raises(SystemExit):
        main([*command, "--help"])
    text = capsys.readouterr().out.partition("Examples:")[0].replace("[TABLE]...", "").replace("[ARGS]...", "")
    assert "..." not in text
    assert max(map(len, text.splitlines())) <= 62, "the line that completes a shell can't be broken"


def test_help_imports_neither_spark_nor_dagster_nor_the_configuration() -> None:
    helps = [[*command, "--help"] for command in [(), *_commands()]]
    program = (
        "import sys, contextlib\nfrom mirror_assets.cli import main\n"
        f"for arguments in {helps!r}:\n    with contextlib.suppress(SystemExit):\n        main(arguments)\n"
        "heavy = {'pyspark', 'dagster', 'deltalake', 'mirror_assets.config'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", ["plan", "status"])
def test_commands_that_read_logs_import_no_spark(tmp_path: Path, command: str) -> None:
    (tmp_path / "mirror.yaml").write_text(_SETTINGS)
    write_deltalake(tmp_path / "orders", pa.table({"id": [1]}), configuration={"delta.enableChangeDataFeed": "true"})
    program = (
        f"import sys; from mirror_assets.cli import main; code = main([{command!r}]); "
        "assert 'pyspark' not in sys.modules; sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=_environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("recon", ["reconcile"]),
        ("run --table shop", ["shop.orders", "shop.customers"]),
        ("status shop", ["shop.orders", "shop.customers"]),
        ("rebuild sh", ["shop.orders", "shop.customers"]),
    ],
)
def test_a_shell_completes_commands_and_tables(tmp_path: Path, typed: str, offered: list[str]) -> None:
    (tmp_path / "mirror.yaml").write_text(f"{_SETTINGS[:-2]}, shop.customers: {{source: ./c, keys: [id]}}}}\n")
    words = ["mirror-assets", *typed.split()]
    requested = {
        "_MIRROR_ASSETS_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    done = subprocess.run(
        [sys.executable, "-c", _MAIN],
        cwd=tmp_path,
        env=_environment() | requested,
        capture_output=True,
        text=True,
        check=False,
    )
    assert [line.partition(",")[2] for line in done.stdout.splitlines()] == offered, done.stderr


def _environment() -> dict[str, str]:
    """The process's own, in which the package is found from any folder."""
    return os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
