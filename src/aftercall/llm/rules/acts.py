"""Dialogue acts: what each clause of a call does, by one ordered table of patterns."""

import re
import tomllib
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Literal

from aftercall.english.clauses import Clause
from aftercall.english.text import Plain, normalise
from aftercall.english.words import compile_pattern, load_patterns, stems, word_class
from aftercall.llm.rules.clause_model import (
    AgentClauses,
    Labels,
    TalkTurn,
    load_clause_model,
)
from aftercall.model.calls import Speaker

_PATTERNS = load_patterns("aftercall.llm.rules", "acts")

ActKind = Literal[
    "ask",
    "fault",
    "unclear",
    "withdraw",
    "correct",
    "own",
    "hypothetical",
    "hearsay",
    "ignore",
    "offer",
    "refuse",
    "tell",
]
Answer = Literal["yes", "ok", "no", ""]
_NO_ANSWER: Answer = ""
_ASKED = ("ask", "unclear", "fault")
_ASKING = (*_ASKED, "own")
UNSURE = 0.5  # confidence of what may be a request
UNLIKELY = 0.4  # of what the model of clauses takes for something else
_OPENING = _PATTERNS["opening"]
_POLITE = _PATTERNS["polite"]

_YES = word_class("yes")
_OK = word_class("agrees")
_NO = frozenset(("no",))
_LEAD = _PATTERNS["lead"]
_ACCEPTS = _PATTERNS["accepts"]
_NICKNAME = compile_pattern(r"call me (?!<later>)\S+.*")
_CONDITION = re.compile(
    r"\b(?:one more \S+|i swear|if|suppose|unless) "
    r"(?!possible|you (?:can|could|do not mind|like|would|want|need))"
)
_DECLINES = _PATTERNS["declines"]
_AFTER_NO = _PATTERNS["after_no"]


@dataclass(frozen=True, slots=True)
class Act:
    """One clause and what it does. `matter` is what it is about."""

    kind: ActKind
    clause: Clause
    matter: Plain
    speaker: Speaker
    confidence: float = 0.0
    answer: Answer = ""
    is_bare: bool = False
    """The clause is an answer and nothing else."""
    belongs: float = 0.0
    """How likely the clause says something of a request."""
    plainness: float = 0.0
    """The confidence that a pattern alone gives."""
    ends: float = 0.0
    """How likely the clause calls a request off."""

    @property
    def seq(self) -> int:
        return self.clause.seq


_PART = re.compile(r"\{([a-z]+)\}")
Row = tuple[ActKind, float, re.Pattern[str]]


@cache
def load_table(speaker: Speaker) -> tuple[Row, ...]:
    """The rows of `acts.toml`, one pattern each, in order."""
    text = files(__package__).joinpath("acts.toml").read_text("utf-8")
    tables = tomllib.loads(text)
    parts = tables["parts"]

    def fill(pattern: str) -> str:
        while (filled := _PART.sub(lambda match: parts[match[1]], pattern)) != pattern:
            pattern = filled
        return pattern

    return tuple(
        (row["act"], row.get("confidence", 0.0), compile_pattern(fill(pattern)))
        for row in tables[speaker]
        for pattern in row["patterns"]
    )


# How sure the model of clauses must be to be followed, by label.
_SURE = {"R": 0.7, "W": 0.5, "X": 0.5, "Y": 0.4, "NO": 0.4}
_OWN_WISH = 0.4  # of "I'll transfer money", said to who can do it
_CALLING_OFF = ("cancel ", "remove ", "delete ", "take ")
_MAYBE = 0.4
_PLAIN = 0.85  # confidence of a pattern that is seldom wrong
_LIKELY = 0.02
_PLAINEST = 0.95  # of one that needs no model
_MODEL_SURE = 0.94  # the most that the model of clauses alone can be
_BELONGS = ("R", "D", "X", "Y")


