"""Mail to a server on loopback."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headrace.core.errors import Unsupported
from headrace.define.project import Project
from headrace.define.settings import NotifySettings, Settings
from headrace.define.statements import read_valid_statements
from headrace.destination.email import EmailWriter
from headrace.destination.protocol import DestinationContext, Undeliverable

from .messages import NOTICE


class Mail(socketserver.StreamRequestHandler):
    """As much of SMTP as is needed; `box` has the mails, and nobody@ is unknown."""

    box: list[str]

    def handle(self) -> None:
        self.say("220 here")
        while line := self.rfile.readline().decode().strip():
            word = line.split()[0].upper()
            if word == "DATA":
                self.say("354 go on")
                text = ""
                while (part := self.rfile.readline().decode()) != ".\r\n":
                    text += part
                self.box.append(text)
            unknown = word == "RCPT" and "nobody@" in line
            self.say("550 unknown" if unknown else "221 bye" if word == "QUIT" else "250 ok")
            if word == "QUIT":
                return

    def say(self, line: str) -> None:
        self.wfile.write(f"{line}\r\n".encode())


@pytest.fixture
def mail() -> Iterator[tuple[NotifySettings, list[str]]]:
    box: list[str] = []
    handler = type("Box", (Mail,), {"box": box})
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        port = server.server_address[1]
        yield (
            NotifySettings(
                smtp_host="127.0.0.1", smtp_port=port, smtp_from="hr@x.org", smtp_starttls=False
            ),
            box,
        )
        server.shutdown()


def test_mail_says_what_it_is_about(mail: tuple[NotifySettings, list[str]]) -> None:
    settings, box = mail
    EmailWriter("ops@x.org", settings).deliver([NOTICE])
    (text,) = box
    assert "Subject: [high] slow: alert withdrawn" in text
    assert "Message-ID: <abc.withdrawn@headrace>" in text
    assert "To: ops@x.org" in text


def test_address_that_the_server_does_not_know_is_final(
    mail: tuple[NotifySettings, list[str]],
) -> None:
    with pytest.raises(Undeliverable, match="the mail server rejected the address: b'unknown'"):
        EmailWriter("nobody@x.org", mail[0]).deliver([NOTICE])


def test_mail_without_tls_is_not_sent_where_tls_is_asked_for(
    mail: tuple[NotifySettings, list[str]],
) -> None:
    settings = NotifySettings(
        smtp_host="127.0.0.1", smtp_port=mail[0].smtp_port, smtp_from="hr@x.org"
    )
    with pytest.raises(Exception, match="STARTTLS"):
        EmailWriter("ops@x.org", settings).deliver([NOTICE])
    assert mail[1] == []


def rules(*addresses: str) -> list[Any]:
    text = ";".join(
        f"CREATE RULE r{n} AS SELECT * FROM clicks NOTIFY EMAIL '{address}'"
        for n, address in enumerate(addresses)
    )
    found, mistakes = read_valid_statements(text, "shop.sql", Path())
    assert not mistakes
    return list(found)


@pytest.mark.parametrize(
    ("address", "listed"),
    [
        ("Ops@x.org", True),  # as a rule of the files
        ("eve@y.org", True),
        ("anyone@z.org", True),
        ("eve@x.org", False),
        ("eve@sub.z.org", False),
        ("z.org@evil.org", False),
    ],
)
def test_added_rule_notifies_only_recipients_of_the_files_and_the_settings(
    address: str, listed: bool, mail: tuple[NotifySettings, list[str]]
) -> None:
    notify = replace(mail[0], recipients=("EVE@y.org", "z.org"))
    named, added = rules("ops@x.org", address)
    files = Project(Path(), Settings("shop", notify=notify), (named,))
    project, (destination,) = files.with_added([added]), added.destinations
    for file_rule in named.destinations:
        file_rule.check(project, named)
    for checked in (project, files):  # a watch is checked before it is added
        if listed:
            destination.check(checked, added)
        else:
            with pytest.raises(Unsupported) as refused:
                destination.check(checked, added)
            assert refused.value.message == (
                f"rule 'r1' notifies '{address}', which is not listed in notify.recipients"
            )
    writer = destination.connect(DestinationContext(project, lambda stream, records: Future()))
    if listed:
        writer.deliver([NOTICE])
    else:
        with pytest.raises(Undeliverable, match=r"is not listed in notify\.recipients"):
            writer.deliver([NOTICE])
    assert len(mail[1]) == listed
