"""NOTIFY EMAIL 'address': one mail a notification, over SMTP with STARTTLS.

The mail's Message-ID is made of the notification's key, so one that is sent again can be known. A
password comes from the environment alone and is never sent in the clear.
"""

from __future__ import annotations

import os
import smtplib
import ssl
from collections.abc import Sequence
from email.message import EmailMessage
from typing import Any

import msgspec

from headrace.core.time import SECOND
from headrace.define.settings import NotifySettings
from headrace.run.actions.protocol import Undeliverable, said
from headrace.serving.notices import ENDED, Notice

PASSWORD = "HEADRACE_SMTP_PASSWORD"


class EmailAction:
    at_once = 20

    def __init__(self, address: str, settings: NotifySettings) -> None:
        self.address, self.settings = address, settings

    def deliver(self, notices: Sequence[Notice]) -> None:
        settings = self.settings
        seconds = settings.answer_us / SECOND
        with smtplib.SMTP(settings.smtp_host, settings.smtp_port, timeout=seconds) as server:
            if settings.smtp_starttls:
                server.starttls(context=ssl.create_default_context())
                if settings.smtp_user:
                    server.login(settings.smtp_user, os.environ.get(PASSWORD, ""))
            for notice in notices:
                self._send(server, notice)

    def _send(self, server: smtplib.SMTP, notice: Notice) -> None:
        try:
            server.send_message(self._mail(said(notice)))
        except smtplib.SMTPRecipientsRefused as error:
            code, text = error.recipients[self.address]
            if code >= 500:
                raise Undeliverable(f"the mail server refuses the address: {text!r}") from error
            raise

    def _mail(self, notification: dict[str, Any]) -> EmailMessage:
        mail, alerts = EmailMessage(), notification["alerts"]
        many = f"{len(alerts)} alerts" if len(alerts) > 1 else "alert"
        kind, rule = notification["kind"], notification["rule"]
        what = "the watch has ended" if kind == ENDED else f"{many} {kind}"
        mail["Subject"] = f"[{notification['severity']}] {rule}: {what}"
        mail["From"], mail["To"] = self.settings.smtp_from, self.address
        mail["Message-ID"] = f"<{notification['key'].replace(':', '.')}@headrace>"
        shown = msgspec.json.format(msgspec.json.encode(notification), indent=2)
        mail.set_content(shown.decode() + "\n")
        return mail
