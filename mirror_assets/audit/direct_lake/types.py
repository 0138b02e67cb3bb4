"""Whether Direct Lake can load a table's columns."""

from __future__ import annotations

from collections.abc import Sequence

from mirror_assets.audit.finding import CheckResult
from mirror_assets.direct_lake.types import TypeFinding, Weight

TYPES = "types"


def check_types(found: Sequence[TypeFinding], *, is_read: bool) -> CheckResult:
    """Columns that can't be loaded, or may not be.

    `is_read`: a model is known to read the table. Then the ones are an error, the others a warning; else a warning, and
    a note. What neither log nor footers tell is a note at most.
    """
    fails, may_fail = _of(found, Weight.FAILS), _of(found, Weight.MAY_FAIL)
    problems = (*fails, *may_fail) if is_read else fails
    return CheckResult(
        TYPES,
        problems,
        {"fails": len(fails), "may_fail": len(may_fail), "unseen": len(_of(found, Weight.UNSEEN))},
        note="" if problems else "; ".join(_said(one) for one in found),
        is_warning=not (is_read and fails),
    )


def _of(found: Sequence[TypeFinding], weight: Weight) -> tuple[str, ...]:
    return tuple(_said(one) for one in found if one.weight is weight)


def _said(one: TypeFinding) -> str:
    look = f" ({one.statement})" if one.statement else ""
    return f"{one.column} {one.message}{look}"
