"""A mirror as a component of someone's Dagster project."""

from __future__ import annotations

from collections.abc import Mapping

import dagster as dg
import pytest
from dagster.components.core.component_tree import ComponentTreeException
from dagster.components.core.package_entry import discover_entry_point_package_objects
from dagster.components.testing import create_defs_folder_sandbox

from mirror_assets import MirrorComponent
from mirror_assets.errors import SettingError

# Dagster warns of its own loader.
pytestmark = pytest.mark.filterwarnings("ignore::dagster.PreviewWarning", "ignore::dagster.BetaWarning")
_MIRROR = """landing_zone: {path: ./landing}
mirror: {path: ./mirror}
tables: {sales.orders: {source: ./lake, keys: [id], source_asset: orders}}
"""


def loaded(
    attributes: Mapping[str, object], text: str = _MIRROR, more: Mapping[str, object] | None = None
) -> dg.Definitions:
    """The definitions of a project with an own asset and a mirror."""
    with create_defs_folder_sandbox() as sandbox:
        contents = {"type": "mirror_assets.MirrorComponent", "attributes": dict(attributes), **(more or {})}
        path = sandbox.scaffold_component(MirrorComponent, defs_yaml_contents=contents)
        (path / "mirror.yaml").write_text(text)
        (sandbox.defs_folder_path / "own.py").write_text(
            "import dagster as dg\n\n@dg.asset\ndef orders() -> None: ...\n"
            "\n@dg.asset(automation_condition=dg.AutomationCondition.eager(), deps=[['sales', 'orders_mirror']])\n"
            "def report() -> None: ...\n"
        )
        with sandbox.build_all_defs() as defs:
            return defs


def test_dg_finds_the_component() -> None:
    found = {key.to_typename() for key in discover_entry_point_package_objects()}
    assert "mirror_assets.MirrorComponent" in found


def test_a_scaffolded_mirror_loads() -> None:
    with create_defs_folder_sandbox() as sandbox:
        path = sandbox.scaffold_component(MirrorComponent)
        assert {file.name for file in path.iterdir()} == {"defs.yaml", "mirror.yaml"}
        with sandbox.load_component_and_build_defs(path) as (component, defs):
            assert isinstance(component, MirrorComponent)
            assert "mirror_all" in {job.name for job in defs.get_repository_def().get_all_jobs()}


def test_an_own_asset_is_the_source_and_another_reads_the_mirror() -> None:
    graph = loaded({}).resolve_asset_graph()
    assert graph.get(dg.AssetKey(["sales", "orders_changes"])).parent_keys == {dg.AssetKey("orders")}
    assert graph.get(dg.AssetKey("report")).parent_keys == {dg.AssetKey(["sales", "orders_mirror"])}
    assert not graph.has(dg.AssetKey(["sales", "orders_source"]))


def test_translation_maps_keys_groups_and_owners_with_templates() -> None:
    translation = {
        "key": "fabric/{{ schema }}/{{ table if stage == 'mirror' else table ~ '_' ~ stage }}",
        "group_name": "{{ schema }}_mirror",
        "owners": ["team:data"],
        "automation_condition": "{{ automation_condition.eager() if stage == 'mirror' else none }}",
    }
    defs = loaded({"translation": translation, "name": "fabric"})
    graph = defs.resolve_asset_graph()
    mirrored = graph.get(dg.AssetKey(["fabric", "sales", "orders"]))
    assert (mirrored.group_name, list(mirrored.owners)) == ("sales_mirror", ["team:data"])
    assert mirrored.parent_keys == {dg.AssetKey(["fabric", "sales", "orders_landing"])}
    assert "fabric_all" in {job.name for job in defs.get_repository_def().get_all_jobs()}


def test_post_processing_applies_to_the_assets() -> None:
    more = {
        "post_processing": {"assets": [{"target": "key:sales/orders_mirror", "attributes": {"owners": ["team:bi"]}}]}
    }
    graph = loaded({}, more=more).resolve_asset_graph()
    assert list(graph.get(dg.AssetKey(["sales", "orders_mirror"])).owners) == ["team:bi"]


def test_a_wrong_mirror_yaml_names_its_line() -> None:
    with pytest.raises(ComponentTreeException) as raised:
        loaded({}, _MIRROR.replace("landing_zone", "landing_zon"))
    assert isinstance(raised.value.__cause__, SettingError)
    assert "mirror.yaml:1: landing_zon" in str(raised.value.__cause__)
