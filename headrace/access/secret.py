"""Secrets are 32 random bytes; only their SHA-256 is stored.

A slow hash protects secrets that can be guessed. These cannot: an attacker with the hash would have
to try 2^256 values. The hash is computed at each request, so it must cost about a microsecond.
"""

from __future__ import annotations

import hashlib
import secrets

TOKEN_PREFIX = "hr_"  # so that secret scanners find a leaked token


def new_secret(prefix: str = "") -> str:
    return prefix + secrets.token_urlsafe(32)


def digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()
