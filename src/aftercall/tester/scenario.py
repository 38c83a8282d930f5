"""A scenario: a scripted test call, what it should show, and its limits.

The same models make the JSON Schema for editors. `scenario_file.py` reads files and older forms.
"""

from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from aftercall.model.json_fields import Json
from aftercall.tester.criterion import (
    Criterion,
    Expect,
    Patterns,
    ScenarioProbe,
    Texts,
    TurnPart,
)
from aftercall.tester.phrases import words_of

Who = Literal["agent", "tester", "line", "unknown"]
TurnEvent = Literal["call_starts", "agent_starts", "agent_stops", "agent_says"]
NoiseKind = Literal["none", "white", "hum", "babble", "street"]
ScenarioType = Literal["standard", "edge"]
ExpectedOutcome = Literal["answered", "voicemail", "busy", "no-answer", "failed"]
_NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,79}$"
_KEYS = r"^[0-9A-D*#]{1,32}$"
_CLOSING = "No, that's all. Thank you!"


class After(TurnPart):
    """When a turn starts, other than after the agent has finished: how a caller interrupts."""

    event: TurnEvent = Field(description="what the caller waits for")
    delay_ms: int = Field(
        default=0, ge=0, le=60_000, description="how long after it to start"
    )
    words: Patterns = Field(
        default=(), description="for agent_says: the words that are waited for"
    )

    @model_validator(mode="after")
    def _has_words(self) -> Self:
        if (self.event == "agent_says") != bool(self.words):
            raise ValueError("words: belong to agent_says, and agent_says needs them")
        return self


class ScriptedTurn(TurnPart):
    """One step of a caller who follows a list."""

    say: str | None = Field(
        default=None, min_length=1, description="what the caller says"
    )
    clip: str | None = Field(
        default=None, description="a WAV file to play; `say` holds its words"
    )
    dtmf: str | None = Field(default=None, pattern=_KEYS, description="keys to press")
    silence_s: float | None = Field(
        default=None,
        gt=0,
        le=120,
        alias="silence",
        description="how long the caller says nothing",
    )
    hang_up: bool = Field(default=False, description="the caller hangs up")
    after: After | None = Field(
        default=None, description="start at this event, even while the agent speaks"
    )
    expect: Expect | None = Field(
        default=None, description="what the agent should do then"
    )

    @model_validator(mode="after")
    def _does_something(self) -> Self:
        deeds = sum(item is not None for item in (self.say, self.dtmf, self.silence_s))
        deeds += self.hang_up
        if deeds > 1:
            raise ValueError(
                "has more than one of say, dtmf, silence, hang_up; write two turns"
            )
        if not deeds and self.expect is None:
            raise ValueError(
                "does nothing; give it say, dtmf, silence, hang_up or expect"
            )
        if self.clip is not None and self.say is None:
            raise ValueError("clip: needs `say` with its words")
        return self


class ScenarioStage(TurnPart):
    """What the caller says when the agent has come this far."""

    name: str = Field(default="", description="what it is called in reports")
    when: Patterns = Field(
        default=(),
        description="the agent's words that lead here; without any, it is said when nothing "
        "else fits",
    )
    say: Texts = Field(
        min_length=1, description="what the caller says; variants take turns"
    )
    needed: bool = Field(
        default=True,
        description="counts for stage coverage, and the caller does not end the call before it",
    )


class ScriptedAnswer(TurnPart):
    """What the caller answers to a question about who they are."""

    answer: str = Field(min_length=1, description="the words")
    asked_as: Patterns = Field(
        default=(), description="further ways in which agents ask for it"
    )


class Verification(TurnPart):
    """Who the caller is, and what the agent must ask before it acts."""

    answers: dict[str, ScriptedAnswer] = Field(
        default_factory=dict,
        description="by field: name, dob, phone, zip … or a name of your own",
    )
    required: Texts = Field(
        default=(), description="fields the agent must ask for before it acts"
    )
    before: Patterns = Field(
        default=(),
        description="agent's words that must not come before; the success criteria's words if "
        "unset",
    )

    def find_given(self, words: list[str]) -> set[str]:
        """The fields whose whole answer is among these words."""
        return {
            name
            for name, item in self.answers.items()
            if set(words_of(item.answer)) <= set(words)
        }


class AntiRepetition(TurnPart):
    enabled: bool = Field(
        default=True, description="the caller repeats only what is asked again"
    )
    again: Texts = Field(
        default=("As I said, {answer}", "Again: {answer}"),
        description="how something is said again when asked again",
    )
    rules: Texts = Field(
        default=(), description="further rules, for a caller played by a model"
    )


