"""What pydantic found wrong, in words for the person who writes mirror.yaml."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import get_args

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from mirror_assets.config.document import Steps, Value

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
