"""Exports traces of OpenTelemetry to `trace.endpoint` by OTLP over HTTP.

Without the setting OpenTelemetry is not imported and need not be installed. Spans are sent from a
thread of their own, and dropped if they cannot be sent: tracing never delays an event.
tests/run/test_tracing.py has a receiver.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from headrace.core.errors import BadSetting, Unavailable
from headrace.core.spans import trace_with
from headrace.core.version import __version__
from headrace.define.settings import Settings

_PATH = "/v1/traces"


@contextmanager
def export_traces(settings: Settings) -> Iterator[None]:
    """Export spans during a block, if the setting is there; the last of them at its end."""
    if not settings.trace.endpoint:
        yield
        return
    provider = _provider(settings.name, endpoint_of(settings.trace.endpoint))
    trace_with(provider.get_tracer("headrace", __version__))
    try:
        yield
    finally:
        trace_with(None)
        provider.shutdown()


def endpoint_of(url: str) -> str:
    """The URL that spans are sent to; an address without a path gets the default path.

    >>> endpoint_of("http://127.0.0.1:4318")
    'http://127.0.0.1:4318/v1/traces'
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadSetting(
            f"trace.endpoint is not a URL: {url!r}", hint='write endpoint = "http://127.0.0.1:4318"'
        )
    return url if parts.path.strip("/") else f"{url.rstrip('/')}{_PATH}"


def _provider(project: str, endpoint: str) -> Any:
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise Unavailable(
            "trace.endpoint is set, but OpenTelemetry is not installed",
            hint="install it with `pip install headrace[otel]`, or remove the setting.",
        ) from error
    resource = {"service.name": "headrace", "service.version": __version__}
    provider = TracerProvider(resource=Resource.create({**resource, "headrace.project": project}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    return provider
