"""What the doctor learns from a source's log, from Spark and of the whole mirror: problems with their next step."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from mirror_assets.composition import compose
from mirror_assets.config.discovered import When
from mirror_assets.config.load import load_config
from mirror_assets.config.model import Config
from mirror_assets.encode.errors import spark_not_started
from mirror_assets.errors import RetryError
from mirror_assets.lakes.errors import SOURCE_UNREADABLE
from mirror_assets.pipeline import doctor
from mirror_assets.pipeline.doctor import (
    FIRST,
    FOUND,
    KEYS_UNIQUE,
    LIMITS,
    SPARK_READS,
    THEN,
    DoctorAnswer,
    DoctorVerdict,
    compare_clocks,
    examine_mirror,
    is_well,
    within_limits,
)
from mirror_assets.pipeline.doctor_in_spark import keys_are_unique
from mirror_assets.pipeline.project import Project
from mirror_assets.pipeline.spark_sessions import no_spark
from mirror_assets.source.log import DeltaLog
from mirror_assets_tests.lab import Lab
from mirror_assets_tests.landing.staging import cover
from mirror_assets_tests.pipeline.doctor_lake import answers, project, write_table
from mirror_assets_tests.source.handmade import commit_file, file_action, info, write_commit
from mirror_assets_tests.source.refusing_store import closed_port
from mirror_assets_tests.worlds.disk_lake import DiskLake

_TABLE = "shop.orders"


def _project(lab: Lab) -> Project:
    return replace(compose(lab.config), session=lambda _: lab.spark)


def test_a_sound_table_is_read_by_both(lab: Lab) -> None:
    found = answers(_project(lab), with_spark=True)
    assert found[_TABLE, SPARK_READS].verdict is DoctorVerdict.OK
    assert found[_TABLE, SPARK_READS].words.endswith("has read 3 columns and a row of version 1")
    assert found[_TABLE, KEYS_UNIQUE].words == "id: no NULL, and none repeated, in all 10 rows"


def test_repeated_keys_and_null_are_counted_in_one_aggregation(lab: Lab) -> None:
    lab.sql("INSERT INTO {t} VALUES (4, 'again', 1), (4, 'again', 2), (7, 'again', 3), (NULL, 'none', 4)")
    found = answers(_project(lab), with_spark=True)[_TABLE, KEYS_UNIQUE]
    assert found.verdict is DoctorVerdict.NO
    assert found.words == "2 keys are repeated, such as «id=4», and 1 rows have NULL in a key in all 14 rows"
    assert "choose `keys` that are unique" in found.next_step


def test_a_check_of_some_rows_is_reported_as_partial(lab: Lab) -> None:
    context = _project(lab).tables()[0]
    found = keys_are_unique(context, context.log.state(), thorough=False, sample=4)
    assert found.words == "id: no NULL, and none repeated, in 4 rows, a part; --thorough checks all"
    found = keys_are_unique(context, context.log.state(), thorough=True, sample=4)
    assert found.words == "id: no NULL, and none repeated, in all 10 rows"


def test_the_log_and_spark_report_a_missing_table_in_the_same_words(lab: Lab) -> None:
    shutil.rmtree(lab.uri)
    found = answers(_project(lab), with_spark=True)
    told = {found[_TABLE, question].words for question in (FIRST[0][0], SPARK_READS)}
    assert told == {f"{lab.uri} is not a Delta table: it has no commits in `_delta_log`."}


def test_spark_is_asked_where_the_log_can_not_be_read(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise SOURCE_UNREADABLE(uri=lab.uri, why="a feature that is not known here")

    monkeypatch.setattr(DeltaLog, "newest", refuse)
    found = answers(_project(lab), with_spark=True)
    assert found[_TABLE, FIRST[0][0]].verdict is DoctorVerdict.NO
    assert found[_TABLE, SPARK_READS].verdict is DoctorVerdict.WARN
    assert "of the newest version, though the log can't be read" in found[_TABLE, SPARK_READS].words
    assert found[_TABLE, KEYS_UNIQUE].verdict is DoctorVerdict.OK


def test_a_damaged_file_is_an_answer_with_its_name(lab: Lab) -> None:
    for file in Path(lab.uri).glob("*.parquet"):
        file.write_bytes(file.read_bytes()[:-10])
    found = answers(_project(lab), with_spark=True)
    assert found[_TABLE, FIRST[1][0]].verdict is DoctorVerdict.OK
    assert found[_TABLE, SPARK_READS].verdict is DoctorVerdict.NO
    assert ".parquet" in found[_TABLE, SPARK_READS].words
    assert found[_TABLE, KEYS_UNIQUE].verdict is DoctorVerdict.NOT_ASKED


def test_a_spark_that_does_not_start_is_an_answer(lab: Lab) -> None:
    def refuse(_: str | None) -> None:
        raise spark_not_started("no Java")

    found = answers(replace(_project(lab), session=refuse), with_spark=True)
    assert found[_TABLE, SPARK_READS].words == "Spark did not start: no Java."
    assert found[_TABLE, KEYS_UNIQUE].verdict is DoctorVerdict.NOT_ASKED


@pytest.mark.parametrize("thorough", [True, False])
def test_keys_of_several_columns_with_unusual_names(lab: Lab, thorough: bool) -> None:
    lab.sql(
        "ALTER TABLE {t} SET TBLPROPERTIES (delta.columnMapping.mode = 'name')",
        "ALTER TABLE {t} RENAME COLUMN name TO `n. ame`",
        "INSERT INTO {t} VALUES (4, 'n4', 1)",
    )
    lab.configure(keys="[id, n. ame]")
    found = answers(_project(lab), with_spark=True, thorough=thorough)[_TABLE, KEYS_UNIQUE]
    assert found.words == "1 keys are repeated, such as «id=4, n. ame='n4'» in all 11 rows"


REACHED, READABLE = (text for text, _ in FIRST)
RECORDS, WAITS, RETAINED, ADDS_UP, CLOCKS, DIRECT_LAKE = (text for text, _ in THEN)
_ORDERS = "orders: {source: ./orders, keys: [id]}"


def _answer(folder: Path, question: str, tables: str = _ORDERS, more: str = "") -> DoctorAnswer:
    return answers(project(folder, tables, more))["orders", question]


def test_a_sound_table_is_well(tmp_path: Path) -> None:
    write_table(tmp_path / "orders")
    found = answers(project(tmp_path, _ORDERS))
    assert is_well(found.values())
    told = {question: answer.verdict for (_, question), answer in found.items()}
    asked = dict.fromkeys((REACHED, READABLE, RECORDS, WAITS, RETAINED, ADDS_UP, CLOCKS, DIRECT_LAKE), DoctorVerdict.OK)
    assert told == asked | {SPARK_READS: DoctorVerdict.NOT_ASKED, KEYS_UNIQUE: DoctorVerdict.NOT_ASKED}
    assert found["orders", READABLE].words.endswith("1 files, 3 rows")


def test_a_table_that_is_not_there_is_asked_nothing_more(tmp_path: Path) -> None:
    found = answers(project(tmp_path, _ORDERS))
    assert found["orders", REACHED].verdict is DoctorVerdict.NO
    assert "setting `source`" in found["orders", REACHED].next_step
    assert {answer.verdict for (_, question), answer in found.items() if question != REACHED} == {
        DoctorVerdict.NOT_ASKED
    }


def test_a_log_that_is_reached_and_can_not_be_read(tmp_path: Path) -> None:
    write_table(tmp_path / "orders")
    commit_file(tmp_path / "orders", 0).write_text("{")
    found = answers(project(tmp_path, _ORDERS))
    assert [found["orders", question].verdict for question in (REACHED, READABLE, RECORDS)] == [
        DoctorVerdict.OK,
        DoctorVerdict.NO,
        DoctorVerdict.NOT_ASKED,
    ]


def test_one_tables_trouble_keeps_no_other_from_being_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_table(tmp_path / "orders")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a-key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret")
    store = f'stores: {{lake: {{root: "s3://acme-lake", region: x, endpoint: "{closed_port()}"}}}}\n'
    found = answers(project(tmp_path, f"away: {{source: {{store: lake, path: t}}, keys: [id]}}\n{_ORDERS}", store))
    assert found["away", REACHED].verdict is DoctorVerdict.NO
    assert "the store s3://acme-lake gives no answer" in found["away", REACHED].words
    assert found["orders", WAITS].verdict is DoctorVerdict.OK


def test_an_error_that_is_not_ours_is_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise ZeroDivisionError("a defect")

    write_table(tmp_path / "orders")
    monkeypatch.setattr(DeltaLog, "times", lambda *_: fail(None))
    found = answers(project(tmp_path, _ORDERS))
    assert found["orders", RETAINED].verdict is DoctorVerdict.NO
    assert "ZeroDivisionError: a defect" in found["orders", RETAINED].words
    assert found["orders", CLOCKS].verdict is DoctorVerdict.OK


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ("keys: [id]", "delta.enableChangeDataFeed = true"),
        ("changes: row_tracking", "delta.enableRowTracking = true"),
        ("keys: [nr]", "no column 'nr'"),
    ],
)
def test_what_the_settings_need_is_missing(settings: str, named: str, tmp_path: Path) -> None:
    on = "true" if "nr" in settings else "false"
    write_table(tmp_path / "orders", properties={"delta.enableChangeDataFeed": on})
    found = _answer(tmp_path, RECORDS, f"orders: {{source: ./orders, {settings}}}")
    assert found.verdict is DoctorVerdict.NO
    assert named in found.text
    by_files = _answer(tmp_path, RECORDS, "orders: {source: ./orders, keys: [id], changes: files}")
    assert by_files.verdict is DoctorVerdict.OK


def test_a_retention_that_mirroring_can_miss_is_a_warning_with_the_statement(tmp_path: Path) -> None:
    write_table(tmp_path / "orders", properties={"delta.deletedFileRetentionDuration": "interval 2 hours"})
    found = _answer(tmp_path, RETAINED)
    assert found.verdict is DoctorVerdict.WARN
    assert "keeps a commit for 2.0 hours" in found.words
    assert "delta.deletedFileRetentionDuration = 'interval 7 days'" in found.next_step


def test_a_history_that_is_kept_each_night_needs_two_days(tmp_path: Path) -> None:
    write_table(tmp_path / "orders", properties={"delta.deletedFileRetentionDuration": "interval 40 hours"})
    assert _answer(tmp_path, RETAINED).verdict is DoctorVerdict.OK
    kept = _answer(tmp_path, RETAINED, "orders: {source: ./orders, keys: [id], history: slices}")
    assert kept.verdict is DoctorVerdict.WARN


@pytest.mark.parametrize(
    ("stored", "committed", "verdict", "told"),
    [
        (990.0, 989.5, DoctorVerdict.OK, "agreed within 0.5 s at version 3, 10 s ago by this machine's clock"),
        (4600.0, 4599.0, DoctorVerdict.WARN, "the store's clock is 3,600 s or more ahead of this machine's"),
        (500.0, 900.0, DoctorVerdict.WARN, "the writer's clock was 400 s or more ahead of the store's"),
        (900.0, 100.0, DoctorVerdict.NOT_ASKED, "or its writer's clock is slow"),
    ],
)
def test_clocks_are_compared_as_far_as_the_log_allows(
    stored: float, committed: float, verdict: DoctorVerdict, told: str
) -> None:
    found = compare_clocks("version 3", stored, committed, 1000.0)
    assert found.verdict is verdict
    assert told in found.words


def test_types_that_direct_lake_can_not_load_are_a_warning(tmp_path: Path) -> None:
    write_table(tmp_path / "orders", {"id": [1], "picture": [b"x"], "name": ["y"]})
    found = _answer(tmp_path, DIRECT_LAKE)
    assert found.verdict is DoctorVerdict.WARN
    assert "picture is binary" in found.words
    assert "name" not in found.words


def test_a_source_that_goes_away_between_two_questions_is_said_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_table(tmp_path / "orders")
    real = DeltaLog.state

    def read_and_lose(log: DeltaLog, version: int | None = None) -> object:
        state = real(log, version)
        shutil.rmtree(tmp_path / "orders", ignore_errors=True)
        return state

    monkeypatch.setattr(DeltaLog, "state", read_and_lose)
    found = answers(project(tmp_path, _ORDERS))
    assert found["orders", READABLE].verdict is DoctorVerdict.OK
    assert found["orders", WAITS].verdict is DoctorVerdict.NO
    assert not issubclass(RetryError, type(found["orders", WAITS]))


def test_commits_that_contradict_themselves_are_named(tmp_path: Path) -> None:
    table = tmp_path / "orders"
    write_table(table)
    write_commit(table, 1, [info(), file_action("add", "b.parquet"), file_action("remove", "never.parquet")])
    write_commit(table, 2, [info(), file_action("add", "b.parquet")])
    write_commit(table, 3, [info(), file_action("add", "c.parquet", records=None)])
    found = _answer(tmp_path, ADDS_UP)
    assert found.verdict is DoctorVerdict.WARN
    assert found.words == (
        "version 1 removes never.parquet, which is not live; version 2 adds b.parquet, which is live already; commits "
        "that remove or add files without statistics: 3. The log proves the mirror's rows from version 4 on"
    )


def _of_places(config: Config) -> list[DoctorAnswer]:
    made = compose(config, no_spark)
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


@pytest.mark.parametrize(
    ("tables", "keys", "day_bytes", "warned", "divides"),
    [
        (800, "a, b, c, d", 0.8e12, "", False),
        (801, "a", 0.0, "801 tables, and Fabric mirrors at most 1,000", True),
        (1, "a", 0.81e12, "about 810.0 GB of changes a day, and Fabric slows down after 1 TB", True),
        (1_001, "a", 0.0, "1,001 tables, and Fabric mirrors at most 1,000", True),
        (1, "a", 1.1e12, "about 1,100.0 GB of changes a day, and Fabric slows down after 1 TB", True),
        (1, "a, b, c, d, e", 0.0, "t0 has as many or more", False),
    ],
)
def test_each_limit_of_fabric_is_a_warning(
    tmp_path: Path, tables: int, keys: str, day_bytes: float, warned: str, *, divides: bool
) -> None:
    lines = "".join(f"  t{number}: {{source: ./t{number}, keys: [{keys}]}}\n" for number in range(tables))
    found = within_limits(_config(tmp_path, lines), day_bytes)
    assert found.verdict is (DoctorVerdict.WARN if warned else DoctorVerdict.OK)
    assert warned in found.words
    assert ("several mirrored databases" in found.next_step) is divides


def test_what_lands_in_a_day_is_summed_over_the_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "daily_bytes", lambda *_: 0.45e12)
    made = project(tmp_path, "orders: {source: ./orders, keys: [id]}\nlines: {source: ./lines, keys: [id]}")
    (found,) = examine_mirror(made.config, made.store, made.tables())
    assert (found.question, found.verdict) == (LIMITS, DoctorVerdict.OK)
    assert found.words == "2 of 1,000 tables, about 0.0 GB of changes a day of 1 TB, fewer than 5 key columns"
    for name in made.config.names:
        cover(made.store, name, 0)
    (found,) = examine_mirror(made.config, made.store, made.tables())
    assert (found.verdict, found.words) == (
        DoctorVerdict.WARN,
        "about 900.0 GB of changes a day, and Fabric slows down after 1 TB",
    )
