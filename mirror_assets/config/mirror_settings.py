"""The place of the mirrored tables in mirror.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field, model_validator
from typing_extensions import Self

from mirror_assets.feature import features
from mirror_assets.settings import Folder, Section, with_settings

MIRROR_PATH = "./mirror"


class CoreMirror(Section):
    """The tables of the local stand-in for Fabric's replicator."""

    path: Folder = Field(
        default=Path(MIRROR_PATH), validate_default=True, description="Folder of the stand-in's Delta tables."
    )


if TYPE_CHECKING:

    class MirrorSections(CoreMirror):
        """The stand-in's tables, or what mirrors instead."""
else:
    MirrorSections = with_settings(CoreMirror, [feature.mirror_settings() for feature in features()])


class MirrorConfig(MirrorSections):
    """The mirrored tables: those of the local stand-in for Fabric's replicator, or of a feature's mirror."""

    @model_validator(mode="after")
    def _one_mirror(self) -> Self:
        others = [name for name in sorted(self.model_fields_set - {"path"}) if getattr(self, name) is not None]
        if others and "path" in self.model_fields_set:
            raise ValueError(f"set either `path` or `{others[0]}`")
        return self
