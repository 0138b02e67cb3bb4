"""Lists that Fabric gives in pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast
from urllib.parse import parse_qs, urlsplit

from azure.core.exceptions import DeserializationError
from azure.core.paging import ItemPaged, PageIterator

_TOKEN = "continuationToken"  # noqa: S105 a parameter's name
_T = TypeVar("_T")


def all_pages(ask: Callable[[str | None], ItemPaged[_T]]) -> list[_T]:
    """What is on every page; `ask` takes the token of a page, None for the first.

    Fabric's client would fetch the second page from the address that Fabric names, with GET, where the interface is
    documented as POST, and with our token, whoever the address belongs to. So each page is asked for like the first.
    """
    found: list[_T] = []
    token: str | None = None
    while True:
        pages = cast("PageIterator[_T]", ask(token).by_page())
        found += next(pages)
        token = _next_token(pages.continuation_token, token)
        if token is None:
            return found


def _next_token(address: str | None, requested: str | None) -> str | None:
    """The token in the next page's address, or None behind the last page."""
    if address is None:
        return None
    tokens = parse_qs(urlsplit(address).query).get(_TOKEN, [])
    if len(tokens) != 1 or tokens[0] == requested:
        raise DeserializationError("the address of its next page has no new token")
    return tokens[0]