class SpeakingManner(TurnPart):
    """How the caller's words sound, where espeak-ng speaks them."""

    accent: str = Field(
        default="",
        pattern=r"^[a-zA-Z0-9+-]{0,30}$",
        description="a voice of espeak-ng, such as `en-gb-scotland` or `en+f3`; "
        "the scenario's language if unset",
    )
    words_per_minute: int = Field(default=165, ge=80, le=400, description="how fast")
    pitch: int = Field(default=60, ge=0, le=99, description="how high")


class CallerHabits(TurnPart):
    """What a caller does while the agent speaks, drawn from the scenario's seed.

    A murmur and words to others are in the sound alone: an agent of text gets the words of the
    script, and no others. An interruption is the caller's next words of the script, too early.
    """

    backchannels: float = Field(
        default=0.0, ge=0, le=1, description="share of long turns with a `Mhm` in them"
    )
    side_speech: Texts = Field(
        default=(), description="said to somebody else in the room, each once"
    )
    interruptions: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="share of the agent's turns into which the caller breaks at a random point, "
        "if what was said so far calls for an answer",
    )


class CallerContext(TurnPart):
    """Who calls, and how they behave."""

    background: str = Field(default="", description="what the caller knows and wants")
    number: str | None = Field(
        default=None, description="the number they call from, if shown"
    )
    opening: Texts = Field(
        default=(), description="what they say when they first may speak"
    )
    closing: Texts = Field(
        default=(_CLOSING,), description="what they say when everything is done"
    )
    response_stages: tuple[ScenarioStage, ...] = Field(
        default=(), description="tried in order"
    )
    anti_repetition: AntiRepetition = Field(
        default=AntiRepetition(), description="rules against saying things twice"
    )
    question_priority: Texts = Field(
        default=(), description="fields to answer first when several are asked"
    )
    tone: str = Field(
        default="", description="for a caller played by a model, and for the reader"
    )
    verification: Verification = Field(
        default=Verification(), description="who the caller is"
    )
    markers: Texts = Field(
        default=(),
        description="words that only this caller has said; in another's call they are a leak",
    )
    manner: SpeakingManner = Field(
        default=SpeakingManner(), description="how their words sound"
    )
    habits: CallerHabits = Field(
        default=CallerHabits(), description="what they do while the agent speaks"
    )
    patience_ms: int = Field(
        default=700,
        ge=200,
        le=10_000,
        description="how long the agent must be silent before the caller speaks",
    )
    think_ms: int = Field(
        default=200, ge=0, le=10_000, description="how long they then think"
    )

    @field_validator("response_stages")
    @classmethod
    def _tell_apart(
        cls, stages: tuple[ScenarioStage, ...]
    ) -> tuple[ScenarioStage, ...]:
        seen: dict[str, int] = {}
        for number, stage in enumerate(stages):
            for pattern in stage.when:
                key = " ".join(pattern.lower().split())
                if key in seen:
                    raise ValueError(
                        f"[{number}].when: {pattern!r} already leads to stage [{seen[key]}]; "
                        "which one is meant?"
                    )
                seen[key] = number
        return stages


class CallLimits(TurnPart):
    """When a call ends, and what counts as slow; none can be switched off."""

    max_turns: int = Field(
        default=40, ge=1, le=400, description="turns of both sides together"
    )
    max_duration_s: float = Field(
        default=300, ge=1, le=3600, description="length of a call"
    )
    max_silence_s: float = Field(
        default=12,
        ge=1,
        le=120,
        description="both sides silent; then the caller asks, and at last hangs up",
    )
    greeting_s: float = Field(
        default=6,
        ge=0.5,
        le=60,
        description="seconds to wait for the agent's first word",
    )
    response_ms: int = Field(
        default=3000, ge=100, le=60_000, description="slower answers are findings"
    )
    yield_ms: int = Field(
        default=1500,
        ge=100,
        le=20_000,
        description="an interrupted agent must be silent this soon",
    )
    ring_s: float = Field(default=30, ge=1, le=120, description="how long it may ring")


class LineNoise(TurnPart):
    kind: NoiseKind = Field(
        default="none", description="what is audible behind the caller"
    )
    snr_db: float = Field(
        default=15, ge=-10, le=60, description="how much louder the caller is"
    )


