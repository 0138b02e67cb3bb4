"""Which Spark is refused, and what the error says."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pyspark
import pytest

from mirror_assets.encode.session import delta_package
from mirror_assets.encode.spark_version import require_classic, require_spark, with_version
from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets_tests.errors import raises

_JARS = Path(pyspark.__file__).parent / "jars"


@pytest.mark.parametrize("version", ["3.5.7", "4.3.0"])
def test_another_spark_is_refused_with_the_way_out(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    require_spark()
    monkeypatch.setattr(pyspark, "__version__", version)
    with raises(SettingError, ErrorCode.SESSION_UNFIT, match=rf"{version} is installed.*4\.0, 4\.1, 4\.2.*pip install"):
        require_spark()


@pytest.mark.parametrize("package", ["pyspark", "py4j"])
def test_without_spark_the_message_names_the_extra(package: str) -> None:
    """In a process that can't import the package: the command line, and Dagster's definitions."""
    for statement in ("from mirror_assets import definitions", "from mirror_assets.encode import session"):
        program = f"import sys; sys.modules[{package!r}] = None; {statement}"
        ended = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
        last = ended.stderr.strip().splitlines()[-1]
        assert f"the Python package {package} is not installed" in last
        assert "pip install 'mirror-assets[spark]'" in last


@pytest.mark.parametrize(
    ("settings", "environment"),
    [
        ({"spark.remote": "sc://host"}, {}),
        ({"spark.api.mode": "connect"}, {}),
        ({}, {"SPARK_REMOTE": "sc://host"}),
        ({}, {"SPARK_API_MODE": "connect"}),
        ({}, {"SPARK_CONNECT_MODE_ENABLED": "1"}),
    ],
    ids=str,
)
def test_spark_connect_is_refused_with_the_way_out(settings: Mapping[str, str], environment: Mapping[str, str]) -> None:
    require_classic({"spark.master": "local[*]", "spark.api.mode": "classic"}, {})
    with raises(SettingError, ErrorCode.SESSION_UNFIT, match=r"classic Spark session.*spark\.master"):
        require_classic(settings, environment)


def test_packages_are_those_of_the_installed_spark() -> None:
    line = ".".join(pyspark.__version__.split(".")[:2])
    assert delta_package().startswith(f"io.delta:delta-spark_{line}_2.13:")
    (hadoop,) = _JARS.glob("hadoop-client-api-*.jar")
    assert with_version("org.apache.hadoop:hadoop-aws").rpartition(":")[2] == hadoop.stem.removeprefix(
        "hadoop-client-api-"
    )
    assert with_version("a:b:1") == "a:b:1"
