"""Labelled calls: from files, from standard input, and from calls that people corrected."""

import json
import re
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic import Field as PydanticField

from aftercall.db.corrections import DECISION, NAMES, Correction
from aftercall.errors import NotFound, RefusedInput
from aftercall.memory.ledger import CORRECTED_BY_KEY
from aftercall.memory.visibility import redact_turns
from aftercall.model.calls import Call, encode_call, parse_call, to_refused_input
from aftercall.model.facts import Fact
from aftercall.model.followups import FollowUp, TurnRef
from aftercall.model.json_fields import Json
from aftercall.model.people import split_party
from aftercall.model.reading import Category, RequestKind, Turns, Visibility
from aftercall.work.requests import JoinedConversation, topic_words

if TYPE_CHECKING:
    from aftercall.app import App

MAX_WORDS = 3
MIN_STEM_CHARS = 4
MAX_EXPORTED = 10_000
# What a caller of the HarperValleyBank calls wants done, by the word that every title holds.
HARPER_WORDS = {
    "replace card": "card",
    "order checks": "check",
    "schedule appointment": "appointment",
    "transfer money": "transfer",
    "reset password": "password",
    "pay bill": "pay",
}


@dataclass(frozen=True)
class LabelledCall:
    """`name` tells where it came from. `gold` has only the parts that are labelled."""

    name: str
    call: Call = field(repr=False)
    gold: Json = field(repr=False)


class _Label(BaseModel):
    model_config = ConfigDict(extra="allow")

    words: list[Annotated[str, PydanticField(min_length=1)]] = PydanticField(
        min_length=1
    )
    turns: Turns


class _RequestLabel(_Label):
    kind: RequestKind | None = None
    due: str | None = None


class _FactLabel(_Label):
    category: Category | None = None
    visibility: Visibility


class _Gold(BaseModel):
    """Every part may be left out: it is not labelled then."""

    model_config = ConfigDict(extra="forbid")

    profile: dict[str, str | None] = {}
    requests: list[_RequestLabel] = []
    withdrawn: list[_Label] = []
    promises: list[_Label] = []
    facts: list[_FactLabel] = []
    forbidden: list[str] = PydanticField(default=[], alias="not")


def read_labels(paths: Iterable[str]) -> Iterator[LabelledCall]:
    """`.json` files of one call each, `.jsonl` files, folders of both; `-` is standard input."""
    for path in paths:
        found = False
        for name, raw in _read_texts(path):
            found = True
            yield parse_label(name, raw)
        if not found:
            raise RefusedInput(
                path, "has no labelled calls; they end in .json or .jsonl"
            )


def load_sample() -> LabelledCall:
    """A short call with its labels, to try a model with."""
    text = (files("aftercall.llm") / "sample_call.json").read_text("utf-8")
    return parse_label("the sample call", text)


def _read_texts(path: str) -> Iterator[tuple[str, str]]:
    if path == "-":
        yield from _split_lines("standard input", sys.stdin.read())
        return
    place = Path(path)
    files = sorted(place.iterdir()) if place.is_dir() else [place]
    for file in files:
        if place.is_dir() and file.suffix not in (".json", ".jsonl"):
            continue
        try:
            text = file.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise NotFound(f"{file}: cannot be read ({error})") from None
        if file.suffix == ".jsonl":
            yield from _split_lines(str(file), text)
        else:
            yield str(file), text


def _split_lines(name: str, text: str) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            yield f"{name}:{number}", line


def parse_label(name: str, raw: str) -> LabelledCall:
    """Raises RefusedInput that names the place and the field."""
    try:
        data = json.loads(raw)
    except ValueError:
        raise RefusedInput(name, "is not JSON") from None
    if not isinstance(data, dict) or not {"call", "gold"} <= data.keys():
        raise RefusedInput(name, "is not a labelled call; it needs `call` and `gold`")
    gold = data["gold"]
    try:
        call = parse_call(data["call"])
        if isinstance(gold, dict) and isinstance(gold.get("task"), dict):
            gold = _from_harper(gold, call)
        _Gold.model_validate(gold)
    except RefusedInput as error:
        raise RefusedInput(f"{name}: {error.field}", error.reason) from None
    except ValidationError as error:
        refused = to_refused_input(error)
        raise RefusedInput(f"{name}: gold.{refused.field}", refused.reason) from None
    return LabelledCall(name, call, gold)


def _from_harper(gold: Json, call: Call) -> Json:
    """One task and a name. A name counts only where the caller said all its words."""
    word = HARPER_WORDS.get(gold["task"].get("task_type", ""))
    name = str(gold.get("name") or "")
    return {
        "requests": [{"words": [word], "turns": []}] if word else [],
        "profile": {"name": name} if _was_said(name, call) else {},
    }


def _was_said(name: str, call: Call) -> bool:
    spoken = " ".join(turn.text for turn in call.turns if turn.speaker == "caller")
    words, said = (set(re.findall(r"\w+", text.lower())) for text in (name, spoken))
    return bool(words) and words <= said


