"""A mail server on loopback, by aiosmtpd: with STARTTLS or TLS, and with sign-in, as it is told."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import default
from typing import Any

import trustme
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

USER, PASSWORD = "mirror", "a secret of the mail server"


@dataclass
class MailServer:
    """What arrived; `answers` are for the next mails, instead of taking them, and `farewell` is for QUIT."""

    port: int = 0
    mails: list[EmailMessage] = field(default_factory=list)
    to: list[list[str]] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    farewell: str = "221 bye"

    async def handle_RCPT(  # noqa: N802 aiosmtpd's name
        self, _server: SMTP, _session: Session, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        """Answer an address; nobody is called `nobody`."""
        if address.startswith("nobody"):
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 fine"

    async def handle_DATA(self, _server: SMTP, _session: Session, envelope: Envelope) -> str:  # noqa: N802
        """Answer a mail."""
        if self.answers:
            return self.answers.pop(0)
        content = envelope.content if isinstance(envelope.content, bytes) else b""
        mail = BytesParser(policy=default).parsebytes(content)
        assert isinstance(mail, EmailMessage)
        self.mails.append(mail)
        self.to.append(list(envelope.rcpt_tos))
        return "250 taken"

    async def handle_QUIT(self, _server: SMTP, _session: Session, _envelope: Envelope) -> str:  # noqa: N802
        """Answer the farewell."""
        return self.farewell


def _authenticate(_server: SMTP, _session: Session, _envelope: Envelope, _mechanism: str, data: object) -> AuthResult:
    fine = isinstance(data, LoginPassword) and (data.login, data.password) == (USER.encode(), PASSWORD.encode())
    return AuthResult(success=fine, handled=fine)


class _AnyPort(Controller):
    """A server at any free port, where it then asks itself whether it is up."""

    def _trigger_server(self) -> None:
        assert isinstance(self.server, asyncio.Server)
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()  # type: ignore[no-untyped-call]  # it has no types


@contextmanager
def mail_server(authority: trustme.CA | None = None, *, implicit: bool = False) -> Iterator[MailServer]:
    """Serve mails; with an authority only over TLS, and to those who sign in."""
    server, options = MailServer(), dict[str, Any]()
    if authority is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)
        options = {"ssl_context": context} if implicit else {"tls_context": context, "require_starttls": True}
        # Behind TLS from the first byte on, it does not know that the connection is encrypted, and warns.
        options |= {"authenticator": _authenticate, "auth_required": not implicit, "auth_require_tls": not implicit}
    controller = _AnyPort(server, hostname="127.0.0.1", port=0, **options)
    controller.start()
    server.port = controller.port
    try:
        yield server
    finally:
        controller.stop()
