"""Errors of Fabric's REST API."""

from __future__ import annotations

from mirror_assets.errors import ErrorCode, RetryError, SettingError, StopError


class FabricUnavailable(RetryError):
    """Fabric did not respond, or its capacity is paused or overloaded. The request may have taken effect."""

    code = ErrorCode.FABRIC_UNAVAILABLE

    def __init__(self, what: str, why: str) -> None:
        self.requested, self.why = what, why
        super().__init__(
            f"Fabric could not {what}: {why}.",
            "run again; if the error persists, check in the portal whether the capacity is paused or overloaded.",
        )


def fabric_client_missing() -> SettingError:
    """Microsoft's client for the API is in an extra, because only this API needs its 50 MB."""
    return SettingError(
        "Fabric's API needs the Python package microsoft-fabric-api, which is not installed.",
        "run `pip install 'mirror-assets[fabric]'`.",
        code=ErrorCode.CONFIG_INVALID,
    )


def fabric_not_ready(item: str, state: str) -> RetryError:
    """The mirrored database is changing its state, and can't be started until it has finished."""
    return RetryError(
        f"mirrored database {item} is {state}: mirroring can't be started now.",
        "wait until `mirror-assets fabric status` shows another state, then run again.",
        code=ErrorCode.FABRIC_UNAVAILABLE,
    )


def fabric_denied(what: str, why: str) -> SettingError:
    """Fabric denies access to this identity, or the identity could not get a token."""
    return SettingError(
        f"Fabric refused to {what}: {why}.",
        "check mirror.fabric.credential and its environment variables. The identity needs the role Contributor in "
        "the workspace; a service principal also needs the tenant setting that lets it use Fabric's APIs.",
        code=ErrorCode.FABRIC_REFUSED,
    )


def fabric_item_missing(what: str, why: str) -> SettingError:
    """The workspace or item does not exist, or this identity may not see it."""
    return SettingError(
        f"Fabric can't {what}: {why}.",
        "compare the GUIDs in landing_zone.onelake.url, or --workspace, with the address of the item in the portal.",
        code=ErrorCode.FABRIC_REFUSED,
    )


def fabric_item_unfit(name: str, item: str, why: str) -> SettingError:
    """A mirrored database of this name exists, and is not an open mirror of this project."""
    return SettingError(
        f"mirrored database {name!r} ({item}) already exists, and {why}.",
        "choose another name.",
        code=ErrorCode.FABRIC_REFUSED,
    )


class FabricRefused(StopError):
    """Fabric refused a valid request; `answer` is its error code."""

    code = ErrorCode.FABRIC_REFUSED

    def __init__(self, what: str, why: str, answer: str = "") -> None:
        self.requested, self.why, self.answer = what, why, answer
        super().__init__(
            f"Fabric refused to {what}: {why}.",
            "check the item's page in the portal; if it shows no cause, report this message.",
        )


def mirroring_stopped(item: str) -> StopError:
    """Mirroring was stopped manually; when it is started again, it replays the landing zone."""
    return StopError(
        f"mirrored database {item} was stopped. When it is started again, it reads the landing zone from the first "
        "file on, without the files that Fabric has deleted.",
        "run `mirror-assets fabric start --replay`, then `mirror-assets rebuild` for every table.",
        code=ErrorCode.MIRRORING_STOPPED,
    )
