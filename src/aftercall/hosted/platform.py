"""The base of all adapters: verifies a webhook, and turns its report into a finished call."""

import hmac
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, ClassVar

from pydantic import SecretStr

from aftercall.clock import parse_instant
from aftercall.errors import RefusedInput
from aftercall.model.calls import MAX_METADATA_BYTES, Call, parse_call
from aftercall.model.people import normalise_caller
from aftercall.model.plain_json import parse_json
from aftercall.model.turns import MAX_TURN_CHARS, Speaker

Json = dict[str, Any]
_MAX_DETAILS_CHARS = MAX_METADATA_BYTES // 2


class WebhookKey:
    def __init__(self, secret: SecretStr | None) -> None:
        self._secret = secret.get_secret_value().encode() if secret else b""

    def __bool__(self) -> bool:
        return bool(self._secret)

    def matches(self, given: str, signed: bytes) -> bool:
        expected = hmac.digest(self._secret, signed, sha256).hex().encode()
        return hmac.compare_digest(expected, given.lower().encode("utf-8", "replace"))

    def matches_secret(self, given: str) -> bool:
        return hmac.compare_digest(self._secret, given.encode("utf-8", "replace"))

    def matches_bearer(self, headers: Mapping[str, str]) -> bool:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and self.matches_secret(token.strip())


class Platform(ABC):
    """One platform's webhooks and the secret it shares with us."""

    name: ClassVar[str]
    setting: ClassVar[str]

    def __init__(self, secret: SecretStr | None) -> None:
        self._key = WebhookKey(secret)

    @property
    def has_key(self) -> bool:
        return bool(self._key)

    @abstractmethod
    def is_genuine(self, headers: Mapping[str, str], raw: bytes, now: datetime) -> bool:
        """Verifies the raw bytes: re-encoded JSON differs from what was signed."""

    @abstractmethod
    def read_call(self, event: Json, agent_id: str) -> Call | None:
        """The finished call; None for other events. Raises RefusedInput."""


@dataclass(frozen=True)
class PlatformTurn:
    speaker: Speaker
    text: str
    at: datetime


@dataclass(frozen=True)
class PlatformReport:
    """A platform's report of a call in one form."""

    source: str
    sid: str
    is_inbound: bool
    customer: object
    agent_number: object
    started_at: datetime
    ended_at: datetime
    end_reason: object
    turns: tuple[PlatformTurn, ...]
    details: Json

    def to_call(self, agent_id: str) -> Call:
        metadata = _fit_details(self.details)
        customer = parse_number(self.customer, "customer", metadata)
        line = parse_number(self.agent_number, "line", metadata)
        caller, callee = (customer, line) if self.is_inbound else (line, customer)
        return parse_call(
            {
                "source": self.source,
                "sid": self.sid,
                "agent_id": agent_id,
                "direction": "inbound" if self.is_inbound else "outbound",
                "caller": caller,
                "callee": callee,
                "started_at": self.started_at,
                "ended_at": max(self.ended_at, self.started_at),
                "end_reason": slug(self.end_reason),
                "turns": list(self._turns()),
                "metadata": metadata,
            }
        )

    def _turns(self) -> Iterable[Json]:
        """In the reported order; times never run back nor past the end."""
        last, end = self.started_at, max(self.ended_at, self.started_at)
        for said in self.turns:
            if not said.text.strip():
                continue
            last = min(max(last, said.at), end)
            yield {
                "speaker": said.speaker,
                "text": said.text[:MAX_TURN_CHARS],
                "at": last,
            }


def parse_event(raw: bytes) -> Json:
    event = parse_json(raw)
    if not isinstance(event, dict):
        raise RefusedInput("body", "is not a JSON object")
    return event


def get_object(parent: Json, name: str) -> Json:
    """An inner object; empty if it is missing or something else."""
    found = parent.get(name)
    return found if isinstance(found, dict) else {}


def get_objects(parent: Json, name: str) -> list[Json]:
    found = parent.get(name)
    return (
        [item for item in found if isinstance(item, dict)]
        if isinstance(found, list)
        else []
    )


def sid_of(parent: Json, name: str) -> str:
    sid = parent.get(name)
    if not isinstance(sid, str) or not sid:
        raise RefusedInput(name, "is missing")
    return sid


def parse_time(value: object, field: str) -> datetime:
    try:
        return parse_instant(value)
    except ValueError as error:
        raise RefusedInput(field, str(error)) from None


def from_milliseconds(value: object, field: str) -> datetime:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RefusedInput(field, "is not a time in milliseconds")
    return parse_time(value / 1000, field)


def offset(start: datetime, seconds: object) -> datetime:
    """The start plus `seconds`; the start if they are missing or implausible."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return start
    return start + timedelta(seconds=seconds) if 0 <= seconds < 172_800 else start


def slug(reason: object) -> str:
    text = re.sub(r"[^a-z0-9]+", "_", str(reason or "").lower()).strip("_")[:60]
    return text if text[:1].isalpha() else f"ended_{text}".rstrip("_")


def speaker_of(role: object, known: Mapping[str, Speaker]) -> Speaker | None:
    """Who spoke; None for system prompts, tools and transfers."""
    return known.get(role) if isinstance(role, str) else None


def text_of(value: object) -> str:
    return value if isinstance(value, str) else ""


def parse_number(number: object, side: str, metadata: Json) -> str | None:
    if not isinstance(number, str):
        return None
    try:
        return normalise_caller(number)
    except ValueError:
        metadata[f"{side}_as_sent"] = number[:200]
        return None


def _fit_details(details: Json) -> Json:
    """The platform's details as far as they fit into the metadata of a call."""
    kept: Json = {}
    room = _MAX_DETAILS_CHARS
    for name, value in details.items():
        size = (
            len(json.dumps(value, default=str))
            if value not in (None, "", {}, [])
            else 0
        )
        if 0 < size <= room:
            kept[name] = value
            room -= size
    return kept
