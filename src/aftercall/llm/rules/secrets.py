"""Secrets: what was told in confidence, found first and masked, so that no later rule can
repeat it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from aftercall.llm.long_calls import cut_turns
from aftercall.llm.rules.codes import find_codes
from aftercall.llm.rules.cue import Caseless, Cue
from aftercall.llm.rules.diagnoses import find_diagnoses, find_medicines, may_name
from aftercall.llm.rules.faults import is_fault
from aftercall.llm.rules.masking import ValueMask
from aftercall.llm.rules.memo import remember
from aftercall.llm.rules.numbers import NUMBER_WORD
from aftercall.llm.rules.sentences import LEAD_IN, Clause, split_clauses
from aftercall.llm.rules.stems import stems
from aftercall.llm.rules.triggers import is_asking
from aftercall.model.reading import Category, FactDraft
from aftercall.model.turns import Turn

_CONFIDED = Cue(
    r"\b(?:(?:please )?(?:don['’]?t|do not|never) (?:you |y['’]all |any of you |anybody "
    "|anyone |go |have to |need to )?"
    r"(?:tell(?:ing)?(?! me\b)|shout|discuss (?:it|this|that)|"
    "mention(?:ing)?(?: (?:it|this|that))?(?: to)?|share (?:it|this|that)? ?with|breathe a "
    "word|repeat (?:it|this|that)|"
    r"say (?=.*\b(?:to|in front of|around|out loud)\b)|let (?:on|anyone|anybody|it slip)"
    "|announce|spread)|"
    "between (?:you and me|us|ourselves)|(?:keep|keeping) (?:it|this|that) (?:to yourself"
    "|quiet|between us|secret|confidential|private|"
    r"under your hat|inside|within|in the (?:family|team|house)|off the record|hush)|"
    "(?:it|that|this)(?:['’]?s| is) (?:a secret|confidential|strictly private|not public"
    "|private)|(?:nobody|no one|none of them)(?: else|"
    r" at \w+| in [\w ]{3,14}?| here)* (?:knows|is to know|must know|can know|should know)(?: "
    "yet| about (?:it|this))?|"
    r"(?:doesn['’]?t|don['’]?t|wouldn['’]?t) want (?:the |my |his |her |their )?[\w ]{2,20} "
    "(?:knowing|to know|finding out|to find out)|"
    "(?:i|we)(?: haven['’]?t| have not| didn['’]?t|['’]ve not) (?:even )?(?:told|tell) "
    r"(?:anyone|anybody|a soul|people|my \w+|the \w+)|"
    "(?:not|n['’]?t|never) (?:to )?(?:go|get|goes) (?:any )?(?:further|out|round|around)"
    "|(?:want|like) to keep it that way|"
    r"(?:my|the|our) \w+(?: \w+)? (?:doesn['’]?t|don['’]?t|didn['’]?t|mustn['’]?t|can['’]?t"
    "|needn['’]?t|shouldn['’]?t|isn['’]?t to) "
    "(?:even |ever |have to |need to )?(?:know(?: about| of)?|hear (?:about|of)|find out(?: "
    "about)?|learn of)(?: it| this| that)?|"
    r"(?:but|and),? (?:nobody|no one|not anyone) else(?=\W*$)|"
    "(?:not|without) (?:a word|telling anyone)|(?:under wraps|hush[- ]hush|on the quiet|for "
    "your ears only|"
    r"didn['’]?t hear (?:it|that) from me)|"
    r"(?:stays?|staying) (?:between|in this|with you|inside)|(?:be|very) discreet|"
    r"not for (?:anyone|anybody|everyone|general)(?:['’]s)?(?: ears| else| to know)?|"
    r"not for (?:the|my|his|her|our) \w+(?: at \w+| in \w+)?(?=\W*$)|only (?:my|the|our) \w+ "
    "knows?|(?:don['’]?t|never|not) say a word|"
    "(?:don['’]?t|do not|never) (?:write|put) (?:it|this|that) down|(?:you['’]re|you are) "
    "not to (?:tell|say|mention|repeat)|"
    r"nobody[\w ]{0,14} (?:can|must|should|is to) (?:find out|hear|know)|rather (?:nobody|no "
    "one) (?:heard|knew|found out)|"
    r"(?:haven['’]?t|have not|hasn['’]?t been) announced|we tell people|"
    r"off the record|in confidence|swear you won['’]?t tell)\b",
)
_MAY_CONFIDE = Caseless(
    "tell|mention|share|breathe|repeat|say|let (?:on|any|it)|announce|spread|between|keep"
    "|secret|confiden|"
    r"private|public|know|find|told|word|wraps|shout|discuss|hear|learn|else|"
    "hush|quiet|ears|from me|stay|discreet|record|n['’]?t g|not g|not for|announce|rather no"
    "|write|put"
)
# "eight one six now, not six one eight"
_DENIAL = re.compile(rf",? not (?:{NUMBER_WORD}|\d)[\w ]*\W*$", re.I)
_TELLING = Cue(r"\b(?:tell|telling|mention|share|say|let)\b")
_TO_WHOM = Cue(
    r"^\W*(?:anyone|anybody|the \w+|my \w+|him|her|them|everyone|people"
    r"|(?-i:[A-Z])\w+)?\s*(?:that|this|it|about (?:it|that|"
    r"this))?\b",
)
_LISTENERS = Cue(
    r"^(?:that |it |this |about |the word )+|\b(?:to|in front of|around|with) (?:anyone"
    "|anybody|nobody|"
    r"any of them|the \w+|my \w+|him|her|them|"
    r"everyone|people|(?-i:[A-Z])\w+)\b.*$|\bout loud\b.*$|^(?:anyone|anybody|the \w+|my \w+"
    "|him|her|them|"
    r"everyone|people|(?-i:[A-Z])\w+)\b,?|"
    r"^\W*not even\b.*$|^y['’]all\b",
)
_WHEN = Cue(r"(?:and |so |but )*(?:if|when|yet|until|because)\b")
_TOO_SHORT = 12
_JUST = 2  # clauses that a plea for silence reaches back over
_OF_ONESELF = Cue(
    r"\b(?:i|i['’]\w+|we|we['’]\w+|my|our|he|she|he['’]s|she['’]s|they['’]\w+)\b"
)


@dataclass(frozen=True, slots=True)
class Secret:
    """A piece of one turn, the fact it makes, and the part of it that must be seen nowhere else."""

    seq: int
    words: str
    value: str
    category: Category
    label: str = ""
    """What it is a secret of, where only the question or the sentence before says so."""

    @property
    def text(self) -> str:
        return (
            f"{self.label}: {self.words}"
            if self.label and self.label.lower() not in self.words.lower()
            else self.words
        )


def find_secrets(turns: tuple[Turn, ...]) -> list[Secret]:
    turns = tuple(cut_turns(turns))
    secrets: list[Secret] = []
    question = ""
    earlier: Turn | None = None
    spoken = " ".join(turn.text for turn in turns)
    for index, turn in enumerate(turns):
        if turn.speaker == "agent":
            question = turn.text
            continue
        reply = (
            turns[index + 1].text
            if index + 1 < len(turns) and turns[index + 1].speaker == "agent"
            else ""
        )
        secrets += _codes(turn, question, reply)
        if may_tell(turn.text.rstrip(" .!?")):
            clauses = split_clauses(turn)
            secrets += [
                *_illnesses(clauses, spoken),
                *_confidences(clauses, split_clauses(earlier) if earlier else []),
            ]
        question, earlier = "", turn
    return _once(secrets)


@remember
def may_tell(text: str) -> bool:
    """Most turns hold no word of confidence or illness, and need not be taken apart to be sure
    of it.
    """
    return _MAY_CONFIDE.occurs(text) or may_name(text)


def mask(text: str, secrets: list[Secret]) -> str:
    """The text with every secret's value blotted out, letter for letter."""
    return make_mask(tuple(secret.value for secret in secrets)).apply(text)