def read_acts(talk: list[TalkTurn]) -> list[Act]:
    """The act of each clause in order: by the patterns, and by the model of clauses."""
    agreed = AgentClauses(talk)
    labels = load_clause_model("acts").label_clauses(talk, agreed)
    acts: list[Act] = []
    for at, turn in enumerate(talk):
        read = _read_turn(turn)
        if turn.speaker == "caller":
            read = [_judge(act, labels[at, index]) for index, act in enumerate(read)]
            acts += _pass_on(read)
        else:
            acts += [
                replace(act, belongs=agreed.likely.get((at, index), 0.0))
                for index, act in enumerate(read)
            ]
    return acts


MAX_EMPTY_WORDS = 2


def _pass_on(acts: list[Act]) -> list[Act]:
    """ "And two, I need an oil change": the ask is what comes after words that name nothing."""
    read = list(acts)
    for at, act in enumerate(acts[:-1]):
        after = acts[at + 1]
        is_short = len(act.clause.plain.words) <= MAX_EMPTY_WORDS
        is_empty = is_short and act.kind in _ASKED
        if is_empty and after.kind == "tell" and stems(after.clause.text):
            read[at] = replace(act, kind="tell", confidence=0.0, plainness=0.0)
            read[at + 1] = _as_ask(after, act.confidence)
    return read


def _judge(act: Act, labels: Labels) -> Act:
    """The act as the model sees it, where it is sure; what only a pattern sees is unsure."""
    belongs = sum(labels[label] for label in _BELONGS)
    act = replace(act, belongs=belongs, ends=labels["W"])
    if act.kind == "ask" and act.confidence >= _PLAINEST:
        return act
    if act.kind == "own" and labels["R"] >= _OWN_WISH:
        return _as_ask(act, max(labels["R"], _SURE["R"]))
    sure = [label for label, least in _SURE.items() if labels[label] >= least]
    if sure and (seen := _follow(act, sure[0], labels)):
        return seen
    return _doubt(act, labels["R"]) if act.kind in _ASKED else act


def _follow(act: Act, label: str, labels: Labels) -> Act | None:
    """What the model is sure of, unless a pattern says the same or more of the clause."""
    is_told = act.kind in ("tell", "correct") and act.plainness > 0
    if label == "R":
        return act if is_told else _as_ask(act, labels["R"])
    if label == "W" and act.kind != "withdraw":
        matter = take_matter(act.clause.plain)
        return replace(act, kind="withdraw", matter=matter, answer="")
    if label == "X" and not act.is_bare:
        return replace(act, kind="correct")
    if label in ("Y", "NO") and act.kind == "tell":
        return replace(act, answer="yes" if label == "Y" else "no")
    return None


def _doubt(act: Act, likely: float) -> Act:
    """What a pattern takes for a request and the model does not."""
    is_likely = act.confidence >= _PLAIN and likely >= _LIKELY
    if is_likely or act.matter.text.startswith(_CALLING_OFF):
        return act
    limit = UNSURE if likely >= _MAYBE else UNLIKELY
    return replace(act, confidence=min(act.confidence, limit), plainness=0.0)


# A clause that only states something; what is asked in it may be said in the next one.
_STATES = re.compile(
    r"(?:and |but |so |oh |well |also )*"
    r"(?:i|we|you|he|she|it|they|there|that|this|my|our|the|his|her|their)\b"
    r"(?!.*\b(?:want|need|would|could|can you|please|remind|after|looking|wondering)\b)"
)


def _as_ask(act: Act, likely: float) -> Act:
    """A clause that the model takes for an ask; one that states something is a fault."""
    sure = min(likely, _MODEL_SURE)
    if act.kind in ("ask", "fault"):
        return replace(act, confidence=max(sure, act.confidence))
    is_found = act.kind == "unclear"
    matter = act.matter if is_found else take_matter(act.clause.plain)
    is_told = act.kind == "tell" and bool(_STATES.match(act.clause.text))
    kind: ActKind = "fault" if is_told else "ask"
    return replace(act, kind=kind, matter=matter, confidence=sure)


