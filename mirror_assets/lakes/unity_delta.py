"""Queries a Unity Catalog for tables whose newest commits it has: by its Delta API, or by the older API of commits.

Source of the rules: Unity Catalog's "Managed Tables" specification 1.0 (`/delta/v1`), and 0.1 (`/delta/preview`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from azure.core.rest import HttpRequest
from pydantic import BaseModel, ConfigDict, Field

from mirror_assets.lakes.access import CatalogCommits, StagedCommit
from mirror_assets.lakes.errors import (
    CATALOG_INCOMPATIBLE,
    CATALOG_TABLE_UNKNOWN,
    COMMITS_UNFIT,
    CREDENTIALS_NOT_VENDED,
)
from mirror_assets.lakes.lake_store import LakeAddress
from mirror_assets.lakes.unity import (
    AwsKeys,
    AzureSas,
    TemporaryCredentials,
    UnityClient,
    has_managed_commits,
)

# The highest version of the Delta API that this client knows, of each major version.
_VERSIONS = "1.0"


class _Hyphened(BaseModel):
    """A part of a response; the older API writes the names with underscores."""

    model_config = ConfigDict(
        frozen=True, populate_by_name=True, alias_generator=lambda name: name.replace("_", "-"), strict=True
    )


class _Commit(_Hyphened):
    version: int
    file_name: str = Field(pattern=r"^[^/\\]+\.json$")
    file_size: int
    file_modification_timestamp: int


class _Metadata(_Hyphened):
    table_uuid: str
    location: str
    properties: dict[str, str]


class _Table(_Hyphened):
    metadata: _Metadata
    commits: list[_Commit] | None = None
    latest_table_version: int | None = None


class _Commits(_Hyphened):
    commits: list[_Commit]
    latest_table_version: int


class _Config(_Hyphened):
    protocol_version: str


class _Keys(_Hyphened):
    """The keys of one store; the others' fields are missing."""

    model_config = ConfigDict(alias_generator=lambda name: name.replace("_", ".", 1).replace("_", "-"))

    s3_access_key_id: str | None = None
    s3_secret_access_key: str | None = Field(default=None, repr=False)
    s3_session_token: str | None = Field(default=None, repr=False)
    azure_sas_token: str | None = Field(default=None, repr=False)
    gcs_oauth_token: str | None = Field(default=None, repr=False)


class _Credential(_Hyphened):
    prefix: str
    config: _Keys
    expiration_time_ms: int

    def holds(self, address: LakeAddress) -> bool:
        try:
            return LakeAddress.parse(self.prefix).holds(address)
        except ValueError:
            return False

    @property
    def temporary(self) -> TemporaryCredentials:
        """The credential in the form of the table API."""
        keys, aws = self.config, None
        if keys.s3_access_key_id and keys.s3_secret_access_key:
            aws = AwsKeys(
                access_key_id=keys.s3_access_key_id,
                secret_access_key=keys.s3_secret_access_key,
                session_token=keys.s3_session_token,
            )
        azure = AzureSas(sas_token=keys.azure_sas_token) if keys.azure_sas_token else None
        named: dict[str, object] = {
            "aws_temp_credentials": aws,
            "azure_user_delegation_sas": azure,
            "gcp_oauth_token": {"oauth_token": ""} if keys.gcs_oauth_token else None,
            "expiration_time": self.expiration_time_ms,
        }
        return TemporaryCredentials.model_validate(named)


class _Credentials(_Hyphened):
    storage_credentials: list[_Credential]


@dataclass(frozen=True)
class ManagedTable:
    """A table as its catalog has it: its id and location there, and its commits."""

    table_id: str
    location: str
    commits: CatalogCommits


