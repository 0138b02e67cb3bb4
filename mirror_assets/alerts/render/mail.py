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
from mirror_assets.alerts.render.facts import facts_of, headline, is_bad, is_good, spans, word
from mirror_assets.config.alerts import Severity

_COLOURS = {Severity.ERROR: "#c4314b", Severity.WARN: "#b35c00", Severity.INFO: "#2f6fde"}
_GOOD = "#2b8a3e"
# Mail programs keep styles of an element, and drop most others. Without a background, dark mode works.
_BODY = "font:15px/1.45 -apple-system,'Segoe UI',Roboto,Arial,sans-serif;max-width:640px;overflow-wrap:anywhere"
_SMALL = "padding:1px 12px 1px 0;font-size:13px;vertical-align:top;text-align:left"


def mail_of(message: Message, sender: str, to: Sequence[str]) -> EmailMessage:
    """Return the mail. Its Message-ID is that of the message, so a mail that is sent again is known to be the same."""
    mail, domain = EmailMessage(), parseaddr(sender)[1].rpartition("@")[2] or "localhost"
    mail["Subject"] = " ".join(f"[{word(message)}] {headline(message)}".split())
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
    """Return a page of text and links: nothing in it is loaded from elsewhere.

    It begins with what the subject does not say, because lists of mails show subject and beginning.
    """
    colour = _GOOD if is_good(message) else _COLOURS[message.severity]
    parts = [
        f'<div style="color:{colour};font-weight:bold">{word(message)}</div>',
        f"<p>{_styled(message.text)}</p>",
    ]
    if message.next_step:
        parts.append(f"<p><b>Next:</b> {_styled(message.next_step)}</p>")
    links = [f'<a href="{escape(link)}">{escape(words)}</a>' for words, link in message.links]
    parts += [f"<p>{' &nbsp;·&nbsp; '.join(links)}</p>"] if links else []
    rows = [_row(name, value) for name, value in facts_of(message)]
    parts += [f"<table>{''.join(rows)}</table>"] if rows else []
    viewport = '<meta name="viewport" content="width=device-width">'
    return f'<html><head>{viewport}</head><body><div style="{_BODY}">{"".join(parts)}</div></body></html>\n'


def _row(name: str, value: str) -> str:
    return (
        f'<tr><td style="{_SMALL};white-space:nowrap">{escape(name)}</td><td style="{_SMALL}">{escape(value)}</td></tr>'
    )


def _styled(text: str) -> str:
    return "".join(
        f"<code>{escape(span.text)}</code>" if span.is_code else escape(span.text).replace("\n", "<br>")
        for span in spans(text)
    )
