"""Reads mirror.yaml: all of its mistakes at once, each with its line."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import get_args

import pydantic
from pydantic import BaseModel
from pydantic_core import ErrorDetails

from mirror_assets.config.document import Document, Origin, Steps, Value, read_document
from mirror_assets.config.errors import ConfigInvalid, ConfigMissing, Problem
from mirror_assets.config.model import Config
from mirror_assets.config.places import FabricWorkspace
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


_FABRIC = ("mirror", "fabric")
_ITEM = "item"


def load_workspace(path: Path | None = None, environment: Mapping[str, str] = os.environ) -> FabricWorkspace:
    """`mirror.fabric` without its item; nothing else of the file has to be right yet.

    Raises ConfigMissing, and ConfigInvalid for mistakes in it.
    """
    file = path or config_file(environment)
    document = read_document(read_config(file), environment)
    workspace = _validated_workspace(document, file)
    problems = tuple(problem for problem in document.problems if _concerns_workspace(problem))
    if workspace is None or problems:
        raise ConfigInvalid(file, problems)
    return workspace


def _validated_workspace(document: Document, file: Path) -> FabricWorkspace | None:
    written = document.get(*_FABRIC)
    settings = {name: value for name, value in written.items() if name != _ITEM} if isinstance(written, dict) else {}
    try:
        return FabricWorkspace.model_validate(settings, context=document.origin(file))
    except pydantic.ValidationError as error:
        for detail in error.errors(include_url=False):
            document.report((*_FABRIC, *steps_of(detail)), message_of(detail, FabricWorkspace))
    return None


def _concerns_workspace(problem: Problem) -> bool:
    """Whether a mistake is in the YAML itself, or in what is read here."""
    ours = ".".join(_FABRIC)
    return problem.path == "" or (problem.path.startswith(f"{ours}.") and problem.path != f"{ours}.{_ITEM}")


_EXPECTED = {
    "bool": "true or false",
    "dict": "settings below it (name: value)",
    "float": "a number",
    "int": "a whole number",
    "model": "settings below it (name: value)",
    "path": "a path",
    "string": "text (quotes make it text)",
    "tuple": "a list, like [one, two]",
}
_SHOWN = 60
_OTHER = {
    "missing": "this setting is missing",
    "string_too_short": "it must not be empty",
    "too_short": "it must not be empty",
}


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the nearest known name, else the list of them."""
    by_lower = {other.lower(): other for other in known}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return f"; did you mean {by_lower[near[0]]!r}?" if near else f"; it is one of: {', '.join(by_lower.values())}"


def steps_of(error: ErrorDetails) -> Steps:
    """The setting that an error is about."""
    return tuple(str(step) for step in error["loc"] if step != "[key]")


def message_of(error: ErrorDetails, model: type[BaseModel]) -> str:
    """What is wrong and what was expected; `model` is the model of the whole file."""
    steps, kind, context = steps_of(error), error["type"], error.get("ctx", {})
    family, _, reason = kind.partition("_")
    if kind == "extra_forbidden":
        message = f"unknown setting{did_you_mean(steps[-1], _settings_at(model, steps[:-1]))}"
    elif kind == "value_error":
        message = str(context["error"])
    elif kind == "enum":
        message = f"expected {context['expected']}, got {_shown(error['input'])}"
    elif family in _EXPECTED and reason in ("type", "parsing", "from_float"):
        message = f"expected {_EXPECTED[family]}, got {_shown(error['input'])}"
    else:
        message = _OTHER.get(kind) or error["msg"].replace("Input should", "it must")
    return message


def _shown(value: Value) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    return str(value).lower() if isinstance(value, bool) else repr(value)[:_SHOWN]


def _settings_at(model: type[BaseModel], steps: Steps) -> tuple[str, ...]:
    """Names of the settings below `steps`."""
    kind: object = model
    for step in steps:
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            kind = kind.model_fields[step].annotation
        else:
            kind = get_args(kind)[-1]  # a mapping from names: the type of its values
        if type(None) in get_args(kind):
            kind = get_args(kind)[0]  # `Model | None`: a mapping that may be left out
    return tuple(kind.model_fields) if isinstance(kind, type) and issubclass(kind, BaseModel) else ()
