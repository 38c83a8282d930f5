"""Ids that sort by the time they were made, and hashes that stand for a caller."""

from hashlib import sha256

from ulid import ULID


def new_id() -> str:
    return str(ULID())


def hash_caller(caller: str) -> str:
    return sha256(caller.encode()).hexdigest()
