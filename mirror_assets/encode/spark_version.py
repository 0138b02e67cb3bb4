"""The installed Spark: whether it is there and new enough, and the JARs that fit it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from mirror_assets.encode.errors import CONNECT_UNNAMED, MACHINE_UNFIT, SPARK_MISSING, SPARK_UNSUPPORTED

REMOTE = "spark.remote"
_OLDEST = (3, 5)
_API_MODE = "spark.api.mode"
DELTA = "io.delta:delta-spark"
# The Sparks of a Delta; the name of one that has several also has Spark's version.
_SPARKS_OF_DELTA = {"3.2": ("3.5",), "3.3": ("3.5",), "4.0": ("4.0",)}
_NEWER_DELTA = ("4.0", "4.1", "4.2")
_SPARK = re.compile(r"spark-core_[\d.]+-(.+)\.jar")
_SCALA, _HADOOP = re.compile(r"spark-core_([\d.]+)-"), re.compile(r"hadoop-client-api-(.+)\.jar")


def require_spark() -> None:
    """Raise SPARK_MISSING without PySpark, and SPARK_UNSUPPORTED for a Spark before 3.5."""
    try:
        import py4j.protocol  # noqa: F401 a platform may bring it apart from PySpark
        from pyspark import __version__
    except ImportError as error:
        raise SPARK_MISSING(package=(error.name or "pyspark").partition(".")[0]) from error
    if tuple(int(part) for part in __version__.split(".")[:2]) < _OLDEST:
        raise SPARK_UNSUPPORTED(found=__version__)


def delta_package() -> str | None:
    """Return the Maven coordinate of Delta's JARs for the installed delta-spark.

    None where that doesn't fit the installed Spark, and where a platform's Spark has a Delta of its own.
    """
    from pyspark import __version__

    if has_delta():
        return None
    try:
        delta = version("delta-spark")
    except PackageNotFoundError:
        return None
    spark, line = minor_version(__version__), minor_version(delta)
    if spark not in _SPARKS_OF_DELTA.get(line, _NEWER_DELTA):
        return None
    of_spark = "" if line in _SPARKS_OF_DELTA else f"_{spark}"
    return f"{DELTA}{of_spark}_{_of_jars(_SCALA)}:{delta}"


def has_delta() -> bool:
    """Return whether the installed Spark has JARs of Delta among its own, as on many platforms."""
    return any(_jars().glob("delta-spark_*.jar"))


def minor_version(full: str) -> str:
    """Return `4.2` for `4.2.0`."""
    return ".".join(full.split(".")[:2])


def with_version(package: str) -> str:
    """Return the Maven coordinate; one without a version, `group:name`, gets that of Spark's Hadoop."""
    return package if package.count(":") > 1 else f"{package}:{_of_jars(_HADOOP)}"


def _of_jars(name: re.Pattern[str]) -> str:
    """Return what the name of one of Spark's JARs has: a platform's Spark may have other versions than Apache's."""
    require_spark_home()
    return next(match[1] for jar in sorted(_jars().glob("*.jar")) if (match := name.match(jar.name)))


def _jars() -> Path:
    from pyspark.find_spark_home import _find_spark_home

    return Path(_find_spark_home(), "jars")


def require_spark_home(environment: Mapping[str, str] = os.environ) -> None:
    """Raise MACHINE_UNFIT if SPARK_HOME is a folder without Spark, or with another one than PySpark's."""
    from pyspark import __version__

    home = environment.get("SPARK_HOME")
    jars = [jar.name for jar in Path(home, "jars").glob("*.jar")] if home is not None else []
    others = {
        match[1]
        for jar in jars
        if (match := _SPARK.match(jar)) and minor_version(match[1]) != minor_version(__version__)
    }
    if home is not None and (not jars or others):
        why = f"Spark {others.pop()}, and PySpark is {__version__}" if others else "no Spark"
        step = "unset it, because PySpark has a Spark of its own, or install the PySpark of that Spark; then run again."
        raise MACHINE_UNFIT(why=f"SPARK_HOME={home} has {why}", next_step=step)


def require_named(settings: Mapping[str, str], environment: Mapping[str, str] = os.environ) -> None:
    """Raise CONNECT_UNNAMED if Spark's builder would connect to a server that the settings don't name."""
    mode = settings.get(_API_MODE) or environment.get("SPARK_API_MODE", "")
    if environment.get("SPARK_REMOTE") or mode.lower() == "connect":
        raise CONNECT_UNNAMED()
