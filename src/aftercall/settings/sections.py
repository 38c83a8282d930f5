"""Settings of Aftercall's own parts, one class a section of the file."""

import ipaddress
import re
from collections.abc import Collection
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    field_validator,
)

from aftercall.settings.fields import (
    Passcode,
    Section,
    Words,
    parse_list,
    parse_pairs,
)


def parse_groups(value: Any) -> Any:
    """The environment separates groups by semicolons: `main,sales;clinic`."""
    if not isinstance(value, str):
        return value
    return [parse_list(group) for group in value.split(";") if group.strip()]


def _check_networks(networks: tuple[str, ...]) -> tuple[str, ...]:
    for network in networks:
        try:
            ipaddress.ip_network(network)
        except ValueError:
            raise ValueError(
                f"{network!r} is not an address or a network, as in 10.0.0.0/8"
            ) from None
    return networks


Networks = Annotated[Words, AfterValidator(_check_networks)]


# Seconds and milliseconds: a server behind a broken network never answers. The keepalives end a
# wait for an answer, the others a connection attempt and a request that does not arrive.
_POSTGRES_TIMEOUTS = {
    "connect_timeout": 5,
    "tcp_user_timeout": 10_000,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
}


def list_postgres_timeouts(query: Collection[str]) -> dict[str, int]:
    """For the driver, except those that the query of the address names."""
    return {
        name: value for name, value in _POSTGRES_TIMEOUTS.items() if name not in query
    }


class DatabaseSettings(Section):
    url: str = Field(
        default="",
        description=(
            "SQLAlchemy URL; `postgresql+psycopg://…` for several machines; SQLite in "
            "the home if empty"
        ),
    )
    connections: int = Field(
        default=15,
        ge=3,
        le=500,
        description="most connections of a process; the durable engine has four more",
    )


class LimitSettings(Section):
    live_calls: int = Field(
        default=1_000,
        ge=1,
        description="calls that a process takes at once; more hear that all lines are busy",
    )
    ingest: int = Field(
        default=256, ge=1, description="finished calls that a process stores at once"
    )
    queue: int = Field(
        default=20_000,
        ge=1,
        description="calls that may wait to be read before no more are taken by `POST /api/calls`",
    )


class PagesSettings(Section):
    password_hash: SecretStr | None = Field(
        default=None,
        description="password for the pages, besides the API token; `aftercall password` makes it",
    )
    session_hours: float = Field(
        default=168,
        gt=0,
        le=8_760,
        description="a login ends after so many hours, used or not",
    )


class WebSettings(Section):
    open: Annotated[
        tuple[Literal["/metrics", "/openapi.json"], ...], BeforeValidator(parse_list)
    ] = Field(
        default=(),
        description="of `/metrics` and `/openapi.json`, what is served without the token",
    )


class CallsSettings(Section):
    max_entries: int = Field(default=50, ge=0, description="entries kept in CALLS.md")
    believe_posted: bool = Field(
        default=False,
        description=(
            "believe `verified` and passcode events of calls that come by `POST /api/calls`"
        ),
    )


class LiveSettings(Section):
    lease_s: float = Field(
        default=60,
        ge=2,
        le=3_600,
        description="a live call by API whose sender is silent for so long is sealed",
    )
    platform_lease_s: float = Field(
        default=7_200,
        ge=60,
        le=172_800,
        description="the same for a hosted platform's call, of which few events come",
    )


class BriefingSettings(Section):
    calls: int = Field(
        default=3,
        ge=0,
        le=50,
        description="recent summaries in the next call's briefing",
    )
    facts: int = Field(
        default=10, ge=0, le=100, description="facts in the next call's briefing"
    )
    max_tokens: int = Field(
        default=2_000,
        ge=100,
        le=100_000,
        description="approximate length limit of a briefing",
    )
    timeout_ms: int = Field(
        default=300,
        ge=1,
        le=10_000,
        description="how long a ringing call waits for its briefing",
    )


