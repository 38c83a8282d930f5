"""The base of all adapters: verifies a webhook, and reads the call it tells of.

A platform asks for a briefing when a call begins and for tools while it goes on, tells that it
goes on, and reports it whole when it is over.
"""

import hmac
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import ClassVar

from pydantic import SecretStr, ValidationError

from aftercall.clock import parse_instant
from aftercall.errors import RefusedInput
from aftercall.model.calls import (
    MAX_METADATA_BYTES,
    MAX_TURN_CHARS,
    Call,
    LiveCall,
    Speaker,
    is_sid,
    parse_call,
    to_refused_input,
)
from aftercall.model.json_fields import Json
from aftercall.model.people import normalise_caller
from aftercall.model.plain_json import parse_json
from aftercall.rest import Headers

_MAX_DETAILS_CHARS = MAX_METADATA_BYTES // 2
Variables = Mapping[str, str | bool]
"""What a platform fills into the prompt of its agent."""
UNKNOWN_SID = "unknown"
"""Of a call that begins and has no id yet: it is briefed, and shown when it has one."""


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

    def matches_bearer(self, headers: Headers) -> bool:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and self.matches_secret(token.strip())


@dataclass(frozen=True)
class PlatformToolCall:
    """One use of a tool. `id` is the same when the platform asks again."""

    id: str
    name: str
    arguments: str

    @property
    def seq(self) -> int:
        """Its number among the events of the call."""
        return 1 + int.from_bytes(sha256(self.id.encode()).digest()[:6])


class Platform(ABC):
    """One platform's webhooks and the secrets it shares with us.

    An event is one of four: the start of a call (`is_start`), the use of tools
    (`read_tool_calls`), a sign that a call goes on (`is_running`), or the report of a finished
    call (`read_call`). Whoever receives it asks in the order report, start, tools, sign, because
    a report may look like any of the others. An event that is none of these is left alone.

    A platform that signs everything has one address for all of them. One that signs only the
    report has addresses of their own for starts and tools, and there the address says what it is.
    """

    name: ClassVar[str]
    setting: ClassVar[str]
    start_setting: ClassVar[str] = ""
    """Of a platform that signs only the report: starts and tools bring a bearer token."""

    def __init__(
        self, secret: SecretStr | None, start_secret: SecretStr | None = None
    ) -> None:
        self._key = WebhookKey(secret)
        self._start_key = WebhookKey(start_secret)

    @property
    def has_key(self) -> bool:
        return bool(self._key)

    @property
    def has_start_key(self) -> bool:
        return bool(self._start_key)

    def is_start_genuine(self, headers: Headers) -> bool:
        """The secret that signs webhooks never travels, so this one is another."""
        return self._start_key.matches_bearer(headers)

    def is_ours(self, event: Json) -> bool:
        """Whether the agent of a call is one of ours."""
        return True

    def is_start(self, event: Json) -> bool:
        """Whether the platform waits for a briefing."""
        return False

    @abstractmethod
    def read_running(self, event: Json, agent_id: str, now: datetime) -> LiveCall:
        """The call that begins or goes on. Raises RefusedInput."""

    def is_running(self, event: Json) -> bool:
        """Whether the event says that its call goes on, and names it."""
        return False

    def read_tool_calls(self, event: Json, name: str) -> list[PlatformToolCall]:
        """`name` is the address's, for platforms whose body is the arguments alone."""
        return []

    def answer_start(self, variables: Variables) -> Json:
        """The briefing in the platform's form.

        `variables` are all of them or, for a call of another agent, none. Raises ConfigError if
        the platform needs a setting for its answer.
        """
        return dict(variables)

    def answer_tools(self, answers: Sequence[tuple[PlatformToolCall, str]]) -> Json:
        """What our tools said, in the platform's form.

        Never an error status: the agent would tell the caller of it, or fall silent.
        """
        return {"result": "\n".join(text for _, text in answers)}

    @abstractmethod
    def is_genuine(self, headers: Headers, raw: bytes, now: datetime) -> bool:
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
        last = self.started_at
        end = max(self.ended_at, self.started_at)
        for said in self.turns:
            if not said.text.strip():
                continue
            last = min(max(last, said.at), end)
            yield {
                "speaker": said.speaker,
                "text": said.text[:MAX_TURN_CHARS],
                "at": last,
            }


def make_live_call(
    source: str,
    sid: object,
    agent_id: str,
    parties: tuple[object, object],
    started_at: datetime,
    *,
    is_inbound: bool = True,
) -> LiveCall:
    """`parties` are the customer's number and the agent's. An invalid number is a withheld one."""
    metadata: Json = {}
    customer = parse_number(parties[0], "customer", metadata)
    line = parse_number(parties[1], "line", metadata)
    caller, callee = (customer, line) if is_inbound else (line, customer)
    try:
        return LiveCall(
            source=source,
            sid=sid if is_sid(sid) else UNKNOWN_SID,  # type: ignore[arg-type]
            agent_id=agent_id,
            direction="inbound" if is_inbound else "outbound",
            caller=caller,
            callee=callee,
            started_at=started_at,
            metadata=metadata,
        )
    except ValidationError as error:
        raise to_refused_input(error) from None


def read_own_tool_call(
    event: Json, name: str, context: Sequence[str]
) -> list[PlatformToolCall]:
    """A tool whose body we describe: the call in `context`, all else are the arguments."""
    if not name:
        return []
    arguments = {key: value for key, value in event.items() if key not in context}
    text = json.dumps(arguments, sort_keys=True)
    return [PlatformToolCall(f"{name} {text}", name, text)]


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
