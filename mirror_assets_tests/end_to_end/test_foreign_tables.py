"""Tables whose logs Spark did not write are mirrored right, or refused with a message that names the reason."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirror_assets.errors import MirrorError
from mirror_assets_tests.end_to_end.foreign_tables import MIRRORED, REFUSED, Foreign, Refused
from mirror_assets_tests.handmade_table import HandmadeTable, commit_info, remove
from mirror_assets_tests.lab import Lab
from mirror_assets_tests.landed_rows import Chosen, landed_rows, require_equal, row, source_rows
from mirror_assets_tests.source.handmade import column


def _lab(spark: SparkSession, root: Path, way: str, keys: str, where: str | None = None) -> Lab:
    lab = Lab(spark, root)
    condition = f"\n    where: {json.dumps(where)}" if where else ""
    lab.configure(f"changes: {way}{condition}", "slices: {max_commits: 100}", "[]" if way == "append_only" else keys)
    return lab


@pytest.mark.parametrize(
    ("case", "way"), [pytest.param(case, way, id=f"{case}-{way}") for case in MIRRORED for way in case.ways]
)
def test_a_table_of_another_writer_is_mirrored_right(
    spark: SparkSession, tmp_path: Path, case: Foreign, way: str
) -> None:
    lab = _lab(spark, tmp_path, way, case.keys, case.where)
    story = case.story(Path(lab.uri))
    next(story)
    lab.mirror()
    next(story, None)
    lab.mirror()
    wanted = source_rows(spark, Path(lab.uri), chosen=Chosen(case.where))
    assert wanted
    require_equal(wanted, landed_rows(lab.folder))


def _mirror_after_each_part(lab: Lab, case: Refused) -> None:
    for _ in case.story(Path(lab.uri)):
        lab.mirror()
    lab.mirror()


@pytest.mark.parametrize(
    ("case", "way"), [pytest.param(case, way, id=f"{case}-{way}") for case in REFUSED for way in case.ways]
)
def test_a_table_that_cannot_be_read_right_is_refused(
    spark: SparkSession, tmp_path: Path, case: Refused, way: str
) -> None:
    lab = _lab(spark, tmp_path, way, case.keys)
    with pytest.raises(MirrorError, match=case.names) as refused:
        _mirror_after_each_part(lab, case)
    assert refused.value.next_step
    assert not [text for text in case.never if text in str(refused.value)]


@pytest.mark.parametrize("name", ["_a.parquet", ".a.parquet", "a.parquet._COPYING_", "_b/a.parquet"])
@pytest.mark.parametrize("way", ["feed", "files"])
def test_a_file_whose_name_spark_hides_is_read_or_refused_by_its_name(
    spark: SparkSession, tmp_path: Path, way: str, name: str
) -> None:
    lab = _lab(spark, tmp_path, way, "[id]")
    table = HandmadeTable(Path(lab.uri), column("id"), column("name", "string"))
    table.commit(commit_info(), table.add({"id": 1, "name": "a"}))
    lab.mirror()
    table.commit(commit_info(), table.add({"id": 2, "name": "b"}, name=name))
    try:
        lab.mirror()
    except MirrorError as refused:
        assert name in str(refused)  # noqa: PT017 both are right
    else:
        require_equal(Counter([row(id=1, name="a"), row(id=2, name="b")]), landed_rows(lab.folder))


@pytest.mark.parametrize("way", ["feed", "files"])
def test_another_file_under_the_same_name_is_a_break_that_a_rebuild_repairs(
    spark: SparkSession, tmp_path: Path, way: str
) -> None:
    lab = Lab(spark, tmp_path)
    lab.configure(f"changes: {way}\n    on_break: hold", "slices: {max_commits: 100}", "[id]")
    table = HandmadeTable(Path(lab.uri), column("id"), column("name", "string"))
    old = table.add({"id": 1, "name": "a"}, {"id": 2, "name": "b"}, name="data.parquet")
    table.commit(commit_info(), old)
    lab.mirror()
    table.commit(commit_info(), table.add({"id": 3, "name": "c"}))
    new = table.add({"id": 1, "name": "A"}, {"id": 4, "name": "d"}, {"id": 5, "name": "e"}, name="data.parquet")
    table.commit(commit_info(), remove(old), new)
    with pytest.raises(MirrorError, match=r"another file under the same name, data\.parquet"):
        lab.mirror()
    require_equal(
        Counter(row(id=id_, name=name) for id_, name in ((1, "a"), (2, "b"), (3, "c"))), landed_rows(lab.folder)
    )
    lab.configure(f"changes: {way}\n    on_break: rebuild", "slices: {max_commits: 100}", "[id]")
    lab.mirror()
    require_equal(
        Counter(row(id=id_, name=name) for id_, name in ((1, "A"), (3, "c"), (4, "d"), (5, "e"))),
        landed_rows(lab.folder),
    )