# A call has one list of secrets and many texts.
make_mask = remember(ValueMask, max_answers=4)


def secret_facts(secrets: list[Secret]) -> list[FactDraft]:
    return [
        FactDraft(
            category=secret.category,
            text=_DENIAL.sub("", secret.text),
            summary=_DENIAL.sub("", secret.text)[:100],
            visibility="secret",
            confidence=0.9,
            sentiment="negative" if secret.category == "emotional" else "neutral",
            turns=(secret.seq,),
            words=_DENIAL.sub("", secret.words),
        )
        for secret in secrets
    ]


def _codes(turn: Turn, question: str, reply: str) -> Iterator[Secret]:
    for code in find_codes(turn.text, question, reply):
        yield Secret(turn.seq, code.words, code.value, "technical", code.noun)


def _illnesses(clauses: list[Clause], spoken: str) -> Iterator[Secret]:
    for clause in clauses:
        if not clause.is_question:
            named = (*find_diagnoses(clause.text), *find_medicines(clause.text, spoken))
            yield from (
                Secret(clause.seq, clause.text, value, "person") for value in named
            )


def _beside(clauses: list[Clause], index: int) -> str:
    """What stands next to a bare "between us": the rest of the sentence it opens, or the words
    before it, whichever tells something.
    """
    clause = clauses[index]
    before = clauses[index - 1] if index else None
    after = clauses[index + 1] if index + 1 < len(clauses) else None
    opens = before is None or before.sentence != clause.sentence
    sides = (
        (after, before)
        if opens and after and after.sentence == clause.sentence
        else (before, after)
    )
    tells = (
        side.text
        for side in sides
        if side
        and stems(side.body)
        and not _CONFIDED.search(side.text)
        and not is_asking(side.text)
    )
    return next(tells, "")


