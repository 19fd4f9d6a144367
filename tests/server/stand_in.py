"""The process of a job without Spark, in the standard library alone, so that it starts at once.

`check` finds names by their CREATE. `run` does what the file `behaviour` in the folder of the state
says, or else in that of the project:
serve      take the lock, announce, answer
die        end with exit code 7
fail       say why, as a job does, and end
hang       answer until the file `hang` is in the state's folder, then never
mute       take the lock and announce nothing
stubborn   serve, and do not stop when told to
linger     serve, free the lock when told to stop, and stay
late       serve for a moment after its status was requested, then die
The file `status` in the folder of the state has its status, if it is not well.
"""

from __future__ import annotations

import fcntl
import hmac
import json
import os
import re
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

KINDS = {"streams": "STREAM", "views": "VIEW", "rules": "RULE"}


def check(order: dict[str, str]) -> int:
    text = "".join(path.read_text() for path in sorted(Path(order["folder"]).glob("*.sql")))
    if "BROKEN" in text:
        error = {"condition": "UnknownName", "message": "view 'v' reads 'broken'", "detail": None}
        print(json.dumps({"error": {**error, "hint": "fix it.", "origin": "shop.sql:3"}}))
        return 1
    found = {kind: re.findall(rf"CREATE {word} (\w+)", text) for kind, word in KINDS.items()}
    print(json.dumps({"names": found}))
    return 0


def behaviour(order: dict[str, str]) -> str:
    for folder in (order["state"], order["folder"]):
        path = Path(folder, "behaviour")
        if path.is_file():
            return path.read_text().strip()
    return "serve"


class Answers(BaseHTTPRequestHandler):
    """Says who answers; a body comes back as it was sent. What is called forbidden is refused."""

    protocol_version = "HTTP/1.1"
    state, how = Path(), ""

    def do_GET(self) -> None:
        while (self.state / "hang").is_file():
            time.sleep(0.05)
        said = {"pid": os.getpid(), "path": self.path, "said": self.headers["Authorization"]}
        if self.path == "/v1/status":
            said |= self._status()
            if self.how == "late":
                threading.Timer(0.3, lambda: os._exit(7)).start()
        self._say(said, 403 if self.path.endswith("/forbidden") else 200)

    def _status(self) -> dict[str, object]:
        path = self.state / "status"
        return json.loads(path.read_text()) if path.is_file() else {"state": "running"}

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self._say({"pid": os.getpid(), "path": self.path, "bytes": len(data)})

    def _say(self, document: object, status: int = 200) -> None:
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Cache-Control", "public, max-age=60")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("X-Headrace-Proof", self._proof())
        self.end_headers()
        self.wfile.write(data)

    def _proof(self) -> str:
        text = self.headers.get("Authorization", "").partition(" ")[2]
        key = (self.state / "server.key").read_bytes()
        return hmac.new(key, f"proof {text}".encode(), "sha256").hexdigest()

    def log_message(self, *_: object) -> None:
        pass


def run(order: dict[str, str]) -> int:
    how, state = behaviour(order), Path(order["state"])
    state.mkdir(parents=True, exist_ok=True)
    with (state / "starts").open("a") as starts:
        starts.write(f"{os.getpid()} {order['turn']} {Path(order['folder']).name}\n")
    if how == "die":
        return 7
    if how == "fail":
        print(json.dumps({"kind": "failed", "condition": "BadSetting", "message": "no such port"}))
        return 1
    handle = os.open(state / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(handle, fcntl.LOCK_EX)
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    said = {"pid": os.getpid(), "started": ticks, "turn": order["turn"]}
    os.ftruncate(handle, 0)
    os.pwrite(handle, json.dumps(said).encode(), 0)
    if how == "mute":
        threading.Event().wait()
    serve(state, how)
    if how == "linger":
        os.close(handle)
        threading.Event().wait()
    return 0


def serve(state: Path, how: str) -> None:
    Answers.state, Answers.how = state, how
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.daemon_threads = True
    stop = threading.Event()
    ignore = how == "stubborn"
    signal.signal(signal.SIGTERM, signal.SIG_IGN if ignore else lambda *_: stop.set())
    threading.Thread(target=server.serve_forever, daemon=True).start()
    fresh = state / "run.new"
    fresh.write_text(json.dumps({"url": f"http://127.0.0.1:{server.server_port}"}))
    fresh.replace(state / "run.json")
    stop.wait()


if __name__ == "__main__":
    verbs = {"run": run, "check": check}
    code = verbs[sys.argv[1]](json.loads(sys.argv[2]))
    sys.stdout.flush()
    os._exit(code)
