"""Plants faults: replaces a function wherever the product uses it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, SparkSession

from mirror_assets.encode import columns, scan_reader
from mirror_assets.source import scan_builder
from mirror_assets.source.scan import DifferingScans, Scan, ScannedFile
from mirror_assets.source.schema import LandedColumn

Inject = Callable[[pytest.MonkeyPatch], None]


def everywhere(right: Callable[..., Any], wrong: Callable[..., Any]) -> Inject:
    """Return a fault that replaces the function in each module that has it under its name."""
    name = right.__name__

    def inject(patch: pytest.MonkeyPatch) -> None:
        users = [one for key, one in sys.modules.items() if key.startswith("mirror_assets.")]
        users = [one for one in users if vars(one).get(name) is right]
        assert users, f"no module has {name}"
        for user in users:
            patch.setattr(user, name, wrong)

    return inject


def both(*faults: Inject) -> Inject:
    """Return a fault of several parts."""

    def inject(patch: pytest.MonkeyPatch) -> None:
        for fault in faults:
            fault(patch)

    return inject


def read_rows(change: Callable[[DataFrame], DataFrame]) -> Inject:
    """Return a fault of the reader: all that read scans get changed rows."""
    right = scan_reader.read_scan

    def read_scan(spark: SparkSession, scan: Scan, *, row_ids: bool = False) -> DataFrame:
        return change(right(spark, scan, row_ids=row_ids))

    return everywhere(right, read_scan)


def scanned(change: Callable[[list[ScannedFile]], list[ScannedFile]]) -> Inject:
    """Return a fault of the scans: of versions, of changes and of differences."""

    def changed(scan: Scan) -> Scan:
        return replace(scan, files=tuple(change(list(scan.files))))

    def scan_version(*arguments: Any) -> Scan:  # noqa: ANN401 passed on
        return changed(right_version(*arguments))

    def scan_changes(*arguments: Any, **options: Any) -> Scan:  # noqa: ANN401 passed on
        return changed(right_changes(*arguments, **options))

    def scan_differences(*arguments: Any) -> DifferingScans:  # noqa: ANN401 passed on
        found = right_differences(*arguments)
        return replace(found, before=changed(found.before), last=changed(found.last))

    right_version, right_changes = scan_builder.scan_version, scan_builder.scan_changes
    right_differences = scan_builder.scan_differences
    return both(
        everywhere(right_version, scan_version),
        everywhere(right_changes, scan_changes),
        everywhere(right_differences, scan_differences),
    )


def landed(**changes: Callable[[Column], Column]) -> Inject:
    """Return a fault of the encoder's conversion of these columns."""
    right = columns.landed_value

    def landed_value(column: LandedColumn, rows: DataFrame) -> Column:
        value = right(column, rows)
        return changes[column.name](value) if column.name in changes else value

    return everywhere(right, landed_value)
