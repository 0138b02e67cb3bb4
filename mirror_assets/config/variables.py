"""References to environment variables in mirror.yaml: `${NAME}` and `${NAME:-default}`.

Most are resolved when the file is read. Those in `spark.settings`, `where` and expressions of `columns`, which may be
secrets, are resolved where they are used.
Libraries for this (expandvars, OmegaConf) stop at the first mistake or have another syntax.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mirror_assets.config.errors import VARIABLE_UNSET
from mirror_assets.redaction import hide

_REFERENCE = re.compile(r"\$\{(?:([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\})?")


@dataclass(frozen=True)
class Filled:
    """A text as written, and with its references resolved.

    `from_environment`: it has references, and none of them has a default in the file. `unset` are the variables that
    are not set.
    """

    written: str
    text: str
    from_environment: bool
    problems: tuple[str, ...]
    unset: tuple[str, ...] = ()

    def unfilled(self, message: str) -> str:
        """Return the message with references in place of values, which may be secrets."""
        for value in (self.text, repr(self.text)[1:-1]):
            message = message.replace(value, self.written) if value else message
        return message


def fill(text: str, environment: Mapping[str, str], escaped: Callable[[str], str] = str) -> Filled:
    """Resolve every reference in `text`, to its escaped value. As in a shell, a default replaces an empty variable."""
    problems: list[str] = []
    unset: list[str] = []

    def value(match: re.Match[str]) -> str:
        name, default = match[1], match[2]
        if name is None:
            problems.append("`${` must begin a reference; write ${NAME} or ${NAME:-default}")
            return ""
        if default is not None:
            return escaped(environment.get(name) or str(default))
        if name not in environment:
            unset.append(name)
            problems.append(f"the environment variable {name} is not set; set it, or write ${{{name}:-default}}")
        return escaped(environment.get(name, ""))

    filled = _REFERENCE.sub(value, text)
    references = list(_REFERENCE.finditer(text))
    from_environment = bool(references) and not any(match[2] for match in references)
    return Filled(text, filled, from_environment, tuple(problems), tuple(unset))


def has_reference(text: str) -> bool:
    """Return whether the text refers to the environment."""
    return _REFERENCE.search(text) is not None


def fill_settings(settings: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Resolve every reference in these Spark settings, as `_fill_hidden` does."""
    return {name: _fill_hidden(f"spark.settings: {name}", text, environment) for name, text in settings.items()}


def fill_sql(setting: str, sql: str, environment: Mapping[str, str]) -> str:
    """Resolve every reference in an expression, as `_fill_hidden` does.

    Quotes and backslashes of a value are escaped, so inside quotes it stands for itself.
    """
    return _fill_hidden(setting, sql, environment, _escaped)


def _fill_hidden(setting: str, text: str, environment: Mapping[str, str], escaped: Callable[[str], str] = str) -> str:
    """Resolve every reference in a text; from now on, messages show the references, not the values.

    Raises SettingError for a variable that is not set.
    """
    for name in (match[1] for match in _REFERENCE.finditer(text) if match[1]):
        value = environment.get(name, "")
        hide(name, value)
        hide(name, escaped(value))
    filled = fill(text, environment, escaped)
    if filled.problems:
        raise VARIABLE_UNSET(setting=setting, problem="; ".join(filled.problems))
    return filled.text


def _escaped(value: str) -> str:
    return re.sub(r"([\\'\"])", r"\\\1", value)
