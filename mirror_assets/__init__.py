"""Mirror Delta tables into Microsoft Fabric's open-mirroring landing zone, exactly once and in order.

In a Dagster project of your own: the component `mirror_assets.MirrorComponent`, or `build_definitions` in Python.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mirror_assets.components import MirrorComponent as MirrorComponent
    from mirror_assets.config.load import load_mirror
    from mirror_assets.definitions import build_definitions as build_definitions
    from mirror_assets.feature import SliceCheck as SliceCheck
    from mirror_assets.feature import StagedRows as StagedRows
    from mirror_assets.orchestration.translator import MirrorTranslator as MirrorTranslator
    from mirror_assets.orchestration.translator import MirrorTranslatorData as MirrorTranslatorData

    load_config = load_mirror

__version__ = "0.1.0"
# Loaded when they are asked for: a command that needs no Dagster starts in a tenth of the time.
_PUBLIC = {
    "MirrorComponent": ("mirror_assets.components", "MirrorComponent"),
    "MirrorTranslator": ("mirror_assets.orchestration.translator", "MirrorTranslator"),
    "MirrorTranslatorData": ("mirror_assets.orchestration.translator", "MirrorTranslatorData"),
    "SliceCheck": ("mirror_assets.feature", "SliceCheck"),
    "StagedRows": ("mirror_assets.feature", "StagedRows"),
    "build_definitions": ("mirror_assets.definitions", "build_definitions"),
    # Commands read the file as `config.load.load_config` does, which refuses variables that are not set.
    "load_config": ("mirror_assets.config.load", "load_mirror"),
}


def __getattr__(name: str) -> object:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _PUBLIC[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    """Return the names that `dg` looks through for components."""
    return [*globals(), *_PUBLIC]
