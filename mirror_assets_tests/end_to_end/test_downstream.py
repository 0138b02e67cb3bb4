"""Assets of a project that load tables of the mirror, and a mirror that uses the project's own Spark."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import dagster as dg
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from dagster_pyspark import LazyPySparkResource
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from mirror_assets.definitions import build_definitions
from mirror_assets.orchestration.translator import AssetKind, asset_key
from mirror_assets_tests.lab import TABLE, Lab
from mirror_assets_tests.worlds.unity.histories import ManagedLab
from mirror_assets_tests.worlds.unity.server import LoopbackUnity

_MIRROR, _SOURCE = asset_key(AssetKind.MIRROR, TABLE), asset_key(AssetKind.SOURCE, TABLE)


def load(lab: Lab, wanted: object, key: dg.AssetKey = _MIRROR, metadata: Mapping[str, object] | None = None) -> object:
    """Return what an asset with an input of this type gets. Raises RuntimeError if its run fails."""
    seen = list[object]()

    def downstream(orders: object) -> None:
        seen.append(orders)

    downstream.__annotations__["orders"] = wanted
    asset = dg.asset(ins={"orders": dg.AssetIn(key, metadata=metadata)})(downstream)
    defs = dg.Definitions.merge(build_definitions(lab.config), dg.Definitions(assets=[asset]))
    job = defs.resolve_implicit_global_asset_job_def()
    with dg.DagsterInstance.ephemeral() as instance:
        result = job.execute_in_process(instance=instance, asset_selection=[asset.key], raise_on_error=False)
    failed = [event.step_failure_data for event in result.all_events if event.is_step_failure]
    if failed:
        raise RuntimeError(str(failed[0].error))
    return seen[0]


def test_an_input_has_the_type_of_its_annotation(mirrored: Lab) -> None:
    with pytest.raises(RuntimeError, match="the mirror does not have the table yet"):
        load(mirrored, pa.Table)
    mirrored.replicator.poll()
    source = mirrored.spark.read.format("delta").load(mirrored.uri).count()
    for key in (_MIRROR, _SOURCE):
        for wanted in (pa.Table, pd.DataFrame, pl.DataFrame, pl.LazyFrame, ds.Dataset):
            found = load(mirrored, wanted, key)
            assert isinstance(found, wanted)
            rows = (
                found.count_rows()
                if isinstance(found, ds.Dataset)
                else len(found.collect() if isinstance(found, pl.LazyFrame) else found)
            )
            assert rows == source


def test_columns_can_be_selected_and_other_types_are_refused(mirrored: Lab) -> None:
    mirrored.replicator.poll()
    found = load(mirrored, pa.Table, metadata={"columns": ["id"]})
    assert isinstance(found, pa.Table)
    assert found.column_names == ["id"]
    with pytest.raises(RuntimeError, match=r"a table can't be loaded as builtins.dict"):
        load(mirrored, dict)


@pytest.mark.parametrize("feature", ["enableDeletionVectors = true", "columnMapping.mode = 'name'"])
def test_tables_that_arrow_cannot_read_are_loaded(mirrored: Lab, feature: str) -> None:
    mirrored.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES (delta.{feature})", "DELETE FROM {t} WHERE id = 4")
    if "mapping" in feature.lower():
        mirrored.sql("ALTER TABLE {t} RENAME COLUMN name TO label", "INSERT INTO {t} VALUES (4711, 'new', 1)")
    expected = sorted(row[0] for row in mirrored.spark.read.format("delta").load(mirrored.uri).select("id").collect())
    for wanted in (pa.Table, pd.DataFrame, pl.LazyFrame, ds.Dataset):
        found = load(mirrored, wanted, _SOURCE)
        assert isinstance(found, wanted)
        assert sorted(_ids(found)) == expected


def test_the_source_of_a_catalog_managed_table_is_refused(
    spark: SparkSession, tmp_path: Path, unity: LoopbackUnity
) -> None:
    lab = ManagedLab(spark, tmp_path, unity=unity)
    lab.configure()
    write_deltalake(lab.uri, pa.table({"id": [1]}))
    lab.managed().ratify()
    with pytest.raises(RuntimeError, match="load the asset of its mirror"):
        load(lab, pa.Table, _SOURCE)


def _ids(found: object) -> list[int]:
    if isinstance(found, pl.LazyFrame):
        found = found.collect().to_arrow()
    if isinstance(found, ds.Dataset):
        found = found.to_table()
    return list(found["id"].tolist() if isinstance(found, pd.DataFrame) else found["id"].to_pylist())  # type: ignore[index]


def test_a_mirror_uses_the_spark_of_the_project(waiting: Lab) -> None:
    resources = {"pyspark": LazyPySparkResource(spark_config={"spark.app.name": "theirs"})}
    defs = dg.Definitions.merge(
        build_definitions(waiting.config, name="fabric", spark="pyspark"), dg.Definitions(resources=resources)
    )
    with dg.DagsterInstance.ephemeral() as instance:
        result = defs.resolve_job_def("fabric_all").execute_in_process(instance=instance)
    assert result.success
    assert waiting.manifest().covered == 5
    assert "fabric_spark" not in (defs.resources or {})
