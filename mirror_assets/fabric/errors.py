"""What Fabric's REST interface can answer other than success."""

from __future__ import annotations

from mirror_assets.errors import ErrorCode, RetryError, SettingError, StopError


class FabricUnavailable(RetryError):
    """Fabric gave no answer, or has no room for the request now. What was asked for may have been done."""

    code = ErrorCode.FABRIC_UNAVAILABLE

    def __init__(self, what: str, why: str) -> None:
        self.asked, self.why = what, why
        super().__init__(
            f"Fabric could not be asked to {what}: {why}.",
            "run again; if it stays, see in the portal whether the capacity is paused or overloaded.",
        )


def fabric_not_ready(item: str, state: str) -> RetryError:
    """The mirrored database is on its way into a state, and can't be started before it has arrived."""
    return RetryError(
        f"mirrored database {item} is {state}: mirroring can't be started now.",
        "wait until `mirror-assets fabric status` shows another state, then run again.",
        code=ErrorCode.FABRIC_NOT_READY,
    )


def fabric_denied(what: str, why: str) -> SettingError:
    """Fabric does not let this identity do it, or there is no identity."""
    return SettingError(
        f"Fabric refused to {what}: {why}.",
        "check mirror.fabric.credential and its environment variables. The identity needs the role Contributor in "
        "the workspace; a service principal also needs the tenant's setting that lets it use Fabric's interface.",
        code=ErrorCode.FABRIC_DENIED,
    )


def fabric_item_missing(what: str, why: str) -> SettingError:
    """Fabric knows no such workspace or item, or does not show it to this identity."""
    return SettingError(
        f"Fabric can't {what}: {why}.",
        "compare mirror.fabric.workspace and mirror.fabric.item with the address of the item's page in the portal.",
        code=ErrorCode.FABRIC_ITEM_MISSING,
    )


def fabric_item_unfit(name: str, item: str, why: str) -> SettingError:
    """A mirrored database that is no open mirror, or not one that we could have made."""
    return SettingError(
        f"mirrored database {name!r} ({item}) is there already, and {why}.",
        "choose another name.",
        code=ErrorCode.FABRIC_ITEM_UNFIT,
    )


class FabricRefused(StopError):
    """An answer that nothing of ours should get."""

    code = ErrorCode.FABRIC_REFUSED

    def __init__(self, what: str, why: str, answer: str = "") -> None:
        self.asked, self.why, self.answer = what, why, answer
        super().__init__(
            f"Fabric refused to {what}: {why}.",
            "see the item's page in the portal; if it shows nothing, report this message.",
        )


def mirroring_stopped(item: str) -> StopError:
    """Somebody has stopped mirroring; to start it again is not to go on."""
    return StopError(
        f"mirrored database {item} was stopped. Started again, it reads the landing zone from the first file on, "
        "without those that Fabric has deleted meanwhile.",
        "run `mirror-assets fabric start --replay`, then `mirror-assets rebuild` for every table.",
        code=ErrorCode.MIRRORING_STOPPED,
    )
