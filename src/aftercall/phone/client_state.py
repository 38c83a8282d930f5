"""Telnyx's `client_state`: words of ours that come back with every webhook of a call and with its media stream."""

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping

from aftercall.phone.stream import only_text


def pack_state(words: Mapping[str, str]) -> str:
    return b64encode(json.dumps(dict(words), separators=(",", ":"), sort_keys=True).encode()).decode("ascii")


def unpack_state(state: object) -> dict[str, str]:
    """Whatever is not ours, or not whole, is nothing: another program may have set it."""
    if not isinstance(state, str):
        return {}
    try:
        return only_text(json.loads(b64decode(state, validate=True)))
    except (ValueError, RecursionError):
        return {}
