"""What the retention guard found, as a plan needs it."""

from __future__ import annotations

from mirror_assets.direct_lake.guard.plan import VacuumPlan
from mirror_assets.direct_lake.maintenance.values import SafeRetention


def safe_retention(found: VacuumPlan) -> SafeRetention:
    """The retention that keeps what anyone needs; what VACUUM deletes is told only where nothing is set first."""
    if found.statement is not None:
        return SafeRetention(found.min_safe_retention_seconds, found.statement)
    return SafeRetention(found.min_safe_retention_seconds, None, len(found.deleted), found.deleted_bytes)
