"""Spans, and where they are sent."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from headrace.api.server import HttpServer
from headrace.core.errors import BadSetting, Unavailable
from headrace.core.spans import span, trace_with
from headrace.define.settings import HttpSettings, Settings, TraceSettings
from headrace.run.tracing import export_traces
from headrace.speed.epoch import _submit
from tests.access.users import bearer, open_access
from tests.api.conftest import Shop


@pytest.fixture
def spans() -> Iterator[Any]:
    """An exporter that keeps what it is given."""
    memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    exporter, provider = memory.InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace_with(provider.get_tracer("test"))
    yield exporter
    trace_with(None)


def tree(spans: Any) -> dict[str, str | None]:
    """Each span's name, and the name of the span around it."""
    found = spans.get_finished_spans()
    names = {each.context.span_id: each.name for each in found}
    return {each.name: names.get(each.parent.span_id) if each.parent else None for each in found}


def test_phases_belong_to_their_epoch_in_other_threads_too(spans: Any) -> None:
    with span("epoch", stream="clicks", epoch=1), ThreadPoolExecutor(2) as pool:
        jobs = [_submit(pool, phase, int, "7") for phase in ("count", "views")]
        assert [job.result() for job in jobs] == [7, 7]
        with span("epoch.commit"):
            pass
    assert tree(spans) == {
        "epoch": None, "epoch.count": "epoch", "epoch.views": "epoch", "epoch.commit": "epoch",
    }  # fmt: skip
    epoch = spans.get_finished_spans()[-1]
    assert dict(epoch.attributes) == {"headrace.stream": "clicks", "headrace.epoch": 1}


def test_an_error_is_noted_and_goes_on(spans: Any) -> None:
    with pytest.raises(ZeroDivisionError), span("generation"):
        raise ZeroDivisionError
    (found,) = spans.get_finished_spans()
    assert (found.status.is_ok, found.events[0].name) == (False, "exception")


def test_a_request_is_a_span_with_its_route_id_and_user(spans: Any, tmp_path: Path) -> None:
    access, token = open_access(tmp_path)
    server = HttpServer(Shop(), HttpSettings(port=0), access)
    server.start()
    try:
        url = f"{server.url}/v1/views/visitors?url=/secret"
        answer = httpx.get(url, headers=bearer(token))
    finally:
        server.stop()
        access.close()
    (found,) = spans.get_finished_spans()
    assert found.name == "GET /v1/views/{view}"
    assert dict(found.attributes) == {
        "http.request.method": "GET",
        "http.route": "/v1/views/{view}",
        "http.response.status_code": 200,
        "headrace.request_id": answer.headers["x-request-id"],
        "headrace.user": "ann",
    }


class Receiver(BaseHTTPRequestHandler):
    """Takes what is posted."""

    got: list[tuple[str, bytes]] = []  # noqa: RUF012

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.got.append((self.path, body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_spans_arrive_where_the_setting_says() -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    receiver = HTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=receiver.serve_forever, daemon=True)
    thread.start()
    settings = Settings("shop", trace=TraceSettings(f"http://127.0.0.1:{receiver.server_port}"))
    try:
        with export_traces(settings), span("generation", stream="clicks"):
            pass
    finally:
        receiver.shutdown()
        receiver.server_close()
    ((path, body),) = Receiver.got
    assert path == "/v1/traces"
    assert all(word in body for word in (b"generation", b"clicks", b"headrace.project", b"shop"))
    with span("after") as made:
        assert made is None


@pytest.mark.process
def test_without_the_setting_nothing_is_imported() -> None:
    code = (
        "import sys; from headrace.run.tracing import export_traces\n"
        "from headrace.define.settings import Settings; from headrace.core.spans import span\n"
        "with export_traces(Settings('shop')), span('epoch'): pass\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"


def test_without_the_package_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    settings = Settings("shop", trace=TraceSettings("http://127.0.0.1:4318"))
    with pytest.raises(Unavailable) as raised, export_traces(settings):
        pass
    assert "headrace[otel]" in (raised.value.hint or "")


def test_what_is_no_url_is_refused() -> None:
    with (
        pytest.raises(BadSetting, match="is not a URL: 'collector:4318'"),
        export_traces(Settings("shop", trace=TraceSettings("collector:4318"))),
    ):
        pass
