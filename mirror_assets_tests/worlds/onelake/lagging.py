"""A listing's answer without some of its names, of either endpoint: it is older than what is there."""

from __future__ import annotations

import json
import re
from fnmatch import fnmatchcase
from xml.sax.saxutils import unescape

_BLOB = re.compile(r"<Blob><Name>(.*?)</Name>.*?</Blob>")


def without_names(body: bytes, pattern: str) -> bytes:
    """Return the answer's body without the paths that the pattern fits."""
    text = body.decode()
    if not text.startswith("{"):
        return _BLOB.sub(lambda blob: "" if fnmatchcase(unescape(blob[1]), pattern) else blob[0], text).encode()
    listed = json.loads(text)
    kept = [path for path in listed["paths"] if not fnmatchcase(path["name"], pattern)]
    return json.dumps({**listed, "paths": kept}).encode()
