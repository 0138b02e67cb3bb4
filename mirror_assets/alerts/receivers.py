"""Sends one message to one receiver, once, and says what came back."""

from __future__ import annotations

import os
import smtplib
import ssl
from collections.abc import Mapping
from contextlib import closing, suppress
from email.message import EmailMessage
from urllib.parse import urlsplit

import requests

from mirror_assets.alerts.errors import ReceiverAway, ReceiverRefused
from mirror_assets.alerts.messages import Message
from mirror_assets.alerts.render.mail import mail_of
from mirror_assets.alerts.render.pagerduty import EVENTS_URL, pagerduty_bodies
from mirror_assets.alerts.render.plain import webhook_body
from mirror_assets.alerts.render.slack import slack_body
from mirror_assets.alerts.render.teams import teams_body
from mirror_assets.alerts.texts import cleaned
from mirror_assets.config.alerts import MailSecurity, ReceiverConfig, ReceiverType
from mirror_assets.redaction import hide, redacted

_BODIES = {
    ReceiverType.WEBHOOK: webhook_body,
    ReceiverType.SLACK: slack_body,
    ReceiverType.TEAMS: teams_body,
}
_BUSY = (408, 425, 429)
_SHOWN, _READ = 200, 2048
_SECRET_LENGTH = 16
_TEMPORARY = range(400, 500)


def send(name: str, receiver: ReceiverConfig, message: Message, environment: Mapping[str, str] = os.environ) -> str:
    """Send the message and return what the receiver has answered.

    Raises ReceiverAway if it may succeed later, and ReceiverRefused.
    """
    secrets = _Secrets(name, environment)
    if receiver.type is ReceiverType.EMAIL:
        return _send_mail(name, receiver, message, secrets)
    if receiver.type is ReceiverType.PAGERDUTY:
        url, bodies = receiver.url or EVENTS_URL, pagerduty_bodies(message, secrets.of(receiver.key_variable))
    else:
        url, bodies = secrets.address(receiver.url_variable), (_BODIES[receiver.type](message),)
    headers = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "mirror-assets"}
    if receiver.token_variable:
        headers["Authorization"] = f"Bearer {secrets.of(receiver.token_variable)}"
    return [_post(name, url, body, headers, receiver.timeout_seconds) for body in bodies][-1]


class _Secrets:
    """The secrets of a receiver, by the variables that its settings name."""

    def __init__(self, name: str, environment: Mapping[str, str]) -> None:
        self._name, self._environment = name, environment

    def of(self, variable: str | None) -> str:
        """Return the variable's value, which messages don't show from now on. Raises ReceiverRefused."""
        value = self._environment.get(variable or "", "").strip()
        if not variable or not value:
            raise ReceiverRefused(self._name, f"the environment variable {variable} is not set")
        hide(variable, value)
        return value

    def address(self, variable: str | None) -> str:
        """Return the variable's address. Its path is hidden by itself, too: an answer may repeat it."""
        value = self.of(variable)
        try:
            parts = urlsplit(value)
        except ValueError:
            raise ReceiverRefused(self._name, f"{variable} has no http address") from None
        for part in (parts.path, parts.query, *parts.path.split("/")):
            if len(part) >= _SECRET_LENGTH:
                hide(variable or "", part)
        return value


def _post(name: str, url: str, body: str, headers: Mapping[str, str], seconds: float) -> str:
    # Without this, what a .netrc says of the host would take the place of the token.
    auth = _unchanged if "Authorization" in headers else None
    try:
        # The head of the answer decides; of its text only the beginning is read.
        answer = requests.post(
            url, body.encode(), headers=headers, timeout=seconds, allow_redirects=False, stream=True, auth=auth
        )
    except requests.Timeout:
        raise ReceiverAway(name, f"no answer within {seconds:.0f} s") from None
    except requests.exceptions.SSLError:
        raise ReceiverRefused(name, "its certificate is not trusted") from None
    except ValueError:  # as requests says it of an address or a header
        raise ReceiverRefused(name, "its address is no http address, or its token can't be sent") from None
    except requests.RequestException as error:
        # Its text has the address, which is a secret.
        raise ReceiverAway(name, f"no connection ({type(error).__name__})") from None
    with answer:
        return _answered(name, answer)


