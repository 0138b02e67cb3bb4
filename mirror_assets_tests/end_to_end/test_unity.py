"""Tables by their names in a Unity Catalog, read with the keys that it hands out, by both readers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from mirror_assets.config.load import load_config
from mirror_assets.encode.session import own_session
from mirror_assets.encode.spark_catalogs import use_keys
from mirror_assets.errors import ErrorCode, RetryError, SettingError
from mirror_assets.lakes import catalogs as locate
from mirror_assets.landing.format import SliceKind
from mirror_assets_tests import quick_jvm
from mirror_assets_tests.errors import raises
from mirror_assets_tests.worlds.lakes.lake import StoreLab
from mirror_assets_tests.worlds.lakes.s3_server import BUCKET, REGION, S3Request
from mirror_assets_tests.worlds.unity.bucket import LoopbackBucket
from mirror_assets_tests.worlds.unity.managed import ManagedTable
from mirror_assets_tests.worlds.unity.server import TOKEN, Answer, LoopbackUnity, Table

_FEED: Mapping[str, str | None] = {"delta.enableChangeDataFeed": "true"}


@dataclass(frozen=True)
class UnityLab(StoreLab):
    """Everything on this machine is below `root`; the tables `orders` and `lines` have (id, name) and key id."""

    unity: LoopbackUnity
    bucket: LoopbackBucket

    def configure(self) -> None:
        tables = "".join(
            f"  shop.{name}: {{source: {{catalog: main, table: sales.{name}}}, keys: [id]}}\n"
            for name in ("orders", "lines")
        )
        self.file.write_text(
            "landing_zone: {path: ./landing}\nmirror: {path: ./mirror}\nautomation: {mode: batch}\n"
            f"stores:\n  lake: {{root: '{self.bucket.uri('')}', region: {REGION}, endpoint: '{self.bucket.url}'}}\n"
            f"catalogs:\n  main: {{type: unity, url: '{self.unity.url}', token_variable: UC_TOKEN}}\n"
            f"tables:\n{tables}"
        )

    def create(self, name: str, folder: str, rows: int = 10, files: int = 1) -> Table:
        """Write a table with rows of these ids into a folder of the bucket, and register it."""
        uri, per_file = self.bucket.uri(folder), rows // files
        for number in range(files):
            ids = range(number * per_file, (number + 1) * per_file)
            made = pa.table({"id": list(ids), "name": [f"{name}-{one}" for one in ids]})
            write_deltalake(uri, made, mode="append", storage_options=self.bucket.writer, configuration=_FEED)
        return self.register(name, folder)

    def register(self, name: str, folder: str) -> Table:
        table = self.unity.add(f"main.sales.{name}", self.bucket.uri(folder))
        self.unity.vend = self.bucket.vend
        return table

    def opened(self, folder: str) -> DeltaTable:
        return DeltaTable(self.bucket.uri(folder), storage_options=self.bucket.writer)

    def change(self, folder: str) -> None:
        """Three commits: an update, a delete, new rows."""
        self.opened(folder).update(predicate="id = 1", updates={"name": "'changed'"})
        self.opened(folder).delete("id = 2")
        more = pa.table({"id": [100, 101], "name": ["new", "newer"]})
        write_deltalake(self.bucket.uri(folder), more, mode="append", storage_options=self.bucket.writer)


_CATALOG = ("--catalog", "main", "--token-variable", "UC_TOKEN")
# Small enough for a test; users have Unity Catalog's own, half a minute.
_LEAD = "fs.unitycatalog.renewal.leadTimeMillis"


@pytest.fixture
def lab(spark: SparkSession, tmp_path: Path, unity: LoopbackUnity, bucket: LoopbackBucket) -> UnityLab:
    """No tables yet; a session of the test's own."""
    made = UnityLab(own_session(spark), tmp_path, unity, bucket)
    made.configure()
    return made


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locate, "_TRUSTED_SECONDS", 0.0)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return tmp_path.name


def by_table(requests: list[S3Request]) -> dict[str, set[str]]:
    """The keys that signed requests for files of each table, by its folder."""
    found: dict[str, set[str]] = defaultdict(set)
    for request in requests:
        path = request.path.removeprefix(f"/{BUCKET}").strip("/")
        if path:
            found["/".join(path.split("/")[:2])].add(request.access_key)
    return found


@pytest.mark.long(40)
def test_two_tables_of_a_bucket_land_with_keys_of_their_own(lab: UnityLab, folder: str) -> None:
    for name in ("orders", "lines"):
        lab.create(name, f"{folder}/{name}")
    lab.bucket.requests()
    for _ in range(2):
        for name in ("orders", "lines"):
            assert lab.mirror(name)
            assert lab.is_equal(name)
        seen = lab.bucket.requests()
        keys = by_table(seen)
        assert {request.status for request in seen} <= {200, 206, 404}
        assert keys[f"{folder}/orders"].isdisjoint(keys[f"{folder}/lines"])
        assert all(keys[f"{folder}/{name}"] for name in ("orders", "lines"))
        for name in ("orders", "lines"):
            lab.change(f"{folder}/{name}")
        lab.bucket.requests()
    nothing_secret_in(lab, keys)


