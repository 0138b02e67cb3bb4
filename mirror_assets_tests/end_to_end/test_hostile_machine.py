"""A run on a machine whose environment comes from elsewhere: the profile of a cluster, and a bare container."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mirror_assets_tests.pipeline.doctor_lake import write_table

_COMMANDS = """\
import os
from mirror_assets.cli import main
os.umask(0o077)
codes = [main([command]) for command in ("run", "replicate", "reconcile")]
print(codes)
"""
_CLUSTER = {"fs.defaultFS": "hdfs://nn.invalid:8020", "io.compression.codecs": "com.hadoop.compression.lzo.LzoCodec"}


@pytest.mark.soak
def test_a_mirror_is_reconciled_in_the_locale_posix_with_the_settings_of_a_cluster(tmp_path: Path) -> None:
    write_table(tmp_path / "größe 部")
    text = "tables: {sales.größe: {source: './größe 部', keys: [id]}}\n"
    (tmp_path / "mirror.yaml").write_text(f"landing_zone: {{path: ./landing}}\n{text}", encoding="utf-8")
    (tmp_path / "spark-defaults.conf").write_text("spark.submit.deployMode cluster\nspark.master yarn\n")
    properties = (f"<property><name>{n}</name><value>{v}</value></property>" for n, v in _CLUSTER.items())
    (tmp_path / "core-site.xml").write_text(f"<configuration>{''.join(properties)}</configuration>")
    kept = {name: value for name, value in os.environ.items() if name not in {"LANG", "DAGSTER_HOME"}}
    hostile = {
        "LC_ALL": "POSIX",
        "TZ": "Mars/Phobos",
        "TMPDIR": "/no/where",
        "PYSPARK_PYTHON": "/no/python",
        "HADOOP_CONF_DIR": str(tmp_path),
        "SPARK_CONF_DIR": str(tmp_path),
        "JAVA_TOOL_OPTIONS": "-Dnoise=1",
        "PYSPARK_SUBMIT_ARGS": "--master local[2] pyspark-shell",
        "HTTPS_PROXY": "http://127.0.0.1:1",
    }
    command = [sys.executable, "-c", _COMMANDS]
    ended = subprocess.run(command, check=False, capture_output=True, env=kept | hostile, cwd=tmp_path)
    assert ended.stdout.decode().splitlines()[-1:] == ["[0, 0, 0]"], ended.stderr.decode()
    assert (tmp_path / "landing" / "sales.schema" / "größe" / "00000000000000000001.parquet").exists()
    assert not [path for path in (tmp_path / "landing").rglob("*") if "?" in path.name]
