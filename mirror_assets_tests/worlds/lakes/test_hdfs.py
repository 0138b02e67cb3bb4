"""Tables in HDFS, on Hadoop's own cluster for tests, as a user mirrors them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

_JARS = """<ivy-module version="2.0"><info organisation="tests" module="hdfs"/><dependencies>
<dependency org="org.apache.hadoop" name="hadoop-client-minicluster" rev="3.5.0" conf="default->default"/>
<dependency org="org.junit.jupiter" name="junit-jupiter-api" rev="5.10.2" conf="default->default"/>
<dependency org="org.mockito" name="mockito-core" rev="4.11.0" conf="default->default"/>
</dependencies></ivy-module>"""
_CLUSTER = "org.apache.hadoop.test.MiniDFSClusterManager"
_FEED = {"delta.enableChangeDataFeed": "true"}


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a cluster of one name node and one data node; its JARs come by Ivy, which Spark brings."""
    folder = tmp_path_factory.mktemp("hdfs")
    (folder / "ivy.xml").write_text(_JARS)
    (ivy,) = Path(pyspark.__file__).parent.glob("jars/ivy-*.jar")
    retrieve = ["java", "-jar", str(ivy), "-ivy", "ivy.xml", "-retrieve", "jars/[artifact]-[revision].[ext]"]
    subprocess.run(retrieve, cwd=folder, check=True, capture_output=True, timeout=280)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    start = ["java", "-cp", "jars/*", _CLUSTER, "-format", "-datanodes", "1", "-nnport", str(port)]
    cluster = subprocess.Popen(start, cwd=folder, stdin=subprocess.PIPE)
    try:
        yield f"hdfs://127.0.0.1:{port}"
    finally:
        cluster.kill()
        cluster.communicate()


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_a_table_in_hdfs_is_mirrored_and_equal(hdfs: str, tmp_path: Path) -> None:
    uri = f"{hdfs}/lake/orders"
    _write(uri, pa.table({"id": [1, 2, 3]}))
    (tmp_path / "mirror.yaml").write_text(
        "landing_zone: {path: ./landing}\n"
        f'stores: {{hdfs: {{root: "{hdfs}/lake"}}}}\n'
        "tables: {orders: {source: {store: hdfs, path: orders}, keys: [id]}}\n"
    )
    _mirror_assets(tmp_path, "run")
    _write(uri, pa.table({"id": [4]}))
    assert DeltaTable(uri).version() == 1
    for command in ("run", "replicate", "reconcile"):
        done = _mirror_assets(tmp_path, command)
    assert "equal to source" in done


def _write(uri: str, rows: pa.Table) -> None:
    """Append the rows; for some seconds, the cluster has no data node yet."""
    for _ in range(60):
        try:
            return write_deltalake(uri, rows, mode="append", configuration=_FEED)
        except (DeltaError, OSError):
            time.sleep(1)
    raise TimeoutError(uri)


def _mirror_assets(folder: Path, *command: str) -> str:
    program = Path(sys.executable).with_name("mirror-assets")
    done = subprocess.run([program, *command], cwd=folder, env=os.environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
