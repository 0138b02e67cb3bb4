"""`stores` in mirror.yaml: the tables in them, and the mistakes that its author can make."""

# ruff: noqa: E501 - one mistake a line reads as a table

from __future__ import annotations

import pytest

from mirror_assets.lakes.azure import AzureStore
from mirror_assets.lakes.s3 import AwsCredential, S3Store
from mirror_assets_tests.config.reading import mistake, mistakes, read

_BASE = """\
landing_zone: {path: ./landing}
stores:
  lake: {root: "s3a://acme/", region: eu-central-1, credential: environment}
  gold: {root: "s3://acme/gold", credential: instance}
  silver: {root: "https://acc.dfs.core.windows.net/silver/lake/", credential: managed_identity}
  disk: {root: ./lake}
tables:
  orders: {source: {store: lake, path: "sales/orders"}, keys: [id]}
  plain: {source: "s3n://acme/gold/plain", keys: [id]}
  other: {source: "s3://elsewhere/other", keys: [id]}
  items: {source: {store: silver, path: items}, keys: [id]}
  planes: {source: {store: disk, path: planes}, keys: [id]}
"""


def test_a_table_in_a_store_has_the_address_below_its_root() -> None:
    assert {str(table.name): table.source for table in read(_BASE).all_tables()} == {
        "orders": "s3://acme/sales/orders",
        "plain": "s3://acme/gold/plain",
        "other": "s3://elsewhere/other",
        "items": "abfss://silver@acc.dfs.core.windows.net/lake/items",
        "planes": "/etc/lake/planes",
    }


def test_a_plain_address_finds_its_store_by_the_longest_root() -> None:
    silver = "abfss://silver@acc.dfs.core.windows.net/lake"
    stores = {store.root.uri: store for store in read(_BASE).lake_stores()}
    assert set(stores) == {"s3://acme", "s3://acme/gold", "s3://elsewhere", silver}
    kinds = {uri: store.credential for uri, store in stores.items() if isinstance(store, S3Store)}
    assert kinds == {
        "s3://acme": AwsCredential.ENVIRONMENT,
        "s3://acme/gold": AwsCredential.INSTANCE,
        "s3://elsewhere": AwsCredential.DEFAULT,
    }
    assert isinstance(stores[silver], AzureStore)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("store: lake", "store: lage", "8: tables.orders.source.store: unknown store 'lage'; did you mean 'lake'?"),
        ('"sales/orders"', "../orders", "8: tables.orders.source.path: '../orders' leads out of its store; use a path below the store's root"),
        ("credential: environment", "credential: managed_identity", "3: stores.lake: a store s3:// has no credential 'managed_identity'; it is one of: default, environment, profile, web_identity, instance, anonymous"),
        ("region: eu-central-1", "key_file: /a", "3: stores.lake: `key_file` is not a setting of a store s3://"),
        ("region: eu-central-1", "regoin: x", "3: stores.lake.regoin: unknown setting; did you mean 'region'?"),
        ("credential: instance", "credential: profile", "4: stores.gold: `credential: profile` requires `profile`, and the reverse"),
        ("credential: instance", "env_prefix: GOLD_", "4: stores.gold: `env_prefix` requires another credential than `default`, which uses what it finds"),
        ("credential: instance", "role: reader", "4: stores.gold.role: expected a role's ARN, arn:aws:iam::<account>:role/<name>, got 'reader'"),
        ("root: ./lake", "root: ./lake, region: x", "6: stores.disk: `region` is not a setting of a folder of this machine"),
        ("root: ./lake", 'root: "az://c/lake"', "6: stores.disk.root: 'az://c/lake' has a scheme that is not known here; write s3://<bucket>/<path>, abfss://<container>@<account>.dfs.core.windows.net/<path>, gs://<bucket>/<path> or hdfs://<host>:<port>/<path>"),
        ("{store: disk, path: planes}", "{store: disk}", "12: tables.planes.source: expected a path, an address, {store: <name in stores>, path: <path below its root>}, or {catalog: <name in catalogs>, table: <schema>.<table>}"),
    ],
)  # fmt: skip
def test_mistakes_name_their_line_and_what_to_write(old: str, new: str, expected: str) -> None:
    assert _BASE.count(old) == 1
    assert expected in mistakes(_BASE.replace(old, new))


def test_a_secret_in_an_address_is_refused_and_not_shown() -> None:
    found = mistake(_BASE.replace("s3n://acme/gold/plain", "s3n://key:hidden@acme/gold/plain"))
    assert "credentials in a URI" in found
    assert "hidden" not in found


def test_a_source_in_a_folder_of_ours_is_found_also_in_a_store() -> None:
    assert "overlaps with landing_zone.path on line 1" in mistake(_BASE.replace("root: ./lake", "root: ./landing"))
