"""Prepares messages that leave the project: without secrets, values of rows and control characters, and short."""

from __future__ import annotations

import re

from mirror_assets.redaction import redacted
from mirror_assets.row_values import without_values

_LONGEST = 1500
# Control characters except line breaks, characters that change the direction of text, and halves of a character, which
# JSON can't hold: file names may.
_UNFIT = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|[\ud800-\udfff]")
# Passwords in addresses, signatures of Azure Storage, S3 and Google Cloud Storage, and partition values in paths.
_PRIVATE = (
    re.compile(r"(://[^\s:/@'\"]*:)[^\s/@'\"]+(@)"),
    re.compile(r"([?&](?:sig|x-(?:amz|goog)-(?:signature|credential|security-token))=)[^\s&'\"]+()", re.IGNORECASE),
    re.compile(r"(\b[\w%.~-]+=)[^/\n,;:()\[\]'\"«»?&]+(/)"),
    re.compile(r"(/[\w%.~-]+=)[^\s/,;:()'\"]+()"),
)


def cleaned(text: str, longest: int = _LONGEST) -> str:
    """Return the text as it may leave the project: without secrets, values of rows and control characters, and short.

    A text that is cut ends in `…`.
    """
    text = without_values(redacted(text))
    for pattern in _PRIVATE:
        text = pattern.sub(r"\1…\2", text)
    text = _UNFIT.sub(lambda found: " " if found[0] in "\t\u2028\u2029" else "", text)
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"
