"""Tells an error of the SDK's code over an answer that it can't read from one of our own code around the call.

Over a truncated or garbled answer the SDK raises what its parsing happens to: TypeError, KeyError, ValueError and the
like. These types alone say nothing, because a mistake of ours raises them too; whose code raised them does.
"""

from __future__ import annotations

from types import TracebackType

_OURS, _SDK = "mirror_assets", "azure"


def raised_by_sdk(error: BaseException) -> bool:
    """Whether the innermost code on the error's way, of ours and the SDK's, is the SDK's.

    Libraries below, such as the decoder of a text, count for the one that called them.
    """
    innermost, step = "", error.__traceback__
    while step is not None:
        package = _package(step)
        innermost = package if package in (_OURS, _SDK) else innermost
        step = step.tb_next
    return innermost == _SDK


def _package(step: TracebackType) -> str:
    return str(step.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
