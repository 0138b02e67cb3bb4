"""References to environment variables in a setting's text: `${NAME}` and `${NAME:-default}`.

Most are filled in when mirror.yaml is read. Those in `spark.settings` may be secrets: the configuration keeps them as
they are written, and they are filled in when a Spark session opens.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.redaction import hide

_REFERENCE = re.compile(r"\$\{(?:([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\})?")


@dataclass(frozen=True)
class Filled:
    """A text with its references replaced; `from_environment` when it has some and none has a default in the file."""

    text: str
    from_environment: bool
    problems: tuple[str, ...]


def fill(text: str, environment: Mapping[str, str]) -> Filled:
    """`text` with every reference replaced. As in a shell, a default also stands in for an empty variable."""
    problems: list[str] = []

    def value(match: re.Match[str]) -> str:
        name, default = match[1], match[2]
        if name is None:
            problems.append("`${` starts no reference; write ${NAME} or ${NAME:-default}")
            return ""
        if default is not None:
            return environment.get(name) or str(default)
        if name not in environment:
            problems.append(f"the environment variable {name} is not set; set it, or write ${{{name}:-default}}")
        return environment.get(name, "")

    references = list(_REFERENCE.finditer(text))
    filled = _REFERENCE.sub(value, text)
    return Filled(filled, bool(references) and not any(match[2] for match in references), tuple(problems))


class VariableUnset(SettingError):
    """A Spark setting refers to an environment variable that this process does not have."""

    code = ErrorCode.CONFIG_INVALID

    def __init__(self, setting: str, problem: str) -> None:
        self.setting = setting
        super().__init__(f"spark.settings: {setting}: {problem}.", "then run again.")


def has_reference(text: str) -> bool:
    """Whether the text refers to the environment."""
    return _REFERENCE.search(text) is not None


def fill_settings(settings: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Spark settings by name, with every reference replaced; messages show the references from then on.

    Raises VariableUnset.
    """
    for name in (match[1] for text in settings.values() for match in _REFERENCE.finditer(text)):
        hide(name, environment.get(name, ""))
    filled = {name: fill(text, environment) for name, text in settings.items()}
    for name, value in filled.items():
        if value.problems:
            raise VariableUnset(name, "; ".join(value.problems))
    return {name: value.text for name, value in filled.items()}
