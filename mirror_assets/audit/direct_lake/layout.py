"""Whether a table lies in its files as Direct Lake reads it well."""

from __future__ import annotations

from mirror_assets.audit.finding import CheckResult
from mirror_assets.direct_lake.layout.advice import Topic, advice
from mirror_assets.direct_lake.layout.columns import percent
from mirror_assets.direct_lake.layout.report import LayoutReport

LAYOUT = "layout"


def check_layout(report: LayoutReport, *, wants_vorder: bool) -> CheckResult:
    """A warning with all advice that there is.

    Only Fabric writes V-Order: its lack alone is a note, unless it is wanted.
    """
    found = advice(report)
    counts = any(one.topic is not Topic.VORDER or wants_vorder for one in found)
    said = tuple(str(one) for one in found)
    note = "; ".join(said) or "there is nothing to advise"
    return CheckResult(LAYOUT, said if counts else (), _figures(report), note="" if counts else note, is_warning=counts)


def _figures(report: LayoutReport) -> dict[str, int | float | str]:
    spreads = {"file_bytes_median": report.file_spread, "row_group_rows_median": report.row_group_spread}
    return {
        "files": report.files,
        "small_files": report.small_files.count,
        "bytes": report.bytes,
        "rows": report.rows,
        "row_groups": report.row_groups.count,
        **{name: spread.median for name, spread in spreads.items() if spread is not None},
        "vorder_percent": round(report.vorder.rows_share, 3),
        "hidden_percent": round(report.vectors.rows_share, 3),
        "dropped_percent": round(percent(report.dropped_bytes, report.bytes), 3),
        "partitions": len(report.partitions.each),
    }
