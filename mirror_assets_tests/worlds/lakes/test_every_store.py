"""The same tables in every store: loaded, followed, and equal to their source."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirror_assets.cli import main
from mirror_assets.cli.options import Exit
from mirror_assets_tests.end_to_end.test_kinds_of_tables import KINDS, Kind
from mirror_assets_tests.smoke import smoke_first
from mirror_assets_tests.worlds.lakes.lake import LakeLab, StoreAtHand
from mirror_assets_tests.worlds.lakes.s3_server import BUCKET, PREFIX, REGION, S3Server
from mirror_assets_tests.worlds.onelake.server import LoopbackOneLake

_KEYED = {"keys": "[id]"}
_CHANGES = (
    "UPDATE {t} SET amount = 100 WHERE id IN (1, 2)",
    "DELETE FROM {t} WHERE id = 3",
    "UPDATE {t} SET id = 500 WHERE id = 5",
)


@pytest.fixture(params=["s3", "onelake"])
def store(
    request: pytest.FixtureRequest,
    s3: S3Server,
    onelake_server: LoopbackOneLake,
    monkeypatch: pytest.MonkeyPatch,
) -> StoreAtHand:
    """A store that the shared Spark session reaches, too."""
    if request.param == "s3":
        own = f'region: {REGION}, endpoint: "{s3.url}", credential: environment, env_prefix: {PREFIX}'
        return StoreAtHand("s3", f"s3://{BUCKET}/{uuid.uuid4().hex}", own)
    monkeypatch.setenv("SSL_CERT_FILE", str(onelake_server.ca))
    for name, value in onelake_server.environment().items():
        monkeypatch.setenv(name, value)
    item, host = onelake_server.new_item(), onelake_server.url.removeprefix("https://")
    root = f"abfss://{item.workspace}@{host}/{item.guid}/Tables"
    return StoreAtHand("onelake", root, "credential: client_secret")


@pytest.mark.parametrize("kind", smoke_first(KINDS), ids=str)
def test_a_table_is_loaded_and_followed_and_equal(
    kind: Kind, store: StoreAtHand, spark: SparkSession, tmp_path: Path
) -> None:
    lab = LakeLab(spark, tmp_path, store, "sales/orders")
    lab.configure({"keys": kind.keys, **dict(line.split(": ", 1) for line in kind.setting.splitlines())})
    lab.create(kind.properties)
    assert [done.planned.last for done in lab.mirror()] == [1]
    lab.sql(*kind.statements)
    assert lab.mirror()
    assert lab.is_equal()
    assert lab.mirror() == []


@pytest.mark.soak
def test_a_vacuum_between_slices_disturbs_nothing(store: StoreAtHand, spark: SparkSession, tmp_path: Path) -> None:
    """VACUUM deletes the store's old files, by Hadoop's file system; the next slice needs none of them."""
    lab = LakeLab(spark, tmp_path, store, "sales/vacuumed")
    lab.configure(_KEYED)
    lab.create()
    lab.sql(_CHANGES[0])
    lab.mirror()
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        lab.sql("VACUUM {t} RETAIN 0 HOURS")
    finally:
        spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    lab.sql(*_CHANGES[1:])
    assert lab.mirror()
    assert lab.is_equal()


@pytest.mark.long(20)
def test_init_writes_settings_that_mirror_the_table(
    store: StoreAtHand, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = LakeLab(spark, tmp_path, store, "sales/orders")
    lab.create()
    settings = [part.strip().partition(": ") for part in store.settings.split(",")]
    options = [f"--{name.replace('_', '-')}={value.strip(chr(34))}" for name, _, value in settings]
    out = str(tmp_path / "mirror.yaml")
    assert main(["init", store.root, *options, "--out", out]) == Exit.FINE
    assert "10 rows, 0 NULLs, 10 distinct" in (tmp_path / "mirror.yaml").read_text()
    assert main(["run", "--config", out]) == Exit.FINE
    assert main(["replicate", "--config", out]) == Exit.FINE
    assert main(["reconcile", "--config", out]) == Exit.FINE
    assert "equal" in capsys.readouterr().out
