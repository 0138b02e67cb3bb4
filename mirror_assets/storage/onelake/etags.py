"""ETags as we keep them, without quotes: listings give them so, single files with them."""

from __future__ import annotations


def bare(etag: str | None) -> str:
    """The ETag as we keep it."""
    return (etag or "").strip('"')


def quoted(etag: str) -> str:
    """The ETag as a condition names it."""
    return f'"{etag}"'
