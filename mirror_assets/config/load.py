"""Reads mirror.yaml and reports all of its mistakes at once, each with its line."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TypeAlias, TypeVar, get_args

import pydantic
import yaml
from pydantic import BaseModel
from pydantic_core import ErrorDetails, to_jsonable_python

from mirror_assets.config.discovered import When, with_found_tables
from mirror_assets.config.document import Document, Steps, Value, read_document
from mirror_assets.config.errors import CONFIG_MISSING, config_invalid, did_you_mean
from mirror_assets.config.model import Config
from mirror_assets.config.rules import apply_rules
from mirror_assets.config.unset import UnsetVariables, stand_ins
from mirror_assets.feature import Feature, own_feature

CONFIG_VARIABLE = "MIRROR_CONFIG"
# A mirror.yaml by its path, the same settings as a mapping, or as a model.
MirrorSource: TypeAlias = str | Path | Mapping[str, object] | Config | None
# The name of a configuration that is no file; its settings have no lines.
_MADE_IN_PYTHON = Path("mirror")

_Model = TypeVar("_Model", bound=BaseModel)
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
_OTHER = {
    "missing": "this setting is missing",
    "string_too_short": "it must not be empty",
    "too_short": "it must not be empty",
}


def load_config(path: Path | None = None, when: When = When.UNKNOWN, *, is_partial: bool = False) -> Config:
    """Read the configuration, with the tables that its rules find.

    `path` is by default `$MIRROR_CONFIG`, or `mirror.yaml` in the current folder. `when` controls the scans; by
    default, only places that were never listed are scanned. `is_partial`: variables that no source needs may be unset
    (`Config.unset`). Raises CONFIG_MISSING and MISTAKES.
    """
    config = read_config(path)
    unset = config.unset
    needed = unset.of_sources if is_partial else (*unset.problems, *unset.in_rows)
    if needed:
        raise config_invalid(config.file, tuple(sorted(needed, key=lambda problem: problem.line or 0)))
    return config if config.unset.zone_error else with_found_tables(config, when)


def load_mirror(source: MirrorSource = None) -> Config:
    """Return the configuration for `build_definitions`: that of a file, a mapping or a `Config` made in Python.

    `source` is by default `$MIRROR_CONFIG`, or `mirror.yaml` in the current folder. Definitions load without the
    environment of their runs, as in CI: a variable that is not set is an error of the runs. Raises CONFIG_MISSING and
    MISTAKES.
    """
    if isinstance(source, Config) and source.is_checked:
        return source
    config = read_config(source)
    if isinstance(source, Config):
        config = config.with_features(source.own_features)
    return config if config.unset.zone_error or config.unset.of_sources else with_found_tables(config)


def read_config(source: MirrorSource = None) -> Config:
    """Return the configuration alone, without the tables that rules find; no other file is read.

    Other values stand for variables that are not set. Raises CONFIG_MISSING and MISTAKES.
    """
    if isinstance(source, Config | Mapping):
        text, file = yaml.safe_dump(_plain(source), sort_keys=False).encode(), _MADE_IN_PYTHON
    else:
        text, file = _read(None if source is None else Path(source))
    config, document = _parsed(text, file, os.environ)
    if not document.unset:
        return _require_valid(config, document)

    def mistakes(values: Mapping[str, str]) -> int:
        return len(_parsed(text, file, {**os.environ, **values})[1].problems)

    values = stand_ins(tuple(document.unset), mistakes)
    config, filled = _parsed(text, file, {**os.environ, **values})
    if {problem.path for problem in filled.problems} & {problem.path for problem in document.unresolved}:
        return _require_valid(None, document)  # no value of ours fits: that the variable is not set is the mistake
    return _require_valid(config, filled).checked(UnsetVariables.of(document))


def _plain(value: object) -> Value:
    """Return settings made in Python as YAML has them: of a model, those that were set."""
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json", by_alias=True, exclude_unset=True)
    if isinstance(value, Mapping):
        return {str(name): _plain(below) for name, below in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(below) for below in value]
    plain: Value = to_jsonable_python(value)
    return plain


def parse_config(text: bytes, file: Path, environment: Mapping[str, str]) -> Config:
    """Return the configuration in `text`, the content of `file`. Raises MISTAKES."""
    return _require_valid(*_parsed(text, file, environment))


def _require_valid(config: Config | None, document: Document) -> Config:
    if config is None or document.problems:
        in_order = sorted(document.problems, key=lambda problem: (problem.line or 0, problem.path))
        raise config_invalid(document.file, tuple(in_order))
    return config.checked()


def _parsed(text: bytes, file: Path, environment: Mapping[str, str]) -> tuple[Config | None, Document]:
    """Return the configuration, None if its values are wrong, and the document with all mistakes."""
    document = read_document(text, file, environment)
    if file is _MADE_IN_PYTHON:  # a file may have the same name
        document.lines = {"": 0}
    config = _validate(Config, document.value, document)
    if config is not None:
        config = config.with_features(_own_features(config.features, document))
    apply_rules(document)
    return config, document


def _own_features(names: Sequence[str], document: Document) -> list[Feature]:
    """Return the features that the file names, and report those that can't be used."""
    made = list[Feature]()
    for number, name in enumerate(names):
        module, _, attribute = name.partition(":")
        try:
            made.append(own_feature(getattr(import_module(module), attribute)))
        except Exception as error:  # noqa: BLE001 the module is the project's, and may raise anything
            document.report(("features", str(number)), f"{name} can't be used: {type(error).__name__}: {error}")
    return made


