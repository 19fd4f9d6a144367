"""The sources of each column; the response type is in headrace/compile/lineage.py."""

from __future__ import annotations

from msgspec.structs import replace

from headrace.access.caller import Caller
from headrace.api.get_request import Endpoint, GetRequest, RequestHandler
from headrace.api.needs import ANY_USER
from headrace.api.read_access import may_read_all
from headrace.api.resources.catalog import CatalogRequest
from headrace.compile.lineage import Lineage


class LineageRequest(GetRequest[Lineage], frozen=True):
    """The sources of each column, and the dependents of each name."""

    endpoint = Endpoint("/v1/lineage", "lineage", ANY_USER, stored=True)

    def readable(self, service: RequestHandler, caller: Caller) -> Lineage:
        lineage = service.ask(self)
        if may_read_all(caller):
            return lineage
        seen = CatalogRequest().readable(service, caller).names
        columns = [
            replace(column, sources=[source for source in column.sources if source.object in seen])
            for column in lineage.columns
            if column.object in seen
        ]
        touched = lineage.touched_by.items()
        return Lineage(
            columns, {n: [u for u in users if u in seen] for n, users in touched if n in seen}
        )
