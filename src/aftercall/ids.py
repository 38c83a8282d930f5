"""Ids that sort by time, and hashes of callers."""

import os
import time
from hashlib import sha256
from itertools import product
from threading import Lock

_PAIRS = tuple(
    "".join(pair) for pair in product("0123456789ABCDEFGHJKMNPQRSTVWXYZ", repeat=2)
)
_BIT_SHIFTS = tuple(range(120, -1, -10))
_lock = Lock()
_last = 0


def new_id() -> str:
    """Makes a ULID: 48 bits of milliseconds and 80 random bits, in Crockford's letters.

    Within one millisecond, ids of a process increase by a random step.
    """
    global _last
    moment = time.time_ns() // 1_000_000
    random_bits = int.from_bytes(os.urandom(10))
    with _lock:
        if moment == _last >> 80:
            number = _last + 1 + (random_bits >> 24)
        else:
            number = moment << 80 | random_bits >> 1
        _last = number
    return "".join([_PAIRS[number >> place & 1023] for place in _BIT_SHIFTS])


def hash_caller(caller: str) -> str:
    return sha256(caller.encode()).hexdigest()


def make_work_id(call_id: str, addenda: int) -> str:
    """The id of the workflow that reads a call with so many addenda."""
    return f"{call_id}.late-{addenda}" if addenda else call_id
