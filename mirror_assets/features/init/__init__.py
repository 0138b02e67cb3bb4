"""Writes a first mirror.yaml: surveys the tables of a lake, proposes keys, and proves them with Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mirror_assets.feature import Feature

if TYPE_CHECKING:
    import click


class _Init(Feature):
    def commands(self) -> Sequence[click.Command]:
        from mirror_assets.features.init.init_command import init

        return (init,)


FEATURE = _Init()
