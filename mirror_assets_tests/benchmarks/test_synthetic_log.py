"""Tables whose log is written by hand are what their readers say, and a point of growth is measured on one."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

from deltalake import DeltaTable

from benchmarks.curve import GrowthPoint
from benchmarks.synthetic_log import Log


def test_each_commit_replaces_all_files(tmp_path: Path) -> None:
    table = DeltaTable(Log(tmp_path / "table", commits=5, files=3, linked=True).uri)
    assert table.version() == 5
    files = [Path(uri) for uri in table.file_uris()]
    assert sorted(file.name for file in files) == [f"part-5-{number}.parquet" for number in range(3)]
    assert all(file.exists() for file in files)
    assert table.to_pyarrow_table().to_pydict() == {"id": [1, 1, 1]}


def test_a_point_without_spark_is_measured(tmp_path: Path) -> None:
    Log(tmp_path / "table", commits=4, files=5)
    command = [sys.executable, "-m", "benchmarks.growth.point", "backlog", str(tmp_path), "40"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout
    point = GrowthPoint(**json.loads(printed.splitlines()[-1]))
    assert (point.size, point.tasks, point.driver_heap) == (40, 0, 0)
    assert point.seconds > 0
    assert point.threads >= 1
    assert all(math.isfinite(value) and value >= 0 for value in vars(point).values())
