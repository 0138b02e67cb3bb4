"""Encoders: from a slice of the source to ordered, marked Parquet parts, on Spark.

Without a supported Spark, importing this package raises a SettingError that says how to get one.
"""

from mirror_assets.encode.spark_version import require_spark

require_spark()