class MemorySettings(Section):
    scope: Literal["per_caller", "shared", "none"] = Field(
        default="per_caller", description="whose memory a call uses"
    )
    agents: Annotated[tuple[tuple[str, ...], ...], BeforeValidator(parse_groups)] = (
        Field(
            default=(),
            description=(
                "groups of agents that share their `shared` facts: "
                '`[["main", "sales"], ["clinic"]]`'
            ),
        )
    )
    release: Literal["shared", "private"] = Field(
        default="shared",
        description=(
            "highest level of facts for any caller of their number; higher levels need a "
            "verified caller or an attested number"
        ),
    )
    embedder: str = Field(
        default="",
        description="vectors for search: `openai:MODEL`, `openai-compatible:MODEL`, "
        "`module:factory`",
    )
    judge: str = Field(
        default="",
        description="tells after a call which known facts a new one replaces: `PROVIDER:MODEL` "
        "as for `model`, `module:factory`; none if empty",
    )
    visibility: Annotated[
        dict[str, Literal["shared", "private", "secret"]], BeforeValidator(parse_pairs)
    ] = Field(
        default={},
        description=(
            "level by category or topic, `routine=private,emotional=secret`; a reader "
            "can only raise it"
        ),
    )
    secret_words: Words = Field(
        default=(), description="words that make a fact secret, separated by commas"
    )
    pin_after: int = Field(
        default=3,
        ge=0,
        le=100,
        description="conversations after which a topic is pinned; 0 pins none",
    )
    pin_stale_days: int = Field(
        default=60,
        ge=0,
        description="days without a mention after which a topic is unpinned; 0: never",
    )

    @field_validator("agents")
    @classmethod
    def _check_groups(
        cls, groups: tuple[tuple[str, ...], ...]
    ) -> tuple[tuple[str, ...], ...]:
        named = [agent_id for group in groups for agent_id in group]
        if twice := next(
            (agent_id for agent_id in named if named.count(agent_id) > 1), None
        ):
            raise ValueError(f"{twice!r} is named twice; an agent belongs to one group")
        return groups

    def list_others_in_group(self, agent_id: str) -> tuple[str, ...]:
        """The other agents whose `shared` facts this one knows."""
        group = next((group for group in self.agents if agent_id in group), ())
        return tuple(other for other in group if other != agent_id)


RetentionKind = Literal["recordings", "transcripts", "facts", "documents"]
Actions = Annotated[
    dict[RetentionKind, Literal["delete", "archive"]], BeforeValidator(parse_pairs)
]


class RetentionSettings(Section):
    recordings_days: int = Field(
        default=90, ge=0, description="days until recordings are removed; 0 keeps them"
    )
    transcripts_days: int = Field(
        default=0, ge=0, description="days until sealed calls are removed; 0 keeps them"
    )
    facts_days: int = Field(
        default=0,
        ge=0,
        description="days until facts that were not repeated are removed; 0 keeps them",
    )
    documents_days: int = Field(
        default=0, ge=0, description="days until documents are removed; 0 keeps them"
    )
    answers_days: int = Field(
        default=90,
        ge=0,
        description=(
            "days until a model's answers and what is noted of each are removed; a call that "
            "is read again after that is paid again; 0 keeps them"
        ),
    )
    pages_days: int = Field(
        default=30, ge=0, description="days of the history of pages; 0 keeps it"
    )
    workflows_hours: float = Field(
        default=24,
        gt=0,
        description="hours until the durable engine's rows of finished work are removed",
    )
    action: Actions = Field(
        default={},
        description=(
            "`delete` (default) or `archive`, by kind; `transcripts=archive` moves them "
            "to `<home>/retired`"
        ),
    )


class ExtractionSettings(Section):
    min_turns: int = Field(
        default=3, ge=0, description="calls with fewer turns are not searched for facts"
    )
    max_per_minute: int = Field(
        default=10,
        ge=1,
        description=(
            "calls searched for facts in a minute, the rest wait; limits the rules "
            "reader only if set"
        ),
    )
    known_facts: int = Field(
        default=50, ge=0, description="known facts shown to the reader, never secrets"
    )
    min_confidence: float = Field(
        default=0.6,
        ge=0,
        le=1,
        description="facts below this confidence are dropped and counted",
    )
    max_facts: int = Field(
        default=100,
        ge=1,
        description="facts from one call; more are dropped and counted",
    )


class ReadingSettings(Section):
    timeout_s: float = Field(
        default=60, gt=0, le=600, description="time limit for one answer of the model"
    )
    max_tokens: int = Field(
        default=4096, ge=64, le=64_000, description="longest answer of the model"
    )
    part_chars: int = Field(
        default=60_000,
        ge=500,
        description="longer transcripts are read in parts of this many characters",
    )


class ReceptionistSettings(Section):
    greeting: str = Field(
        default="Hello! I'm the assistant. What can I do for you?",
        min_length=1,
        max_length=200,
        description="greeting for callers without a personal one",
    )
    speech: bool = Field(
        default=False,
        description=(
            "speak and listen on this machine instead of through the carrier; needs `[speech]`"
        ),
    )
    voice: str = Field(
        default="en-us",
        pattern=r"^[\w+-]{1,40}$",
        description="voice on this machine, as espeak-ng names it",
    )


