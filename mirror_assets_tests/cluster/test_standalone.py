"""A first load and changes by a driver here and executors in other processes; the mirror equals its source."""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random

import pytest

from mirror_assets_tests.cluster.standalone import NO_PYTHON, standalone
from mirror_assets_tests.kills.process import End, Run
from mirror_assets_tests.kills.source import Orders

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


def _command(folder: Path, *arguments: str) -> End:
    program = Path(sys.executable).with_name("mirror-assets")
    end = Run(arguments[0], [str(program), *arguments, "--config", str(folder / "mirror.yaml")], {}).end()
    assert end.code == 0, end.output
    return end


@pytest.mark.timeout(300)
def test_a_cluster_without_python_lands_what_equals_the_source(tmp_path: Path) -> None:
    source = Orders(tmp_path / "orders")
    source.create(rows=6_000, files=3)
    with standalone(tmp_path / "cluster") as master:
        (tmp_path / "mirror.yaml").write_text(
            _CONFIG.format(master=master, source=source.path, python=NO_PYTHON), encoding="utf-8"
        )
        _command(tmp_path, "run")
        for seed in range(3):
            source.go_on(Random(seed))
        _command(tmp_path, "run")
        _command(tmp_path, "replicate")
        _command(tmp_path, "reconcile")
        executors = [path for path in (tmp_path / "cluster").glob("worker-*/app-*/*") if path.is_dir()]
    assert len(executors) >= 4  # two runs, each on both workers
