"""Links from messages to the documentation: to the section of an error code or of a check, or to the page of a task.

The address of the site is that of the environment variable, else `Documentation` under `[project.urls]` in
pyproject.toml. Without both, a link is a page in the repository, such as `…/blob/main/docs/errors.md#log_gap`.
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


def task_link(task: str) -> str:
    """Return the link to a page of the first week's questions: the name of a file in docs/tasks."""
    return _link(f"tasks/{task}")


def _link(page: str, section: str = "") -> str:
    site = os.environ.get(DOCS_VARIABLE, "").strip() or _urls_of_package().get("documentation", "")
    anchor = f"#{section}" if section else ""
    if site:
        return f"{site.rstrip('/')}/{page}/{anchor}"
    path, repository = f"docs/{page}.md{anchor}", _urls_of_package().get("repository", "")
    return f"{repository.rstrip('/')}/blob/main/{path}" if repository else path


@cache
def _urls_of_package() -> dict[str, str]:
    """Return the project's URLs in the metadata of the installed package, by their labels in lower case."""
    try:
        urls: list[str] = metadata("mirror-assets").get_all("Project-URL") or []
    except PackageNotFoundError:
        return {}
    return {label.lower(): address for label, _, address in (url.partition(", ") for url in urls)}
