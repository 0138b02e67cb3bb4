"""Mirrors through Spark Connect, as users run them: the process has no JVM, and the server may go away."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from mirror_assets_tests.expressions import bad
from mirror_assets_tests.lab import Lab
from mirror_assets_tests.worlds.connect.dropping import dropping
from mirror_assets_tests.worlds.connect.server import connect_server
from mirror_assets_tests.worlds.kills.process import Run, inherited

pytest.importorskip("grpc_status", reason="the extra `connect` is not installed")
pytestmark = pytest.mark.xdist_group("connect")
_VECTORS = "delta.enableChangeDataFeed = true, delta.enableDeletionVectors = true"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with connect_server(tmp_path_factory.mktemp("connect")) as port:
        yield port


def _orders(spark: SparkSession, root: Path, port: int, settings: str = "", rows: int = 300) -> Lab:
    """A table with deletion vectors, nothing mirrored yet; its mirror.yaml names the server."""
    lab = Lab(spark, root)
    lab.configure(settings)
    with lab.config_file.open("a") as config:
        config.write(f'spark: {{remote: "sc://127.0.0.1:{port}"}}\n')
    numbered = f"SELECT /*+ REPARTITION(4) */ CAST(id AS INT), concat('n', id), id / 2 FROM range({rows})"
    lab.sql(
        f"CREATE TABLE {{t}} (id INT, name STRING, amount DOUBLE) USING delta TBLPROPERTIES ({_VECTORS})",
        f"INSERT INTO {{t}} {numbered}",
    )
    return lab


def _command(lab: Lab, *words: str) -> list[str]:
    return [str(Path(sys.executable).with_name("mirror-assets")), *words, "--config", str(lab.config_file)]


def _ran(lab: Lab, *words: str) -> str:
    """What the command printed; it has to succeed."""
    ended = subprocess.run(_command(lab, *words), env=inherited(), check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_a_table_with_vectors_is_mirrored_through_connect_and_equals_its_source(
    spark: SparkSession, tmp_path: Path, server: int
) -> None:
    masked = "columns: {name: {sql: \"concat(name, '!')\", type: string}}"
    lab = _orders(spark, tmp_path, server, f'where: "id <> 13"\n    {masked}')
    _ran(lab, "run")
    lab.change()
    _ran(lab, "run")
    _ran(lab, "replicate")
    assert json.loads(_ran(lab, "reconcile", "--json"))[0]["state"] == "equal"
    assert lab.is_equal, "the classic session says the same"


def test_doctor_reads_through_connect(spark: SparkSession, tmp_path: Path, server: int) -> None:
    lab = _orders(spark, tmp_path, server, rows=10)
    assert "FAIL" not in _ran(lab, "doctor")


_PROGRAM = """\
import sys
from pathlib import Path
from pyspark.sql import SparkSession
from mirror_assets.encode import connect
from mirror_assets.encode.session import open_session, own_session
from mirror_assets.byte_settings import PINNED, ContextSetting
from mirror_assets.errors import MirrorError

address, folder = sys.argv[1], Path(sys.argv[2])

def told(call):
    try:
        return call()
    except MirrorError as error:
        return f"{type(error).__name__} {error}"

