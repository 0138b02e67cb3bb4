"""What `run --follow` shows of the events that a run logs."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.events import StepMaterializationData

from mirror_assets.cli import follow
from mirror_assets.cli.main import main
from mirror_assets.config.load import parse_config
from mirror_assets.config.model import Config
from mirror_assets.landing.names import TableName
from mirror_assets.orchestration.translator import AssetKind, asset_key

TABLES = [TableName("shop", name) for name in ("orders", "lines")]


@pytest.fixture
def config(tmp_path: Path) -> Config:
    lines = ["landing_zone: {path: ./zone}", "tables:", *(f"  {name}: {{source: ./x, keys: [id]}}" for name in TABLES)]
    return parse_config("\n".join(lines).encode(), tmp_path / "mirror.yaml", {})


def logged(kind: AssetKind, table: TableName, version: int) -> logging.LogRecord:
    """The record of a materialization, as Dagster hands it to loggers."""
    metadata = {"covered_version": version, "files": 1, "dagster/partition_row_count": 51, "lag_seconds": 1.25}
    asset = dg.AssetMaterialization(
        asset_key(kind, table), partition=f"0001-{version:08}-{version:08}", metadata=metadata
    )
    event = dg.DagsterEvent("ASSET_MATERIALIZATION", "mirror_all", event_specific_data=StepMaterializationData(asset))
    record = logging.LogRecord("x", logging.DEBUG, "x", 1, "materialized", None, None)
    record.dagster_meta = {"dagster_event": event}
    return record


def message_record(level: int, message: str) -> logging.LogRecord:
    record = logging.LogRecord("x", level, "x", 1, message, None, None)
    record.dagster_meta = {"orig_message": message}
    return record


def test_a_slice_that_landed_is_one_line(config: Config, capsys: pytest.CaptureFixture[str]) -> None:
    handler = follow._Landed(config, as_json=False)
    handler.emit(logged(AssetKind.CHANGES, TABLES[0], 7))
    handler.emit(logged(AssetKind.LANDING, TABLES[0], 7))
    line = "shop.orders: version 7 has landed, 51 rows in 1 files, 1.2 s behind its last commit\n"
    assert capsys.readouterr().out == line


def test_lines_of_json_count_the_slices_of_each_table(config: Config, capsys: pytest.CaptureFixture[str]) -> None:
    handler = follow._Landed(config, as_json=True)
    for table, version in ((TABLES[0], 7), (TABLES[1], 3), (TABLES[0], 8)):
        handler.emit(logged(AssetKind.LANDING, table, version))
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    found = [(line["table"], line["version"], line["slices"]) for line in lines]
    assert found == [("shop.orders", 7, 1), ("shop.lines", 3, 1), ("shop.orders", 8, 2)]


def test_errors_are_printed_and_what_goes_well_is_not(config: Config, capsys: pytest.CaptureFixture[str]) -> None:
    handler = follow._Landed(config, as_json=False)
    handler.emit(message_record(logging.INFO, "slice 1.1-1"))
    handler.emit(message_record(logging.ERROR, "shop.orders can't be read"))
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "shop.orders can't be read\n")


@pytest.mark.parametrize("options", [["--from", "3"], ["--to", "2026-01-01"], ["--clip"]])
def test_a_run_that_follows_has_no_range(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", "--follow", *options])
    assert ended.value.code == 2
    assert "--follow mirrors all new commits" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "seconds"), [("5s", 5), ("500ms", 0.5), ("2min", 120), ("1.5", 1.5), ("4h", 14_400), ("2d", 172_800)]
)
def test_times_are_written_with_a_unit(text: str, seconds: float) -> None:
    from mirror_assets.cli.options import duration

    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "0s", "-1s", "5w", "soon"])
def test_other_times_are_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", "--follow", "--every", text])
    assert ended.value.code == 2
    assert "expected a time like 5s" in capsys.readouterr().err
