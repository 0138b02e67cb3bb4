"""Which Spark is refused, and what the error says."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pyspark
import pytest

from mirror_assets.encode import spark_version
from mirror_assets.encode.spark_version import delta_package, require_named, require_spark, with_version
from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets_tests.errors import raises

_JARS = Path(pyspark.__file__).parent / "jars"


@pytest.mark.parametrize("version", ["3.4.4", "2.4.8"])
def test_an_old_spark_is_refused_with_the_way_out(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    require_spark()
    monkeypatch.setattr(pyspark, "__version__", version)
    with raises(SettingError, ErrorCode.SESSION_UNFIT, match=rf"{version} is installed.*3\.5 or newer.*pip install"):
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
        ({"spark.api.mode": "connect"}, {}),
        ({}, {"SPARK_REMOTE": "sc://host"}),
        ({}, {"SPARK_API_MODE": "connect"}),
    ],
    ids=str,
)
def test_a_server_that_the_settings_do_not_name_is_refused(
    settings: Mapping[str, str], environment: Mapping[str, str]
) -> None:
    require_named({"spark.master": "local[*]", "spark.api.mode": "classic"}, {})
    with raises(SettingError, ErrorCode.SESSION_UNFIT, match=r"name the server in `spark\.remote`"):
        require_named(settings, environment)


@pytest.mark.parametrize(
    ("spark", "delta", "package"),
    [
        ("3.5.7", "3.2.1", "io.delta:delta-spark_2.13:3.2.1"),
        ("3.5.7", "3.3.2", "io.delta:delta-spark_2.13:3.3.2"),
        ("4.0.1", "4.0.0", "io.delta:delta-spark_2.13:4.0.0"),
        ("4.0.1", "4.4.0", "io.delta:delta-spark_4.0_2.13:4.4.0"),
        ("4.2.0", "4.4.0", "io.delta:delta-spark_4.2_2.13:4.4.0"),
        ("4.3.0", "4.4.0", None),
        ("4.2.0", "3.3.2", None),
        ("3.5.7", "4.0.0", None),
    ],
)
def test_deltas_jars_are_those_that_fit_spark(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, spark: str, delta: str, package: str | None
) -> None:
    """Scala's version is that of Spark's own JARs; where Delta is among these, nothing is downloaded."""
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    monkeypatch.setattr(pyspark, "__version__", spark)
    monkeypatch.setattr(spark_version, "version", lambda _: delta)
    Path(tmp_path, "jars").mkdir()
    Path(tmp_path, "jars", f"spark-core_2.13-{spark}.jar").touch()
    assert delta_package() == package
    Path(tmp_path, "jars", "delta-spark_2.13-9.9.9.jar").touch()
    assert delta_package() is None


def test_packages_are_those_of_the_installed_spark() -> None:
    (hadoop,) = _JARS.glob("hadoop-client-api-*.jar")
    assert with_version("org.apache.hadoop:hadoop-aws").rpartition(":")[2] == hadoop.stem.removeprefix(
        "hadoop-client-api-"
    )
    assert with_version("a:b:1") == "a:b:1"
