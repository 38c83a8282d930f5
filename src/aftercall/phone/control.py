"""Steering a call over a carrier's REST address, as values: what to send, not how.

The HTTP client stands above.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import quote, urlencode


@dataclass(frozen=True, slots=True)
class ControlRequest:
    """One request below the carrier's configured API address; either a form or JSON, never both.

    One that is not repeatable does its work again when it is sent again; `key` tells a carrier
    that listens to keys that it is the same.
    """

    method: str
    path: str
    form: Sequence[tuple[str, str]] = field(default=(), repr=False)
    json: Mapping[str, Any] | None = field(default=None, repr=False)
    is_repeatable: bool = True
    idempotency_key: str = ""

    @property
    def content_type(self) -> str:
        return "application/x-www-form-urlencoded" if self.json is None else "application/json"

    @property
    def body(self) -> bytes:
        if self.method == "GET":
            return b""
        text = urlencode(self.form) if self.json is None else json.dumps(self.json)
        return text.encode()


class Control(Protocol):
    """What every carrier lets us do with a call that is going on."""

    def hang_up(self, sid: str) -> ControlRequest: ...

    def start_recording(self, sid: str, *, callback: str | None = None) -> ControlRequest:
        """Record both sides on channels of their own."""
        ...

    def send_message(self, sender: str, to: str, text: str, *, key: str) -> ControlRequest: ...

    def is_call_over(self, status: int, body: bytes) -> bool:
        """Whether an answer says that the call has already ended, so that there is nothing left
        to do.
        """
        ...


def path_part(text: str) -> str:
    """An id as part of a path; whatever it holds, it stays one part."""
    return quote(text, safe=":@=+~")
