"""Keys that Spark proves: every proposal is unique and without NULLs, and none is missed that few columns make."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import HealthCheck, given, settings
from pyspark.sql import SparkSession

from mirror_assets.features.init.with_spark.keys import Proof, column_sets, key_candidates, likely_key, prove_key
from mirror_assets.features.init.with_spark.survey import Survey, open_lake, survey_lake

_Columns = dict[str, list[int | None]]


def _survey(folder: Path, columns: _Columns, name: str = "t") -> Survey:
    write_deltalake(
        folder / "lake" / name, pa.table({n: pa.array(values, pa.int64()) for n, values in columns.items()})
    )
    (survey,) = survey_lake(open_lake(str(folder / "lake"), {}, 1), folder / "m.yaml")
    assert isinstance(survey, Survey)
    return survey


def _proven(spark: SparkSession, survey: Survey) -> tuple[str, ...] | None:
    found = prove_key(spark, survey.state, survey.log, key_candidates(survey))
    assert found is None or found.proof is Proof.PROVEN
    return found.columns if found else None


@pytest.mark.parametrize(
    ("table", "columns", "likeliest"),
    [
        ("orders", ("customer_id", "order_id"), "order_id"),
        ("dim_countries", ("id_hash", "country_code"), "country_code"),
        ("people", ("email", "person_key"), "person_key"),
        ("Orders", ("customerId", "orderId"), "orderId"),
        ("x", ("name", "at", "uuid"), "uuid"),
        ("x", ("first", "second"), "first"),
    ],
)
def test_names_say_which_column_is_likely(tmp_path: Path, table: str, columns: tuple[str, ...], likeliest: str) -> None:
    survey = _survey(tmp_path, {name: [1, 2, 3] for name in columns}, table)
    assert key_candidates(survey)[0].column == likeliest


def test_statistics_rule_columns_out(tmp_path: Path) -> None:
    survey = _survey(tmp_path, {"id": [1, 2, None], "key": [1, 1, 2], "code": [4, 5, 6]})
    found = {one.column: one.alone for one in key_candidates(survey)}
    assert found == {"key": False, "code": True}
    assumed = likely_key(survey)
    assert assumed is not None
    assert assumed.columns == ("code",)


def test_a_set_comes_behind_its_subsets(tmp_path: Path) -> None:
    survey = _survey(tmp_path, {name: [1, 2, 3] for name in ("a", "b_id", "c", "d", "e", "f", "g", "h", "i", "j")})
    sets = [frozenset(columns) for columns in column_sets(key_candidates(survey))]
    assert len(sets) == len(set(sets)) == 10 + 45 + 120 + 210
    for index, columns in enumerate(sets):
        assert not any(later < columns for later in sets[index + 1 :])


def test_a_key_holds_at_the_version_that_was_read(spark: SparkSession, tmp_path: Path) -> None:
    survey = _survey(tmp_path, {"id": [1, 2]})
    write_deltalake(tmp_path / "lake/t", pa.table({"id": pa.array([1], pa.int64())}), mode="append")
    assert _proven(spark, survey) == ("id",)


def test_names_of_columns_may_have_any_character(spark: SparkSession, tmp_path: Path) -> None:
    assert _proven(spark, _survey(tmp_path, {"a.b`c id": [1, 2], "rows": [1, 1]})) == ("a.b`c id",)


def test_a_column_that_is_nearly_unique_is_no_key(spark: SparkSession, tmp_path: Path) -> None:
    nearly = [*range(999), 5]
    assert _proven(spark, _survey(tmp_path, {"id": nearly, "half": [n % 500 for n in range(1000)]})) == ("id", "half")


_VALUES = st.none() | st.integers(0, 3)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(1, 8).flatmap(
        lambda rows: st.lists(st.lists(_VALUES, min_size=rows, max_size=rows), max_size=4, min_size=1)
    )
)
def test_a_key_is_found_if_and_only_if_there_is_one(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, columns: list[list[int | None]]
) -> None:
    named = {f"c{index}": values for index, values in enumerate(columns)}
    found = _proven(spark, _survey(tmp_path_factory.mktemp("lake"), named))
    rows = list(zip(*columns, strict=True))
    filled = [name for name, values in named.items() if None not in values]
    sets = [chosen for size in range(1, len(filled) + 1) for chosen in combinations(filled, size)]

    def is_key(chosen: tuple[str, ...]) -> bool:
        return len({tuple(row[int(name[1:])] for name in chosen) for row in rows}) == len(rows)

    assert (found is not None) == any(map(is_key, sets))
    if found is not None:
        assert is_key(tuple(sorted(found)))
        assert not any(is_key(smaller) for smaller in sets if set(smaller) < set(found))
