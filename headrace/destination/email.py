"""NOTIFY EMAIL 'address': one mail per notification, over SMTP with STARTTLS.

The project's files may name any address. What was added at run time may notify an address that the
files name, or that `notify.recipients` lists by itself or by its domain.

The Message-ID is derived from the notification's key, so that a receiver can recognize a mail that
is sent again. The password is read from the environment only and never sent in plain text.
"""

from __future__ import annotations

import os
import re
import smtplib
import ssl
from collections.abc import Sequence
from email.message import EmailMessage
from typing import TYPE_CHECKING, Any, Self

import msgspec

from headrace.core.errors import Unsupported
from headrace.core.rule import ENDED
from headrace.core.time import SECOND
from headrace.define.definitions import Sender
from headrace.define.settings import NotifySettings
from headrace.define.tokens import TokenCursor
from headrace.destination.protocol import (
    AnyDestination,
    DestinationContext,
    DestinationWriter,
    Message,
    Undeliverable,
)

if TYPE_CHECKING:
    from headrace.define.project import Project

PASSWORD = "HEADRACE_SMTP_PASSWORD"
_ADDRESS = re.compile(r"[^@\s<>,;]+@[^@\s<>,;]+\.[^@\s<>,;]+")


class EmailDestination(AnyDestination, frozen=True):
    word = "EMAIL"
    usage = "EMAIL 'address'"

    @classmethod
    def read(cls, tokens: TokenCursor) -> Self:
        origin, address = tokens.origin, tokens.literal()
        if not _ADDRESS.fullmatch(address):
            raise tokens.error(
                f"'{address}' is not an e-mail address such as 'ops@host.org'", origin
            )
        return cls(address)

    def check(self, project: Project, sender: Sender) -> None:
        notify = project.settings.notify
        if not notify.smtp_host or not notify.smtp_from:
            raise Unsupported(
                f"{sender.said} notifies by e-mail, which requires a mail server",
                hint="set notify.smtp_host and notify.smtp_from in headrace.toml.",
                origin=sender.origin,
            )
        if not self._listed(project):
            raise Unsupported(
                f"{sender.said} notifies '{self.target}', which is not listed in notify.recipients",
                hint=f'write in headrace.toml: [notify] recipients = ["{self.target}"]',
                origin=sender.origin,
            )

    def _listed(self, project: Project) -> bool:
        address, known = self.target.lower(), [*project.settings.notify.recipients]
        for sender in (*project.rules.values(), *project.watches.values()):
            if sender.name not in project.added:
                known += [d.target for d in sender.destinations if isinstance(d, EmailDestination)]
        return not {address, address.partition("@")[2]}.isdisjoint(map(str.lower, known))

    def connect(self, context: DestinationContext) -> DestinationWriter:
        project = context.project
        return EmailWriter(self.target, project.settings.notify, self._listed(project))


class EmailWriter(DestinationWriter):
    batch_max = 20

    def __init__(self, address: str, settings: NotifySettings, listed: bool = True) -> None:
        self.address, self.settings, self.listed = address, settings, listed

    def deliver(self, messages: Sequence[Message]) -> None:
        # Repeats the check of the compiler, because the settings may have changed since.
        if not self.listed:
            raise Undeliverable(f"address '{self.address}' is not listed in notify.recipients")
        settings = self.settings
        seconds = settings.answer_us / SECOND
        with smtplib.SMTP(settings.smtp_host, settings.smtp_port, timeout=seconds) as server:
            if settings.smtp_starttls:
                server.starttls(context=ssl.create_default_context())
                if settings.smtp_user:
                    server.login(settings.smtp_user, os.environ.get(PASSWORD, ""))
            for message in messages:
                self._send(server, message)

    def _send(self, server: smtplib.SMTP, message: Message) -> None:
        try:
            server.send_message(self._mail(message.document))
        except smtplib.SMTPRecipientsRefused as error:
            code, text = error.recipients[self.address]
            if code >= 500:
                raise Undeliverable(f"the mail server rejected the address: {text!r}") from error
            raise

    def _mail(self, notification: dict[str, Any]) -> EmailMessage:
        mail, alerts = EmailMessage(), notification["alerts"]
        count = f"{len(alerts)} alerts" if len(alerts) > 1 else "alert"
        kind, rule = notification["kind"], notification["rule"]
        what = "the watch has ended" if kind == ENDED else f"{count} {kind}"
        mail["Subject"] = f"[{notification['severity']}] {rule}: {what}"
        mail["From"], mail["To"] = self.settings.smtp_from, self.address
        mail["Message-ID"] = f"<{notification['key'].replace(':', '.')}@headrace>"
        body = msgspec.json.format(msgspec.json.encode(notification), indent=2)
        mail.set_content(body.decode() + "\n")
        return mail
