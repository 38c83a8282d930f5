"""What is kept of calls, for how long, and what the next call is told."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator

from aftercall.settings.section import Section, Words, parse_groups, parse_pairs


class CallsSettings(Section):
    max_entries: int = Field(default=50, ge=0, description="entries kept in CALLS.md")


class BriefingSettings(Section):
    calls: int = Field(default=3, ge=0, le=50, description="recent summaries told to the next call")
    facts: int = Field(default=10, ge=0, le=100, description="facts told to the next call")
    max_tokens: int = Field(default=2_000, ge=100, le=100_000, description="about how long a briefing may be")
    timeout_ms: int = Field(default=300, ge=1, le=10_000, description="how long a ringing call waits for its briefing")


class MemorySettings(Section):
    scope: Literal["per_caller", "shared", "none"] = Field(default="per_caller", description="whose memory a call opens")
    agents: Annotated[tuple[tuple[str, ...], ...], BeforeValidator(parse_groups)] = Field(
        default=(), description='groups of agents that know each other\'s `shared` facts: `[["main", "sales"], ["clinic"]]`'
    )
    release: Literal["shared", "private"] = Field(
        default="private", description="up to which level facts are told to any caller of their number; above it only to verified ones"
    )
    embedder: str = Field(default="", description="vectors for search: `openai:MODEL`, `openai-compatible:MODEL`, `module:factory`")
    visibility: Annotated[dict[str, Literal["shared", "private", "secret"]], BeforeValidator(parse_pairs)] = Field(
        default={}, description="level by category or topic, `routine=private,emotional=secret`; a reader's higher level always stands"
    )
    secret_words: Words = Field(default=(), description="a fact that holds one of these words is secret; separated by commas")
    pin_after: int = Field(default=3, ge=0, le=100, description="conversations after which a topic is pinned; 0 pins none")
    pin_stale_days: int = Field(default=60, ge=0, description="days without a word after which a topic is unpinned; 0: never")

    @field_validator("agents")
    @classmethod
    def _check_groups(cls, groups: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
        named = [agent_id for group in groups for agent_id in group]
        if twice := next((agent_id for agent_id in named if named.count(agent_id) > 1), None):
            raise ValueError(f"{twice!r} is named twice; an agent belongs to one group")
        return groups

    def list_others_in_group(self, agent_id: str) -> tuple[str, ...]:
        """The other agents whose `shared` facts this one knows."""
        group = next((group for group in self.agents if agent_id in group), ())
        return tuple(other for other in group if other != agent_id)


RetentionKind = Literal["recordings", "transcripts", "facts", "documents"]


Actions = Annotated[dict[RetentionKind, Literal["delete", "archive"]], BeforeValidator(parse_pairs)]


class RetentionSettings(Section):
    recordings_days: int = Field(default=90, ge=0, description="after how many days recordings go; 0 keeps them for good")
    transcripts_days: int = Field(default=0, ge=0, description="after how many days sealed calls go; 0 keeps them for good")
    facts_days: int = Field(default=0, ge=0, description="after how many days facts go that were not said again; 0 keeps them for good")
    documents_days: int = Field(default=0, ge=0, description="after how many days documents go; 0 keeps them for good")
    action: Actions = Field(
        default={},
        description="`delete` (if unset) or `archive`, by kind; `transcripts=archive` moves them to `<home>/retired`",
    )


class ExtractionSettings(Section):
    min_turns: int = Field(default=3, ge=0, description="shorter calls are not searched for facts")
    max_per_minute: int = Field(
        default=10, ge=1, description="calls searched for facts in a minute, the rest wait; the rules reader is limited only if this is set"
    )
    known_facts: int = Field(default=50, ge=0, description="known facts shown to the reader, secrets never")
    min_confidence: float = Field(default=0.6, ge=0, le=1, description="facts that a reader is less sure of are dropped and counted")
    max_facts: int = Field(default=100, ge=1, description="facts taken out of one call; more are dropped and counted")
