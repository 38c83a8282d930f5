"""Facts that a caller plainly tells: by a few patterns, and by a model of clauses.

Each clause of the caller goes through these steps:

1. What is asked, supposed, refused or hidden as a secret is no fact.
2. Plain forms (tastes, habits, home, family, feelings) have a pattern for each kind of fact.
3. Of others, the model `facts` says how likely they state something that lasts, and `fact_kinds`
   which kind of fact it is; personal kinds are private.
4. A clause that is not understood alone is told with the one before it: with the caller's own
   statement, or with what the agent asked for ("Address: 4 Mill Lane"). If the clause before is
   a fact already, both are one.
5. What still needs the call to be understood is left out.
"""

import itertools
import re
from collections.abc import Iterable, Sequence
from typing import cast

from aftercall.english.clauses import POINTERS, split_plain_sentences, stands_alone
from aftercall.english.introductions import find_call_name, find_pronouns
from aftercall.english.names import take_name
from aftercall.english.text import MASK, Plain, normalise
from aftercall.english.words import load_patterns, stems
from aftercall.llm.reader import as_sentence
from aftercall.llm.rules.acts import Act
from aftercall.llm.rules.asking import is_taken_back
from aftercall.llm.rules.clause_model import (
    TalkTurn,
    list_fact_features,
    load_clause_model,
)
from aftercall.llm.rules.state import put_right
from aftercall.model.calls import Turn
from aftercall.model.reading import (
    Category,
    FactDraft,
    Identity,
    Profile,
    Sentiment,
    Visibility,
)

_PATTERNS = load_patterns("aftercall.llm.rules", "facts")

MAX_SUMMARY_CHARS = 100
_TELLING = ("tell", "own", "correct")
_LASTS = "F"  # label of a clause that states a fact
_LIKELY = 0.3  # from here a clause is taken for one
_PERSONAL = ("person", "emotional", "routine")
_POINTING = POINTERS | {"he", "she", "they", "him", "her"}
# Days, months and numbers, which are no stems but say something.
_MEASURES = frozenset(("<day>", "<month>", "<num>", "<ord>"))
_REACH = 2  # clauses back in which a fact may find its subject
MIN_FACT_WORDS = 3
MAX_FACT_WORDS = 30
# Of health, feelings and money: private whatever the kind of fact.
_PRIVATE = _PATTERNS["private"]
# What may be, was, or is only somebody's word.
_UNREAL = _PATTERNS["unreal"]
_ASKS_FOR = _PATTERNS["asks_for"]
_Kind = tuple[Category, Visibility]
# Plain forms of what a caller tells that lasts, by the kind of fact they are.
_PLAIN: dict[Category, re.Pattern[str]] = {
    "preference": _PATTERNS["preference"],
    "routine": _PATTERNS["routine"],
    "person": _PATTERNS["person"],
    "emotional": _PATTERNS["emotional"],
}


def find_facts(
    talk: Sequence[TalkTurn], acts: list[Act], refused: frozenset[str]
) -> list[FactDraft]:
    """From the caller's clauses; nothing that is asked, supposed, hearsay or refused."""
    places = [
        (at, index)
        for at, turn in enumerate(talk)
        for index in range(len(turn.clauses))
    ]
    told: list[tuple[_Kind, list[Act]]] = []
    for number, ((at, index), act) in enumerate(zip(places, acts, strict=True)):
        after = acts[number + 1 : number + 2]
        if not _may_tell(act, refused) or is_taken_back(act, after):
            continue
        kind = _find_plain_kind(act) or _find_kind(talk, at, index)
        context = _find_context(acts, number)
        if kind and told and _goes_on(told[-1][1], context, act):
            told[-1][1].append(act)
        elif kind:
            told.append((kind, [*context, act]))
    drafts = (_draft(said, *kind) for kind, said in told if _is_whole(said))
    return list({draft.words: draft for draft in drafts}.values())


def _find_context(acts: list[Act], number: int) -> list[Act]:
    """What "he" or "it" is, or what was asked: the clause before one that does not stand alone."""
    act = acts[number]
    if stands_alone(act.clause.text):
        return []
    earlier = [
        other for other in acts[max(0, number - _REACH) : number] if _says(other)
    ]
    if not earlier:
        return []
    before = earlier[-1]
    is_told = before.seq == act.seq and before.kind in (*_TELLING, "fault")
    is_told = is_told and not before.clause.is_question
    return [before] if is_told or _asked_of(before) else []


