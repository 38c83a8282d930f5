"""The forms in which a model answers.

Loose where a model may slip, because each answer is checked against the call afterwards.
"""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from aftercall.model.reading import Category, RequestKind, Sentiment, Visibility, strip_markdown


def _blank_is_none(value: Any) -> Any:
    return (
        None
        if isinstance(value, str)
        and value.strip().lower() in ("", "null", "none", "unknown", "n/a", "not stated")
        else value
    )


def _as_text(value: Any) -> Any:
    """A list where text is asked for is joined, as sentences if it holds some; marks of
    headings and emphasis are taken off.
    """
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        parts = [plain for part in value if (plain := part.strip().lstrip("#").strip())]
        value = (" " if all(part.endswith((".", "!", "?")) for part in parts) else ", ").join(parts)
    return strip_markdown(value) if isinstance(value, str) else value


def _as_list(value: Any) -> Any:
    """Text where a list is asked for is its one part."""
    if isinstance(value, str):
        return [] if _blank_is_none(value) is None else [value]
    return [] if value is None else value


Text = Annotated[str, BeforeValidator(_as_text)]
Texts = Annotated[list[Text], BeforeValidator(_as_list)]
Maybe = Annotated[str | None, BeforeValidator(_blank_is_none), BeforeValidator(_as_text)]


class _Form(BaseModel):
    model_config = ConfigDict(extra="ignore")


class SummaryForm(_Form):
    text: Text = Field(description="three to six plain sentences, no markdown")
    topics: Texts = Field(description="main subjects")
    decisions: Texts = Field(description="what was decided")
    actions: Texts = Field(description="what is to be done, and by when if that was said")
    facts: Texts = Field(
        description="names, dates, numbers and facts worth remembering, never a secret"
    )
    context: Text = Field(
        description="where things stand, for whoever takes the next call; one or two sentences"
    )


class ProfileForm(_Form):
    name: Maybe = Field(description="the caller's full name as they said it")
    call_name: Maybe = Field(description="what they like to be called, if that differs")
    pronouns: Maybe = Field(description="only if the caller named them")
    timezone: Maybe = Field(
        description=(
            "an IANA name such as Europe/Berlin, only if the caller said where they are or "
            "which zone"
        )
    )
    notes: Maybe = Field(description="quick facts worth remembering, one line")
    context: Maybe = Field(description="what they care about, one or two sentences")


class IdentityForm(_Form):
    name: Maybe = Field(description="the agent's name")
    creature: Maybe = Field(description="what the agent said it is")
    vibe: Maybe = Field(description="the agent's manner in a few words")
    emoji: Maybe = Field(description="an emoji the agent gave itself")


class GreetingForm(_Form):
    sentence: Maybe = Field(description="one sentence to be spoken, or null")


class RequestForm(_Form):
    kind: RequestKind
    title: Text = Field(description="an imperative of a few words")
    details: Maybe = Field(
        description="what else the caller said of it; never what the agent answered"
    )
    person: Maybe = Field(description="whom it concerns, if named")
    due: Maybe = Field(description="YYYY-MM-DD, only if a day was said")
    turns: list[int]
    words: str = Field(description="the caller's words, copied exactly from one turn")


class WithdrawnForm(_Form):
    title: Text
    turns: list[int]


class PromiseForm(_Form):
    title: Text
    turns: list[int]
    words: str = Field(description="the agent's words, copied exactly from one turn")


class AskedForm(_Form):
    requests: list[RequestForm]
    withdrawn: list[WithdrawnForm]
    promises: list[PromiseForm]


class FactForm(_Form):
    category: Category
    text: Text
    summary: Text = Field(description="at most 100 characters")
    visibility: Visibility
    confidence: float
    sentiment: Sentiment
    turns: list[int]
    words: str = Field(description="the words it rests on, copied exactly from one turn")
    supersedes: Maybe = Field(description="the id of a known fact that this one replaces")
    duplicate_of: Maybe = Field(description="the id of a known fact that says the same")


class FactsForm(_Form):
    facts: list[FactForm]


class SpokenForm(_Form):
    say: Text = Field(description="what the caller hears now: one to three short spoken sentences")
    ends_call: bool = Field(
        description="true only after the caller said goodbye or wants nothing more"
    )
