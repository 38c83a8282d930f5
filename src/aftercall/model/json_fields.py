"""Fields of our objects as JSON has them, for answers of the API and commands with `--json`."""

from datetime import datetime
from typing import Any

Json = dict[str, Any]
"""An object of JSON, or what becomes one: named values of any kind."""


def pick_fields(thing: object, names: str) -> Json:
    """Fields as JSON has them, times as text, in this order; `names` has spaces between them."""
    return {name: _to_plain(getattr(thing, name)) for name in names.split()}


def _to_plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    if not isinstance(value, datetime):
        return value
    # `--help` loads this module, and does without pydantic
    from aftercall.clock import format_instant  # noqa: PLC0415

    return format_instant(value)
