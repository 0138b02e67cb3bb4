"""What a user types, with a process of its own: each store of one mirror.yaml is read with its own identity."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TypedDict

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from mirror_assets.lakes.azure import AzureCredential, AzureStore
from mirror_assets.lakes.lake_store import LakeAddress
from mirror_assets_tests.worlds.lakes.s3_server import REGION, S3Server
from mirror_assets_tests.worlds.onelake.certificates import TRUSTSTORE_PASSWORD
from mirror_assets_tests.worlds.onelake.server import LoopbackOneLake
from mirror_assets_tests.worlds.onelake.tree import File

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


@pytest.mark.soak
def test_two_accounts_of_s3_and_the_login_of_this_machine(
    s3: S3Server, onelake: LoopbackOneLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**onelake.environment(), "SSL_CERT_FILE": str(onelake.ca)}.items():
        monkeypatch.setenv(name, value)
    s3.bucket("sales"), s3.bucket("stock")
    sales, stock = s3.user_of("sales"), s3.user_of("stock")
    item, host = onelake.new_item(), onelake.url.removeprefix("https://")
    silver = AzureStore(
        LakeAddress.parse(f"abfss://{item.workspace}@{host}/{item.guid}/Tables"), AzureCredential.CLIENT_SECRET
    )
    for uri in ("s3://sales/orders", "s3://stock/items"):
        write_deltalake(uri, _ROWS, configuration=_FEED, storage_options=s3.options)
    items = silver.delta_uri(silver.root.below("returns"))
    write_deltalake(items, _ROWS, configuration=_FEED, storage_options=silver.storage_options())
    place = f'region: {REGION}, endpoint: "{s3.url}", credential: environment'
    (tmp_path / "mirror.yaml").write_text(
        "landing_zone: {path: ./landing}\n"
        "stores:\n"
        f'  sales: {{root: "s3://sales", {place}, env_prefix: SALES_}}\n'
        f'  stock: {{root: "s3a://stock/", {place}, env_prefix: STOCK_}}\n'
        f'  silver: {{root: "{silver.root.uri}", credential: default}}\n'
        "defaults: {keys: [id]}\n"
        "tables:\n"
        "  orders: {source: {store: sales, path: orders}}\n"
        "  items: {source: {store: stock, path: items}}\n"
        "  returns: {source: {store: silver, path: returns}}\n"
        f"{_trusting(onelake)}"
    )
    environment = {
        **sales.environment("SALES_"),
        **stock.environment("STOCK_"),
        **onelake.environment(),
        "SSL_CERT_FILE": str(onelake.ca),
    }
    landed = _run(tmp_path, environment)
    assert {found["table"]: found["covered"] for found in landed} == dict.fromkeys(("orders", "items", "returns"), 0)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"printed", "_metadata.json"} <= {path.name for path in files}
    for secret in (sales.secret, stock.secret, onelake.principal.secret):
        assert [path for path in files if secret.encode() in path.read_bytes()] == []


@pytest.mark.long(40)
def test_a_shared_access_signature_is_all_that_both_readers_have(
    onelake: LoopbackOneLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**onelake.environment(), "SSL_CERT_FILE": str(onelake.ca)}.items():
        monkeypatch.setenv(name, value)
    item, host = onelake.new_item(), onelake.url.removeprefix("https://")
    root = LakeAddress.parse(f"abfss://{item.workspace}@{host}/{item.guid}/Tables")
    owner = AzureStore(root, AzureCredential.CLIENT_SECRET)
    write_deltalake(
        owner.delta_uri(root.below("returns")), _ROWS, configuration=_FEED, storage_options=owner.storage_options()
    )
    (tmp_path / "mirror.yaml").write_text(
        "landing_zone: {path: ./landing}\n"
        f'stores: {{silver: {{root: "{root.uri}", credential: sas, env_prefix: SILVER_}}}}\n'
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


@pytest.mark.soak
@pytest.mark.parametrize("staging", ["direct", "upload"])
@pytest.mark.parametrize("kind", ["s3", "adls"])
def test_a_source_and_the_landing_zone_have_their_own_identities(
    kind: str, staging: str, s3: S3Server, onelake: LoopbackOneLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An S3 account with its keys, or an ADLS account with a signature, beside OneLake with a client secret."""
    for name, value in {**onelake.environment(), "SSL_CERT_FILE": str(onelake.ca)}.items():
        monkeypatch.setenv(name, value)
    zone, environment = onelake.new_item(), {**onelake.environment(), "SSL_CERT_FILE": str(onelake.ca)}
    if kind == "s3":
        s3.bucket("returns")
        user = s3.user_of("returns")
        root, secret = "s3://returns", user.secret
        write_deltalake(f"{root}/returns", _ROWS, configuration=_FEED, storage_options=s3.options)
        own = f'region: {REGION}, endpoint: "{s3.url}", credential: environment, env_prefix: SALES_'
        environment |= user.environment("SALES_")
    else:
        item, host = onelake.new_item(), onelake.another_url().removeprefix("https://")
        root = f"abfss://{item.workspace}@{host}/{item.guid}/Tables"
        owner = AzureStore(LakeAddress.parse(root), AzureCredential.CLIENT_SECRET)
        options = owner.storage_options()
        write_deltalake(
            owner.delta_uri(owner.root.below("returns")), _ROWS, configuration=_FEED, storage_options=options
        )
        own = "credential: sas, env_prefix: SALES_"
        signature = onelake.shared_access_signature()
        secret = signature.rpartition("=")[2]
        environment["SALES_AZURE_STORAGE_SAS_TOKEN"] = signature
    (tmp_path / "mirror.yaml").write_text(
        f'landing_zone: {{onelake: {{url: "{zone.url}", credential: client_secret, staging: {staging}, '
        f'ca_bundle: "{onelake.ca}"}}}}\n'
        f'stores: {{sales: {{root: "{root}", {own}}}}}\n'
        "tables: {returns: {source: {store: sales, path: returns}, keys: [id]}}\n"
        f"{_trusting(onelake)}"
    )
    (landed,) = _run(tmp_path, environment)
    assert landed["covered"] == 0
    in_zone = [node.data for node in zone.saved().values() if isinstance(node, File)]
    assert in_zone
    kept = [*in_zone, *(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())]
    assert [data for data in kept if secret.encode() in data or onelake.principal.secret.encode() in data] == []