handed = SparkSession.builder.remote(address).create()
handed.conf.set("spark.sql.ansi.enabled", "false")
handed.conf.set("fs.their.store", "reached")
ours = own_session(handed, "a table")
print(ours.session_id != handed.session_id, handed.conf.get("spark.sql.ansi.enabled"))
print({name: ours.conf.get(name) for name in PINNED} == PINNED, ours.conf.get("fs.their.store"))
again = own_session(handed, "a table")
print(connect.is_usable(again), connect.is_usable(ours))
(folder / "file").touch()
print(told(lambda: connect.require_shared(again, folder / "file")))
connect.require_shared(again, folder)
print(sorted(path.name for path in folder.iterdir()))
connect.CONTEXT_SETTINGS = (ContextSetting("spark.app.name", "another", "it is planted"),)
print(told(lambda: own_session(handed)))
print(told(lambda: open_session({"spark.remote": address, "spark.sql.ansi.enabled": "false"})))
print(told(lambda: open_session({"spark.remote": "sc://127.0.0.1:port"})))
handed.stop()
"""


def test_a_session_of_connect_has_what_decides_bytes_and_leaves_the_handed_one_alone(
    tmp_path: Path, server: int
) -> None:
    command = [sys.executable, "-c", _PROGRAM, f"sc://127.0.0.1:{server}", str(tmp_path)]
    ended = subprocess.run(command, env=inherited(), check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    own, has, usable, unshared, left, context, fixed, address = ended.stdout.splitlines()
    assert own == "True false"
    assert has == "True reached"
    assert usable == "True False", "a new session of an owner ends the last one"
    assert "doesn't share the folder" in unshared
    assert left == "['file']", "nothing is left of the probe"
    assert "spark.app.name" in context
    assert "it decides which rows land" in fixed
    assert "Spark did not start" in address


def test_bad_expressions_are_refused_as_by_a_session_with_a_jvm(
    spark: SparkSession, tmp_path: Path, server: int
) -> None:
    expressions = bad(spark)
    del expressions["ours(name)"]  # nobody registers it with the server
    columns = {f"c{at}": {"sql": sql, "type": "string"} for at, sql in enumerate(expressions)}
    lab = _orders(spark, tmp_path, server, f"columns: {json.dumps(columns)}", rows=10)
    ended = subprocess.run(_command(lab, "run"), env=inherited(), check=False, capture_output=True, text=True)
    said = ended.stdout + ended.stderr
    for at, (sql, message) in enumerate(expressions.items()):
        found = said.partition(f"columns.c{at}:")[2].partition("tables.shop.orders.columns.")[0]
        assert message in found, (sql, found)


def test_a_stream_of_a_history_is_refused_with_the_other_way(spark: SparkSession, tmp_path: Path, server: int) -> None:
    lab = _orders(spark, tmp_path, server, "history: stream", rows=10)
    ended = subprocess.run(
        _command(lab, "history", "--table", "shop.orders"), env=inherited(), check=False, capture_output=True, text=True
    )
    assert "set `history: slices`" in ended.stdout + ended.stderr


@pytest.mark.soak
def test_ten_dropped_connections_lose_and_double_nothing(spark: SparkSession, tmp_path: Path, server: int) -> None:
    random, lab = Random(1), _orders(spark, tmp_path, server, rows=100_000)
    with dropping(server) as way:
        text = lab.config_file.read_text()
        lab.config_file.write_text(text.replace(f":{server}", f":{way.port}"))
        while way.dropped < 10:
            lab.sql("UPDATE {t} SET amount = amount + 1 WHERE id % 7 = 0")
            run = Run("connect", _command(lab, "run"), {})
            while run.is_running:
                time.sleep(random.uniform(0.2, 2.0))
                if way.dropped < 10:
                    way.drop()
            assert run.end().code in (0, 1, 2)
        _ran(lab, "run")
    assert lab.is_equal


@pytest.mark.soak
def test_a_server_that_dies_in_an_encode_costs_an_attempt(spark: SparkSession, tmp_path: Path) -> None:
    with connect_server(tmp_path / "first") as port:
        lab = _orders(spark, tmp_path, port, rows=300_000)
        run = Run("connect", _command(lab, "run"), {})
        while run.is_running and not list(Path(tmp_path, "landing", "_scratchPad").rglob("part-*")):
            time.sleep(0.05)
    with connect_server(tmp_path / "second", port):
        ended = run.end()
    assert ended.code == 0, ended.output
    assert "again, because" in ended.output
    assert "interrupted" in ended.output
    assert lab.is_equal
