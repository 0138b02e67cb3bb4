"""Errors of Fabric's REST interface: what it can answer other than success."""

from __future__ import annotations

from mirror_assets.errors import ErrorCode, RetryError, SettingError, StopError


class FabricUnavailable(RetryError):
    """Fabric did not answer, or its capacity is paused or overloaded. The request may have taken effect."""

    code = ErrorCode.FABRIC_UNAVAILABLE

    def __init__(self, what: str, why: str) -> None:
        self.requested, self.why = what, why
        super().__init__(
            f"Fabric could not be asked to {what}: {why}.",
            "run again; if it stays, see in the portal whether the capacity is paused or overloaded.",
        )


def fabric_not_ready(item: str, state: str) -> RetryError:
    """The mirrored database is changing its state and can't be started until that is done."""
    return RetryError(
        f"mirrored database {item} is {state}: mirroring can't be started now.",
        "wait until `mirror-assets fabric status` shows another state, then run again.",
        code=ErrorCode.FABRIC_NOT_READY,
    )


def fabric_denied(what: str, why: str) -> SettingError:
    """Fabric refuses this identity, or no token could be had for it."""
    return SettingError(
        f"Fabric refused to {what}: {why}.",
        "check mirror.fabric.credential and its environment variables. The identity needs the role Contributor in "
        "the workspace; a service principal also needs the tenant's setting that lets it use Fabric's interface.",
        code=ErrorCode.FABRIC_DENIED,
    )


def fabric_item_missing(what: str, why: str) -> SettingError:
    """The workspace or item does not exist, or this identity may not see it."""
    return SettingError(
        f"Fabric can't {what}: {why}.",
        "compare the GUIDs in landing_zone.onelake.url, or --workspace, with the address of the item in the portal.",
        code=ErrorCode.FABRIC_ITEM_MISSING,
    )


def fabric_item_unfit(name: str, item: str, why: str) -> SettingError:
    """A mirrored database of this name exists and is not an open mirror like ours."""
    return SettingError(
        f"mirrored database {name!r} ({item}) is there already, and {why}.",
        "choose another name.",
        code=ErrorCode.FABRIC_ITEM_UNFIT,
    )


class FabricRefused(StopError):
    """Fabric refused a request that should be valid; `answer` is its error code."""

    code = ErrorCode.FABRIC_REFUSED

    def __init__(self, what: str, why: str, answer: str = "") -> None:
        self.requested, self.why, self.answer = what, why, answer
        super().__init__(
            f"Fabric refused to {what}: {why}.",
            "see the item's page in the portal; if it shows nothing, report this message.",
        )


def mirroring_stopped(item: str) -> StopError:
    """Mirroring was stopped by hand: when it is started again, it replays the landing zone."""
    return StopError(
        f"mirrored database {item} was stopped. Started again, it reads the landing zone from the first file on, "
        "without those that Fabric has deleted meanwhile.",
        "run `mirror-assets fabric start --replay`, then `mirror-assets rebuild` for every table.",
        code=ErrorCode.MIRRORING_STOPPED,
    )
