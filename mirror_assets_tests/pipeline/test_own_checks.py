"""A project's own checks of staged rows: they block or warn before anything of the slice lands."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from mirror_assets.errors import ErrorCode, MirrorError, SettingError
from mirror_assets.feature import Feature, SliceCheck, StagedRows
from mirror_assets.pipeline.check_slice import run_checks
from mirror_assets.pipeline.errors import ChecksFailed
from mirror_assets.pipeline.land_slice import ProcessedSlice, publish_slice, stage_range
from mirror_assets.pipeline.plan import plan_table
from mirror_assets.pipeline.slice_source import slice_key
from mirror_assets_tests.config.reading import mistake, read
from mirror_assets_tests.lab import TABLE, Lab
from mirror_assets_tests.landed_slices import landed_slices
from mirror_assets_tests.pages import DOCS

_FILE = "landing_zone: {path: landing}\ntables: {orders: {source: ./orders, keys: [id]}}\n"


@pytest.fixture
def documented(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module of the page, as `my_project.checks`."""
    page = (DOCS / "checks.md").read_text(encoding="utf-8").partition("## Your own checks")[2]
    module = ModuleType("my_project.checks")
    exec(page.partition("```python\n")[2].partition("```")[0], module.__dict__)  # noqa: S102 the page's own code
    monkeypatch.setitem(sys.modules, "my_project", ModuleType("my_project"))
    monkeypatch.setitem(sys.modules, "my_project.checks", module)
    return module


def _mirror(lab: Lab, *checks: SliceCheck) -> list[ProcessedSlice]:
    """Mirror the table, which has these checks of its project, until nothing is left."""
    context = replace(lab.context, config=lab.config.with_features(checks))
    return list(landed_slices(context, lab.replicator))


def _named(name: str, *problems: str, blocking: bool = True, tables: tuple[str, ...] = ()) -> SliceCheck:
    return SliceCheck(name, "One of ours.", lambda _: problems, blocking, tables)


def test_a_blocking_check_keeps_the_slice_from_landing(lab: Lab) -> None:
    with pytest.raises(ChecksFailed, match=r"ours.*three rows are wrong") as refused:
        _mirror(lab, _named("ours", "three rows are wrong"))
    assert refused.value.code is ErrorCode.CHECKS_FAILED
    assert refused.value.next_step.startswith("correct this check of your project, or fix the source")
    assert lab.files == []


def test_a_warning_lands_and_is_among_the_results(lab: Lab) -> None:
    (slice_,) = _mirror(lab, _named("ours", "three rows are odd", blocking=False))
    (found,) = [result for result in slice_.results if result.check == "ours"]
    assert (found.problems, found.is_warning, found.is_refusal) == (("three rows are odd",), True, False)
    assert lab.is_equal


def test_a_check_that_raises_blocks(lab: Lab) -> None:
    def wrong(_: StagedRows) -> Iterator[str]:
        raise ZeroDivisionError("by us")

    with pytest.raises(ChecksFailed, match="the check raised ZeroDivisionError: by us"):
        _mirror(lab, SliceCheck("ours", "One of ours.", wrong))
    assert lab.files == []


def test_publishing_needs_the_verdict_of_a_check_that_is_newer_than_the_others(lab: Lab) -> None:
    (key,) = (slice_key(one) for one in plan_table(lab.context).partitions)
    (record,) = stage_range(lab.context, [key])
    assert record is not None
    run_checks(lab.context, record)
    later = replace(lab.context, config=lab.config.with_features([_named("ours")]))
    with pytest.raises(MirrorError, match="ours"):
        publish_slice(later, key)
    assert lab.files == []


@pytest.mark.parametrize("names", [("row_order",), ("ours", "ours")])
def test_a_name_is_that_of_one_check(lab: Lab, names: tuple[str, ...]) -> None:
    """Its verdict would replace that of the other, and a slice that the other has refused would land."""
    with pytest.raises(SettingError, match=f"two checks with the name '{names[-1]}'"):
        _mirror(lab, *map(_named, names))
    assert lab.files == []
    with pytest.raises(ValueError, match="letters, digits"):
        _named("not a name")


def test_it_gets_the_rows_of_its_tables_only(lab: Lab) -> None:
    seen: list[tuple[str, int, int, tuple[str, ...]]] = []

    def look(staged: StagedRows) -> Iterator[str]:
        seen.append((staged.table, staged.rows.count(), staged.values.count(), staged.keys))
        assert all(Path(part.removeprefix("file://")).suffix == ".parquet" for part in staged.parts)
        yield from ()

    ours = SliceCheck("ours", "One of ours.", look, tables=(str(TABLE),))
    other = _named("other", "wrong", tables=("another",))
    _mirror(lab, ours, other)
    lab.sql("DELETE FROM {t} WHERE id = 1", "UPDATE {t} SET amount = 9 WHERE id = 2")
    _mirror(lab, ours, other)
    assert seen == [(str(TABLE), 10, 10, ("id",)), (str(TABLE), 2, 1, ("id",))]


def test_the_examples_of_the_page_find_their_problems(lab: Lab, documented: ModuleType) -> None:
    rows = lab.spark.sql("SELECT 1 AS customer, 5 AS amount UNION ALL SELECT NULL, -7")
    part = str(lab.root / "rows")
    rows.write.parquet(part)
    staged = StagedRows("sales.payments", "1.1-1", ("id",), (part,), lambda: lab.spark)
    assert list(documented.customer_known.problems(staged)) == ["1 rows have no customer"]
    assert list(documented.total_grows.problems(staged)) == ["the total falls by 2"]


def test_mirror_yaml_names_them(documented: ModuleType) -> None:
    config = read(_FILE + "features: [my_project.checks:customer_known]\n")
    (own,) = config.own_features
    assert isinstance(own, Feature)
    assert list(own.slice_checks()) == [documented.customer_known]


class OwnFeature(Feature):
    """A feature of a project, with a check."""

    def slice_checks(self) -> list[SliceCheck]:
        """Return its check."""
        return [SliceCheck("never_wrong", "Finds nothing.", lambda _: ())]


def test_a_feature_is_an_object_or_its_class() -> None:
    named = read(f"{_FILE}features: [{__name__}:OwnFeature]\n")
    handed = read(_FILE).with_features([OwnFeature, OwnFeature()])
    assert [type(one) for one in (*named.own_features, *handed.own_features)] == [OwnFeature] * 3


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nowhere.at_all:x", "3: features.0: nowhere.at_all:x can't be used: ModuleNotFoundError"),
        ("my_project.checks:other", "3: features.0: my_project.checks:other can't be used: AttributeError"),
        ("my_project.checks:falling_total", "is neither a SliceCheck nor a Feature"),
        ("my project", "expected a name in Python, `module:name`"),
    ],
)
@pytest.mark.usefixtures("documented")
def test_mistakes(name: str, expected: str) -> None:
    assert expected in mistake(f"{_FILE}features: ['{name}']\n")
