"""What a feature adds to the core: `features` has a folder for each, and the core imports none of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click

    from mirror_assets.config.rules import Rule
    from mirror_assets.config.setting_values import Section
    from mirror_assets.orchestration.check import Check
    from mirror_assets.orchestration.dagster_internals import Job
    from mirror_assets.orchestration.mirror_assets import MirrorAssets

# The folders of `features`, each with one `FEATURE`. Without its line here, a feature does not exist.
_NAMES = ("demo", "direct_lake")


class Feature:
    """The entry point of a feature; what a method does not return, the feature does not have.

    A method imports what it needs when it is called: a feature that is not used costs no import.
    """

    def settings(self) -> type[Section] | None:
        """Return its settings in mirror.yaml, a model that the whole inherits: `of` finds them there."""
        return None

    def table_settings(self) -> type[Section] | None:
        """Return its settings of a table, as `settings` does."""
        return None

    def rules(self) -> Sequence[Rule]:
        """Return its rules over several settings."""
        return ()

    def commands(self) -> Sequence[click.Command]:
        """Return its commands of `mirror-assets`."""
        return ()

    def checks(self) -> Sequence[Check]:
        """Return its asset checks; each says which tables have it."""
        return ()

    def jobs(self, assets: MirrorAssets) -> Sequence[Job]:  # noqa: ARG002 features override it
        """Return its jobs, if the configuration uses it."""
        return ()

    def crons(self) -> Mapping[str, str]:
        """Return when its jobs run, in UTC, by their names."""
        return {}


@cache
def features() -> tuple[Feature, ...]:
    """Return every feature, in the order of the list."""
    found: list[Feature] = [import_module(f"mirror_assets.features.{name}").FEATURE for name in _NAMES]
    return tuple(found)
