"""Secrets are 32 random bytes; only their SHA-256 is kept.

A slow hash protects secrets that can be guessed. These cannot: whoever has the hash would have to
try 2^256 values, however fast each is tried. And the hash is made at each request, so it must cost
about a microsecond.
"""

from __future__ import annotations

import hashlib
import secrets

TOKEN_PREFIX = "hr_"  # so that a token is known as one where it was left by mistake


def new_secret(prefix: str = "") -> str:
    return prefix + secrets.token_urlsafe(32)


def digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()
