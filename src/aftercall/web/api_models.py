"""What the JSON API takes and what it answers, for the server and for OpenAPI.

Answers may get more fields: a client ignores what it does not know. Secret facts show only that
they exist; the command line reveals them.
"""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from aftercall.db.corrections import CorrectedThing
from aftercall.memory.fact_corrections import MAX_FACT_CHARS
from aftercall.memory.pins.board import MAX_NOTE_CHARS, MAX_TITLE_CHARS
from aftercall.model.calls import Direction, RecordingState, Speaker, TranscriptState
from aftercall.model.facts import FactState, PinState
from aftercall.model.followups import FollowUpKind, FollowUpState, Purpose, Trust
from aftercall.model.json_fields import Json
from aftercall.model.reading import (
    Category,
    ReadingTrace,
    RequestKind,
    StepState,
    Visibility,
)

Time: TypeAlias = Annotated[
    str, WithJsonSchema({"type": "string", "format": "date-time"})
]


class ApiBody(BaseModel):
    """What a client sends; an unknown field is refused."""

    model_config = ConfigDict(extra="forbid")


class NewPin(ApiBody):
    caller: str
    topic: str = Field(max_length=MAX_TITLE_CHARS)


class PinEdit(ApiBody):
    note: str = Field(
        max_length=MAX_NOTE_CHARS, description="stored as it is; empty removes it"
    )
    title: str = Field(
        default="",
        max_length=MAX_TITLE_CHARS,
        description="a new name; empty keeps the old one",
    )


class MissedRequest(ApiBody):
    title: str = Field(max_length=MAX_FACT_CHARS)
    kind: RequestKind = "task"
    due: str | None = Field(default=None, description="a day like 2026-02-17")
    person: str | None = Field(default=None, description="whom it is for")
    turns: list[int] = Field(
        default=[], max_length=100, description="in which it was asked for"
    )


class MissedFact(ApiBody):
    text: str = Field(max_length=MAX_FACT_CHARS)
    turn: int = Field(description="in which the caller told it")
    category: Category = "person"


class NewCorrection(ApiBody):
    what: CorrectedThing
    of: str = Field(
        max_length=200, description="the id of a follow-up or a fact, or a caller"
    )
    new: str | None = Field(
        max_length=MAX_FACT_CHARS, description="null: there is no such thing"
    )


class RetiredFact(ApiBody):
    since: str = Field(default="", description="a day like 2026-02-17; else now")


class ApiAnswer(BaseModel):
    model_config = ConfigDict(extra="allow")


class Problem(ApiAnswer):
    code: str = Field(description="stable; the reference lists all")
    message: str = Field(description="what is wrong, where, and what to do")
    field: str | None = Field(default=None, description="the field that does not fit")


class RefusalAnswer(ApiAnswer):
    """The one form of every refusal and failure."""

    error: Problem


class IdAnswer(ApiAnswer):
    id: str


class CallAnswer(ApiAnswer):
    """A call without its words."""

    id: str
    source: str = Field(description="who brought it: `twilio`, `browser`, `vapi` …")
    sid: str = Field(description="its id at the source")
    agent_id: str
    direction: Direction
    caller: str | None = Field(description="null if withheld")
    callee: str | None
    verified: bool
    started_at: Time
    ended_at: Time | None
    end_reason: str | None
    conversation: str = Field(
        description="the first call of a conversation that went on"
    )
    resumes: str | None = Field(description="the call that this one continues")
    metadata: Json
    state: str = Field(description="`live`, `sealing` or `sealed`")
    turn_count: int
    archive: str | None = Field(description="the name of the sealed file")


class CallListAnswer(ApiAnswer):
    calls: list[CallAnswer]
    next: str | None = Field(description="`before` of the next page; null at the end")


class TurnAnswer(ApiAnswer):
    seq: int
    speaker: Speaker
    text: str
    at: Time
    confidence: float | None = None
    late: bool = Field(default=False, description="came after the call was sealed")


class EventAnswer(ApiAnswer):
    seq: int
    kind: str
    at: Time
    data: Json


class StepAnswer(ApiAnswer):
    name: str = Field(description="summary, profile, identity, greeting, facts …")
    state: StepState
    reason: str
    attempts: int
    result: str | None
    changed_at: Time
    trace: ReadingTrace | None


class RecordingAnswer(ApiAnswer):
    id: str
    carrier: str
    state: RecordingState
    reason: str
    path: str | None = Field(description="in the home")
    bytes: int | None
    sha256: str | None
    attempts: int
    transcript: TranscriptState
    changed_at: Time


class RecordingListAnswer(ApiAnswer):
    recordings: list[RecordingAnswer]


class ExtractionAnswer(ApiAnswer):
    extracted_at: Time
    reader: str
    prompt_hash: str | None
    facts_extracted: int
    facts_updated: int
    facts_deduplicated: int
    facts_refused: int
    facts_dropped: int
    reason: str
    error: str | None
    facts: list[str]


class WholeCallAnswer(CallAnswer):
    turns: list[TurnAnswer]
    events: list[EventAnswer]
    steps: list[StepAnswer]
    recordings: list[RecordingAnswer]
    extraction: ExtractionAnswer | None


class BriefedCall(ApiAnswer):
    at: Time
    summary: str
    context: str
    whose: str | None


class BriefedFact(ApiAnswer):
    id: str
    text: str
    since: Time
    heard_by: str | None
    disputed: bool
    doubtful: bool


class BriefedPin(ApiAnswer):
    id: str
    title: str
    status: str
    open_items: list[str]


