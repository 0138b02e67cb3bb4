"""References to environment variables in a setting's text: `${NAME}` and `${NAME:-default}`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

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
