"""A server in a process that may open few files, as on most machines; told the folder of its users
and the number of files. It prints its address and serves until it is killed.
"""

from __future__ import annotations

import resource
import sys
import threading
from pathlib import Path
from typing import Any


def main() -> None:
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from headrace.access.access import Access
    from headrace.api.server import HttpServer
    from headrace.define.settings import HttpSettings

    files = int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    service: Any = object()  # what is asked here reaches no service
    server = HttpServer(service, HttpSettings(port=0), Access(Path(sys.argv[1]), "shop"))
    server.start()
    print(server.url, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
