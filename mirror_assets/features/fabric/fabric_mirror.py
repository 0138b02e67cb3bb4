"""The mirror in Fabric: combines the state that Fabric reports with the files in the table folders."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, TypeVar, cast
from uuid import UUID

from mirror_assets.config.errors import Problem
from mirror_assets.config.model import Config
from mirror_assets.errors import MirrorError
from mirror_assets.feature import MirrorPlace
from mirror_assets.features.fabric.database import RefreshedTable, ReportedTable
from mirror_assets.features.fabric.fabric_settings import FabricConfig, FabricMirrorSettings
from mirror_assets.lakes.azure_identity import credential_of
from mirror_assets.landing.folders import table_names
from mirror_assets.landing.format import Manifest
from mirror_assets.landing.names import TableName, landing_number
from mirror_assets.monitoring import DEFAULT_SCHEMA, DatabaseStatus, Mirror, MonitoredTable, Pace, TableState
from mirror_assets.zones import Store
from mirror_assets.zones.onelake.onelake_zone import OneLakeAddress, OneLakeConfig, OneLakeIdentity, spark_reach

if TYPE_CHECKING:  # it loads a part of Azure's SDK
    from mirror_assets.features.fabric.client import FabricClient

_Response = TypeVar("_Response")


@dataclass(frozen=True)
class FabricTable(MonitoredTable):
    """One table of a mirrored database; `uri` is its Delta table in OneLake."""

    uri: str

    @property
    def location(self) -> str:
        """The mirrored table in OneLake."""
        return self.uri

    def has_applied(self, manifest: Manifest) -> bool:
        """Whether Fabric has applied all files that the manifest has committed, as far as Fabric reports it.

        Fabric does not report numbers of applied files. It moves processed landing files, except the last, and counts
        processed rows over all operations (reference `landing-zone` §4.14, §3). So everything is applied when no other
        file is left, and the counter has reached the rows of all files of this epoch of the folder.

        Not confirmed on a live tenant: that the counter restarts when a folder is created again (otherwise a mirror may
        be compared too early: that check fails, and the next one is correct), and that it counts every row of a file,
        also deletes without a match (otherwise the mirror would always seem to wait).
        """
        counted = self.last_sync is not None and self.processed_rows >= manifest.landed_rows
        return self.state is TableState.REPLICATING and self.waiting_files == 0 and counted


# Fabric polls folders every 15 to 20 s, and a table was back about 90 s after its folder (reference §3).
_PACE = Pace(pause_seconds=15.0, limit_seconds=3600.0)


class FabricMirror:
    """The tables of one mirrored database; `tables` is the URI of the folder in which Spark finds them.

    Tables without a schema are in its `default_schema`. With `caches`, each request is sent once for all threads, and
    its response, or its error, is cached.
    """

    def __init__(
        self,
        client: FabricClient,
        database: UUID,
        store: Store,
        tables: str,
        default_schema: str = DEFAULT_SCHEMA,
        *,
        caches: bool = False,
    ) -> None:
        """Take the landing zone in `store`; no request is sent yet."""
        self._client, self._database, self._store = client, database, store
        self._tables, self._default_schema, self._caches = tables.rstrip("/"), default_schema, caches
        self._responses: dict[str, object] = {}
        self._lock = threading.Lock()

    def _response(self, request: Callable[[UUID], _Response]) -> _Response:
        """Return the response to a method of the client, from the cache if there is one."""
        if not self._caches:
            return request(self._database)
        with self._lock:
            if request.__name__ not in self._responses:
                try:
                    self._responses[request.__name__] = request(self._database)
                except MirrorError as error:
                    self._responses[request.__name__] = error
            response = self._responses[request.__name__]
        if isinstance(response, MirrorError):
            raise response
        return cast("_Response", response)

    def database(self) -> DatabaseStatus:
        """Return the state of the mirrored database."""
        return self._response(self._client.status)

    def retention_days(self) -> int | None:
        """Return for how many days Fabric retains old files of the mirrored tables; None if unknown.

        An identity that may not read the definition can still mirror.
        """
        try:
            mirroring = self._response(self._client.definition).mirroring
        except MirrorError:
            return None
        return None if mirroring is None else mirroring.target.retentionInDays

    def at_once(self) -> FabricMirror:
        """Return a mirror that sends each request once and caches the response, for all tables."""
        return FabricMirror(self._client, self._database, self._store, self._tables, self._default_schema, caches=True)

    @property
    def pace(self) -> Pace:
        """A long pause, because Fabric limits requests."""
        return _PACE

    def poll(self) -> tuple[FabricTable, ...]:
        """Return what `status` returns: only Fabric itself applies files."""
        return self.status()

    def status(self) -> tuple[FabricTable, ...]:
        """Return every table that Fabric mirrors, by name."""
        folders = {self._identity(name): name for name in table_names(self._store)}
        reported = self._response(self._client.tables)
        named = {folders.get(self._identity(one.name), one.name): one for one in reported}
        return tuple(self._table(name, named[name]) for name in sorted(named))

    def table(self, name: TableName) -> FabricTable | None:
        """Return one table, or None if Fabric does not mirror it."""
        for reported in self._response(self._client.tables):
            if self._identity(reported.name) == self._identity(name):
                return self._table(name, reported)
        return None

    def poll_table(self, name: TableName) -> FabricTable | None:
        """Return what `table` returns."""
        return self.table(name)

    def _identity(self, name: TableName) -> tuple[str, str]:
        """Return the same pair for both names of a table in the default schema: `dbo.t` and `t`."""
        return (name.schema or self._default_schema, name.table)

    def _table(self, name: TableName, reported: ReportedTable) -> FabricTable:
        files = self._store.list(name.folder)
        landed = sum(landing_number(info.name) is not None for info in files)
        state = next((state for state in TableState if state.value == reported.state), TableState.UNKNOWN)
        unknown = None if state is not TableState.UNKNOWN else f"Fabric calls its state {reported.state!r}"
        return FabricTable(
            name=name,
            state=state,
            error_code=reported.error_code,
            message=reported.message or unknown,
            processed_rows=reported.processed_rows,
            processed_bytes=reported.processed_bytes,
            last_sync=reported.last_sync,
            folder_present=bool(files),
            waiting_files=max(0, landed - 1),  # the last one remains, processed or not
            applied_number=None,
            mirror_rows=None,
            sync_latency_seconds=reported.sync_latency_seconds,
            uri=f"{self._tables}/{'/'.join(self._identity(name))}",
        )


_PORTAL = "https://app.fabric.microsoft.com/groups"


def fabric_place(config: Config) -> MirrorPlace | None:
    """Return the mirrored database at the landing zone's endpoint; None without its settings."""
    fabric, zone = FabricMirrorSettings.of(config.mirror).fabric, config.landing_zone.onelake
    if fabric is None or zone is None:
        return None
    tables = tables_beside(zone)

    def opened(store: Store) -> Mirror:
        client = open_fabric(fabric, zone, UUID(tables.workspace))
        return FabricMirror(client, UUID(tables.item), store, tables.abfss, fabric.default_schema)

    reach = spark_reach(tables, zone.credential)
    unreadable = Problem(
        "landing_zone.onelake.credential",
        f"Spark can't read the mirror with the credential `{zone.credential.value}`; name client_secret, "
        "managed_identity or workload_identity",
    )
    return MirrorPlace(
        "fabric",
        f"[Fabric's portal]({_PORTAL}/{tables.workspace}); the job `checks` records what has changed",
        tables.abfss,
        tables.url,
        fabric.default_schema,
        zone.credential.value,
        opened,
        reach,
        unreadable if reach is None else None,
    )


