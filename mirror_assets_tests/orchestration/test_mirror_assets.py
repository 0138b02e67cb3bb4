"""Names and keys of a mirror's assets, as a translator maps them."""

from __future__ import annotations

import dagster as dg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.definitions import build_definitions
from mirror_assets.errors import SettingError
from mirror_assets.landing.names import TableName
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.translator import (
    ASSET_KINDS,
    AssetKind,
    MirrorTranslator,
    MirrorTranslatorData,
    asset_key,
)
from mirror_assets_tests.orchestration.mirrors import assets_of

ORDERS, LINES = TableName("sales", "orders"), TableName(None, "lines")


class Prefixed(MirrorTranslator):
    """Gives all assets a prefix, a group and an owner."""

    def get_asset_spec(self, data: MirrorTranslatorData) -> dg.AssetSpec:
        spec = super().get_asset_spec(data)
        return spec.replace_attributes(key=spec.key.with_prefix("fabric"), group_name="lake", owners=["team:data"])


class Same(MirrorTranslator):
    """Forgets the kind of asset."""

    def get_asset_spec(self, data: MirrorTranslatorData) -> dg.AssetSpec:
        return super().get_asset_spec(data).replace_attributes(key=dg.AssetKey(data.table.name.table))


def mapped(translator: MirrorTranslator, settings: str = "keys: [id]", name: str = "") -> MirrorAssets:
    return MirrorAssets(assets_of([ORDERS, LINES], settings).config, translator, name)


def test_a_translator_maps_every_asset_check_and_dependency() -> None:
    assets = mapped(Prefixed())
    graph = build_definitions(assets.config, translator=Prefixed()).resolve_asset_graph()
    keys = graph.get_all_asset_keys() - {dg.AssetKey("mirror_status")}
    assert keys == {asset_key(kind, table).with_prefix("fabric") for kind in ASSET_KINDS for table in (ORDERS, LINES)}
    assert {key.asset_key for key in graph.asset_check_keys} <= keys
    for kind, upstream in ((AssetKind.CHANGES, AssetKind.SOURCE), (AssetKind.MIRROR, AssetKind.LANDING)):
        assert graph.get(assets.key(kind, ORDERS)).parent_keys == {assets.key(upstream, ORDERS)}
    node = graph.get(assets.key(AssetKind.LANDING, ORDERS))
    assert (node.group_name, node.owners) == ("lake", ["team:data"])
    assert node.partitions_def == assets.partitions(ORDERS)


def test_two_assets_with_one_key_are_refused() -> None:
    with pytest.raises(
        SettingError, match=r"asset key orders is that of the source of sales.orders and of the changes"
    ):
        build_definitions(mapped(Same()).config, translator=Same())


@pytest.mark.parametrize(
    ("base", "full"), [("mirror", "sales"), ("mirror_all", "sales_all"), ("checks", "sales_checks")]
)
def test_names_begin_with_the_mirrors_name(base: str, full: str) -> None:
    assert mapped(MirrorTranslator(), name="sales").full_name(base) == full
    assert mapped(MirrorTranslator()).full_name(base) == base


def test_two_mirrors_and_a_projects_own_definitions_share_a_code_location() -> None:
    one, two = mapped(MirrorTranslator()), mapped(Prefixed())

    @dg.asset(required_resource_keys={"spark", "io_manager", "sources"})
    def own() -> None: ...

    @dg.job(name="mirror_all")
    def their_job() -> None: ...

    @dg.sensor(name="mirror", job=their_job)
    def their_sensor() -> None: ...

    theirs = dg.Definitions(
        assets=[own],
        jobs=[their_job],
        sensors=[their_sensor],
        resources={"spark": 1, "sources": 2, "io_manager": dg.fs_io_manager},
        executor=dg.multiprocess_executor,
    )
    mirrors = (
        build_definitions(assets.config, translator=assets.translator, name=name)
        for assets, name in ((one, "first"), (two, "second"))
    )
    merged = dg.Definitions.merge(theirs, *mirrors)
    repository = merged.get_repository_def()
    names = {job.name for job in repository.get_all_jobs()}
    assert {"mirror_all", "first_all", "second_all", "first_checks", "second_checks"} <= names
    assert {"mirror", "first", "second", "first_replicator"} <= {sensor.name for sensor in repository.sensor_defs}
    assert merged.resolve_job_def("first_all").executor_def.name == "in_process"
    assert one.partitions_name(ORDERS) != two.partitions_name(ORDERS)


@pytest.mark.parametrize(
    "partitions", [None, dg.DailyPartitionsDefinition("2026-01-01"), dg.StaticPartitionsDefinition(["a"])]
)
def test_an_asset_of_the_project_is_the_source(partitions: dg.PartitionsDefinition[str] | None) -> None:
    assets = assets_of([ORDERS], "keys: [id], source_asset: 'lake/{schema}_{table}'")
    key = dg.AssetKey(["lake", "sales_orders"])

    @dg.asset(key=key, partitions_def=partitions)
    def orders() -> None: ...

    defs = dg.Definitions.merge(build_definitions(assets.config), dg.Definitions(assets=[orders]))
    graph = defs.resolve_asset_graph()
    assert graph.get(assets.key(AssetKind.CHANGES, ORDERS)).parent_keys == {key}
    assert graph.get(key).is_materializable
    assert graph.get(key).partitions_def == partitions
    # A run of the project's own asset does not depend on the mirror.
    assert not graph.get(key).check_keys
    checked = {check.name for check in graph.get(assets.key(AssetKind.LANDING, ORDERS)).check_keys}
    assert {"readable", "retention", "lag"} <= checked
    assert defs.get_repository_def().get_job("mirror_all")


@given(st.from_regex(r"[aé][ab_é]{0,3}", fullmatch=True), st.from_regex(r"[ab][ab_]{0,3}", fullmatch=True))
def test_tables_share_no_partitions(schema: str, table: str) -> None:
    names = [TableName(schema, table), TableName(None, f"{schema}_{table}")]
    assets = assets_of(names)
    assert assets.partitions_name(names[0]) != assets.partitions_name(names[1])
