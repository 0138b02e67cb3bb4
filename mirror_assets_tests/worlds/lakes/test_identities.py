"""What a user types, with a process of its own: each store of one mirror.yaml is read with its own identity."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from mirror_assets.lakes.azure import AzureCredential, AzureStore
from mirror_assets.lakes.lake_store import LakeAddress
from mirror_assets_tests.worlds.lakes.s3_server import REGION, S3Server
from mirror_assets_tests.worlds.onelake.account import File
from mirror_assets_tests.worlds.onelake.certificates import TRUSTSTORE_PASSWORD
from mirror_assets_tests.worlds.onelake.server import LoopbackOneLake

_FEED = {"delta.enableChangeDataFeed": "true"}
_ROWS = pa.table({"id": [1, 2, 3]})


class _Landed(TypedDict):
    table: str
    covered: int
    error: str | None


def _run(folder: Path, environment: dict[str, str]) -> list[_Landed]:
    """Run `mirror-assets run` as a user does; what it prints and logs stays in the folder."""
    command = [str(Path(sys.executable).with_name("mirror-assets")), "run", "--json"]
    (folder / "logs").mkdir()
    environment = {**environment, "TMPDIR": str(folder / "logs")}
    known = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "AZURE_"))}
    done = subprocess.run(
        command, cwd=folder, env=known | environment, capture_output=True, text=True, check=False, timeout=280
    )
    (folder / "logs" / "printed").write_text(done.stdout + done.stderr)
    landed: list[_Landed] = json.loads(done.stdout or "[]")
    assert landed, done.stderr
    assert [found["error"] for found in landed] == [None] * len(landed), done.stderr
    return landed


def _trusting(onelake: LoopbackOneLake) -> str:
    """The block `spark` of mirror.yaml, with which Java trusts the server."""
    trust = {"": onelake.truststore, "Type": "PKCS12", "Password": TRUSTSTORE_PASSWORD}
    options = " ".join(f"-Djavax.net.ssl.trustStore{name}={value}" for name, value in trust.items())
    return f'spark: {{settings: {{spark.driver.extraJavaOptions: "{options}"}}}}\n'


@pytest.fixture
def owner(signed_in: LoopbackOneLake) -> Callable[[str], AzureStore]:
    """Makes stores in which this process may do anything, at a host and port."""

    def made(url: str) -> AzureStore:
        item = signed_in.new_item()
        root = f"abfss://{item.workspace}@{url.removeprefix('https://')}/{item.guid}/Tables"
        return AzureStore(LakeAddress.parse(root), AzureCredential.CLIENT_SECRET)

    return made


def _write(store: AzureStore) -> None:
    uri = store.delta_uri(store.root.below("returns"))
    write_deltalake(uri, _ROWS, configuration=_FEED, storage_options=store.storage_options())


@pytest.mark.soak
@pytest.mark.parametrize("staging", ["direct", "upload"])
def test_each_source_and_the_landing_zone_have_their_own_identities(
    staging: str, s3: S3Server, onelake: LoopbackOneLake, owner: Callable[[str], AzureStore], tmp_path: Path
) -> None:
    """Two S3 accounts with their keys, an ADLS account with a signature, and OneLake with the login of this machine."""
    s3.bucket("sales"), s3.bucket("stock")
    sales, stock = s3.user_of("sales"), s3.user_of("stock")
    zone, silver, adls = onelake.new_item(), owner(onelake.url), owner(onelake.another_url())
    for uri in ("s3://sales/orders", "s3://stock/items"):
        write_deltalake(uri, _ROWS, configuration=_FEED, storage_options=s3.options)
    _write(silver)
    _write(adls)
    signature = onelake.shared_access_signature()
    place = f'region: {REGION}, endpoint: "{s3.url}", credential: environment'
    (tmp_path / "mirror.yaml").write_text(
        f'landing_zone: {{onelake: {{url: "{zone.url}", credential: client_secret, staging: {staging}, '
        f'ca_bundle: "{onelake.ca}"}}}}\n'
        "stores:\n"
        f'  sales: {{root: "s3://sales", {place}, env_prefix: SALES_}}\n'
        f'  stock: {{root: "s3a://stock/", {place}, env_prefix: STOCK_}}\n'
        f'  silver: {{root: "{silver.root.uri}", credential: default}}\n'
        f'  adls: {{root: "{adls.root.uri}", credential: sas, env_prefix: ADLS_}}\n'
        "defaults: {keys: [id]}\n"
        "tables:\n"
        "  orders: {source: {store: sales, path: orders}}\n"
        "  items: {source: {store: stock, path: items}}\n"
        "  returns: {source: {store: silver, path: returns}}\n"
        "  refunds: {source: {store: adls, path: returns}}\n"
        f"{_trusting(onelake)}"
    )
    environment = {
        **sales.environment("SALES_"),
        **stock.environment("STOCK_"),
        **onelake.environment(),
        "ADLS_AZURE_STORAGE_SAS_TOKEN": signature,
        "SSL_CERT_FILE": str(onelake.ca),
    }
    landed = _run(tmp_path, environment)
    tables = ("orders", "items", "returns", "refunds")
    assert {found["table"]: found["covered"] for found in landed} == dict.fromkeys(tables, 0)
    in_zone = [node.data for node in zone.saved().values() if isinstance(node, File)]
    on_disk = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert in_zone
    assert (tmp_path / "logs" / "printed").exists()
    for secret in (sales.secret, stock.secret, onelake.principal.secret, signature.rpartition("=")[2]):
        assert not [data for data in (*in_zone, *on_disk) if secret.encode() in data]


@pytest.mark.long(40)
def test_a_shared_access_signature_is_all_that_both_readers_have(
    onelake: LoopbackOneLake, owner: Callable[[str], AzureStore], tmp_path: Path
) -> None:
    store = owner(onelake.url)
    _write(store)
    (tmp_path / "mirror.yaml").write_text(
        "landing_zone: {path: ./landing}\n"
        f'stores: {{silver: {{root: "{store.root.uri}", credential: sas, env_prefix: SILVER_}}}}\n'
        "tables: {returns: {source: {store: silver, path: returns}, keys: [id]}}\n"
        f"{_trusting(onelake)}"
    )
    signature = onelake.shared_access_signature()
    environment = {"SILVER_AZURE_STORAGE_SAS_TOKEN": signature, "SSL_CERT_FILE": str(onelake.ca)}
    onelake.log.reset()
    (landed,) = _run(tmp_path, environment)
    assert landed["covered"] == 0
    assert not [record for record in onelake.log.records if not record.operation.is_storage], "nobody signed in"
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path for path in files if signature.rpartition("=")[2].encode() in path.read_bytes()] == []
