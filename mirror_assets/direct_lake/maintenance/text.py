"""A plan as a script: statements to run one after the other, with reasons and effects as comments."""

from __future__ import annotations

from collections.abc import Iterator

from mirror_assets.direct_lake.maintenance.values import Effect, MaintenancePlan, Step, StepKind


def script(plan: MaintenancePlan) -> str:
    """The plan as SQL; what is no SQL (a command, a request, a step that was left out) is a comment."""
    return "\n".join(_lines(plan)) + "\n"


def _lines(plan: MaintenancePlan) -> Iterator[str]:
    yield f"-- {plan.table} at version {plan.version}"
    if not plan.steps:
        yield "-- nothing to do"
    yield from (f"{setting};" for setting in plan.settings)
    for number, step in enumerate(plan.steps, 1):
        yield ""
        yield from _step(number, step)
    for left_out in plan.left_out:
        yield ""
        yield f"-- no {left_out.kind.value}: {left_out.why}"
    if plan.request is not None:
        yield ""
        yield "-- the same for whole tables, as the body of Fabric's table maintenance request:"
        yield from (f"-- {line}" for line in plan.request.splitlines())


def _step(number: int, step: Step) -> Iterator[str]:
    yield f"-- {number}. {step.kind.value}: {step.why}"
    if step.effect is not None:
        yield f"-- {_effect(step.effect)}"
    yield f"-- {step.statement}" if step.kind is StepKind.PUBLISH else f"{step.statement};"


def _effect(effect: Effect) -> str:
    about = "" if effect.is_exact else "about "
    rows = "an unknown number of rows" if effect.rows_to_load is None else f"{effect.rows_to_load:,} rows"
    return (
        f"files {effect.files_before:,} -> {about}{effect.files_after:,}, "
        f"bytes {effect.bytes_before:,} -> about {effect.bytes_after:,}; "
        f"Direct Lake loads {rows} anew; 0 rows to publish"
    )