def _unchanged(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request


def _answered(name: str, answer: requests.Response) -> str:
    """Return what the receiver has said. Raises ReceiverAway and ReceiverRefused."""
    said = redacted(" ".join(_beginning(answer).split()))[:_SHOWN]
    told = f"HTTP {answer.status_code}" + (f" {said}" if said else "")
    if answer.status_code < 300:
        return told
    if answer.status_code in _BUSY or answer.status_code >= 500:
        raise ReceiverAway(name, told, _retry_after(answer))
    raise ReceiverRefused(name, told)


def _beginning(answer: requests.Response) -> str:
    """Return the beginning of the answer's text. One that does not come is empty: it must not undo a confirmation."""
    try:
        return cleaned(next(answer.iter_content(_READ), b"").decode(errors="replace"))
    except (requests.RequestException, OSError):
        return ""


def _retry_after(answer: requests.Response) -> float | None:
    text = answer.headers.get("Retry-After", "")
    return float(text) if text.isdecimal() else None


def _send_mail(name: str, receiver: ReceiverConfig, message: Message, secrets: _Secrets) -> str:
    password = secrets.of(receiver.password_variable) if receiver.user else None
    mail = mail_of(message, receiver.sender or "", receiver.to)
    try:
        refused = _deliver_mail(receiver, mail, password)
    except smtplib.SMTPAuthenticationError as error:
        raise ReceiverRefused(
            name, f"{receiver.host} does not let {receiver.user} sign in ({error.smtp_code})"
        ) from None
    except (smtplib.SMTPResponseException, smtplib.SMTPRecipientsRefused) as error:
        code, why = _smtp_answer(error)
        away = code in _TEMPORARY
        raise (ReceiverAway if away else ReceiverRefused)(name, f"{receiver.host} answers {code} {why}") from None
    except smtplib.SMTPNotSupportedError as error:
        raise ReceiverRefused(name, f"{receiver.host}: {error}") from None
    except ssl.SSLCertVerificationError:
        raise ReceiverRefused(name, f"the certificate of {receiver.host} is not trusted") from None
    except UnicodeError:
        raise ReceiverRefused(name, f"{receiver.host} can't be sent such a user or password") from None
    except (OSError, smtplib.SMTPException) as error:
        raise ReceiverAway(name, f"{receiver.host}:{receiver.port}: {type(error).__name__}") from None
    told = f"{receiver.host} took it for {len(receiver.to) - len(refused)} of {len(receiver.to)} addresses"
    return told + (f"; not for {', '.join(refused)}" if refused else "")


def _deliver_mail(receiver: ReceiverConfig, mail: EmailMessage, password: str | None) -> list[str]:
    """Hand over the mail; return the addresses that the server refuses, if it takes others."""
    host, port, seconds = receiver.host or "", receiver.port, receiver.timeout_seconds
    context = ssl.create_default_context()
    server = (
        smtplib.SMTP_SSL(host, port, timeout=seconds, context=context)
        if receiver.security is MailSecurity.TLS
        else smtplib.SMTP(host, port, timeout=seconds)
    )
    with closing(server):
        if receiver.security is MailSecurity.STARTTLS:
            server.starttls(context=context)
        if receiver.user and password:
            server.login(receiver.user, password)
        refused = list(server.send_message(mail))
        with suppress(smtplib.SMTPException, OSError):  # it has the mail: a poor farewell must not send it again
            server.quit()
    return refused


def _smtp_answer(error: smtplib.SMTPResponseException | smtplib.SMTPRecipientsRefused) -> tuple[int, str]:
    """Return the server's code and text; of several addresses, the first one's."""
    answers = error.recipients if isinstance(error, smtplib.SMTPRecipientsRefused) else {}
    code, said = next(iter(answers.values()), (getattr(error, "smtp_code", 0), getattr(error, "smtp_error", b"")))
    text = cleaned(said.decode(errors="replace") if isinstance(said, bytes) else str(said))
    return code, redacted(" ".join(text.split()))[:_SHOWN]
