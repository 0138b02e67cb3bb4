"""What framing has a model load, for people."""

from __future__ import annotations

from collections.abc import Sequence

from mirror_assets.cli.direct_lake.words import known, moment
from mirror_assets.cli.output import show_records
from mirror_assets.direct_lake.framing import FramingEffect, FramingPoint

_EFFECT = ("framed at", "after", "rows kept", "with another deletion vector", "to load", "% to load", "bytes to load")


def show_framing(points: Sequence[FramingPoint], reframing: Sequence[FramingEffect]) -> None:
    """The last days, and the frames that were asked about."""
    if points:
        rows = [(*_effect(point.effect), moment(point.timestamp_ms / 1000), _marks(point)) for point in points]
        show_records("Framed once a day", (*_EFFECT, "committed", "maintenance"), rows)
    if reframing:
        show_records("Frames, framed anew now", _EFFECT, [_effect(effect) for effect in reframing])


def _effect(effect: FramingEffect) -> tuple[str, ...]:
    share = effect.reloaded_share
    return (
        f"version {effect.last}",
        f"version {effect.first}",
        known(effect.kept.rows),
        known(effect.changed.rows),
        known(effect.reloaded.rows),
        "" if share is None else f"{100 * share:.0f}",
        f"{effect.bytes_to_load:,}",
    )


def _marks(point: FramingPoint) -> str:
    return ", ".join(dict.fromkeys(mark.operation.value for mark in point.marks))
