"""A topology that no example has: large, or ill; and one that is heard live."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from playwright.sync_api import Page, Route


def node(kind: str, name: str, **more: Any) -> dict[str, Any]:
    said = {
        "id": f"{kind}:{name}", "kind": kind, "name": name, "health": "ok", "reason": "",
        "rate": 10.0, "lag_events": None, "lag_ms": None, "watermark_gap_ms": None,
        "saturation": None, "detail": {}, "cause": None,
    }  # fmt: skip
    return said | more


def large(nodes: int = 300, rate: float = 10.0) -> dict[str, Any]:
    """Streams with their log and speed, each read by views that are read by others."""
    made: list[dict[str, Any]] = []
    edges: list[dict[str, Any]] = []
    for i in range(nodes // 10):
        names = [("log", f"s{i}"), ("speed", f"s{i}"), *(("view", f"s{i}_v{j}") for j in range(8))]
        made += [node(kind, name, rate=rate) for kind, name in names]
        ids = [f"{kind}:{name}" for kind, name in names]
        pairs = [(ids[0], ids[1]), *((ids[1], id) for id in ids[2:6]), *pairwise(ids[5:])]
        pairs += [(ids[9], f"view:s{i + 1}_v0")] if i + 1 < nodes // 10 else []
        edges += [{"source": a, "target": b, "rate": rate} for a, b in pairs]
    return {"at": "2026-01-01T00:00:00Z", "nodes": made, "edges": edges}


def project() -> dict[str, Any]:
    """Two streams with eleven views between them and what leads there: 23 nodes, six columns."""
    made: list[dict[str, Any]] = []
    edges: list[dict[str, Any]] = []
    for name in ("clicks", "orders"):
        kinds = ("source", "log", "master", "speed", "stream")
        made += [node(kind, f"{name}_made" if kind == "stream" else name) for kind in kinds]
        pairs = [("source", "log"), ("log", "master"), ("log", "speed")]
        edges += [_edge(f"{a}:{name}", f"{b}:{name}") for a, b in pairs]
        edges.append(_edge(f"speed:{name}", f"stream:{name}_made"))
        for n in range(5):
            made.append(node("view", f"{name}_by_something_{n}"))
            edges.append(_edge(f"stream:{name}_made", made[-1]["id"]))
            edges.append(_edge(f"master:{name}", made[-1]["id"], None))
    for n, kind in enumerate(("view", "rule", "sink")):
        made.append(node(kind, f"over_{kind}"))
        edges.append(_edge(f"view:clicks_by_something_{n}", made[-1]["id"]))
    return {"at": "2026-01-01T00:00:00Z", "nodes": made, "edges": edges}


def _edge(source: str, target: str, rate: float | None = 10.0) -> dict[str, Any]:
    return {"source": source, "target": target, "rate": rate}


def ill() -> dict[str, Any]:
    """A view that suffers from speed, which has failed."""
    made = [
        node("log", "clicks"),
        node("speed", "clicks", health="bad", reason="the worker was lost", lag_events=1200),
        node("view", "visitors", health="bad", reason="its stream stands", cause="speed:clicks"),
    ]
    edges = [
        {"source": "log:clicks", "target": "speed:clicks", "rate": 0.0},
        {"source": "speed:clicks", "target": "view:visitors", "rate": 0.0},
    ]
    return {"at": "2026-01-01T00:00:00Z", "nodes": made, "edges": edges}


def show(page: Page, *topologies: dict[str, Any]) -> None:
    """Answer with these, one after the other, and then with the last one always."""
    waiting = [json.dumps(one) for one in topologies]

    def answer(route: Route) -> None:
        body = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        route.fulfill(status=200, content_type="application/json", body=body)

    page.route("**/v1/live?*", lambda route: route.fulfill(status=503, body="{}"))
    page.route("**/v1/topology", answer)


def tell(page: Page, topology: dict[str, Any], every_ms: int) -> None:
    """Let the page hear this topology live, with another rate each time. `window.told` has when
    each was there, `window.drawn` when the screen showed another number of its first node.
    """
    page.route("**/v1/topology", lambda route: route.fulfill(status=503, body="{}"))
    page.add_init_script(
        f"const topology = {json.dumps(topology)}, everyMs = {every_ms};\n{_TELLING}"
    )


_TELLING = """
window.told = [];
window.drawn = [];
const reallyFetch = window.fetch;
const text = new TextEncoder();
function stream() {
  let number = 0;
  return new ReadableStream({
    start(controller) {
      const tell = () => {
        number += 1;
        for (const one of [...topology.nodes, ...topology.edges]) one.rate = 100 + number;
        const data = JSON.stringify({ ...topology, at: new Date().toISOString() });
        window.told.push(performance.now());
        controller.enqueue(text.encode(`id: ${number}\\nevent: topology\\ndata: ${data}\\n\\n`));
      };
      tell();
      setInterval(tell, everyMs);
    },
  });
}
window.fetch = async (url, options) =>
  String(url).includes("v1/live") ? new Response(stream()) : reallyFetch(url, options);
let shown = "";
// A frame after the one in which it was found, it has been painted.
const look = () => {
  const now = document.querySelector(".node .facts-line")?.textContent ?? "";
  if (now && now !== shown) {
    shown = now;
    requestAnimationFrame(() => window.drawn.push(performance.now()));
  }
  requestAnimationFrame(look);
};
requestAnimationFrame(look);
"""
