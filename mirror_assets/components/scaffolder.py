"""Writes the files of a new `MirrorComponent`: defs.yaml, and a mirror.yaml to fill in."""

from __future__ import annotations

import os

import dagster as dg
from dagster.components.component_scaffolding import scaffold_component
from dagster.components.scaffold.scaffold import NoParams

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
