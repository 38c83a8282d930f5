"""Commands to a carrier's REST API, as values. `carrier` sends them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode


@dataclass(frozen=True, slots=True)
class ControlRequest:
    """One request below the carrier's API address, with a form or with JSON.

    A request that is not repeatable would do its work twice if it were sent twice. `action` names
    it in messages, where ids and fields do not belong.
    """

    action: str
    method: str
    path: str
    form: Sequence[tuple[str, str]] = field(default=(), repr=False)
    json: Mapping[str, Any] | None = field(default=None, repr=False)
    is_repeatable: bool = True

    @property
    def content_type(self) -> str:
        return (
            "application/x-www-form-urlencoded"
            if self.json is None
            else "application/json"
        )

    @property
    def body(self) -> bytes:
        if self.method == "GET":
            return b""
        text = urlencode(self.form) if self.json is None else json.dumps(self.json)
        return text.encode()

    @property
    def target(self) -> str:
        """The path with its query: a GET carries its form there."""
        is_query = self.method == "GET" and self.form
        return f"{self.path}?{urlencode(self.form)}" if is_query else self.path


def path_part(text: str) -> str:
    """An id as one part of a path, whatever it holds."""
    return quote(text, safe=":@=+~")
