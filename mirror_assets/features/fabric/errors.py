"""Errors of Fabric's REST API."""

from __future__ import annotations

from mirror_assets.errors import Code, ErrorCode, ErrorRow, RetryError, SettingError, StopError


class FabricCode(Code):
    """The codes of this feature."""

    FABRIC_UNAVAILABLE = "fabric_unavailable"
    FABRIC_REFUSED = "fabric_refused"
    MIRRORING_STOPPED = "mirroring_stopped"


FABRIC_UNAVAILABLE = ErrorRow(
    FabricCode.FABRIC_UNAVAILABLE,
    RetryError,
    "Fabric did not respond, or its capacity is paused or overloaded. The request may have taken effect.",
    "Fabric could not {what}: {why}.",
    "run again; if the error persists, check in the portal whether the capacity is paused or overloaded.",
    "mirror-assets fabric status",
)
FABRIC_CLIENT_MISSING = ErrorRow(
    ErrorCode.CONFIG_INVALID,
    SettingError,
    "Microsoft's client for the API is in an extra, because only this API needs its 50 MB.",
    "Fabric's API needs the Python package microsoft-fabric-api, which is not installed.",
    "run `pip install 'mirror-assets[fabric]'`.",
    "mirror-assets plan --config path/to/mirror.yaml    # lists all mistakes with their lines",
)
FABRIC_NOT_READY = ErrorRow(
    FabricCode.FABRIC_UNAVAILABLE,
    RetryError,
    "The mirrored database is changing its state, and can't be started until it has finished.",
    "mirrored database {item} is {state}: mirroring can't be started now.",
    "wait until `mirror-assets fabric status` shows another state, then run again.",
    "mirror-assets fabric status",
)
NOT_RUNNING = ErrorRow(
    FabricCode.FABRIC_UNAVAILABLE,
    SettingError,
    "The exercises of `fabric accept` need a mirrored database that applies files.",
    "mirrored database {item} is {state}: nothing would be applied.",
    "run `mirror-assets fabric start`, wait until `mirror-assets fabric status` shows Running, then run again.",
    "mirror-assets fabric start\nmirror-assets fabric accept --list",
)
FABRIC_DENIED = ErrorRow(
    FabricCode.FABRIC_REFUSED,
    SettingError,
    "Fabric denies access to this identity, or the identity could not get a token.",
    "Fabric refused to {what}: {why}.",
    "check landing_zone.onelake.credential and its environment variables. The identity needs the role Contributor in"
    " the workspace; a service principal also needs the tenant setting that lets it use Fabric's APIs.",
    "mirror-assets fabric status",
)
FABRIC_ITEM_MISSING = ErrorRow(
    FabricCode.FABRIC_REFUSED,
    SettingError,
    "The workspace or item does not exist, or this identity may not see it.",
    "Fabric can't {what}: {why}.",
    "compare the GUIDs in landing_zone.onelake.url, or --workspace, with the address of the item in the portal. A "
    "re-created mirrored database has another GUID and an empty landing zone: set the new URL, then run `mirror-assets"
    " run`, which loads all tables again.",
    "mirror-assets fabric status",
)
FABRIC_ITEM_UNFIT = ErrorRow(
    FabricCode.FABRIC_REFUSED,
    SettingError,
    "A mirrored database of this name exists, and is not an open mirror of this project.",
    "mirrored database {name!r} ({item}) already exists, and {why}.",
    "choose another name.",
    "mirror-assets fabric status",
)


class FabricRefused(StopError):
    """Fabric's REST API returned an unexpected response; `answer` is its error code."""

    answer: str


FABRIC_REFUSED = ErrorRow(
    FabricCode.FABRIC_REFUSED,
    FabricRefused,
    "Fabric's REST API returned an unexpected response.",
    "Fabric refused to {what}: {why}.",
    "check the item's page in the portal; if it shows no cause, report this message.",
    "mirror-assets fabric status",
)
MIRRORING_STOPPED = ErrorRow(
    FabricCode.MIRRORING_STOPPED,
    StopError,
    "Mirroring was stopped in Fabric. When it is started again, it reads the landing zone from the first file on.",
    "mirrored database {item} was stopped. When it is started again, it reads the landing zone from the first "
    "file on, without the files that Fabric has deleted.",
    "run `mirror-assets fabric start --replay`, then `mirror-assets rebuild` for every table.",
    "mirror-assets fabric start --replay\nmirror-assets rebuild TABLE    # each table",
)
