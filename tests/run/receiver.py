"""A webhook's receiver on loopback that can do each thing wrong, and remembers what it was sent."""

from __future__ import annotations

import json
import ssl
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass
class Receiver:
    """`mood` is what the next requests meet: a status, or hang, close, redirect, huge, trickle."""

    mood: str = "200"
    port: int = 0
    certificate: Path | None = None  # a folder with cert.pem and key.pem
    requests: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                receiver.answer(self)

            def log_message(self, *_: object) -> None:
                """Nothing is printed."""

        self.server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.server.daemon_threads = True
        if self.certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certificate / "cert.pem", self.certificate / "key.pem")
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}/hook?team=ops"

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        length = int(request.headers["Content-Length"])
        body = request.rfile.read(length)
        if len(body) < length:  # its sender was killed; a server does not act on half a request
            return
        mood = self.mood
        self.requests.append(
            {"mood": mood, "path": request.path, "headers": dict(request.headers), "body": body}
        )
        if mood == "hang":
            time.sleep(1.5)
        elif mood == "close":
            request.close_connection = True
        elif mood == "redirect":
            request.send_response(302)
            request.send_header("Location", f"http://localhost:{self.port}/elsewhere")
            request.end_headers()
        elif mood in {"huge", "trickle"}:
            self._much(request, mood)
        else:
            request.send_response(int(mood))
            request.end_headers()

    def _much(self, request: BaseHTTPRequestHandler, mood: str) -> None:
        request.send_response(200)
        request.end_headers()
        try:
            for _ in range(1_000):
                request.wfile.write(b"x" * (100_000 if mood == "huge" else 1))
                request.wfile.flush()
                time.sleep(0.05 if mood == "trickle" else 0)
        except OSError:
            pass

    def keys(self, mood: str = "200") -> list[str]:
        return [r["headers"]["Idempotency-Key"] for r in self.requests if r["mood"] == mood]

    def alerts(self, mood: str = "200") -> list[str]:
        bodies = [json.loads(r["body"]) for r in self.requests if r["mood"] == mood]
        return [alert["id"] for body in bodies for alert in body["alerts"]]
