"""What tests need to know of the Spark that runs them: 3.5 lacks what newer ones have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyspark.sql import DataFrame

from mirror_assets.spark_api import SPARK_ERRORS
from mirror_assets.spark_messages import spark_facts

IS_SPARK_4 = hasattr(DataFrame, "toArrow")


@contextmanager
def possible_with_spark_4() -> Iterator[None]:
    """Skip the rest of a test where Spark 3.5 refuses the statements of the block."""
    try:
        yield
    except SPARK_ERRORS as error:
        if IS_SPARK_4:
            raise
        pytest.skip(spark_facts(error).why)
