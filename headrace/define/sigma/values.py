"""The test of a field by a value of a selection, with the modifiers after the field's name.

`CommandLine|contains|all: [a, b]` is one test for each value, and `all` joins them by AND instead
of OR. Texts are compared whatever their case, and `*` and `?` are wildcards, as Sigma has it. A
regular expression must be valid in Spark too, which uses Java's: a pattern that Java cannot read
would stop the stream at its first event. Python reads nearly the same language: what it refuses is
refused, and so are the few things that only Python reads.
tests/define/sigma/test_sql.py has a line for each modifier, test_values.py for each refusal.
"""

from __future__ import annotations

import math
import re
import warnings
from ipaddress import IPv4Network, ip_network
from typing import Any

from headrace.define.sigma.tree import (
    Check,
    Compare,
    Equal,
    Glob,
    Not,
    Present,
    Regex,
    Same,
    Test,
    Tree,
    all_of,
    any_of,
)

_AROUND = {"contains": (True, True), "startswith": (False, True), "endswith": (True, False)}
_COMPARE = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_FLAGS = ("i", "m", "s")
_KINDS = (*_AROUND, *_COMPARE, "re", "cidr", "exists", "fieldref")
MODIFIERS = (*_KINDS, "all", "cased", "neq", *_FLAGS)
_BIGINT_MAX = 2**63 - 1


def tree_of(field: str, modifiers: list[str], value: Any) -> Tree:
    """What must hold of a field; a ValueError says what is not understood.

    >>> tree_of("port", ["gte"], 1024)
    Test(field='port', check=Compare(operator='>=', value=1024))
    """
    _check_modifiers(modifiers)
    values = value if isinstance(value, list) else [value]
    if not values:
        raise ValueError(f"'{field}' has an empty list")
    found: list[Tree] = [Test(field, _check(field, modifiers, each)) for each in values]
    tree = (all_of if "all" in modifiers else any_of)(found)
    return Not(tree) if "neq" in modifiers else tree


def _check_modifiers(modifiers: list[str]) -> None:
    for modifier in modifiers:
        if modifier not in MODIFIERS:
            raise ValueError(f"the modifier '{modifier}' is not supported")
    kinds = [modifier for modifier in modifiers if modifier in _KINDS]
    if len(kinds) > 1:
        raise ValueError(f"the modifiers '{kinds[0]}' and '{kinds[1]}' cannot be combined")
    for flag in (*_FLAGS, "cased"):
        texts = kinds in ([], ["contains"], ["startswith"], ["endswith"])
        if flag in modifiers and not (texts if flag == "cased" else kinds == ["re"]):
            reason = f"cannot be combined with '{kinds[0]}'" if kinds else "requires 're'"
            raise ValueError(f"the modifier '{flag}' {reason}")


def _check(field: str, modifiers: list[str], value: Any) -> Check:
    kind = next((modifier for modifier in modifiers if modifier in _KINDS), "")
    if kind == "exists":
        return Present(_truth(field, value))
    if kind in _COMPARE:
        return Compare(_COMPARE[kind], _number(field, kind, value))
    if kind == "re":
        flags = "".join(modifier for modifier in modifiers if modifier in _FLAGS)
        pattern = check_regex(_text(field, kind, value))
        return Regex(f"(?{flags}){pattern}" if flags else pattern)
    if kind == "cidr":
        return Regex(_network(_text(field, kind, value)))
    if kind == "fieldref":
        return Same(_text(field, kind, value))
    return _equal(field, kind, value, "cased" in modifiers)


def _equal(field: str, kind: str, value: Any, cased: bool) -> Check:
    if kind:
        before, after = _AROUND[kind]
        return parse_glob(_text(field, kind, value), before=before, after=after, cased=cased)
    if value is None:
        return Present(False)
    if isinstance(value, bool):
        return Equal(value)
    if isinstance(value, int | float):
        return Equal(_number(field, "=", value))
    return parse_glob(_text(field, "=", value), cased=cased)


