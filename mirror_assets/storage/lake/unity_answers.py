"""The responses of a Unity Catalog by its OpenAPI, without the fields that nothing here uses."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

# The path of the interface on a server.
API = "/api/2.1/unity-catalog"
# A table whose commits the catalog stores has one of these properties.
_CATALOG_MANAGED = tuple(
    f"delta.feature.{name}" for name in ("catalogManaged", "catalogOwned", "catalogOwned-preview", "coordinatedCommits")
)


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True)


class UnityColumn(_Answer):
    """A column; `type_text` is in Spark's spelling."""

    name: str = ""
    type_text: str = ""
    nullable: bool = True


class PrimaryKey(_Answer):
    """The columns of a primary key, in order. Databricks declares keys, and enforces none."""

    child_columns: tuple[str, ...] = ()


class UnityConstraint(_Answer):
    """A constraint of a table; other kinds are left out."""

    primary_key_constraint: PrimaryKey | None = None


class UnityTable(_Answer):
    """A table, or a view, which is listed among tables and has neither format nor location."""

    name: str
    schema_name: str = ""
    table_type: str = ""
    data_source_format: str | None = None
    storage_location: str | None = None
    table_id: str | None = None
    columns: tuple[UnityColumn, ...] | None = None
    properties: dict[str, str] | None = None
    table_constraints: tuple[UnityConstraint, ...] | None = None

    @property
    def primary_key(self) -> tuple[str, ...]:
        """The columns of the primary key; none if none is declared."""
        declared = (one.primary_key_constraint for one in self.table_constraints or ())
        return next((key.child_columns for key in declared if key is not None), ())

    @property
    def is_delta(self) -> bool:
        """Whether it is a Delta table in a store."""
        return (self.data_source_format or "").upper() == "DELTA" and bool(self.storage_location)

    @property
    def is_catalog_managed(self) -> bool:
        """Whether the catalog, not the log, determines which commits count."""
        properties = self.properties or {}
        return any(properties.get(name) == "supported" for name in _CATALOG_MANAGED)


class AwsKeys(_Answer):
    """Keys for S3."""

    access_key_id: str
    secret_access_key: str = Field(repr=False)
    session_token: str | None = Field(default=None, repr=False)


class AzureSas(_Answer):
    """A shared access signature for a folder of a container."""

    sas_token: str = Field(repr=False)


class TemporaryCredentials(_Answer):
    """One kind of credential, and its expiry in ms since 1970; `kinds` also has the kinds without a field here."""

    model_config = ConfigDict(frozen=True, extra="allow")

    aws_temp_credentials: AwsKeys | None = None
    azure_user_delegation_sas: AzureSas | None = None
    expiration_time: int | None = None

    @property
    def kinds(self) -> tuple[str, ...]:
        """The names of the vended credentials' fields in the answer; never a value."""
        named = ("aws_temp_credentials", "azure_user_delegation_sas")
        known = tuple(name for name in named if getattr(self, name) is not None)
        return known + tuple(name for name, value in (self.model_extra or {}).items() if isinstance(value, dict))

    def __repr__(self) -> str:
        return f"TemporaryCredentials({', '.join(self.kinds)})"

    __str__ = __repr__


class UnitySchema(_Answer):
    """A schema of the catalog."""

    name: str


class UnityPage(_Answer):
    """A page of schemas or tables."""

    schemas: tuple[UnitySchema, ...] = ()
    tables: tuple[UnityTable, ...] = ()
    next_page_token: str | None = None


class UnityErrorBody(_Answer):
    """The body of an error response."""

    error_code: str = ""
    message: str = ""
