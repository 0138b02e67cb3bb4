"""A Microsoft Entra of one application: it gives tokens for its secret, and knows them again."""

from __future__ import annotations

import secrets
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from mirror_assets_tests.worlds.onelake.messages import Answer, Operation, Request

STORAGE = "https://storage.azure.com"


@dataclass(frozen=True)
class Principal:
    """An application that may sign in."""

    tenant: str = field(default_factory=lambda: str(uuid.uuid4()))
    client: str = field(default_factory=lambda: str(uuid.uuid4()))
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)


@dataclass(frozen=True)
class _Token:
    audience: str
    expires: float


class Entra:
    """The authority of one tenant. `lifetime` is that of the tokens that it will give, in seconds."""

    def __init__(self, principal: Principal) -> None:
        self.principal, self.lifetime = principal, 3600.0
        self._tokens: dict[str, _Token] = {}

    def accepts(self, token: str, audience: str) -> bool:
        given = self._tokens.get(token)
        return given is not None and given.audience == audience and time.monotonic() < given.expires

    @property
    def tokens(self) -> tuple[str, ...]:
        return tuple(self._tokens)

    def forget_tokens(self) -> None:
        """Refuse all tokens given so far, as if they had been revoked."""
        self._tokens = {}

    def perform(self, request: Request, base: str) -> Answer:
        """The answer to a request for the authority's addresses, or for a token."""
        tenant = request.url_path.strip("/").partition("/")[0]
        if tenant != self.principal.tenant:
            return _error(400, "invalid_tenant", 90002, f"Tenant '{tenant}' not found.")
        if request.operation is Operation.DISCOVERY:
            return Answer.of_json(200, self._addresses(base))
        return self._token(dict(parse_qsl(request.body.decode())))

    def challenge(self, base: str) -> str:
        """What a refused request is told: where to get which token."""
        return f"Bearer authorization_uri={base}/{self.principal.tenant}/oauth2/authorize resource_id={STORAGE}"

    def _addresses(self, base: str) -> Mapping[str, object]:
        authority = f"{base}/{self.principal.tenant}"
        return {
            "issuer": f"{authority}/v2.0",
            "authorization_endpoint": f"{authority}/oauth2/v2.0/authorize",
            "token_endpoint": f"{authority}/oauth2/v2.0/token",
            "device_authorization_endpoint": f"{authority}/oauth2/v2.0/devicecode",
            "jwks_uri": f"{authority}/discovery/v2.0/keys",
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
            "response_types_supported": ["code"],
            "subject_types_supported": ["pairwise"],
            "id_token_signing_alg_values_supported": ["RS256"],
        }

    def _token(self, form: Mapping[str, str]) -> Answer:
        client = form.get("client_id", "")
        if form.get("grant_type") != "client_credentials":
            return _error(400, "unsupported_grant_type", 70003, "The app requested an unsupported grant type.")
        if client != self.principal.client:
            return _error(400, "unauthorized_client", 700016, f"Application with identifier '{client}' was not found.")
        if not secrets.compare_digest(form.get("client_secret", ""), self.principal.secret):
            return _error(401, "invalid_client", 7000215, f"Invalid client secret provided for app '{client}'.")
        audience = _audience(form)
        if audience is None:
            return _error(
                400, "invalid_scope", 70011, "The provided value for the input parameter 'scope' is not valid."
            )
        return self._issued(audience)

    def _issued(self, audience: str) -> Answer:
        token = secrets.token_urlsafe(48)
        self._tokens[token] = _Token(audience, time.monotonic() + self.lifetime)
        seconds = int(self.lifetime)
        reply = {
            "token_type": "Bearer",
            "access_token": token,
            "expires_in": seconds,
            "ext_expires_in": seconds,
            "expires_on": str(int(time.time()) + seconds),
            "resource": audience,
        }
        return Answer.of_json(200, reply, {"Cache-Control": "no-store"})


def _audience(form: Mapping[str, str]) -> str | None:
    """What the token is for: a scope (v2.0) or a resource (v1); a client gets whole resources only."""
    scope = form.get("scope", "")
    resource = form.get("resource", "") or (scope.removesuffix("/.default") if scope.endswith("/.default") else "")
    return resource.rstrip("/") if resource.startswith("https://") else None


def _error(status: int, name: str, number: int, message: str) -> Answer:
    trace = str(uuid.uuid4())
    document = {
        "error": name,
        "error_description": f"AADSTS{number}: {message} Trace ID: {trace}",
        "error_codes": [number],
        "timestamp": time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime()),
        "trace_id": trace,
        "correlation_id": str(uuid.uuid4()),
    }
    return Answer.of_json(status, document)
