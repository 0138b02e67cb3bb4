"""Makes texts of errors fit to be kept and sent: not too long, and no characters by which a reader is misled."""

from __future__ import annotations

import re

_LONGEST = 1500
# Control characters but line breaks, signs that turn the direction of text around, and halves of a character, which no
# JSON can have: names of files may.
_UNFIT = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|[\ud800-\udfff]")
# A password before a host, and what signs a request of Azure Storage, S3 or Google Cloud Storage.
_PASSWORD = re.compile(r"(://[^\s:/@'\"]*):[^\s/@'\"]+@")
_SIGNATURE = re.compile(
    r"([?&](?:sig|(?:x-amz|x-goog)-(?:signature|credential|security-token))=)[^\s&'\"]+", re.IGNORECASE
)


def without_credentials(text: str) -> str:
    """Return the text with `…` in place of passwords and signatures in addresses, whoever has written them."""
    return _SIGNATURE.sub(r"\1…", _PASSWORD.sub(r"\1:…@", text))


def cleaned(text: str) -> str:
    """Return the text without characters that can't be shown; tabs become spaces."""
    return _UNFIT.sub(lambda found: " " if found[0] in "\t\u2028\u2029" else "", text)


def shortened(text: str, longest: int = _LONGEST) -> str:
    """Return the text with at most so many characters; one that is cut ends in `…`."""
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"
