"""The errors of deltalake and of its storage, as ours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from deltalake.exceptions import DeltaError, TableNotFoundError

from mirror_assets.delta.errors import LogGap, SourceNotDelta, SourceUnavailable, SourceUnreadable, SourceUnsupported
from mirror_assets.errors import MirrorError

_COLOUR = re.compile(r"\x1b\[\d*m")
_BACKTRACE = re.compile(r"\n\s*0: .*", re.DOTALL)
# deltalake gives one OSError for everything a storage can answer; what only a person can mend is told by its words.
_SETTING = re.compile(
    r"lacked (valid auth|the necessary)|loading credentials|\b40[134] |Config error|Permission denied", re.IGNORECASE
)

_CREDENTIALS = "loading credentials"
# How Rust writes an error of the operating system.
_SYSTEM = re.compile(r'(?:Error: )?Os \{ code: \d+, kind: \w+, message: "([^"]*)" \}')

# The library names both sides of a hole in the log; the first side's version is the last before it.
_GAP = re.compile(r"Expected contiguous commit files, but found gap: .*?version: (\d+)")


@contextmanager
def translated(uri: str) -> Iterator[None]:
    """Raise SourceNotDelta, SourceUnreadable, SourceUnsupported, SourceUnavailable or LogGap for what deltalake raises.

    A missing file (FileNotFoundError) passes through: what it means depends on the file.
    """
    try:
        yield
    except FileNotFoundError:
        raise
    except TableNotFoundError as error:
        raise _not_found(uri, _words(error)) from error
    except DeltaError as error:
        words = _words(error)
        gap = _GAP.search(words)
        if gap is not None:
            raise LogGap(uri, int(gap[1]) + 1) from error
        raise (SourceUnsupported if "Unsupported" in words else SourceUnreadable)(uri, words) from error
    except OSError as error:
        words = _words(error)
        if _CREDENTIALS in words:
            words = f"no credentials were found for it ({words})"
        raise (SourceUnreadable if _SETTING.search(words) else SourceUnavailable)(uri, words) from error


def _not_found(uri: str, words: str) -> MirrorError:
    return SourceNotDelta(uri) if "No files in log segment" in words else SourceUnreadable(uri, words)


def _words(error: Exception) -> str:
    """The message in one line, without colours, arrows and stack frames."""
    plain = _BACKTRACE.sub("", _COLOUR.sub("", str(error))).replace("↳", "")
    plain = _SYSTEM.sub(r"(\1)", plain)
    return " ".join(plain.split()).rstrip(".!")
