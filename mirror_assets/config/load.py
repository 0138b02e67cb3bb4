"""Reads mirror.yaml: all of its mistakes at once, each with its line."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pydantic

from mirror_assets.config.document import Document
from mirror_assets.config.errors import ConfigInvalid, ConfigMissing
from mirror_assets.config.messages import message_of, steps_of
from mirror_assets.config.model import Config
from mirror_assets.config.nodes import read_document
from mirror_assets.config.origin import Origin
from mirror_assets.config.rules import apply_rules

CONFIG_VARIABLE = "MIRROR_CONFIG"
DEFAULT_FILE = "mirror.yaml"


def config_file(environment: Mapping[str, str] = os.environ) -> Path:
    """The file to read when none is named: that of `MIRROR_CONFIG`, or `mirror.yaml` in the current folder."""
    return Path(environment.get(CONFIG_VARIABLE) or DEFAULT_FILE)


def load_config(path: Path | None = None, environment: Mapping[str, str] = os.environ) -> Config:
    """The configuration in `path`, by default `config_file()`. Raises ConfigMissing, and ConfigInvalid for mistakes."""
    file = path or config_file(environment)
    return parse_config(read_config(file), file, environment)


def read_config(file: Path) -> bytes:
    """The file's text. Raises ConfigMissing."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise ConfigMissing(file, error.strerror or str(error)) from error


def parse_config(text: bytes, file: Path, environment: Mapping[str, str]) -> Config:
    """The configuration in `text`, which stands in `file`. Raises ConfigInvalid."""
    document = read_document(text, environment)
    origin = document.origin(file)
    config = _validated(document, origin)
    if config is None or document.problems:
        in_order = sorted(document.problems, key=lambda problem: (problem.line or 0, problem.path))
        raise ConfigInvalid(file, tuple(in_order))
    return config


def _validated(document: Document, origin: Origin) -> Config | None:
    """The document as a Config, or None; what is wrong is reported into the document."""
    config = None
    try:
        config = Config.model_validate(document.value, context=origin)
    except pydantic.ValidationError as error:
        for detail in error.errors(include_url=False):
            steps = steps_of(detail)
            if steps in document.written:
                detail["input"] = document.written[steps].text
            document.report(steps, message_of(detail, Config))
    apply_rules(document, origin)
    if config is not None and config.mirror.fabric is not None:
        misplaced = config.mirror.fabric.misplaced(config.landing_zone.onelake)
        if misplaced:
            document.report(("mirror", "fabric"), misplaced)
    return config