def tables_beside(zone: OneLakeConfig) -> OneLakeAddress:
    """Return the folder of the mirrored tables, in the item of the landing zone."""
    return replace(zone.address, folder="Tables")


# A step of a run of checks, which the next one must not wait for. A longer refresh continues in Fabric.
_REFRESH_STEP_SECONDS = 60.0


def refresh_tables(
    config: Config, tables: Sequence[TableName], limit_seconds: float | None = None
) -> tuple[RefreshedTable, ...]:
    """Refresh the SQL endpoint's metadata of these tables, or of all. Raises what the client raises."""
    (client, place), mirror = open_database(config), config.mirror_place
    default = mirror.default_schema if mirror else DEFAULT_SCHEMA
    named = [TableName(name.schema or default, name.table) for name in tables]
    limit = {} if limit_seconds is None else {"limit_seconds": limit_seconds}
    return client.refresh_metadata(client.sql_endpoint(UUID(place.item)), named, **limit)


def refresh_changed(config: Config, tables: Sequence[TableName], warn: Callable[[str], None]) -> None:
    """Refresh these tables; `warn` takes a line for a failure, because mirroring doesn't depend on the endpoint."""
    try:
        refreshed = refresh_tables(config, tables, _REFRESH_STEP_SECONDS)
    except MirrorError as error:
        warn(f"the SQL endpoint was not refreshed, and may show older rows for some minutes: {error}")
        return
    for table in refreshed:
        if table.has_failed:
            warn(f"the SQL endpoint was not refreshed for {table.name}: {table.message or table.status}")


def open_database(config: Config) -> tuple[FabricClient, OneLakeAddress]:
    """Return the client of the mirrored database, and the folder of its tables. Raises MISTAKES without one."""
    fabric, zone = FabricMirrorSettings.of(config.mirror).fabric, config.landing_zone.onelake
    if fabric is None or zone is None:
        raise config.invalid((Problem("mirror.fabric", "this setting is missing: the local stand-in mirrors"),))
    tables = tables_beside(zone)
    return open_fabric(fabric, zone, UUID(tables.workspace)), tables


@cache
def open_fabric(fabric: FabricConfig, identity: OneLakeIdentity, workspace: UUID) -> FabricClient:
    """Return the client of this workspace, one for the process. Raises CREDENTIAL_INCOMPLETE."""
    from mirror_assets.features.fabric.client import FabricClient

    credential = credential_of(identity.credential, identity.ca_bundle)
    return FabricClient(workspace, credential, fabric.endpoint, identity.ca_bundle)