def take_matter(plain: Plain) -> Plain:
    """What a clause is about, without the polite words it begins with."""
    start = 0
    for pattern in (_OPENING, _POLITE):
        if match := pattern.match(plain.text, start):
            start = match.end() + (plain.text[match.end() :][:1] == " ")
    rest = plain.after(start) if start else plain
    return rest if stems(rest.text) else plain


def _read_turn(turn: TalkTurn) -> list[Act]:
    """The acts of one turn in order; a condition colours the rest of its sentence."""
    acts: list[Act] = []
    supposed = -1
    for clause in turn.clauses:
        act = classify(clause, turn.speaker)
        is_asked = act.kind in ("ask", "correct")
        if not is_asked and _CONDITION.search(clause.text):
            supposed = clause.sentence
        if clause.sentence == supposed and _is_supposed(act):
            act = _as_kind(act, "hypothetical")
        acts.append(act)
    return acts


def _is_supposed(act: Act) -> bool:
    """Whether an act in a sentence with "if" is only supposed."""
    if act.kind in ("tell", "own"):
        return not act.is_bare
    is_would = " would " in f" {act.clause.text} "
    is_order = act.matter.text == act.clause.text
    return act.kind in _ASKING and (is_would or is_order)


def _as_kind(act: Act, kind: ActKind) -> Act:
    return Act(kind, act.clause, act.clause.plain, act.speaker, 0.0, act.answer)


def classify(clause: Clause, speaker: Speaker) -> Act:
    """The act of one clause: an answer, or the first row of the table that fits."""
    if speaker == "agent":
        return _look_up(clause, clause.plain, speaker, _NO_ANSWER)
    plain, answer = _read_answer(clause.plain)
    given = _read_bare_answer(plain.text, answer)
    if given or not plain.words:
        return Act("tell", clause, plain, speaker, answer=given or answer, is_bare=True)
    return _look_up(clause, plain, speaker, answer)


def _read_bare_answer(text: str, before: Answer) -> Answer:
    """The answer of a clause that says nothing else."""
    if before != "yes" and _DECLINES.fullmatch(text):
        return "no"
    pattern = _AFTER_NO if before == "no" else _ACCEPTS
    return (before or "yes") if pattern.fullmatch(text) else _NO_ANSWER


def _look_up(clause: Clause, plain: Plain, speaker: Speaker, answer: Answer) -> Act:
    """The act of the first row that is all of the clause; what fits none only tells."""
    for kind, confidence, pattern in load_table(speaker):
        match = pattern.fullmatch(plain.text)
        if match:
            has_matter = "what" in pattern.groupindex and match["what"] is not None
            matter = plain.between(*match.span("what")) if has_matter else plain
            if kind == "ask" and _NICKNAME.match(matter.text):
                kind = "ignore"
            return Act(
                kind,
                clause,
                matter,
                speaker,
                confidence,
                answer,
                plainness=confidence,
            )
    return Act("tell", clause, plain, speaker, answer=answer)


def _read_answer(plain: Plain) -> tuple[Plain, Answer]:
    """The clause without the small words it begins with, and the answer among them."""
    answer: Answer = ""
    at = 0
    while (match := _LEAD.match(plain.text, at)) is not None:
        word = match.group()
        if word in _NO:
            answer = "no"
        elif word in _YES and answer != "no":
            answer = "yes"
        elif word in _OK and not answer:
            answer = "ok"
        at = match.end() + 1
    return plain.after(at) if at else plain, answer


def corrects(text: str) -> bool:
    """Whether a caller's words, by themselves, change what was said before: "make it Sunday"."""
    turn = TalkTurn.from_text("caller", 1, text)
    return any(classify(clause, "caller").kind == "correct" for clause in turn.clauses)


def calls_off(text: str) -> bool:
    """Whether a caller's words call something off: "never mind the cake"."""
    talk = [TalkTurn.from_text("caller", 1, text)]
    return any(act.kind == "withdraw" for act in read_acts(talk))


def denies_number(text: str) -> bool:
    """ "Five, not three." """
    return bool(re.search(r"\bnot \d", normalise(text).text))
