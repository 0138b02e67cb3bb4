"""A message as an e-mail, in text and in HTML; the mails of one incident are one thread."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime, timezone
from email.message import EmailMessage
from email.utils import format_datetime, parseaddr
from html import escape

from mirror_assets.alerts.incidents import Told
from mirror_assets.alerts.messages import Message
from mirror_assets.alerts.render.facts import facts_of, is_bad, word


def mail_of(message: Message, sender: str, to: Sequence[str]) -> EmailMessage:
    """Return the mail. Its Message-ID is that of the message, so a mail that is sent again is known to be the same."""
    mail, domain = EmailMessage(), parseaddr(sender)[1].rpartition("@")[2] or "localhost"
    mail["Subject"] = " ".join(f"[{word(message)}] {message.title}".split())
    mail["From"], mail["To"] = sender, ", ".join(to)
    mail["Date"] = format_datetime(datetime.fromtimestamp(message.at_ms / 1000, timezone.utc))
    mail["Message-ID"] = _id(message.id, domain)
    if message.told not in (Told.BEGUN, Told.TEST):
        mail["In-Reply-To"] = mail["References"] = _id(f"{message.incident}/{Told.BEGUN.value}", domain)
    mail["Auto-Submitted"] = "auto-generated"
    if is_bad(message):
        mail["X-Priority"] = "1"
    mail.set_content(_text(message))
    mail.add_alternative(_html(message), subtype="html")
    return mail


def _id(name: str, domain: str) -> str:
    return f"<{hashlib.sha256(name.encode()).hexdigest()[:32]}@{domain}>"


def _text(message: Message) -> str:
    lines = [message.title, "", message.text, ""]
    if message.next_step:
        lines += [f"Next: {message.next_step}", ""]
    lines += [f"{name}: {value}" for name, value in (*facts_of(message), *message.links)]
    return "\n".join(lines) + "\n"


def _html(message: Message) -> str:
    parts = [f"<h3>{escape(message.title)}</h3>", f"<p>{_broken(message.text)}</p>"]
    if message.next_step:
        parts.append(f"<p><b>Next:</b> {_broken(message.next_step)}</p>")
    rows = [f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in facts_of(message)]
    parts += [f"<table>{''.join(rows)}</table>"] if rows else []
    parts += [f'<p><a href="{escape(link)}">{escape(words)}</a></p>' for words, link in message.links]
    return f"<html><body>{''.join(parts)}</body></html>\n"


def _broken(text: str) -> str:
    return escape(text).replace("\n", "<br>")
