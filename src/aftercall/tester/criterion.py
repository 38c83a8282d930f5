"""What a scenario checks: expectations of turns, criteria of success, probes of a system."""

import re
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from aftercall.tester.phrases import compile_pattern

Deed = Literal["book", "move", "cancel", "take", "answer", "part"]
Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
_URL = r"^https?://\S+$"


def _as_tuple(value: Any) -> Any:
    if value is None:
        return ()
    return (value,) if isinstance(value, str | dict) else value


def _check_patterns(values: Any) -> Any:
    values = _as_tuple(values)
    for value in values if isinstance(values, list | tuple) else ():
        try:
            if isinstance(value, str) and not value.strip():
                raise ValueError("has an empty pattern")
            compile_pattern(str(value))
        except re.error as error:
            raise ValueError(f"has a pattern that cannot be read ({error})") from None
    return values


Texts = Annotated[tuple[str, ...], BeforeValidator(_as_tuple)]
Patterns = Annotated[tuple[str, ...], BeforeValidator(_check_patterns)]


class TurnPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Expect(TurnPart):
    """What the agent should do in answer to a turn."""

    said: Patterns = Field(default=(), description="each of these is said")
    not_said: Patterns = Field(default=(), description="none of these is said")
    asks: Patterns = Field(
        default=(), description="asks one of these, or for: name, dob, phone …"
    )
    within_ms: int | None = Field(
        default=None, ge=1, le=120_000, description="answers this soon"
    )
    judged: Texts = Field(
        default=(), description="sentences that a model judges, with a quote"
    )
    hangs_up: bool = Field(
        default=False, description="the agent ends the call; the caller waits for it"
    )
    transfers: bool = Field(
        default=False, description="the agent passes the call on to a person"
    )
    says_nothing_after: bool = Field(
        default=False, description="a goodbye at most; then the agent is silent"
    )


class Criterion(TurnPart):
    """One condition of success; evidence is what the agent did or said, never the caller's words.

    A `judged` sentence is judged by a model if one is set. Without one, a matcher decides by
    `deed` and `details`, and says so when it cannot tell.
    """

    name: str = Field(default="", description="what it is called in reports")
    said: Patterns = Field(default=(), description="the agent says one of these")
    not_said: Patterns = Field(default=(), description="the agent says none of these")
    probe: str | None = Field(
        default=None, description="the name of a probe that must pass"
    )
    tool: str | None = Field(
        default=None,
        description="the agent reports a call of this tool, with `details` in its arguments",
    )
    judged: str | None = Field(
        default=None, description="a sentence that is judged by a model or the matcher"
    )
    deed: Deed | None = Field(
        default=None,
        description="what the sentence is about, for the matcher: an appointment is made "
        "(`book`), moved (`move`) or cancelled (`cancel`), something is taken down or "
        "arranged (`take`), a question is answered (`answer`), the agent says goodbye (`part`)",
    )
    details: Patterns = Field(
        default=(), description="what the agent says of it, at least one of these"
    )
    ask: str = Field(
        default="",
        description="what the caller asks before the goodbye if the agent has not said it; "
        "an open question, because anybody can say yes",
    )
    call: int | None = Field(
        default=None, ge=1, description="only this call counts, from 1"
    )

    @model_validator(mode="after")
    def _asks_one_thing(self) -> Self:
        given = (self.said, self.not_said, self.probe, self.judged, self.tool)
        if sum(bool(item) for item in given) != 1:
            raise ValueError("needs exactly one of said, not_said, probe, tool, judged")
        if self.deed and not self.judged:
            raise ValueError("deed: belongs to `judged`")
        if self.deed == "answer" and not self.details:
            raise ValueError("details: an answer needs them")
        return self


class ScenarioProbe(TurnPart):
    """A look at the agent's system after the call: what was really done.

    A probe that no criterion names is a criterion. One that cannot be asked decides nothing.
    """

    name: str = Field(min_length=1, description="what criteria call it")
    http: str | None = Field(default=None, pattern=_URL, description="an address")
    method: Method = Field(default="GET", description="how the address is asked")
    headers: dict[str, str] = Field(
        default_factory=dict,
        description="sent with it; `${NAME}` is read from the environment",
    )
    body: str | None = Field(default=None, description="sent with it, as JSON")
    command: Texts = Field(
        default=(), description="a program and its arguments; no shell"
    )
    file: str | None = Field(default=None, description="a file to read")
    sqlite: str | None = Field(
        default=None, description="a SQLite database that `query` reads"
    )
    query: str | None = Field(default=None, description="one SELECT")
    status: int = Field(
        default=200, description="the expected HTTP status or exit code"
    )
    contains: Texts = Field(default=(), description="the answer contains each of these")
    lacks: Texts = Field(default=(), description="the answer contains none of these")
    path: str = Field(
        default="",
        description="the part of a JSON answer that is looked at: `items[0].day`, "
        "`items[*].name`; rows of a query are a list of objects",
    )
    count: int | None = Field(
        default=None, ge=0, description="so many items are there after the call"
    )
    grows_by: int | None = Field(
        default=None, description="so many items more than before the call"
    )
    within_s: float = Field(
        default=10, gt=0, le=120, description="asked again until then"
    )

    @model_validator(mode="before")
    @classmethod
    def _commands_end_with_nought(cls, data: Any) -> Any:
        return (
            {"status": 0, **data}
            if isinstance(data, dict) and data.get("command")
            else data
        )

    @model_validator(mode="after")
    def _asks_one_way(self) -> Self:
        """One source, and something to check in it."""
        ways = (self.http, self.command, self.file, self.sqlite)
        if sum(bool(way) for way in ways) != 1:
            raise ValueError("needs one of http, command, file, sqlite")
        if bool(self.sqlite) != bool(self.query):
            raise ValueError("query: belongs to sqlite, and sqlite needs it")
        checks = (self.contains, self.lacks, self.count is not None)
        is_bare = not any(checks) and self.grows_by is None
        if is_bare and (self.file or self.sqlite):
            raise ValueError("checks nothing; give contains, lacks, count or grows_by")
        return self
