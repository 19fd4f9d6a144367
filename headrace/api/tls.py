"""HTTPS by settings: errors of its files are reported before the server listens.

A command on the same machine trusts exactly the certificate of the project, so the host name in it
need not match the address. tests/api/test_tls.py checks both sides.
"""

from __future__ import annotations

import ssl
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path

from headrace.core.errors import BadSetting
from headrace.define.settings import HttpSettings


def check_tls(http: HttpSettings) -> None:
    """BadSetting if HTTPS is configured and its files are not valid."""
    files = {"http.tls_cert": http.tls_cert, "http.tls_key": http.tls_key}
    if not any(files.values()):
        return
    for name, path in files.items():
        if not path:
            raise BadSetting(f"{name} is missing", hint="HTTPS requires a certificate and its key.")
        if not Path(path).is_file():
            raise BadSetting(f"the file in {name} does not exist: {path}")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(http.tls_cert, http.tls_key)
    except (OSError, ssl.SSLError) as error:
        raise BadSetting(
            "the certificate in http.tls_cert and the key in http.tls_key cannot be loaded",
            detail=str(error),
            hint="both must be PEM files, and the key must belong to the certificate.",
        ) from error


def with_paths(http: HttpSettings, folder: Path) -> HttpSettings:
    """The settings with absolute paths, for a project in that folder."""
    cert, key = (str(folder / name) if name else "" for name in (http.tls_cert, http.tls_key))
    return replace(http, tls_cert=cert, tls_key=key)


def unencrypted(http: HttpSettings) -> bool:
    """Whether tokens are sent over a network without encryption."""
    return not http.tls_cert and not is_loopback(http.host)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine.

    >>> is_loopback("localhost"), is_loopback("127.0.0.2"), is_loopback("::1"), is_loopback("shop")
    (True, True, True, False)
    """
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def trusting_context(certificate: str) -> ssl.SSLContext:
    """A context that trusts this certificate, also if it is self-signed."""
    context = ssl.create_default_context(cafile=certificate)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.check_hostname = False
    return context
