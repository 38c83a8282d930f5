"""Ids that sort by the time they were made, and hashes that stand for a caller."""

import os
import time
from hashlib import sha256
from itertools import product
from threading import Lock

_PAIRS = tuple("".join(pair) for pair in product("0123456789ABCDEFGHJKMNPQRSTVWXYZ", repeat=2))
_BIT_SHIFTS = tuple(range(120, -1, -10))
_lock = Lock()
_last = 0


def new_id() -> str:
    """A ULID: 48 bits of milliseconds and 80 of chance, in Crockford's letters.

    Two are made for every fact that is heard.

    Of those that one process makes in the same millisecond, the later sorts later, too: by a
    step that nobody can guess.
    """
    global _last
    moment = time.time_ns() // 1_000_000
    chance = int.from_bytes(os.urandom(10))
    with _lock:
        number = _last + 1 + (chance >> 24) if moment == _last >> 80 else moment << 80 | chance >> 1
        _last = number
    return "".join([_PAIRS[number >> place & 1023] for place in _BIT_SHIFTS])


def hash_caller(caller: str) -> str:
    return sha256(caller.encode()).hexdigest()
