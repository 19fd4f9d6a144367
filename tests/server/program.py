"""A server whose jobs are stand-ins, as a program that can be killed: home folder, settings."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

PARENT = Path(__file__).parents[1]


def main() -> None:
    sys.path[:0] = [str(PARENT), str(PARENT.parent)]
    from headrace.server.serve import serve
    from server.conftest import stand_in

    serve(
        Path(sys.argv[1]),
        port=0,
        wait=threading.Event().wait,
        report=lambda kind, fields: kind == "serving" and print(fields["url"], flush=True),
        command=stand_in,
    )


if __name__ == "__main__":
    main()
