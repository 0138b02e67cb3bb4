"""What can happen to one request on its way to OneLake and back."""

from __future__ import annotations

from enum import Enum

from mirror_assets_tests.worlds.onelake import (
    Action,
    CutBody,
    Delay,
    Drop,
    Hold,
    LoopbackOneLake,
    Moment,
    Operation,
    Record,
    Reply,
)

CHANGING = frozenset(
    {
        Operation.CREATE,
        Operation.CREATE_FOLDER,
        Operation.APPEND,
        Operation.FLUSH,
        Operation.RENAME,
        Operation.DELETE,
        Operation.PUT_BLOB,
    }
)


class Seen(Enum):
    """How the client can tell the kinds apart: those of one group look the same to it."""

    NOT_DONE = "no answer, or one that leaves all open; nothing was done"
    DONE = "no answer, or one that leaves all open; it was done"
    LATER = "refused for now"
    TOKEN = "the token refused"  # noqa: S105 a description
    CUT = "half an answer"
    LATE = "no answer, and done at any later time"
    SLOW = "answered late"


class Kind(Enum):
    """The kinds of fault, by group, each as the server does it."""

    DROPPED = "connection dropped before the effect", Seen.NOT_DONE, Drop(Moment.BEFORE)
    TIMEOUT = "408", Seen.NOT_DONE, Reply(408, "RequestTimeout")
    FAILED = "500 before the effect", Seen.NOT_DONE, Reply(500, "InternalError")
    BUSY = "503", Seen.NOT_DONE, Reply(503, "ServerBusy")
    UNHEARD = "connection dropped after the effect", Seen.DONE, Drop(Moment.AFTER)
    FAILED_AFTER = "500 after the effect", Seen.DONE, Reply(500, "InternalError", moment=Moment.AFTER)
    THROTTLED = "429 with Retry-After", Seen.LATER, Reply(429, "TooManyRequests", {"Retry-After": "1"})
    THROTTLED_HARD = "430", Seen.LATER, Reply(430, "RequestRateTooLarge")
    NO_CAPACITY = "403 for the capacity", Seen.LATER, Reply(403, "CapacityLimitExceeded")
    TOKEN_REFUSED = "401", Seen.TOKEN, None
    CUT = "body cut", Seen.CUT, CutBody()
    HELD = "delivered late", Seen.LATE, Hold()
    SLOW = "delayed", Seen.SLOW, Delay(0.002, Moment.AFTER)

    @property
    def group(self) -> Seen:
        group: Seen = self.value[1]
        return group

    @property
    def can_last(self) -> bool:
        """Whether it may go on until the publisher gives up; a token refused for good needs a person."""
        return self.group not in (Seen.TOKEN, Seen.SLOW)

    def concerns(self, record: Record) -> bool:
        """Whether it makes a difference to a request like this one."""
        if self.group is Seen.CUT:
            return record.bytes_out > 0
        return self.group not in (Seen.DONE, Seen.LATE) or record.operation in CHANGING

    def action(self, server: LoopbackOneLake) -> Action:
        if self is Kind.TOKEN_REFUSED:
            return Reply(401, "InvalidAuthenticationInfo", {"WWW-Authenticate": server.entra.challenge(server.url)})
        action: Action = self.value[2]
        return action

    def __str__(self) -> str:
        return str(self.value[0])