def nothing_secret_in(lab: UnityLab, keys: dict[str, set[str]]) -> None:
    """Fail if a file on this machine has the catalog's token or a key's id."""
    planted = [TOKEN, *(key for of_table in keys.values() for key in of_table)]
    files = [path for path in lab.root.rglob("*") if path.is_file()]
    assert len(files) > 10
    assert [path for path in files for secret in planted if secret.encode() in path.read_bytes()] == []


@pytest.mark.soak
def test_keys_that_end_in_the_middle_of_a_slice(lab: UnityLab, folder: str) -> None:
    table = lab.create("orders", f"{folder}/orders", rows=8, files=8)
    short_lived_keys(lab)
    (processed,) = lab.mirror("orders")
    seen = [asked for asked in lab.bucket.requests() if "/part-" in asked.path]
    lab.bucket.slow("$^", 0)
    assert processed.record.kind is SliceKind.SNAPSHOT
    assert len(lab.bucket.keys_of(seen)) >= 2
    assert {request.status for request in seen} <= {200, 206}
    assert len(lab.unity.vended(table)) >= 3
    assert lab.is_equal("orders")


def short_lived_keys(lab: UnityLab) -> None:
    """Let reading the table's files take longer than keys live."""
    lab.spark.conf.set(_LEAD, "1000")
    lab.bucket.lifetime = 4.0
    lab.bucket.slow(r"/part-.*\.parquet$", 0.6)
    lab.bucket.requests()


def test_a_catalog_that_goes_away_in_the_middle_of_a_slice(lab: UnityLab, folder: str) -> None:
    lab.create("orders", f"{folder}/orders", rows=8, files=8)
    short_lived_keys(lab)
    vended: list[str] = []

    def vend(table: Table) -> dict[str, object]:
        vended.append(table.full_name)
        if len(vended) == 3:  # this process, Unity Catalog's builder, and the first file
            lab.unity.faults = [Answer.refusal(503, "TEMPORARILY_UNAVAILABLE", "later")] * 100
        return lab.bucket.vend(table)

    lab.unity.vend = vend
    with raises(RetryError, ErrorCode.CATALOG_UNAVAILABLE, match="sales.orders: the catalog main"):
        lab.mirror("orders")
    lab.unity.faults = []
    lab.bucket.reset()
    assert lab.mirror("orders")
    assert lab.is_equal("orders")


def managed_in_bucket(lab: UnityLab, folder: str) -> None:
    """Let the catalog manage a table of eight commits in the bucket, of which five are published."""
    made = ManagedTable(lab.unity, "main.sales.orders", lab.root / "writer", lab.root / "managed")
    for number in range(8):
        write_deltalake(str(made.writer), pa.table({"id": [number], "name": ["n"]}), mode="append", configuration=_FEED)
    made.ratify()
    made.publish(4)
    s3 = lab.bucket.server.client("s3")
    for file in made.path.rglob("*"):
        if file.is_file():
            s3.put_object(Bucket=BUCKET, Key=f"{folder}/{file.relative_to(made.path)}", Body=file.read_bytes())
    made.table.location = lab.bucket.uri(folder)
    lab.unity.vend = lab.bucket.vend


def test_a_token_that_ends_in_the_middle_of_a_catalog_managed_table(lab: UnityLab, folder: str) -> None:
    managed_in_bucket(lab, folder)
    short_lived_keys(lab)
    vended: list[str] = []

    def vend(table: Table) -> dict[str, object]:
        vended.append(table.full_name)
        if len(vended) == 3:  # this process, Unity Catalog's builder, and the first file
            lab.unity.token = "another"  # noqa: S105
        return lab.bucket.vend(table)

    lab.unity.vend = vend
    with raises(SettingError, ErrorCode.CATALOG_REFUSED, match="sales.orders: the catalog main refuses access"):
        lab.mirror("orders")
    assert lab.table("orders").manifest() is None
    lab.unity.token = TOKEN
    lab.bucket.reset()
    assert lab.mirror("orders")
    assert lab.is_equal("orders")


def test_a_session_keeps_no_keys_for_the_next_table(lab: UnityLab, folder: str) -> None:
    before = _names_of_stores(lab.spark)
    lab.create("orders", f"{folder}/orders")
    lab.mirror("orders")
    provider = f"fs.s3a.bucket.{BUCKET}.aws.credentials.provider"
    assert "AwsVendedTokenProvider" in lab.spark.conf.get(provider)
    settings = lab.spark.sql("SET").collect()
    assert not [row for row in settings if "init." in row[0] or str(row[1]).startswith("ASIA")]
    use_keys(lab.spark, None)
    assert _names_of_stores(lab.spark) <= before