def _just_told(clauses: list[Clause]) -> list[Clause]:
    """What the caller told of themself right before asking that it go no further: "I'm
    pregnant. Twelve weeks. Nobody knows."
    """
    last = clauses[-_JUST:]
    personal = [
        clause
        for clause in last
        if _OF_ONESELF.search(clause.text)
        and len(clause.text) >= _TOO_SHORT
        and stems(clause.body)
    ]
    return [
        clause
        for clause in personal
        if not (
            clause.is_question
            or is_asking(clause.text)
            or is_fault(clause.body)
            or is_confided(clause.text)
        )
    ]


def _confidences(clauses: list[Clause], earlier: list[Clause]) -> Iterator[Secret]:
    """ "…, don't tell anyone": the words before it in the sentence, or the sentence before, or
    what follows.
    """
    for index, clause in enumerate(clauses):
        match = _CONFIDED.search(clause.text) if is_confided(clause.text) else None
        if not match:
            continue
        before = clause.text[: match.start()].strip(" ,;:-")
        rest = clause.text[match.end() :]
        after = (
            _TO_WHOM.sub("", rest, count=1) if _TELLING.search(match.group()) else rest
        ).strip(" ,;:-")
        sides = (
            words
            for words in (before, after)
            if len(LEAD_IN.sub("", words, count=1)) >= _TOO_SHORT
            and not _WHEN.match(words)
        )
        if (
            (told := next(sides, "") or _beside(clauses, index))
            and len(told) >= _TOO_SHORT
            and not is_asking(told)
        ):
            yield Secret(
                clause.seq,
                told,
                told,
                "emotional" if FEELING.occurs(told) else "person",
            )
        for other in _just_told(clauses[:index] or earlier):
            if other.text not in told:
                yield Secret(
                    other.seq,
                    other.text,
                    other.text,
                    "emotional" if FEELING.occurs(other.text) else "person",
                )
        if (
            (named := _LISTENERS.sub("", after).strip(" ,;:-"))
            and stems(named)
            and not _WHEN.match(named)
        ):
            yield Secret(clause.seq, clause.text, named, "person")


@remember
def is_confided(text: str) -> bool:
    """Whether the words only ask that something be kept to oneself."""
    return _MAY_CONFIDE.occurs(text) and bool(_CONFIDED.search(text))


FEELING = Caseless(
    r"\b(?:burn(?:t|ed|ing)?[ -]?out|feel(?:ing)? (?:like (?:such )?a|so (?:alone|low|lost|bad"
    "|guilty)|awful|terrible|lost|"
    "alone|guilty|useless|hopeless|down)|nerves|end of my (?:rope|tether)|(?:broke|breaks"
    "|breaking) my heart|in bits|sacked|"
    "worry (?:all|so|about him|about her)|just worry|(?:he|she)['’]s gone|without (?:him"
    r"|her)\b|can['’]?t stop (?:crying|"
    r"thinking|worrying)|don['’]?t sleep|depress\w*|anxious|anxiety|scared|afraid(?! (?:i|we"
    "|it|that|not|so|you|he|"
    r"she|the)\b)|terrified|lonely|grie(?:f|ving|ve)|"
    r"heartbroken|devastated|overwhelmed|crying|cried|tears|miserable|"
    "exhausted|stressed|struggling|hard for me|still hard|so hard|really hard|hit me hard"
    "|sleeping (?:terribly|badly)|"
    r"can['’]?t sleep|not sleeping|haven['’]?t slept|"
    r"laid off|lost my job|made redundant|got fired|let me go|divorc\w+|split up|passed away"
    "|passed (?:in|on|last)|died|"
    "not coping|can['’]?t cope|been (?:awful|terrible|a nightmare|a rough|hell)|can['’]?t go "
    "on|rough (?:year|month|time|"
    "patch)|hard (?:year|time|month)|lost my (?:brother|sister|wife|husband|partner|best "
    "friend|nan|grandmother|grandfather|"
    r"mother|father|mom|mum|dad|son|daughter|dog|cat)|"
    "miss (?:him|her|them) |at my wits? end|falling apart|breaking point|upset|worried sick"
    r"|fed up|ashamed|embarrassed)\b",
)


def _once(secrets: list[Secret]) -> list[Secret]:
    """Without those whose words an earlier one of the same turn holds."""
    told: dict[int, str] = {}
    kept: list[Secret] = []
    for secret in secrets:
        if secret.words not in told.get(secret.seq, ""):
            told[secret.seq] = f"{told.get(secret.seq, '')}\0{secret.words}"
            kept.append(secret)
    return kept
