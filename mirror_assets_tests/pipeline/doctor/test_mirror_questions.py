"""What the doctor says of the mirror as a whole: places of `discover` in trouble, and Fabric's limits."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mirror_assets.composition import Project, no_spark
from mirror_assets.config.discovered import When
from mirror_assets.config.load import load_config
from mirror_assets.config.model import Config
from mirror_assets.pipeline.doctor import mirror_questions
from mirror_assets.pipeline.doctor.answers import DoctorAnswer, DoctorVerdict
from mirror_assets.pipeline.doctor.mirror_questions import FOUND, LIMITS, examine_mirror, within_limits
from mirror_assets_tests.landing.staging import cover
from mirror_assets_tests.pipeline.doctor.lake import project
from mirror_assets_tests.worlds.disk_lake import DiskLake


def _of_places(config: Config) -> list[DoctorAnswer]:
    made = Project.of(config, no_spark)
    return [one for one in examine_mirror(config, made.store, made.tables()) if one.question == FOUND]


def _config(folder: Path, tables: str) -> Config:
    file = folder / "mirror.yaml"
    file.write_text(f"landing_zone: {{path: ./landing}}\ntables:\n{tables}")
    return load_config(file)


def test_a_place_whose_tables_are_found_is_well(tmp_path: Path) -> None:
    lake = DiskLake(tmp_path)
    lake.add("sales/orders", "sales/lines")
    lake.configure("{from: {store: lake, path: '*/*/'}, keys: {default: [id]}, exclude: [lines]}")
    (found,) = _of_places(lake.load())
    assert (found.verdict, found.words) == (DoctorVerdict.OK, "1 tables are there, and 1 of them are mirrored")


def test_tables_that_vanished_together_are_reported_with_the_command_that_accepts_this(tmp_path: Path) -> None:
    lake = DiskLake(tmp_path)
    lake.add("orders", "lines")
    lake.configure("{from: {store: lake, path: '*/'}, keys: {default: [id]}}")
    lake.load()
    for path in lake.lake.iterdir():
        shutil.rmtree(path)
    lake.load(When.NOW)
    (found,) = _of_places(lake.load(When.NOW))
    assert found.verdict is DoctorVerdict.NO
    assert "2 of 2 tables are no longer listed (lines, orders)" in found.words
    assert "mirror-assets discover --accept" in found.next_step


def test_a_place_that_can_not_be_listed_is_reported(tmp_path: Path) -> None:
    lake = DiskLake(tmp_path)
    lake.add("orders")
    lake.configure("{from: {store: lake, path: '*/'}, keys: {default: [id]}}")
    lake.load()
    shutil.rmtree(lake.lake)
    (found,) = _of_places(lake.load(When.NOW))
    assert (found.verdict, found.words) == (DoctorVerdict.NO, f"{lake.lake} can't be read: No such file or directory.")
    assert "its credentials or permissions" in found.next_step


def test_a_place_without_tables_is_reported(tmp_path: Path) -> None:
    lake = DiskLake(tmp_path)
    lake.lake.mkdir()
    lake.configure("{from: {store: lake, path: '*/'}, keys: {default: [id]}}")
    (found,) = _of_places(lake.load())
    assert (found.verdict, found.next_step) == (DoctorVerdict.NO, "correct `from`, or write the tables first.")


@pytest.mark.parametrize(("tables", "verdict"), [(1_000, DoctorVerdict.OK), (1_001, DoctorVerdict.WARN)])
def test_fabric_mirrors_a_thousand_tables(tmp_path: Path, tables: int, verdict: DoctorVerdict) -> None:
    config = _config(
        tmp_path, "".join(f"  t{number}: {{source: ./t{number}, keys: [id]}}\n" for number in range(tables))
    )
    found = within_limits(config, 0.0)
    assert found.verdict is verdict
    assert f"{tables:,}" in found.words
    assert ("several mirrored databases" in found.next_step) is (verdict is DoctorVerdict.WARN)


@pytest.mark.parametrize(("day_bytes", "verdict"), [(0.9e12, DoctorVerdict.OK), (1.1e12, DoctorVerdict.WARN)])
def test_fabric_slows_down_after_a_terabyte_a_day(tmp_path: Path, day_bytes: float, verdict: DoctorVerdict) -> None:
    found = within_limits(_config(tmp_path, "  t: {source: ./t, keys: [id]}\n"), day_bytes)
    assert found.verdict is verdict
    assert f"about {day_bytes / 1e9:,.1f} GB of changes a day" in found.words


@pytest.mark.parametrize(("keys", "verdict"), [("a, b, c, d", DoctorVerdict.OK), ("a, b, c, d, e", DoctorVerdict.WARN)])
def test_five_key_columns_are_many(tmp_path: Path, keys: str, verdict: DoctorVerdict) -> None:
    found = within_limits(_config(tmp_path, f"  t: {{source: ./t, keys: [{keys}]}}\n"), 0.0)
    assert found.verdict is verdict
    assert ("t has as many or more" in found.words) is (verdict is DoctorVerdict.WARN)
    assert "several mirrored databases" not in found.next_step


def test_what_lands_in_a_day_is_summed_over_the_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror_questions, "daily_bytes", lambda *_: 0.6e12)
    made = project(tmp_path, "orders: {source: ./orders, keys: [id]}\nlines: {source: ./lines, keys: [id]}")
    (found,) = examine_mirror(made.config, made.store, made.tables())
    assert (found.question, found.verdict) == (LIMITS, DoctorVerdict.OK)
    assert found.words == "2 of 1,000 tables, about 0.0 GB of changes a day of 1 TB, fewer than 5 key columns"
    for name in made.config.names:
        cover(made.store, name, 0)
    (found,) = examine_mirror(made.config, made.store, made.tables())
    assert (found.verdict, found.words) == (
        DoctorVerdict.WARN,
        "about 1,200.0 GB of changes a day, and Fabric slows down after 1 TB",
    )