def _names_of_stores(spark: SparkSession) -> set[str]:
    return {row[0] for row in spark.sql("SET").collect() if row[0].startswith(("fs.unitycatalog", "fs.s3"))}


@pytest.mark.usefixtures("impatient")
def test_a_table_that_moved_with_its_log_goes_on(lab: UnityLab, folder: str) -> None:
    lab.create("orders", f"{folder}/orders")
    lab.mirror("orders")
    _copy(lab, f"{folder}/orders/", f"{folder}/moved/")
    lab.register("orders", f"{folder}/moved")
    lab.change(f"{folder}/moved")
    assert [made.record.kind for made in lab.mirror("orders")] == [SliceKind.CHANGES]
    assert lab.is_equal("orders")


def _copy(lab: UnityLab, source: str, target: str) -> None:
    s3 = lab.bucket.server.client("s3")
    for found in s3.list_objects_v2(Bucket=BUCKET, Prefix=source)["Contents"]:
        to = target + found["Key"].removeprefix(source)
        s3.copy_object(Bucket=BUCKET, Key=to, CopySource={"Bucket": BUCKET, "Key": found["Key"]})


@pytest.mark.usefixtures("impatient")
def test_one_table_stands_still_and_the_other_goes_on(lab: UnityLab, folder: str) -> None:
    """`lakes/test_unity.py` has all refusals."""
    for name in ("orders", "lines"):
        lab.create(name, f"{folder}/{name}")
    lab.unity.faults = [Answer.refusal(403, "PERMISSION_DENIED", "no SELECT")] * 8
    with raises(SettingError, ErrorCode.CATALOG_REFUSED, match="sales.orders: the catalog main"):
        lab.mirror("orders")
    lab.unity.faults = []
    assert lab.table("orders").manifest() is None
    assert lab.mirror("lines")
    assert lab.mirror("orders")


def test_files_that_the_keys_may_not_read(lab: UnityLab, folder: str) -> None:
    lab.create("lines", f"{folder}/lines")
    orders = lab.create("orders", f"{folder}/orders")
    lines = lab.unity.tables["main.sales.lines"]
    lab.unity.vend = lambda table: lab.bucket.vend(lines if table is orders else table)
    with pytest.raises(SettingError, match=f"s3://{BUCKET}/{folder}/orders can't be read: .*denies access"):
        lab.mirror("orders")


@pytest.mark.timeout(600)
@pytest.mark.soak
def test_the_commands_of_a_user(unity: LoopbackUnity, bucket: LoopbackBucket, tmp_path: Path, folder: str) -> None:
    """No store is named: a process that knows nothing yet loads the JARs for the place that the catalog names."""
    lab = UnityLab(None, tmp_path, unity, bucket)  # its processes have Spark
    lab.create("orders", f"{folder}/orders")
    lab.file.write_text(
        "landing_zone: {path: ./landing}\n"
        f"catalogs: {{main: {{type: unity, url: '{unity.url}/api/2.1/unity-catalog', token_variable: UC_TOKEN}}}}\n"
        "tables: {shop.orders: {source: {catalog: main, table: sales.orders}, keys: [id]}}\n"
    )
    place = {"AWS_REGION": REGION, "AWS_ENDPOINT_URL_S3": bucket.url}
    environment = os.environ | quick_jvm.ENVIRONMENT | quick_jvm.own_cache(tmp_path / "cache") | place
    shown = _typed(environment, "init", unity.url, *_CATALOG, "--schema", "sal*", "--out", str(lab.root / "found.yaml"))
    found = load_config(lab.root / "found.yaml").table("sales.orders")
    assert (found.source, found.keys) == ("catalog://main/sales.orders", ("id",))
    assert "10 distinct at version 0" in (lab.root / "found.yaml").read_text(), "Spark counted them with vended keys"
    rule = "discover: [{from: {catalog: main, schema: sales}, keys: {default: [id]}}]\n"
    found_by_rule = lab.root / "rule.yaml"
    found_by_rule.write_text(lab.file.read_text().partition("tables:")[0] + rule)
    assert "sales.orders" in _typed(environment, "discover", "--config", str(found_by_rule))
    assert "snapshot" in _typed(environment, "plan", "--config", str(found_by_rule))
    for command in ("run", "replicate", "reconcile"):
        shown += _typed(environment, command, "--config", str(lab.file))
    assert "equal" in shown
    assert TOKEN not in shown
    assert "ASIA" not in shown
    (known,) = (tmp_path / "cache" / "mirror_assets" / "catalogs").iterdir()
    assert TOKEN not in known.read_text()


def _typed(environment: dict[str, str], *arguments: str) -> str:
    """Run a command as a user types it; return what it shows."""
    asked = [str(Path(sys.executable).with_name("mirror-assets")), *arguments]
    made = subprocess.run(asked, env=environment, capture_output=True, text=True, check=False, timeout=250)
    assert made.returncode == 0, made.stderr[-3000:]
    return made.stdout + made.stderr