def parse_glob(
    text: str, *, before: bool = False, after: bool = False, cased: bool = False
) -> Glob:
    r"""The literals and wildcards of a text; what follows a backslash is not a wildcard.

    >>> parse_glob("a?c*").parts, parse_glob(r"C:\\temp\*").parts
    (('a', '', 'c', None), ('C:\\temp*',))
    """
    parts: list[str | None] = [None] if before else []
    at = 0
    while at < len(text):
        letter, next_one = text[at], text[at + 1 : at + 2]
        escaped = letter == "\\" and next_one != "" and next_one in "*?\\"
        at += 2 if escaped else 1
        if letter in "*?" and not escaped:
            parts.append(None if letter == "*" else "")
            continue
        letter = next_one if escaped else letter
        if parts and parts[-1]:
            parts[-1] += letter
        else:
            parts.append(letter)
    parts += [None] if after else []
    # Several stars in a row mean the same as one.
    return Glob(
        tuple(p for n, p in enumerate(parts) if p is not None or parts[n - 1 : n] != [None]), cased
    )


def _network(text: str) -> str:
    """A regular expression of all addresses of a network, octet by octet."""
    try:
        network = ip_network(text, strict=False)
    except ValueError as error:
        raise ValueError(f"'{text}' is not a network such as '10.0.0.0/8'") from error
    if not isinstance(network, IPv4Network):
        raise ValueError(f"the IPv6 network '{text}' is not supported")
    whole, rest = divmod(network.prefixlen, 8)
    octets = [str(octet) for octet in network.network_address.packed[:whole]]
    if rest:
        first = network.network_address.packed[whole]
        octets.append(f"({'|'.join(str(first + n) for n in range(2 ** (8 - rest)))})")
    missing = 4 - len(octets)
    return f"^{'[.]'.join([*octets, *['[0-9]+'] * missing])}$"


def _text(field: str, kind: str, value: Any) -> str:
    if isinstance(value, bool | dict | list) or value is None:
        raise ValueError(f"'{field}' with '{kind}' requires a string, not {_said(value)}")
    return str(value)


def _number(field: str, kind: str, value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"'{field}' with '{kind}' requires a number, not {_said(value)}")
    if isinstance(value, int) and abs(value) > _BIGINT_MAX:
        raise ValueError(f"'{field}' is compared with {value}, which is out of range for BIGINT")
    return value


def _truth(field: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"'{field}' with 'exists' requires true or false, not {_said(value)}")
    return value


def _said(value: Any) -> str:
    kinds = {dict: "a mapping", list: "a list", type(None): "null"}
    return kinds.get(type(value), f"'{value}'")


def check_regex(pattern: str) -> str:
    """The pattern, if it is valid in Java too; a ValueError says why not.

    >>> check_regex("^svc-[0-9]{3}$")
    '^svc-[0-9]{3}$'
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of nested sets, which are refused below
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"the regular expression '{pattern}' is not valid: {error}") from error
    if found := _foreign(pattern):
        raise ValueError(
            f"the regular expression '{pattern}' has '{found}', which Spark interprets differently"
        )
    return pattern


def _foreign(pattern: str) -> str | None:
    """What Java would not read as Python does."""
    # Escaped characters first, so that what is left is syntax; but \Z, \N and \x{…} differ too.
    if odd := re.search(r"(?<!\\)(?:\\\\)*(\\[ZNuUz])", pattern):
        return odd[1]
    plain = re.sub(r"\\.", "..", pattern, flags=re.DOTALL)
    for group in ("(?P", "(?("):
        if group in plain:
            return group
    classes = re.compile(r"\[\^?\]?[^\]]*\]")
    for inside in classes.findall(plain):
        for odd_one in ("[", "&&"):
            if odd_one in inside[1:]:
                return odd_one
    braces = re.sub(r"\{\d+(?:,\d*)?\}", "", classes.sub("", plain))
    return "{" if "{" in braces else None
