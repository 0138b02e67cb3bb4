"""The installed Spark: its version, and whether it is there, supported and classic."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.metadata import version

from mirror_assets.encode.errors import CONNECT_UNSUPPORTED, SPARK_MISSING, SPARK_UNSUPPORTED

# The supported versions of Spark, and of the Hadoop that each brings.
_HADOOP = {"4.0": "3.4.1", "4.1": "3.4.2", "4.2": "3.5.0"}
_REMOTE, _API_MODE = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"), "spark.api.mode"


def require_spark() -> None:
    """Raise SPARK_MISSING without PySpark or delta-spark, and SPARK_UNSUPPORTED for another Spark than 4.0 to 4.2."""
    try:
        from pyspark import __version__

        version("delta-spark")
    except ImportError as error:  # also of metadata that is not found
        raise SPARK_MISSING(package=(error.name or "pyspark").partition(".")[0]) from error
    if minor_version(__version__) not in _HADOOP:
        raise SPARK_UNSUPPORTED(found=__version__, supported=tuple(_HADOOP))


def minor_version(full: str) -> str:
    """Return `4.2` for `4.2.0`."""
    return ".".join(full.split(".")[:2])


def with_version(package: str) -> str:
    """Return the Maven coordinate; one without a version, `group:name`, gets that of Spark's Hadoop."""
    from pyspark import __version__

    return package if package.count(":") > 1 else f"{package}:{_HADOOP[minor_version(__version__)]}"


def require_classic(settings: Mapping[str, str], environment: Mapping[str, str] = os.environ) -> None:
    """Raise CONNECT_UNSUPPORTED if Spark's builder would connect to a Spark Connect server, or has done so."""
    mode = settings.get(_API_MODE) or environment.get("SPARK_API_MODE", "")
    if "spark.remote" in settings or any(map(environment.get, _REMOTE)) or mode.lower() == "connect":
        raise CONNECT_UNSUPPORTED()
