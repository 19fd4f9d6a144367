"""The YAML documents of a Sigma file, each with its line.

Only plain data is made of the text: YAML's safe loader, without dates, since 2026-01-31 in a
detection is a text. A duplicate key would drop the first value, so it is refused, and so is a
document that becomes too large when its aliases are expanded. tests/define/sigma/test_documents.py
reads the refusals.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from headrace.core.errors import BadDefinition
from headrace.core.origin import Origin

NODES_MAX = 100_000  # of one document, with aliases followed


@dataclass(frozen=True, slots=True)
class SigmaDocument:
    """A mapping, and where it begins."""

    fields: dict[str, Any]
    origin: Origin


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    yaml_implicit_resolvers = {  # noqa: RUF012
        first: [pair for pair in pairs if pair[0] != "tag:yaml.org,2002:timestamp"]
        for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def read_documents(text: str, path: str) -> list[SigmaDocument]:
    """All documents of a text; empty ones are skipped.

    >>> [document.fields for document in read_documents("title: a\\n---\\ntitle: b", "two.yml")]
    [{'title': 'a'}, {'title': 'b'}]
    """
    try:
        return list(_documents(_Loader(text), path))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        said = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise BadDefinition(
            f"{path} is not valid YAML: {said}", origin=Origin(path, mark.line + 1 if mark else 1)
        ) from error
    except (RecursionError, ValueError) as error:
        raise BadDefinition(f"{path} is not valid YAML: {error}", origin=Origin(path, 1)) from error


def _documents(loader: _Loader, path: str) -> Iterator[SigmaDocument]:
    while loader.check_node():
        node = loader.get_node()
        origin = Origin(path, node.start_mark.line + 1)
        _check(node, path)
        fields = loader.construct_document(node)
        if fields is None:
            continue
        if not isinstance(fields, dict):
            raise BadDefinition(
                f"{path} has a document that is not a mapping",
                hint="a Sigma rule is a mapping with title, detection or correlation.",
                origin=origin,
            )
        yield SigmaDocument({str(key): value for key, value in fields.items()}, origin)


def _check(root: yaml.Node, path: str) -> None:
    """Refuse duplicate keys and documents that are too large, before they are built."""
    waiting, seen = [root], 0
    while waiting:
        node, seen = waiting.pop(), seen + 1
        if seen > NODES_MAX:
            raise BadDefinition(
                f"{path} has a document of more than {NODES_MAX:,} nodes",
                origin=Origin(path, root.start_mark.line + 1),
            )
        if isinstance(node, yaml.MappingNode):
            _refuse_repeats(node, path)
            waiting += [part for pair in node.value for part in pair]
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value


def _refuse_repeats(node: yaml.MappingNode, path: str) -> None:
    keys: set[str] = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode) and key.value in keys:
            raise BadDefinition(
                f"{path} has the key '{key.value}' twice in one mapping",
                hint="YAML keeps only the second; write a list or two selections.",
                origin=Origin(path, key.start_mark.line + 1),
            )
        keys |= {key.value} if isinstance(key, yaml.ScalarNode) else set()
