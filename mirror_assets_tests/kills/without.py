"""Rules of the protocol that a control takes away: what is then left undone must be found."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mirror_assets.landing import recover
from mirror_assets.landing.format import Manifest
from mirror_assets.landing.names import TableName
from mirror_assets.landing.steps import Steps


def _without_redo() -> None:
    """Let what a killed publisher had committed stay where it is."""

    def nothing(table: TableName, manifest: Manifest) -> Steps[None]:  # noqa: ARG001 the signature of redo
        return
        yield

    recover.redo = nothing  # publish has a name of its own for it, and goes on to land what it commits


RULES: Mapping[str, Callable[[], None]] = {"redo": _without_redo}
