"""The definition of an open mirror (reference `landing-zone` §4.42), to make one and to know one."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence

import pydantic

from mirror_assets.monitoring import DEFAULT_SCHEMA

PART = "mirroring.json"
_SOURCE = "GenericMirror"


def definition_payload() -> str:
    """The definition of a mirrored database whose landing zone is written from outside, as Fabric takes it."""
    target = {"defaultSchema": DEFAULT_SCHEMA, "format": "Delta"}
    properties = {
        "source": {"type": _SOURCE, "typeProperties": {}},
        "target": {"type": "MountedRelationalDatabase", "typeProperties": target},
    }
    return base64.b64encode(json.dumps({"properties": properties}).encode()).decode()


class _Loose(pydantic.BaseModel):
    """What we look at of a document that is Fabric's, not ours."""

    model_config = pydantic.ConfigDict(frozen=True)


class _Part(_Loose):
    path: str
    payload: str


class _Parts(_Loose):
    parts: tuple[_Part, ...]


class Definition(_Loose):
    """The answer of getDefinition."""

    definition: _Parts


class _Source(_Loose):
    type: str


class _TargetProperties(_Loose):
    defaultSchema: str = DEFAULT_SCHEMA  # noqa: N815 Fabric's spelling


class _Target(_Loose):
    typeProperties: _TargetProperties  # noqa: N815 Fabric's spelling


class _Properties(_Loose):
    source: _Source
    target: _Target


class _Mirroring(_Loose):
    properties: _Properties


def misfit(definition: Definition) -> str | None:
    """Why a mirrored database with this definition can't be ours, or None when it can."""
    payload = _payload(definition.definition.parts)
    if payload is None:
        return f"its definition has no {PART} that can be read"
    properties = payload.properties
    if properties.source.type != _SOURCE:
        return f"mirrors {properties.source.type}, not a landing zone"
    schema = properties.target.typeProperties.defaultSchema
    if schema != DEFAULT_SCHEMA:
        return f"has the default schema {schema!r}, not {DEFAULT_SCHEMA!r}"
    return None


def _payload(parts: Sequence[_Part]) -> _Mirroring | None:
    for part in parts:
        if part.path == PART:
            try:
                return _Mirroring.model_validate_json(base64.b64decode(part.payload, validate=True))
            except (pydantic.ValidationError, ValueError):
                return None
    return None