class BridgeSettings(Section):
    silence_prompt_s: float = Field(
        default=15,
        gt=0,
        le=3600,
        description="seconds of silence after which the agent asks whether the caller is there",
    )
    silence_goodbye_s: float = Field(
        default=45,
        gt=0,
        le=3600,
        description="seconds of silence after which the agent says goodbye",
    )
    max_duration_s: float = Field(
        default=3600,
        gt=0,
        le=86_400,
        description="longest call; then the agent says goodbye",
    )
    drain_s: float = Field(
        default=1.5,
        ge=0,
        le=30,
        description="seconds to wait for late words after hang-up; later ones become an addendum",
    )
    finish_s: float = Field(
        default=20,
        ge=0,
        le=86_400,
        description="seconds that live calls may go on after SIGTERM, which ends new ones",
    )


class RecordingsSettings(Section):
    enabled: bool = Field(
        default=False,
        description=(
            "record calls at the carrier, fetch the recordings of hosted platforms, and keep the "
            "audio; the law may require telling callers"
        ),
    )
    max_bytes: int = Field(
        default=256 * 1024 * 1024, ge=1, description="larger recordings are not fetched"
    )
    hosts: Words = Field(
        default=(),
        description=(
            "more hosts to fetch recordings from, such as your own bucket at a platform; "
            "`.example.com` allows every host below it"
        ),
    )
    transcribe: bool = Field(
        default=False,
        description="transcribe recordings with OpenAI, besides the transcript of the call",
    )


_TRUSTS = ("verified", "known", "unknown")
_KINDS = ("issue", "task", "reminder", "note", "message", "booking", "other")
_SINKS = ("tasks", "people", "github", "webhook", "email", "message", "mcp", "agent")


def _check_policy(policy: dict[str, str]) -> dict[str, str]:
    for name in policy:
        trust, dot, kind = name.partition(".")
        if trust not in _TRUSTS or (dot and kind not in _KINDS):
            raise ValueError(
                f"{name!r} is not TRUST or TRUST.KIND ({', '.join(_TRUSTS)}; {', '.join(_KINDS)})"
            )
    return policy


def _check_sinks(names: str) -> str:
    for name in re.split(r"\s*\+\s*", names) if names else ():
        if name not in _SINKS:
            raise ValueError(f"{name!r} is not one of {', '.join(_SINKS)}")
    return names.replace(" ", "")


def _check_routes(routes: dict[str, str]) -> dict[str, str]:
    for kind in routes:
        if kind not in _KINDS:
            raise ValueError(f"{kind!r} is not one of {', '.join(_KINDS)}")
    return {kind: _check_sinks(names) for kind, names in routes.items()}


SinkNames = Annotated[str, AfterValidator(_check_sinks)]
Policy = Annotated[
    dict[str, Literal["do", "hold", "refuse"]],
    BeforeValidator(parse_pairs),
    AfterValidator(_check_policy),
]
Routes = Annotated[
    dict[str, str], BeforeValidator(parse_pairs), AfterValidator(_check_routes)
]


class WorkSettings(Section):
    enabled: bool = Field(
        default=True,
        description="do follow-up work once the reconnect window has passed",
    )
    dry_run: bool = Field(
        default=False, description="hold everything, with what would have been done"
    )
    trusted: Words = Field(
        default=(),
        description="numbers that count as known, and as verified when the carrier attests them",
    )
    passcode: Passcode | None = Field(
        default=None, description="spoken words or digits that verify a caller"
    )
    passcode_tries: int = Field(
        default=3,
        ge=1,
        le=10,
        description="wrong passcodes of a caller in a day before even the right one is ignored",
    )
    policy: Policy = Field(
        default={},
        description="`do`, `hold` or `refuse` by `TRUST.KIND` or `TRUST`, e.g. `unknown.issue=do`",
    )
    routes: Routes = Field(
        default={},
        description=(
            "sinks of a kind of request, e.g. `issue=github+webhook`; by what is set up if unset"
        ),
    )
    daily_limit: int = Field(
        default=20, ge=0, description="requests of one caller in a day; more are held"
    )
    hold_days: int = Field(
        default=30,
        ge=1,
        description="days a request waits for approval before it expires",
    )
    undo_s: float = Field(
        default=8,
        ge=0,
        le=300,
        description="seconds in which an approval on the pages can be undone; then it is done",
    )
    notice: SinkNames = Field(
        default="", description="sink that tells the owner about each conversation"
    )
    reminders: SinkNames = Field(
        default="", description="sink that reminds of what is due"
    )
    reminder_hour: int = Field(
        default=9,
        ge=0,
        le=23,
        description="hour of the day for reminders of what is due that day",
    )
