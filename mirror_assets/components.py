"""A mirror as a component of a Dagster project: `type: mirror_assets.MirrorComponent` in a defs.yaml."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import dagster as dg
from dagster.components.component_scaffolding import scaffold_component
from dagster.components.scaffold.scaffold import NoParams, scaffold_with
from dagster.components.utils.translation import TranslationFn, TranslationFnResolver
from pydantic import Field

from mirror_assets.definitions import build_definitions
from mirror_assets.orchestration.translator import MirrorTranslator, MirrorTranslatorData

# ROOT is the folder of the project: data does not belong among definitions.
_MIRROR_YAML = """\
# A landing zone and a mirror on this machine, to try it out. For Fabric: docs/onelake.md.
landing_zone: {path: ROOT/.mirror/landing}
mirror: {path: ROOT/.mirror/mirror}
tables:
  shop.orders:
    source: ROOT/lake/orders     # a folder, or s3://, abfss://, gs://
    keys: [id]
    # source_asset: orders       # the key of your asset that writes it
"""


class MirrorScaffolder(dg.Scaffolder[NoParams]):
    """Scaffolds a mirror of one table."""

    def scaffold(self, request: dg.ScaffoldRequest[NoParams]) -> None:
        """Write both files into the folder of the new component."""
        scaffold_component(request, {"config": "mirror.yaml"})
        root = os.path.relpath(request.project_root or request.target_path, request.target_path)
        text = _MIRROR_YAML.replace("ROOT", root)
        request.target_path.joinpath("mirror.yaml").write_text(text, encoding="utf-8")


def _variables(data: MirrorTranslatorData) -> Mapping[str, str]:
    """Return the variables of templates in `translation`."""
    name = data.table.name
    return {"schema": name.schema or "", "table": name.table, "stage": data.kind.value}


@scaffold_with(MirrorScaffolder)
class MirrorComponent(dg.Component, dg.Resolvable, dg.Model):
    """Mirrors Delta tables into Microsoft Fabric's open mirroring: assets, checks, sensors and jobs of a mirror.yaml.

    Override `get_asset_spec` in a subclass to define assets in Python.
    """

    config: Annotated[str, Field(description="Path of the mirror.yaml, relative to this file.")] = "mirror.yaml"
    name: Annotated[
        str,
        Field(description="Prefix of jobs, sensors, schedules and resources; each mirror of a project has its own."),
    ] = "mirror"
    spark: Annotated[
        str | None, Field(description="Key of the project's PySpark resource to use in place of the mirror's own.")
    ] = None
    translation: (
        Annotated[
            TranslationFn[MirrorTranslatorData],
            TranslationFnResolver[MirrorTranslatorData](template_vars_for_translation_fn=_variables),
        ]
        | None
    ) = None

    def get_asset_spec(self, data: MirrorTranslatorData) -> dg.AssetSpec:
        """Return the definition of an asset: the default one, changed by `translation`."""
        spec = MirrorTranslator().get_asset_spec(data)
        return self.translation(spec, data) if self.translation else spec

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Return the definitions of the mirror. Raises MISTAKES for a mirror.yaml that is not valid."""
        path = Path(context.path, self.config)
        return build_definitions(path, translator=_ComponentTranslator(self), name=self.name, spark=self.spark)


class _ComponentTranslator(MirrorTranslator):
    def __init__(self, component: MirrorComponent) -> None:
        self._component = component

    def get_asset_spec(self, data: MirrorTranslatorData) -> dg.AssetSpec:
        return self._component.get_asset_spec(data)
