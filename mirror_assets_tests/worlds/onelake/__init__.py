"""A loopback OneLake: real clients, real TLS, real tokens, and faults where a test wants them."""

from mirror_assets_tests.worlds.onelake.entra import Principal
from mirror_assets_tests.worlds.onelake.faults import (
    Action,
    Call,
    CutBody,
    Delay,
    Drop,
    Fault,
    Garble,
    Held,
    Hold,
    Moment,
    Reply,
)
from mirror_assets_tests.worlds.onelake.item import LoopbackItem
from mirror_assets_tests.worlds.onelake.listener import Record, RequestLog
from mirror_assets_tests.worlds.onelake.messages import Operation, Request
from mirror_assets_tests.worlds.onelake.server import LoopbackOneLake

__all__ = [
    "Action",
    "Call",
    "CutBody",
    "Delay",
    "Drop",
    "Fault",
    "Garble",
    "Held",
    "Hold",
    "LoopbackItem",
    "LoopbackOneLake",
    "Moment",
    "Operation",
    "Principal",
    "Record",
    "Reply",
    "Request",
    "RequestLog",
]