def load_section(model: type[_Model], steps: Steps, path: Path | None) -> _Model:
    """Read one section alone, without the settings that the model ignores; the rest of the file may still be wrong.

    Raises CONFIG_MISSING, and MISTAKES for mistakes in the YAML and in what is read.
    """
    text, file = _read(path)
    document = read_document(text, file, os.environ)
    section = _validate(model, document.get(*steps) or {}, document, steps)
    above, ignored = ".".join(steps), set[str]()
    if model.model_config.get("extra") == "ignore":
        ignored = {f"{above}.{name}" for name in document.names(*steps) if name not in model.model_fields}
    in_section = (one for one in document.problems if not one.path or one.path.startswith(above))
    problems = tuple(one for one in in_section if one.path not in ignored)
    if section is None or problems:
        raise config_invalid(file, problems)
    return section


def _read(path: Path | None) -> tuple[bytes, Path]:
    """Return the content of the configuration, and its file."""
    file = path or Path(os.environ.get(CONFIG_VARIABLE) or "mirror.yaml")
    try:
        return file.read_bytes(), file
    except OSError as error:
        raise CONFIG_MISSING(file=file, why=error.strerror or str(error)) from error


def _validate(model: type[_Model], value: Value, document: Document, above: Steps = ()) -> _Model | None:
    """Return the value as a model, or None after reporting its mistakes; `above` are its steps in the document."""
    try:
        return model.model_validate(value, context=document.origin)
    except pydantic.ValidationError as error:
        for detail in error.errors(include_url=False):
            below = tuple(str(step) for step in detail["loc"] if not str(step).startswith("["))
            path = ".".join((*above, *below))
            if path in document.filled:
                detail["input"] = document.filled[path].written
            document.report((*above, *below), _message(detail, below, model))
    return None


def _message(error: ErrorDetails, steps: Steps, model: type[BaseModel]) -> str:
    """Return the message for an error of pydantic at these steps of the model."""
    kind, context = error["type"], error.get("ctx", {})
    family, _, reason = kind.partition("_")
    if kind == "extra_forbidden":
        return f"unknown setting{did_you_mean(steps[-1], _settings_at(model, steps[:-1]))}"
    if kind == "value_error":
        return str(context["error"])
    if kind == "enum":
        return f"expected {context['expected']}, got {_shown(error['input'])}"
    if family in _EXPECTED and reason in ("type", "parsing", "from_float"):
        return f"expected {_EXPECTED[family]}, got {_shown(error['input'])}"
    return _OTHER.get(kind) or error["msg"].replace("Input should", "it must")


def _shown(value: Value) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    return str(value).lower() if isinstance(value, bool) else repr(value)[:60]


def _settings_at(model: type[BaseModel], steps: Steps) -> tuple[str, ...]:
    """Return the names of the settings below these steps of the model."""
    kind: object = model
    for step in steps:
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            kind = _fields(kind)[step]
        else:
            arguments = get_args(kind)
            # Of a list or a mapping, the type of its values.
            kind = arguments[0] if arguments[-1] is Ellipsis else arguments[-1]
        if type(None) in get_args(kind):
            kind = get_args(kind)[0]  # an optional mapping, `Model | None`
    models = [one for one in (kind, *get_args(kind)) if isinstance(one, type) and issubclass(one, BaseModel)]
    return tuple(name for one in models for name in _fields(one))


def _fields(model: type[BaseModel]) -> dict[str, object]:
    """Return the types of the model's settings by their names in the file."""
    return {field.alias or name: field.annotation for name, field in model.model_fields.items()}
