from __future__ import annotations

import pytest

from mirror_assets.config.errors import Problem
from mirror_assets.config.setting_values import ComputedColumn
from mirror_assets.config.source_fit import source_problems
from mirror_assets.config.table_settings import TableSettings
from mirror_assets.landing.names import TableName
from mirror_assets.spark_names import quoted
from mirror_assets_tests.config.reading import read

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


PLANES = "tables.nycflights.planes"


def settings(*keys: str) -> TableSettings:
    return TableSettings(name=TableName("nycflights", "planes"), source="/lake/planes", keys=keys)


@pytest.mark.parametrize("keys", [("tailnum",), ("year", "price"), ()])
def test_fitting_keys(keys: tuple[str, ...]) -> None:
    assert source_problems(settings(*keys), COLUMNS) == ()


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("zzz", f"the source has no column 'zzz'; it is one of: {', '.join(name for name, _ in COLUMNS)}"),
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
    assert source_problems(settings(key), COLUMNS) == (Problem(f"{PLANES}.keys", message),)


def test_chosen_columns_must_be_there_and_others_may_have_any_name() -> None:
    chosen = settings("tailnum").model_copy(update={"columns": ("year", "Price", "tailnum")})
    (problem,) = source_problems(chosen, (*COLUMNS, ("__rowMarker__", "int")))
    assert problem.path == f"{PLANES}.columns.1"
    assert problem.message == "the source has no column 'Price'; did you mean 'price'?"


def test_columns_whose_names_differ_in_case_only_are_refused_by_both_names() -> None:
    (problem,) = source_problems(settings("tailnum"), (*COLUMNS, ("Seats", "int")))
    assert problem.path == f"{PLANES}.source"
    assert problem.message.startswith("the source's columns 'seats' and 'Seats' differ in case only")


@pytest.mark.parametrize("listed", [True, False])
def test_a_computed_column_has_the_spelling_of_the_one_that_it_replaces(listed: bool) -> None:
    masks = {"TailNum": ComputedColumn(sql="upper(tailnum)"), "price": ComputedColumn(sql="1")}
    chosen = settings("year").model_copy(update={"columns": ("year", masks) if listed else masks})
    (problem,) = source_problems(chosen, COLUMNS)
    assert problem.path == f"{PLANES}.columns.{'1.' if listed else ''}TailNum"
    assert problem.message.startswith("'TailNum' differs from the source's column 'tailnum' in case only")


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("__rowMarker__", "of the landing file's row marker"),
        ("__ROWMARKER__", "of the landing file's row marker"),
        ("_change_type", "of a column of Delta's change data feed"),
        ("_commit_version", "of a column of Delta's change data feed"),
        ("_COMMIT_TIMESTAMP", "of a column of Delta's change data feed"),
    ],
)
def test_reserved_names(name: str, use: str) -> None:
    message = f"the source's column {name!r} has the name {use}; rename it"
    assert source_problems(settings("tailnum"), (*COLUMNS, (name, "int"))) == (Problem(f"{PLANES}.source", message),)


def test_all_problems_get_their_lines() -> None:
    config = read("landing_zone: {path: l}\ntables:\n  planes:\n    source: s\n    keys: [a, speed]\n")
    columns = (*COLUMNS, ("__rowmarker__", "int"))
    error = config.invalid(source_problems(config.table("planes"), columns))
    assert [problem.line for problem in error.facts["problems"]] == [5, 5, 4]
    assert "mirror.yaml:5: tables.planes.keys: 'speed' is double" in str(error)


@pytest.mark.parametrize("character", list("\"'`#%+:?"))
def test_names_of_columns_that_fabric_refuses(character: str) -> None:
    """The rename that the message proposes is accepted."""
    odd = f"a{character}b"
    columns = (("tailnum", "string"), (odd, "int"))
    (problem,) = source_problems(settings("tailnum"), columns)
    assert problem.path == f"{PLANES}.columns"
    told = (
        f"the source's column {odd!r} has {character} in its name, which Fabric's SQL endpoint or Direct Lake refuses"
    )
    assert problem.message.startswith(f"{told}; to rename it, list the other columns in `columns`, and {{new_name: ")
    computed = {"new_name": ComputedColumn(sql=quoted(odd), type="int")}
    renamed = settings("tailnum").model_copy(update={"columns": ("tailnum", computed)})
    assert source_problems(renamed, columns) == ()
    as_computed = settings("tailnum").model_copy(
        update={"columns": ("tailnum", {odd: ComputedColumn(sql="1", type="int")})}
    )
    (problem,) = source_problems(as_computed, columns)
    assert problem == Problem(
        f"{PLANES}.columns.1.{odd}",
        f"the computed column {odd!r} has {character} in its name, which Fabric's SQL endpoint or Direct Lake refuses; "
        "choose another name",
    )


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (" a", "has a blank at an end in its name"),
        ("a ", "has a blank at an end in its name"),
        ("ä" * 129, "has a name of more than 128 characters, which SQL can't have"),
    ],
)
def test_blanks_at_an_end_and_long_names_of_columns(name: str, why: str) -> None:
    (problem,) = source_problems(settings("tailnum"), (("tailnum", "string"), (name, "struct<a:int>")))
    assert f"the source's column {name!r} {why}" in problem.message
    assert problem.message.endswith(f"{{new_name: {{sql: '`{name}`', type: string}}}} in place of this one")


@pytest.mark.parametrize(
    "name", ["with space", ",;{}()=", "dotted.name", "tab\tbed", "名前 é", "_metadata", "ä" * 128, "sys"]
)
def test_names_of_columns_that_column_mapping_supports(name: str) -> None:
    assert source_problems(settings("tailnum"), (("tailnum", "string"), (name, "int"))) == ()
