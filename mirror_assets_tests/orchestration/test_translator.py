"""What the pages of assets say: of their definitions, and in the events of slices."""

from __future__ import annotations

import re
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.remote_representation.external_data import RepositorySnap
from dagster._serdes import serialize_value
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.many import ManyTables
from mirror_assets.config.errors import MISTAKES
from mirror_assets.config.load import load_config, parse_config
from mirror_assets.config.model import Config
from mirror_assets.definitions import build_definitions
from mirror_assets.landing.names import TableName
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.translator import (
    ASSET_KINDS,
    AssetKind,
    MirrorTranslator,
    MirrorTranslatorData,
    asset_key,
    group_name,
    safe,
)
from mirror_assets_tests.errors import raises_row

_TABLE = TableName("sales", "orders")
_TEXT = """landing_zone: {path: ./landing}
defaults:
  owners: [team:data]
  tags: {tier: gold, domain: sales}
tables:
  sales.orders:
    owners: [team:sales, anna@example.com]
    source: ./orders
    keys: [id]
    tags: {domain: orders}
  sales.lines: {source: ./lines, keys: [id, line]}
"""


def config(text: str = _TEXT, folder: Path = Path("/etc")) -> Config:
    return parse_config(text.encode(), folder / "mirror.yaml", {})


def node(definitions: dg.Definitions, kind: AssetKind) -> dg.AssetSpec:
    specs = [
        spec
        for asset in definitions.assets or []
        for spec in ([asset] if isinstance(asset, dg.AssetSpec) else asset.specs)  # type: ignore[union-attr]
    ]
    (found,) = [spec for spec in specs if spec.key == asset_key(kind, _TABLE)]
    return found


@pytest.mark.parametrize("kind", ASSET_KINDS, ids=lambda kind: kind.value)
def test_a_page_names_table_owners_tags_and_the_line_of_its_settings(kind: AssetKind) -> None:
    spec = node(build_definitions(config()), kind)
    assert "sales.orders" in (spec.description or "").splitlines()[0]
    assert tuple(spec.owners) == ("team:sales", "anna@example.com")
    assert {name: spec.tags[name] for name in ("tier", "domain")} == {"tier": "gold", "domain": "orders"}
    assert spec.metadata["settings"] == "mirror.yaml, line 6"
    assert "dagster/code_references" not in spec.metadata, "it links to an editor, and names a path on the server"
    assert "/etc/mirror.yaml" not in str(spec.metadata)


def test_defaults_hold_where_a_table_sets_nothing() -> None:
    lines = config().table("sales.lines")
    assert (lines.owners, lines.tags) == (("team:data",), {"tier": "gold", "domain": "sales"})


def test_a_mirror_in_fabric_links_to_the_portal() -> None:
    guid = "11111111-2222-3333-4444-555555555555"
    place = f"landing_zone: {{onelake: {{url: 'https://onelake.dfs.fabric.microsoft.com/{guid}/{guid}/Files/LandingZone'}}}}\n"
    fabric = f"{place}mirror: {{fabric: {{}}}}\n"
    known = config(_TEXT.replace("landing_zone: {path: ./landing}\n", fabric))
    page = MirrorAssets(known).spec(AssetKind.MIRROR, known.table(_TABLE).name)
    assert f"(https://app.fabric.microsoft.com/groups/{guid})" in (page.description or "")
    assert page.metadata["dagster/uri"] == f"https://onelake.dfs.fabric.microsoft.com/{guid}/{guid}/Tables/sales/orders"


@pytest.mark.parametrize("owner", ["sales", "team:", "team: sales", "anna", "anna@example", "@example.com"])
def test_an_owner_that_dagster_would_refuse_is_a_mistake_in_the_file(owner: str) -> None:
    with raises_row(MISTAKES, match=r"7: .*owners.*: expected an owner"):
        config(_TEXT.replace("[team:sales, anna@example.com]", f"['{owner}']"))


@pytest.mark.parametrize("tag", ["'a b': c", "dagster/kind/x: y", "a: 'b c'", f"a: {'x' * 64}"])
def test_a_tag_that_dagster_would_refuse_is_a_mistake_in_the_file(tag: str) -> None:
    with raises_row(MISTAKES, match=r"expected a tag's (name|value)"):
        config(_TEXT.replace("tags: {domain: orders}", f"tags: {{{tag}}}"))


def test_what_the_file_takes_dagster_takes() -> None:
    text = _TEXT.replace("domain: orders}", "a/b-c.d: '1.0', flag: true, n: 5, empty: ''}")
    tags = node(build_definitions(config(text)), AssetKind.SOURCE).tags
    assert {name: tags[name] for name in ("a/b-c.d", "flag", "n", "empty")} == {
        "a/b-c.d": "1.0",
        "flag": "true",
        "n": "5",
        "empty": "",
    }


def test_pages_take_little_of_the_definitions(tmp_path: Path) -> None:
    """Dagster's daemon reads all definitions every minute, without what only the pages of jobs ask for."""
    lake = ManyTables.named(tmp_path / "lake", 50)
    lake.configure()
    settings = load_config(lake.config)

    class Blank(MirrorTranslator):
        def get_asset_spec(self, data: MirrorTranslatorData) -> dg.AssetSpec:
            spec = super().get_asset_spec(data)
            return spec.replace_attributes(description="", kinds={"deltalake"}, owners=[], tags={}, metadata={})

    def size(translator: MirrorTranslator | None = None) -> int:
        repository = build_definitions(settings, translator=translator).get_repository_def()
        return len(serialize_value(RepositorySnap.from_def(repository, defer_snapshots=True)))

    assert size() < size(Blank()) * 1.25


def test_a_plain_name_stays_readable() -> None:
    table = TableName("nycflights", "planes")
    assert asset_key(AssetKind.LANDING, table).to_user_string() == "nycflights/planes_landing"
    assert group_name(table) == "nycflights"
    assert group_name(TableName(None, "planes")) == "default"


@given(st.text(min_size=1), st.text(min_size=1))
def test_names_are_valid_and_different_texts_have_different_names(left: str, right: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_]+", safe(left))
    assert (safe(left) == safe(right)) == (left == right)
