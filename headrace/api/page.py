"""The page at `/`: what this server can be asked, for one who opened it in a browser.

It is made from the table of routes and needs nothing from elsewhere, so that it works offline and
under the policy of headrace.api.guard. Its one script exchanges the code of the link that a run
prints for a session, and says who one is.
tests/api/test_routes.py checks that it names each route.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Protocol


class Listed(Protocol):
    """What the page shows of a route."""

    @property
    def method(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def summary(self) -> str: ...


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Headrace</title>
<link rel="stylesheet" href="/style.css">
<script src="/login.js" defer></script>
</head>
<body>
<main>
<h1>Headrace</h1>
<p>Define a view once, in SQL. It is kept exact over all of history and fresh to the second.</p>
<p id="who"></p>
<p><a href="/v1/status">How it is doing</a> · <a href="/openapi.json">OpenAPI document</a></p>
<h2>Send the first event</h2>
<p>Put the name of a stream in place of <code>clicks</code>, and its columns in place of these.</p>
<pre>{curl}</pre>
<h2>What can be asked</h2>
<table>
{rows}
</table>
</main>
</body>
</html>
"""

_CURL = """curl -X POST http://{host}/v1/streams/clicks/events \\
  -H "Authorization: Bearer $HEADRACE_TOKEN" \\
  -H 'Content-Type: application/json' \\
  --data-binary '{{"user": "ada", "url": "/home", "ts": "2026-01-01T12:00:00Z"}}'"""

CSS = """
:root { color-scheme: light dark; }
:root { --ink: #1c2733; --paper: #fbfaf7; --line: #d9d5cb; --link: #0a6375; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e6e8; --paper: #15191d; --line: #343b42; --link: #6cc5d6; }
}
body { margin: 0; font: 17px/1.55 system-ui, sans-serif; }
body { background: var(--paper); color: var(--ink); }
main { max-width: 56rem; margin: 3rem auto; padding: 0 1.25rem; }
h1 { font-size: 2rem; margin: 0 0 .25rem; }
h2 { font-size: 1.15rem; margin: 2.25rem 0 .5rem; }
a { color: var(--link); }
code, pre, td:first-child { font: 14px/1.5 ui-monospace, monospace; }
pre { border: 1px solid var(--line); border-radius: 6px; padding: .9rem 1rem; overflow-x: auto;
  user-select: all; }
table { border-collapse: collapse; width: 100%; }
td { border-top: 1px solid var(--line); padding: .45rem 1.5rem .45rem 0; vertical-align: top; }
td:first-child { white-space: nowrap; }
""".lstrip()

SCRIPT = """
"use strict";
// The part of the address after # is never sent to a server, and is taken away once it was used.
async function whoAmI() {
  const code = new URLSearchParams(location.hash.slice(1)).get("login");
  if (code) {
    history.replaceState(null, "", location.pathname);
    const body = JSON.stringify({ code });
    const answer = await fetch("/v1/session", { method: "POST", body });
    if (!answer.ok) return (await answer.json()).message;
  }
  const session = await fetch("/v1/session");
  return session.ok ? `You are ${(await session.json()).user}.` : "You are not logged in.";
}
whoAmI().then((text) => { document.getElementById("who").textContent = text; });
""".lstrip()


def render(host: str, routes: Sequence[Listed] = ()) -> bytes:
    """The page, for one who reached the server as `host`."""
    rows = "\n".join(
        f"<tr><td>{route.method} {escape(route.path)}</td><td>{escape(route.summary)}</td></tr>"
        for route in routes
    )
    return _PAGE.format(curl=escape(_CURL.format(host=host), quote=False), rows=rows).encode()