class ManagedTables:
    """The tables of one catalog whose newest commits it has; threads may share it. Raises the errors of the client."""

    def __init__(self, client: UnityClient) -> None:
        """Take the client of the catalog; nothing is requested yet."""
        self._client, self._has_api = client, False

    def table(self, name: str) -> ManagedTable | None:
        """Return the table `schema.table`; None for one whose commits the catalog doesn't manage.

        Also raises COMMITS_UNFIT and CATALOG_INCOMPATIBLE.
        """
        if not self._speaks_delta(name):
            return self._by_preview(name)
        found = self._client.answer(_Table, HttpRequest("GET", self._place(name)), name)
        if not has_managed_commits(found.metadata.properties):
            return None
        commits = self._commits(name, found.commits or (), found.latest_table_version)
        return ManagedTable(found.metadata.table_uuid, found.metadata.location, commits)

    def credentials(self, name: str, table_id: str, address: LakeAddress) -> TemporaryCredentials:
        """Return credentials to read the table at an address, new ones at each call.

        Also raises CREDENTIALS_NOT_VENDED, and CATALOG_INCOMPATIBLE.
        """
        if not self._speaks_delta(name):
            return self._client.credentials(name, table_id)
        request = HttpRequest("GET", f"{self._place(name)}/credentials?operation=READ")
        found = self._client.answer(_Credentials, request, name, CREDENTIALS_NOT_VENDED)
        fit = [one for one in found.storage_credentials if one.holds(address)]
        if not fit:
            # Another table has the name by now, or none of its keys is for this folder.
            raise CREDENTIALS_NOT_VENDED(what=name, catalog=self._client.label, why=f"none is for {address.uri}")
        return max(fit, key=lambda one: len(one.prefix)).temporary

    def _place(self, name: str) -> str:
        schema, _, table = name.partition(".")
        parts = (quote(part, safe="") for part in (self._client.catalog, schema, table))
        return "{}/delta/v1/catalogs/{}/schemas/{}/tables/{}".format(self._client.base, *parts)

    def _speaks_delta(self, name: str) -> bool:
        """Whether the server has the Delta API. Raises CATALOG_INCOMPATIBLE for other versions of it alone."""
        if not self._has_api:
            query = urlencode({"catalog": self._client.catalog, "protocol-versions": _VERSIONS})
            request = HttpRequest("GET", f"{self._client.base}/delta/v1/config?{query}")
            try:
                chosen = self._client.answer(_Config, request, name, CATALOG_INCOMPATIBLE).protocol_version
            except CATALOG_TABLE_UNKNOWN.error:  # a server without it: the catalog has just named the table
                return False
            if chosen.partition(".")[0] != _VERSIONS.partition(".")[0]:
                raise CATALOG_INCOMPATIBLE(what=name, catalog=self._client.label, why=f"it chose version {chosen}")
            self._has_api = True
        return True

    def _by_preview(self, name: str) -> ManagedTable | None:
        """Return the table by the API of commits, whose responses have pages."""
        table = self._client.table(name)
        if not table.is_catalog_managed or table.table_id is None:
            return None
        found, start = list[_Commit](), 0
        while True:
            body = {"table_id": table.table_id, "table_uri": table.storage_location, "start_version": start}
            request = HttpRequest("GET", f"{self._client.base}/delta/preview/commits", json=body)
            try:
                page = self._client.answer(_Commits, request, name)
            except CATALOG_TABLE_UNKNOWN.error as error:  # the table is known, so the API isn't
                why = "nor the older API of commits"
                raise CATALOG_INCOMPATIBLE(what=name, catalog=self._client.label, why=why) from error
            found += page.commits
            last = max((commit.version for commit in page.commits), default=page.latest_table_version)
            if not start <= last < page.latest_table_version:
                break
            start = last + 1
        commits = self._commits(name, found, page.latest_table_version)
        return ManagedTable(table.table_id, table.storage_location or "", commits)

    def _commits(self, name: str, commits: Iterable[_Commit], latest: int | None) -> CatalogCommits:
        """Return the commits of a response. Raises COMMITS_UNFIT for a gap: later commits would be read without it."""
        staged = {
            commit.version: StagedCommit(commit.file_name, commit.file_size, commit.file_modification_timestamp)
            for commit in commits
        }
        expected = range(min(staged, default=0), -1 if latest is None else latest + 1)
        lacking = next((version for version in expected if version not in staged), None)
        why = ""
        if latest is None or latest < 0:
            why = "without its newest version"
        elif staged and lacking is not None:
            why = f"without commit {lacking} of those up to version {latest}"
        elif staged and max(staged) > latest:
            why = f"with commit {max(staged)}, and version {latest} as the newest"
        if why or latest is None:
            raise COMMITS_UNFIT(what=name, catalog=self._client.label, why=why)
        return CatalogCommits(latest, staged)
