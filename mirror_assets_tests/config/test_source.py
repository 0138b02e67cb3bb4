from __future__ import annotations

from pathlib import Path

import pytest

from mirror_assets.config import Problem, TableSettings, source_problems
from mirror_assets.config.load import parse_config
from mirror_assets.landing.names import TableName

COLUMNS = (
    ("tailnum", "string"),
    ("year", "bigint"),
    ("price", "decimal(10,2)"),
    ("speed", "double"),
    ("load", "float"),
    ("engine", "struct<a:int>"),
    ("seats", "array<int>"),
    ("tags", "map<string,int>"),
    ("extra", "variant"),
    ("nothing", "void"),
)


def settings(*keys: str) -> TableSettings:
    return TableSettings(name=TableName("nycflights", "planes"), source="/lake/planes", keys=keys)


@pytest.mark.parametrize("keys", [("tailnum",), ("year", "price"), ()])
def test_fitting_keys(keys: tuple[str, ...]) -> None:
    assert source_problems(settings(*keys), COLUMNS) == ()


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("tailnumber", "the source has no column 'tailnumber'; did you mean 'tailnum'?"),
        ("TAILNUM", "the source has no column 'TAILNUM'; did you mean 'tailnum'?"),
        ("speed", "'speed' is double and can't be a key: floating-point numbers have no exact equality"),
        ("load", "'load' is float and can't be a key: floating-point numbers have no exact equality"),
        ("engine", "'engine' is struct<a:int> and can't be a key: nested values can't be compared in Fabric"),
        ("seats", "'seats' is array<int> and can't be a key: nested values can't be compared in Fabric"),
        ("tags", "'tags' is map<string,int> and can't be a key: nested values can't be compared in Fabric"),
        ("extra", "'extra' is variant and can't be a key: variants can't be compared in Fabric"),
        ("nothing", "'nothing' is void and can't be a key: it only has NULLs"),
    ],
)
def test_unfit_keys(key: str, message: str) -> None:
    assert source_problems(settings(key), COLUMNS) == (Problem("tables.nycflights.planes.keys", message),)


def test_a_key_like_no_column_gets_the_list() -> None:
    (problem,) = source_problems(settings("zzz"), COLUMNS[:2])
    assert problem.message == "the source has no column 'zzz'; it is one of: tailnum, year"


def test_chosen_columns_must_be_there_and_others_may_have_any_name() -> None:
    chosen = settings("tailnum").model_copy(update={"columns": ("year", "Price", "tailnum")})
    (problem,) = source_problems(chosen, (*COLUMNS, ("__rowMarker__", "int")))
    assert problem.path == "tables.nycflights.planes.columns.1"
    assert problem.message == "the source has no column 'Price'; did you mean 'price'?"


@pytest.mark.parametrize("name", ["__rowMarker__", "__ROWMARKER__"])
def test_the_row_markers_name_is_taken(name: str) -> None:
    (problem,) = source_problems(settings("tailnum"), (*COLUMNS, (name, "int")))
    assert problem.path == "tables.nycflights.planes.source"
    assert repr(name) in problem.message


@pytest.mark.parametrize("name", ["_change_type", "_commit_version", "_COMMIT_TIMESTAMP"])
def test_names_of_the_change_feed_are_taken(name: str) -> None:
    (problem,) = source_problems(settings("tailnum"), (*COLUMNS, (name, "int")))
    assert problem.path == "tables.nycflights.planes.source"
    assert f"{name!r} has the name of a column of Delta's change data feed" in problem.message


def test_all_problems_get_their_lines() -> None:
    text = b"landing_zone: {path: l}\ntables:\n  planes:\n    source: s\n    keys: [a, speed]\n"
    config = parse_config(text, Path("mirror.yaml"), {})
    columns = (*COLUMNS, ("__rowmarker__", "int"))
    error = config.invalid(source_problems(config.table("planes"), columns))
    assert [problem.line for problem in error.problems] == [5, 5, 4]
    assert "mirror.yaml:5: tables.planes.keys: 'speed' is double" in str(error)