class LineQuality(TurnPart):
    """What the line does to the caller's words, drawn from the scenario's seed."""

    loss: float = Field(
        default=0.0, ge=0, le=0.9, description="share of 20 ms frames lost"
    )
    burst: int = Field(default=1, ge=1, le=100, description="frames lost in a row")
    jitter_ms: int = Field(
        default=0,
        ge=0,
        le=500,
        description="how late frames come now and then; the next pause makes up for it",
    )
    volume_db: float = Field(
        default=0.0, ge=-40, le=20, description="louder or quieter"
    )


class PlannedCall(TurnPart):
    """One call of a scenario."""

    caller_context: CallerContext = Field(
        default=CallerContext(), description="who calls"
    )
    turns: tuple[ScriptedTurn, ...] = Field(
        default=(),
        description="a list to follow; questions of identity are answered in between",
    )
    pause_s: float = Field(
        default=0, ge=0, le=3600, description="seconds to wait before this call"
    )
    hangs_up_after: int | None = Field(
        default=None,
        ge=1,
        description="the line breaks after this many of the caller's turns",
    )


class Scenario(TurnPart):
    """Who calls, what they want, and how it is known whether they got it."""

    name: str = Field(pattern=_NAME, description="the name for the command line")
    description: str = Field(default="", description="one sentence for lists")
    goal: str = Field(
        default="",
        description="what the caller wants, in words; needs `success`, or a turn with `expect`",
    )
    test_type: ScenarioType = Field(
        default="standard", description="the usual case, or an edge of it"
    )
    language: str = Field(
        default="en", pattern=r"^[a-z]{2}$", description="the language spoken"
    )
    calls: tuple[PlannedCall, ...] = Field(
        min_length=1,
        description="the calls, in order; one if only a context or turns are given",
    )
    success: tuple[Criterion, ...] = Field(default=(), description="all must hold")
    probes: tuple[ScenarioProbe, ...] = Field(
        default=(), description="looks at the agent's system after the last call"
    )
    limits: CallLimits = Field(
        default=CallLimits(), description="what ends a call, and what counts as slow"
    )
    runs: int = Field(default=1, ge=1, le=1000, description="how often it is run")
    seed: int = Field(
        default=1,
        ge=0,
        description="the same seed gives the same variants, noise and losses",
    )
    noise: LineNoise = Field(
        default=LineNoise(), description="background of the caller"
    )
    line: LineQuality = Field(default=LineQuality(), description="quality of the line")
    outcome: ExpectedOutcome = Field(
        default="answered", description="how the call should go"
    )
    notes: Texts = Field(
        default=(),
        description=(
            "instructions in prose from older files; only a caller played by a model reads them"
        ),
    )

    @model_validator(mode="after")
    def _probes_are_known(self) -> Self:
        names = [probe.name for probe in self.probes]
        for number, criterion in enumerate(self.success):
            if criterion.probe is not None and criterion.probe not in names:
                raise ValueError(
                    f"success[{number}].probe: there is no probe {criterion.probe!r}"
                )
            if criterion.call is not None and criterion.call > len(self.calls):
                raise ValueError(
                    f"success[{number}].call: there are only {len(self.calls)} calls"
                )
        if len(set(names)) != len(names):
            raise ValueError("probes: two have the same name")
        return self

    @model_validator(mode="after")
    def _goal_is_checked(self) -> Self:
        """A goal that nothing checks would pass whatever the agent does."""
        expects = any(
            turn.expect not in (None, Expect())
            for call in self.calls
            for turn in call.turns
        )
        if (
            self.goal
            and not (self.success or self.probes or expects)
            and self.outcome == "answered"
        ):
            raise ValueError(
                "goal: nothing checks it; add `success` with what shows that it is reached, "
                "or `expect` to a turn"
            )
        return self

    @model_validator(mode="after")
    def _has_a_caller_who_speaks(self) -> Self:
        for number, call in enumerate(self.calls):
            context = call.caller_context
            words = (
                call.turns,
                context.response_stages,
                context.opening,
                context.background,
            )
            if not any(words) and not self.goal and not self.notes:
                hint = "give turns, response_stages, opening or a goal"
                raise ValueError(f"calls[{number}]: nobody would say anything; {hint}")
        return self


def json_schema() -> Json:
    """For editors: what a scenario file may hold, the short form with one call included."""
    schema = Scenario.model_json_schema(by_alias=True)
    context = {"$ref": "#/$defs/CallerContext"}
    schema["properties"] |= {
        "patient_context": context,
        "caller_context": context,
        "turns": {"type": "array", "items": {"$ref": "#/$defs/ScriptedTurn"}},
    }
    schema["required"] = ["name"]
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "Aftercall scenario"
    return schema
