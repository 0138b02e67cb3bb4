"""From findings to what Dagster shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import dagster as dg

from mirror_assets.assets.items import MetadataItem
from mirror_assets.assets.slices import failure
from mirror_assets.config import RetentionLimits
from mirror_assets.errors import MirrorError
from mirror_assets.verify.check_result import Finding
from mirror_assets.verify.timeliness import ReadDeadline, check_retention


@contextmanager
def checking() -> Iterator[None]:
    """What keeps a check from looking fails its step with our message, and not with a stack."""
    try:
        yield
    except MirrorError as error:
        raise failure(error) from error


def check_result(
    asset: dg.AssetKey,
    finding: Finding,
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR,
    pictures: Mapping[str, MetadataItem] | None = None,
) -> dg.AssetCheckResult:
    """The finding as the asset's check result, a warning where it says so; `pictures` are shown beside its figures."""
    metadata: dict[str, MetadataItem] = {**finding.figures, **(pictures or {})}
    return dg.AssetCheckResult(
        asset_key=asset,
        check_name=finding.check,
        passed=finding.passed,
        severity=dg.AssetCheckSeverity.WARN if finding.is_warning else severity,
        description=finding.message or finding.note or None,
        metadata=metadata,
    )


def retention_result(
    asset: dg.AssetKey, horizon: ReadDeadline, limits: RetentionLimits, check: str = "retention"
) -> dg.AssetCheckResult:
    """An ERROR, or a WARN before it, when little time is left to read the next commit."""
    error = check_retention(horizon, limits.error_seconds, check)
    if not error.passed:
        return check_result(asset, error)
    return check_result(asset, check_retention(horizon, limits.warn_seconds, check), dg.AssetCheckSeverity.WARN)


def merged(name: str, findings: list[tuple[str, Finding]]) -> Finding:
    """One finding for several slices; problems carry the slice they are of, figures add up."""
    problems = tuple(f"slice {key}: {problem}" for key, finding in findings for problem in finding.problems)
    figures: dict[str, int | float | str] = {"slices": len(findings)}
    for _, finding in findings:
        for figure, value in finding.figures.items():
            known = figures.get(figure, 0)
            if isinstance(value, int | float) and isinstance(known, int | float):
                figures[figure] = known + value
    return Finding(name, problems, figures)