def _asked_of(act: Act) -> str:
    """What an agent asks for: "the address" of "and what's the address?"."""
    plain = act.clause.plain
    match = _ASKS_FOR.fullmatch(plain.text) if act.speaker == "agent" else None
    return plain.between(*match.span("what")).said.strip(" ?,.") if match else ""


def _is_whole(acts: list[Act]) -> bool:
    """Whether clauses are understood without the call.

    Silence is better than a fact that nobody understands: a clause about "him" is no fact where
    no clause before it says who that is.
    """
    return stands_alone(" ".join(act.clause.text for act in acts))


def _says(act: Act) -> bool:
    """Whether a clause has words with a meaning of their own, and is not only a yes or no."""
    return not act.is_bare and bool(stems(act.clause.text))


def _goes_on(told: list[Act], context: list[Act], act: Act) -> bool:
    """Whether a clause needs the fact before it, or is the next of the same sentence."""
    one = told[-1].clause
    two = act.clause
    between = one.plain.source[one.plain.words[-1].end : two.plain.words[0].start]
    is_next = (one.seq, one.sentence) == (two.seq, two.sentence)
    return context == told[-1:] or (is_next and len(between.split()) <= 1)


def list_told_features(talk: Sequence[TalkTurn], at: int, index: int) -> list[str]:
    """What the models of facts look at, besides the features that all models of clauses share.

    | feature | tells |
    |---|---|
    | alone | whether the clause is understood without the call |
    | told | how many words with a meaning of their own, days and numbers it has |
    | points | how many words like "it" and "he" it has |
    | skip | two words with one between them |
    | head, tail | beginnings and ends of words, for words that no call taught |

    The training makes the same features: who changes one trains both models again.
    """
    text = talk[at].clauses[index].text
    words = talk[at].words[index]
    return [
        *list_fact_features(talk, at, index),
        f"alone:{stands_alone(text)}",
        f"told:{min(len(stems(text)) + len(_MEASURES.intersection(words)), 5)}",
        f"points:{min(len(_POINTING.intersection(words)), 2)}",
        *(f"skip:{one}_{two}" for one, two in zip(words, words[2:], strict=False)),
        *(f"head:{word[:4]}" for word in words if len(word) > 4),
        *(f"tail:{word[-3:]}" for word in words if len(word) > 5),
    ]


def _find_plain_kind(act: Act) -> _Kind | None:
    """Category and visibility of a fact, by the first of the plain forms that fits."""
    texts = (act.clause.text, act.matter.text)
    for category, pattern in _PLAIN.items():
        if act.kind != "own" and any(map(pattern.fullmatch, texts)):
            is_private = category == "emotional" or _PRIVATE.search(act.matter.text)
            return category, "private" if is_private else "shared"
    return None


def _find_kind(talk: Sequence[TalkTurn], at: int, index: int) -> _Kind | None:
    """What the models take for a fact that lasts."""
    features = list_told_features(talk, at, index)
    if load_clause_model("facts").weigh(features)[_LASTS] < _LIKELY:
        return None
    odds = load_clause_model("fact_kinds").weigh(features)
    category = cast(Category, max(odds, key=odds.__getitem__))
    text = talk[at].clauses[index].text
    is_private = category in _PERSONAL or _PRIVATE.search(text)
    return category, "private" if is_private else "shared"


def _may_tell(act: Act, refused: frozenset[str]) -> bool:
    """Whether a clause of the caller may be a fact: stated as one, and long enough.

    What was refused, or is masked as a secret, is none.
    """
    if act.speaker != "caller" or act.is_bare or act.clause.is_question:
        return False
    if act.kind not in _TELLING or _UNREAL.search(act.clause.text):
        return False
    is_long = MIN_FACT_WORDS <= len(act.clause.plain.words) <= MAX_FACT_WORDS
    is_open = MASK not in act.clause.text and not stems(act.matter.text) & refused
    return is_long and is_open


def _draft(acts: list[Act], category: Category, visibility: Visibility) -> FactDraft:
    """From clauses that follow each other; a question before them is told, not cited."""
    text = _tell(acts)
    acts = [act for act in acts if act.speaker == "caller"]
    first = put_right(acts[0].clause.plain)
    last = acts[-1].clause.plain
    mood: Sentiment = "negative" if category == "emotional" else "neutral"
    return FactDraft(
        category=category,
        text=text,
        summary=text[:MAX_SUMMARY_CHARS],
        visibility=visibility,
        confidence=0.8,
        sentiment=mood,
        turns=(acts[0].seq,),
        words=first.source[first.words[0].start : last.words[-1].end],
    )


