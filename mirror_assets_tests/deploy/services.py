"""The services of deploy/compose.yaml: their commands, environment and health checks."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from mirror_assets_tests.pages import ROOT

DEPLOY = ROOT / "deploy"
CODE, DAEMON, WEBSERVER = "code", "daemon", "webserver"
_REFERENCE = re.compile(r"\$\{(\w+)(?::([-?])([^}]*))?\}")


@dataclass(frozen=True)
class Service:
    """What a container runs, with references to the environment unresolved."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    health: tuple[str, ...]


def read(name: str) -> Any:  # noqa: ANN401 the document of any YAML file
    """Return the content of a YAML file in deploy/."""
    return yaml.safe_load((DEPLOY / name).read_text(encoding="utf-8"))


def services() -> dict[str, Service]:
    """Return the services of the image; one without a command runs that of the Dockerfile."""
    found = read("compose.yaml")["services"]
    return {name: _service(found[name]) for name in (CODE, DAEMON, WEBSERVER)}


def _service(one: Mapping[str, Any]) -> Service:
    command = one.get("command", dockerfile_command("CMD"))
    return Service(tuple(command), one["environment"], tuple(one["healthcheck"]["test"][1:]))


def dockerfile_command(instruction: str) -> list[str]:
    """Return the last command of this kind in the Dockerfile, as a list of words."""
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    words: list[str] = json.loads(re.findall(rf"^{instruction}.*?(\[.*\])$", text, re.MULTILINE)[-1])
    return words


def filled(text: str, variables: Mapping[str, str]) -> str:
    """Resolve `${NAME}`, `${NAME:-default}` and `${NAME:?message}` as Compose does. Raises KeyError."""

    def value(match: re.Match[str]) -> str:
        name, kind, default = match.groups()
        return variables.get(name) or default if kind == "-" else variables[name]

    return _REFERENCE.sub(value, text)


def references(text: str) -> set[str]:
    """Return the names of the variables that a text refers to as `${NAME…}` or `{env: NAME}`."""
    return {match[0] for match in _REFERENCE.findall(text)} | set(re.findall(r"\{env: (\w+)\}", text))


def text_of(name: str) -> str:
    """Return the text of a file in deploy/ without its comments."""
    lines = Path(DEPLOY, name).read_text(encoding="utf-8").splitlines()
    return "\n".join(line.partition(" #")[0] for line in lines if not line.lstrip().startswith("#"))
