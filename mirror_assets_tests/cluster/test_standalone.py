"""A first load and changes by a driver here and executors in other processes; the mirror equals its source.

One executor is killed while it writes parts of two overwrites, so its tasks run once more elsewhere.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from random import Random

import pytest
from deltalake import DeltaTable

from mirror_assets.composition import open_zone
from mirror_assets.config import load_config
from mirror_assets.standin.replicator import LocalReplicator
from mirror_assets_tests.cluster.standalone import NO_PYTHON, executors, standalone
from mirror_assets_tests.kills.process import Run
from mirror_assets_tests.kills.source import Orders
from mirror_assets_tests.quick_jvm import ENVIRONMENT

_CONFIG = """\
landing_zone: {{path: ./landing}}
mirror: {{path: ./mirror}}
spark:
  settings:
    spark.master: {master}
    spark.executor.memory: 512m
    spark.driver.host: 127.0.0.1
    spark.pyspark.python: {python}
defaults:
  files: {{target_rows: 1000}}
tables:
  shop.orders: {{source: {source}, keys: [id]}}
"""


def _kill_an_executor_at_work(run: Run, folder: Path) -> None:
    """Kill one of the executors when the run has begun to write parts of changes."""
    while run.is_running:
        if any((folder / "landing" / "_scratchPad").glob("shop.orders/*/parts/*/_temporary")):
            os.kill(executors(folder / "cluster")[0], signal.SIGKILL)
            return
        time.sleep(0.02)
    raise AssertionError(run.end().output)


@pytest.mark.timeout(300)
@pytest.mark.long(60)
def test_a_cluster_without_python_lands_what_equals_the_source(tmp_path: Path) -> None:
    source, yaml = Orders(tmp_path / "orders"), tmp_path / "mirror.yaml"
    source.create(rows=6_000, files=3)
    loaded = source.tip
    for seed in range(3):
        source.go_on(Random(seed))
    source.overwrite()
    source.overwrite()
    source.go_on(Random(3))
    with standalone(tmp_path / "cluster") as master:
        yaml.write_text(_CONFIG.format(master=master, source=source.path, python=NO_PYTHON), encoding="utf-8")
        run = [str(Path(sys.executable).with_name("mirror-assets")), "run", "--config", str(yaml)]
        end = Run("driver", [*run, "--to", str(loaded)], ENVIRONMENT).end()
        assert end.code == 0, end.output
        changes = Run("driver", run, ENVIRONMENT)
        _kill_an_executor_at_work(changes, tmp_path)
        end = changes.end()
        assert end.code == 0, end.output
        started = [path for path in (tmp_path / "cluster").glob("worker-*/app-*/*") if path.is_dir()]
    assert len(started) > 4, "no executor came in the place of the lost one"
    config = load_config(yaml)
    LocalReplicator(open_zone(config.landing_zone), tmp_path / "mirror").poll()
    mirrored = DeltaTable(tmp_path / "mirror" / "shop" / "orders").to_pyarrow_table().sort_by("id")
    assert mirrored.select(source.rows().column_names).equals(source.rows())
