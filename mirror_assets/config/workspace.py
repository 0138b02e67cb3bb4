"""Reads what mirror.yaml says of the Fabric workspace alone, for the time before there is an item to name in it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pydantic

from mirror_assets.config.document import Document
from mirror_assets.config.errors import ConfigInvalid, Problem
from mirror_assets.config.fabric import FabricWorkspace
from mirror_assets.config.load import config_file, read_config
from mirror_assets.config.messages import message_of, steps_of
from mirror_assets.config.nodes import read_document

_FABRIC = ("mirror", "fabric")
_ITEM = "item"


def load_workspace(path: Path | None = None, environment: Mapping[str, str] = os.environ) -> FabricWorkspace:
    """`mirror.fabric` without its item; nothing else of the file has to be right yet.

    Raises ConfigMissing, and ConfigInvalid for mistakes in it.
    """
    file = path or config_file(environment)
    document = read_document(read_config(file), environment)
    workspace = _validated(document, file)
    problems = tuple(problem for problem in document.problems if _concerns(problem))
    if workspace is None or problems:
        raise ConfigInvalid(file, problems)
    return workspace


def _validated(document: Document, file: Path) -> FabricWorkspace | None:
    written = document.get(*_FABRIC)
    settings = {name: value for name, value in written.items() if name != _ITEM} if isinstance(written, dict) else {}
    try:
        return FabricWorkspace.model_validate(settings, context=document.origin(file))
    except pydantic.ValidationError as error:
        for detail in error.errors(include_url=False):
            document.report((*_FABRIC, *steps_of(detail)), message_of(detail, FabricWorkspace))
    return None


def _concerns(problem: Problem) -> bool:
    """Whether a mistake is in the YAML itself, or in what is read here."""
    ours = ".".join(_FABRIC)
    return problem.path == "" or (problem.path.startswith(f"{ours}.") and problem.path != f"{ours}.{_ITEM}")
