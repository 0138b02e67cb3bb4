"""The examples in `--help`: each is run against one mirror on this machine, or parsed where it needs a cloud."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import click
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from mirror_assets.cli import main
from mirror_assets.cli.commands import app

_SOURCES = {"sales.orders": "orders", "hr.people": "people", "shop.orders": "people"}
_COMMITS = {"orders": 126, "people": 1}
_JANUARY = 1_769_860_800  # 2026-01-31 12:00:00 UTC
_MIRROR = """
landing_zone: {path: ./landing}
mirror: {path: ./mirror}
history: {path: ./history}
automation: {mode: batch}
defaults: {history: slices, slices: {max_commits: 1000}, lag: {warn_seconds: null, error_seconds: null}}
"""
# What needs a cloud or another Spark, is endless, or takes minutes: tests of these commands run them.
_PARSED = (
    *("run --follow", "init s3:", "init abfss:", "init https:", "init spark", "fabric ", "alerts test", "demo"),
    "download-jars",
)
# In this order, each finds what it needs: an example that loads, changes or drops something comes after others.
_ORDER = (
    *("init", "validate", "preview", "feed", "run", "plan", "status", "replicate", "reconcile", "check", "doctor"),
    *("history", "direct-lake", "repair", "rebuild", "alerts", "discover", "drop"),
)


def _examples(command: click.Command = app) -> Iterator[str]:
    """The examples of the command and those below it, without the program's name."""
    for line in (command.epilog or "").partition("Examples:")[2].splitlines():
        if line.strip():
            yield line.strip().removeprefix("mirror-assets ")
    for below in command.commands.values() if isinstance(command, click.Group) else ():
        yield from _examples(below)


def _is_parsed(example: str) -> bool:
    return f"{example} ".replace("'", "").startswith(_PARSED)


def _rank(example: str) -> tuple[int, bool]:
    return _ORDER.index(example.split(maxsplit=1)[0]), "--dry-run" not in example


_ALL = list(dict.fromkeys(_examples()))
_RUN = sorted((one for one in _ALL if not _is_parsed(one)), key=_rank)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A mirror, one of whose sources has 126 commits of an afternoon in January."""
    root = tmp_path_factory.mktemp("examples")
    for name, commits in _COMMITS.items():
        for number in range(commits):
            row = pa.table({"id": pa.array([number], pa.int32()), "name": [f"n{number}"]})
            properties = {"delta.enableChangeDataFeed": "true"} if number == 0 else None
            write_deltalake(root / "lake" / name, row, mode="append", configuration=properties)
    for file in (root / "lake").glob("*/_delta_log/*.json"):
        made = _JANUARY + 300 * int(file.stem)
        os.utime(file, (made, made))
    tables = "".join(f"  {name}: {{source: ./lake/{lake}, keys: [id]}}\n" for name, lake in _SOURCES.items())
    (root / "mirror.yaml").write_text(f"{_MIRROR}tables:\n{tables}")
    return root


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("example", _RUN)
def test_an_example_runs(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], example: str
) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(project / "cache"))
    place = project
    if example.startswith(("init", "discover")):  # a lake without a mirror, and a mirror of a rule's tables
        place = tmp_path
        shutil.copytree(project / "lake", place / "lake")
        if example.startswith("discover"):
            rule = "{from: {store: lake, path: '*/'}, keys: {default: [id]}}"
            (place / "mirror.yaml").write_text(f"{_MIRROR}stores: {{lake: {{root: ./lake}}}}\ndiscover: [{rule}]\n")
    monkeypatch.chdir(place)
    assert main(shlex.split(example)) == 0, capsys.readouterr().err


@pytest.mark.parametrize("example", [one for one in _ALL if _is_parsed(one)])
def test_an_example_that_needs_a_cloud_is_a_command_line(example: str) -> None:
    command, arguments = app.commands[shlex.split(example)[0]], shlex.split(example)[1:]
    while isinstance(command, click.Group):
        command, arguments = command.commands[arguments[0]], arguments[1:]
    with click.Context(app) as root:
        command.make_context(example, arguments, parent=root)