def iter_corrected_calls(
    app: "App", caller: str | None = None, *, reveal: bool = False
) -> Iterator[Json]:
    """Conversations in which a person put something right, as labelled calls, oldest first.

    Labels are what is stored now. Without `reveal`, secrets are masked and secret facts left out.
    """
    made = app.corrections.store.page(limit=MAX_EXPORTED, caller=caller)[::-1]
    names = [one for one in made if one.what in NAMES]
    for conversation in _list_conversations(app, made):
        # What is past its time, or was erased meanwhile, has no words to read.
        with suppress(NotFound):
            joined = app.work.read(conversation)
            call = joined.merged_call
            if not reveal:
                ids = [leg.id for leg in joined.legs]
                turns = redact_turns(call.turns, app.facts.list_confided_words(*ids))
                call = call.model_copy(update={"turns": turns})
            gold = _make_gold(app, joined, names, reveal=reveal)
            yield {"call": json.loads(encode_call(call)), "gold": gold}


def _list_conversations(app: "App", made: list[Correction]) -> list[str]:
    """Conversations that people corrected, each once, in the order of their corrections."""
    found: dict[str, None] = {}
    for one in made:
        if one.what in (DECISION, "done"):  # it says nothing of the reading
            continue
        with suppress(NotFound):
            if one.call_id:
                found[app.store.get(one.call_id).live.conversation] = None
            elif one.caller:
                number = split_party(one.caller)[0]
                rows = app.store.list_page(limit=MAX_EXPORTED, caller=number)
                theirs = [row for row in rows if row.party == one.caller]
                found |= dict.fromkeys(row.live.conversation for row in theirs)
    return list(found)


def _make_gold(
    app: "App", joined: JoinedConversation, names: list[Correction], *, reveal: bool
) -> Json:
    profile, forbidden = _label_names(joined, names)
    gold: Json = {
        "profile": profile,
        "requests": [],
        "withdrawn": [],
        "promises": [],
        "facts": list(_label_facts(app, joined, reveal=reveal)),
        "not": forbidden,
    }
    rows = app.work.followups.of_conversation(joined.id)
    chains = app.corrections.store.list_chains(
        joined.legs[0].agent_id, ("request",), [row.key for row in rows]
    )
    removed = {chain[-1].key for chain in chains if chain[-1].is_removal}
    for row in rows:
        if row.key in removed or row.state == "unclear":
            continue
        label = _label_row(row, joined)
        if row.kind == "promise":
            gold["promises"].append(label)
        elif row.state == "withdrawn":
            gold["withdrawn"].append(label)
        else:
            due = row.due[:10] if row.due else None
            told = {"kind": row.request_kind, "due": due, "person": row.person}
            gold["requests"].append(label | told)
    return gold


def _label_row(row: FollowUp, joined: JoinedConversation) -> Json:
    turns = _number_turns(joined, row.turns)
    said = " ".join(joined.merged_call.turns[number - 1].text for number in turns)
    return {"words": choose_words(row.title, said or row.words), "turns": turns}


def _number_turns(joined: JoinedConversation, spots: Collection[TurnRef]) -> list[int]:
    return [number for number, spot in enumerate(joined.spots, 1) if spot in spots]


def _label_facts(
    app: "App", joined: JoinedConversation, *, reveal: bool
) -> Iterator[Json]:
    for call_id in (leg.id for leg in joined.legs):
        for fact_id in app.facts.list_ids_of_call(call_id):
            fact = app.facts.get(fact_id)
            if (fact.is_secret and not reveal) or _is_removed(app, fact):
                continue
            fact = app.facts.reveal(fact)
            for item in map(app.facts.reveal, app.facts.list_occurrences(fact_id)):
                if item.call_id == call_id:
                    said = range(item.first_turn, item.last_turn + 1)
                    yield {
                        "category": fact.category,
                        "words": choose_words(fact.content, item.words),
                        "visibility": fact.visibility,
                        "turns": _number_turns(joined, [(call_id, n) for n in said]),
                    }


def _is_removed(app: "App", fact: Fact) -> bool:
    by = fact.metadata.get(CORRECTED_BY_KEY)
    return by is not None and app.corrections.store.get(by).is_removal


def _label_names(
    joined: JoinedConversation, names: list[Correction]
) -> tuple[dict[str, str | None], list[str]]:
    """Names that a person put right, as far as they were said in this conversation."""
    profile: dict[str, str | None] = {}
    forbidden: list[str] = []
    call = joined.merged_call
    for one in names:
        if one.caller is None or split_party(one.caller)[0] != call.caller:
            continue
        if one.new is None or _was_said(one.new, call):
            profile[one.what] = one.new
        if one.old and not (one.new and one.old.lower() in one.new.lower()):
            forbidden.append(one.old)
    return profile, forbidden


def choose_words(title: str, said: str) -> list[str]:
    """Up to three stems that every good wording holds: those that were said, if any were."""
    words = sorted(topic_words(title), key=lambda word: (-len(word), word))
    heard = said.lower()
    stems = [_find_stem(word, heard) for word in words]
    return [stem for stem in stems if stem][:MAX_WORDS] or words[:1] or [title.lower()]


def _find_stem(word: str, heard: str) -> str | None:
    """The longest beginning of the word that was said."""
    for end in range(len(word), min(MIN_STEM_CHARS, len(word)) - 1, -1):
        if re.search(rf"\b{re.escape(word[:end])}", heard):
            return word[:end]
    return None
