"""What every platform's adapter owes: whether a webhook is genuine, and the call it tells of."""

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

from aftercall.errors import RefusedInput
from aftercall.model.calls import MAX_METADATA_BYTES, Call, parse_call
from aftercall.model.instants import parse_instant
from aftercall.model.people import normalise_caller
from aftercall.model.turns import MAX_TURN_CHARS, Speaker

Json = dict[str, Any]
_MAX_DETAILS_CHARS = MAX_METADATA_BYTES // 2


class WebhookKey:
    """A platform's shared secret."""

    def __init__(self, secret: SecretStr | None) -> None:
        self._secret = secret.get_secret_value().encode() if secret else b""

    def __bool__(self) -> bool:
        return bool(self._secret)

    def matches(self, given: str, signed: bytes) -> bool:
        return hmac.compare_digest(
            hmac.digest(self._secret, signed, sha256).hex().encode(),
            given.lower().encode("utf-8", "replace"),
        )

    def matches_secret(self, given: str) -> bool:
        return hmac.compare_digest(self._secret, given.encode("utf-8", "replace"))


class Platform(ABC):
    """One platform's webhooks, with the secret it shares with us."""

    name: ClassVar[str]
    setting: ClassVar[str]

    def __init__(self, secret: SecretStr | None) -> None:
        self._key = WebhookKey(secret)

    @property
    def has_key(self) -> bool:
        return bool(self._key)

    @abstractmethod
    def is_genuine(self, headers: Mapping[str, str], raw: bytes, now: datetime) -> bool:
        """Over the raw bytes: what was parsed and written again is not what was signed."""

    @abstractmethod
    def read_call(self, event: Json, agent_id: str) -> Call | None:
        """The finished call, or None for an event that tells of none. Raises RefusedInput."""


@dataclass(frozen=True)
class PlatformTurn:
    speaker: Speaker
    text: str
    at: datetime


@dataclass(frozen=True)
class PlatformReport:
    """A platform's account of a call, in one form."""

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
        metadata = _small(self.details)
        customer, line = (
            parse_number(self.customer, "customer", metadata),
            parse_number(self.agent_number, "line", metadata),
        )
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
        """In the order they are told; a clock that jumps back, or past the end, is held."""
        last, end = self.started_at, max(self.ended_at, self.started_at)
        for said in self.turns:
            if not said.text.strip():
                continue
            last = min(max(last, said.at), end)
            yield {"speaker": said.speaker, "text": said.text[:MAX_TURN_CHARS], "at": last}


def parse_event(raw: bytes) -> Json:
    try:
        event = json.loads(raw)
    except (ValueError, RecursionError):
        raise RefusedInput("body", "is not valid JSON") from None
    if not isinstance(event, dict):
        raise RefusedInput("body", "is not a JSON object")
    return event


def get_object(parent: Json, name: str) -> Json:
    """An object within an object; one that is missing or something else is empty."""
    found = parent.get(name)
    return found if isinstance(found, dict) else {}


def get_objects(parent: Json, name: str) -> list[Json]:
    found = parent.get(name)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


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
    """A moment of the call by its distance from the start; one that is not told is the start."""
    if (
        isinstance(seconds, bool)
        or not isinstance(seconds, int | float)
        or not 0 <= seconds < 172_800
    ):
        return start
    return start + timedelta(seconds=seconds)


def slug(reason: object) -> str:
    text = re.sub(r"[^a-z0-9]+", "_", str(reason or "").lower()).strip("_")[:60]
    return text if text[:1].isalpha() else f"ended_{text}".rstrip("_")


def speaker_of(role: object, known: Mapping[str, Speaker]) -> Speaker | None:
    """Who spoke; None for what is no speech: system prompts, tools, transfers."""
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


def _small(details: Json) -> Json:
    """What of the platform's own details fits beside the call."""
    kept: Json = {}
    room = _MAX_DETAILS_CHARS
    for name, value in details.items():
        size = len(json.dumps(value, default=str)) if value not in (None, "", {}, []) else 0
        if 0 < size <= room:
            kept[name] = value
            room -= size
    return kept
