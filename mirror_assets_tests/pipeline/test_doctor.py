"""What the doctor learns from Spark: that it reads the table as the pipeline does, and what is wrong with its keys."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from mirror_assets.composition import compose
from mirror_assets.encode.errors import spark_not_started
from mirror_assets.lakes.errors import SOURCE_UNREADABLE
from mirror_assets.pipeline.doctor import FIRST, KEYS_UNIQUE, SPARK_READS, DoctorVerdict
from mirror_assets.pipeline.doctor_in_spark import keys_are_unique
from mirror_assets.pipeline.project import Project
from mirror_assets.source.log import DeltaLog
from mirror_assets_tests.lab import Lab
from mirror_assets_tests.pipeline.doctor_lake import answers

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