def _tell(acts: list[Act]) -> str:
    """The clauses as one line: "Address: 4 Mill Lane", "I've moved. It's 4 Mill Lane now"."""
    text = ""
    for act, after in itertools.zip_longest(acts, acts[1:]):
        is_end = not after or act.clause.sentence != after.clause.sentence
        said = put_right(act.clause.plain).said
        if asked := _asked_of(act):
            text += f"{asked}: "
        elif is_end:
            text += said.strip(" ,") + (". " if after else "")
        else:
            text += said + (", " if act.clause.plain.ends_with == "," else " ")
    text = _JOINT.sub("", text)
    return text[:1].upper() + text[1:]


_OF_SELF = load_patterns("aftercall.llm.rules", "profile")

MAX_NOTES = 3  # sentences of a profile's notes and context
_STANDS_ALONE = re.compile(
    r"(?:I|we|my|our)\b(?!.*\b(?:it|that|this|them|him|her|one)\b)", re.I
)
_JOINT = re.compile(r"^(?:and|but|so)\b[ ,]+", re.I)  # with what was said before
_PREFERS = re.compile(
    r"\b(?:prefer|always|never|only|hate|love|like|rather|allergic|vegan|vegetarian"
    r"|(?:ca|do|wo)n[’']t)\b",
    re.I,
)
_CARES = _OF_SELF["cares"]
_NAMED = _OF_SELF["named"]
_CREATURE = _OF_SELF["creature"]
_APPENDED = _OF_SELF["appended"]
_COMPANY = _OF_SELF["company"]
_AFTER_AGENT = ("from", "at", "here", "with", "speaking", "how")


def read_profile(
    turns: Sequence[Turn],
    name: str | None,
    zone: str | None,
    facts: list[FactDraft],
    acts: list[Act],
) -> Profile:
    """Who the caller is: name and zone as found before; notes from facts, context from the talk.

    Notes are standing preferences of the caller that are understood alone.
    """
    said = [turn.text for turn in turns if turn.speaker == "caller"]
    call_name = find_call_name(said)
    notes = [
        fact.text
        for fact in facts
        if fact.category == "preference"
        and _STANDS_ALONE.match(fact.text)
        and _PREFERS.search(fact.text)
    ]
    cares = [act.matter.said for act in acts if _tells_care(act)]
    return Profile(
        name=name,
        call_name=call_name if call_name != name else None,
        pronouns=find_pronouns(said),
        timezone=zone,
        notes=_join(notes),
        context=_join(cares),
    )


def _tells_care(act: Act) -> bool:
    """Whether a clause says what the caller does or cares about, and names it."""
    if (act.speaker, act.kind) != ("caller", "tell"):
        return False
    is_named = POINTERS.isdisjoint(act.matter.vocabulary)
    is_named = is_named and len(stems(act.matter.text)) > 1
    return is_named and bool(_CARES.fullmatch(act.matter.text))


def _join(texts: Iterable[str]) -> str | None:
    """The first few texts as sentences, each once."""
    kept = list(dict.fromkeys(texts))[:MAX_NOTES]
    return " ".join(as_sentence(text) for text in kept) or None


def read_identity(turns: Iterable[Turn]) -> Identity:
    """What the agent says of itself: its name and what it is."""
    name = creature = None
    for turn in turns:
        if turn.speaker != "agent":
            continue
        for sentence in split_plain_sentences(normalise(turn.text)):
            found, described = _name_and_creature(sentence)
            name, creature = name or found, creature or described
    return Identity(name=name, creature=creature)


def _name_and_creature(sentence: Plain) -> tuple[str | None, str | None]:
    """ "I'm Ada, the booking assistant": the agent's name and what it is, where it says so."""
    described = _CREATURE.fullmatch(sentence.text)
    creature = sentence.between(*described.span("creature")).said if described else None
    match = _NAMED.match(sentence.text)
    if match is None:
        return None, creature
    at = sentence.index(match.end())
    name = take_name(sentence, at)
    if not name or _COMPANY.fullmatch(name.lower()):
        return None, creature
    rest = sentence.slice(at + len(name.split()))
    appended = _APPENDED.fullmatch(rest.text)
    if appended:
        creature = rest.between(*appended.span("creature")).said
    is_named = "name is" in match.group() or not rest.words or bool(appended)
    is_named = is_named or rest.words[0].norm in _AFTER_AGENT
    return (name if is_named else None), creature
