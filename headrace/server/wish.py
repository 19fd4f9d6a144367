"""The place that somebody asked for in a submission; what is not said is as before.
tests/server/test_place.py checks it.
"""

from __future__ import annotations

import msgspec

from headrace.server.place import Place, checked_place


class Wish(msgspec.Struct, frozen=True):
    """Each part of a place, or nothing.

    >>> Wish(cores=2).over(Place(1, "1g", tags=["gpu"]))
    Place(cores=2, memory='1g', pool='', tags=['gpu'])
    """

    cores: int | None = None
    memory: str | None = None
    pool: str | None = None
    tags: list[str] | None = None

    def over(self, before: Place) -> Place:
        said = msgspec.structs.asdict(self).items()
        given = {name: value for name, value in said if value is not None}
        return checked_place(msgspec.structs.replace(before, **given))