class BriefingAnswer(ApiAnswer):
    greeting: str
    caller_name: str | None
    agent_name: str | None
    recent: list[BriefedCall]
    facts: list[BriefedFact]
    questions: list[str]
    work: list[str]
    pins: list[BriefedPin]
    resumes: str | None
    text: str = Field(description="as the agent is told it")


class CarrierWebhook(BaseModel):
    """The carrier's signed request that announced the call to the agent, as it came."""

    model_config = ConfigDict(extra="forbid", strict=True)

    url: str = Field(max_length=2_000)
    headers: dict[str, str] = Field(max_length=100)
    body: str = Field(max_length=256 * 1024)


class LiveTurnsAnswer(ApiAnswer):
    turns: int = Field(description="how many turns are stored")


class LiveToolAnswer(ApiAnswer):
    text: str = Field(description="what the tool says to the agent")


class LiveEndAnswer(ApiAnswer):
    call: str
    reason: str | None
    turns: int


class LiveBriefingAnswer(BriefingAnswer):
    first_words: str | None


class LiveToolDescription(ApiAnswer):
    name: str
    description: str
    parameters: Json = Field(description="a JSON schema")


class LiveStartAnswer(ApiAnswer):
    call: str
    conversation: str | None
    resumes: str | None
    turns: int
    lease_s: float
    greeting: str | None
    briefing: LiveBriefingAnswer
    tools: list[LiveToolDescription]


class FactAnswer(ApiAnswer):
    id: str
    agent_id: str
    caller: str = Field(description="`*` if memory is shared")
    category: Category
    content: str
    summary: str
    visibility: Visibility
    confidence: float
    needs_confirmation: bool
    first_seen_at: Time
    last_seen_at: Time
    valid_from: Time
    valid_until: Time | None
    occurrence_count: int
    supersedes: str | None
    superseded_by: str | None
    is_active: bool
    reader: str
    prompt_hash: str | None
    dispute: str | None
    doubt: str | None
    never_true: bool
    metadata: Json
    state: FactState


class FactListAnswer(ApiAnswer):
    facts: list[FactAnswer]
    next: str | None = Field(description="`after` of the next page; null at the end")


class OccurrenceAnswer(ApiAnswer):
    id: str
    fact_id: str
    call_id: str
    at: Time
    first_turn: int
    last_turn: int
    words: str
    context: str
    sentiment: str
    confidence: float
    reader: str
    prompt_hash: str | None


class WholeFactAnswer(FactAnswer):
    occurrences: list[OccurrenceAnswer]
    history: list[str] = Field(description="ids of its chain, oldest first")
    disputed_with: list[str]


class PinItemAnswer(ApiAnswer):
    id: str
    title: str
    state: str
    standing: str
    due: str | None


class PinMentionAnswer(ApiAnswer):
    call: str
    at: Time
    words: str


class PinAnswer(ApiAnswer):
    id: str
    agent_id: str
    caller: str
    title: str
    state: PinState
    reason: str
    is_decided_by_hand: bool
    note: str | None
    about: str
    status: str
    open_items: list[PinItemAnswer]
    done_items: list[PinItemAnswer]
    history: list[PinMentionAnswer]
    terms: list[str]
    since: Time
    last_at: Time
    changed_at: Time


class PinListAnswer(ApiAnswer):
    pins: list[PinAnswer]


class TurnRefAnswer(ApiAnswer):
    call: str
    seq: int


class FollowUpAnswer(ApiAnswer):
    id: str
    kind: FollowUpKind
    request_kind: RequestKind
    title: str
    details: str
    person: str | None
    due: str | None
    state: FollowUpState
    standing: str = Field(
        description="the state as people see it; `noted` waits for a person"
    )
    reason: str
    link: str | None
    trust: Trust
    sinks: list[str]
    conversation: str
    call: str
    agent_id: str
    caller: str | None
    turns: list[TurnRefAnswer]
    words: str
    fulfilled_by: str | None
    remind_at: Time | None
    created_at: Time
    changed_at: Time


class FollowUpListAnswer(ApiAnswer):
    followups: list[FollowUpAnswer]
    next: str | None = Field(description="`before` of the next page; null at the end")


class ChangeAnswer(ApiAnswer):
    at: Time
    who: str
    what: str
    note: str


class DeliveryAnswer(ApiAnswer):
    key: str
    sink: str
    purpose: Purpose
    state: Literal["due", "sending", "waiting", "done", "dead"]
    attempts: int
    reason: str
    link: str | None
    response: str | None
    changed_at: Time


class WholeFollowUpAnswer(FollowUpAnswer):
    history: list[ChangeAnswer]
    deliveries: list[DeliveryAnswer]


class CorrectionAnswer(ApiAnswer):
    id: str
    what: str
    caller: str | None
    call: str | None
    old: str | None
    new: str | None
    who: str
    at: Time


class CorrectionListAnswer(ApiAnswer):
    corrections: list[CorrectionAnswer]
    next: str | None = Field(description="`before` of the next page; null at the end")


def describe_body(model: type[BaseModel]) -> Json:
    """The body of a route that parses it itself, for OpenAPI. Parts are written in place."""
    schema = model.model_json_schema()
    parts = schema.pop("$defs", {})

    def write_out(part: Any) -> Any:
        if isinstance(part, list):
            return [write_out(item) for item in part]
        if not isinstance(part, dict):
            return part
        if name := part.get("$ref"):
            return write_out(parts[name.rpartition("/")[2]])
        if "const" in part:  # a list of one means the same, and more generators know it
            part = {**part, "enum": [part["const"]]}
            del part["const"]
        return {key: write_out(value) for key, value in part.items()}

    content = {"application/json": {"schema": write_out(schema)}}
    return {"requestBody": {"required": True, "content": content}}
