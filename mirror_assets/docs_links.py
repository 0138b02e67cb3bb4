"""Links from messages to the documentation: to the section of an error code or of an asset check.

The address of the site is that of the environment variable, else `Documentation` under `[project.urls]` in
pyproject.toml. Without both, a link is a path in the repository, such as `docs/errors.md#log_gap`.
"""

from __future__ import annotations

import os
from functools import cache
from importlib.metadata import PackageNotFoundError, metadata

DOCS_VARIABLE = "MIRROR_DOCS_URL"


def error_link(code: str) -> str:
    """Return the link to the section of an error code."""
    return _link("errors", code)


def check_link(check: str) -> str:
    """Return the link to the section of an asset check."""
    return _link("checks", check)


def _link(page: str, section: str) -> str:
    site = os.environ.get(DOCS_VARIABLE, "").strip() or _site_of_package()
    return f"{site.rstrip('/')}/{page}/#{section}" if site else f"docs/{page}.md#{section}"


@cache
def _site_of_package() -> str:
    """Return the `Documentation` URL in the metadata of the installed package, or an empty text."""
    try:
        urls: list[str] = metadata("mirror-assets").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    named = {label.lower(): address for label, _, address in (url.partition(", ") for url in urls)}
    return named.get("documentation", "")
