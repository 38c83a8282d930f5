"""Fields of our objects as JSON has them, for answers of the API and commands with `--json`."""

from datetime import datetime
from typing import Any

from aftercall.clock import format_instant

Json = dict[str, Any]
"""An object of JSON, or what becomes one: named values of any kind."""


def pick_fields(thing: object, names: str) -> Json:
    """Fields as JSON has them, times as text, in this order; `names` has spaces between them."""
    return {name: _to_plain(getattr(thing, name)) for name in names.split()}


def _to_plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return format_instant(value) if isinstance(value, datetime) else value
