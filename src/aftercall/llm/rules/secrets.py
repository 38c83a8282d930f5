"""Secrets: what was told in confidence, found first and masked, so that no later rule can repeat it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from aftercall.llm.rules.caseless import Caseless
from aftercall.llm.rules.numbers import FIGURES, digit_pattern, digits
from aftercall.llm.rules.sentences import LEAD_IN, MASK, Clause, split_clauses
from aftercall.llm.rules.stems import stems
from aftercall.llm.rules.triggers import is_asking
from aftercall.model.reading import Category, FactDraft
from aftercall.model.turns import Turn

_SECRET_NUMBER = re.compile(
    r"\b(?:pin(?: (?:number|code))?|pass ?code|key ?safe|alarm|gate|to get in|(?:press|punch in|type in|key in|"
    r"dial)(?= \S*\d)|three digits|last four|"
    r"visa|mastercard|amex|expiry|(?:security|access|door|gate|entry|alarm|safe|key|lock ?box|garage|"
    r"verification|unlock) (?:code|number|pin|combination)|combination|"
    r"cvv|cvc|(?:credit|debit|bank|visa|mastercard|amex)? ?card(?: number)?|member(?:ship)?(?: (?:number|id|no))|(?:bank |"
    r"account|routing) (?:account )?number|sort code|iban|"
    r"social(?: security)?(?: number)?|ssn|insurance (?:number|id)|national insurance number|passport number|safe|code)\b",
    re.I,
)
_PASSWORD = re.compile(
    r"\b(?:password|pass ?phrase|pass ?word|log ?in|(?:memorable|safe|code|security) (?:word|answer)|security question|maiden name)\b", re.I
)
_SAYS = re.compile(r"(?:\b(?:is|it['’]s|it is|that['’]s|will be|set to)\b|:)\s*(?:(?:uh+|um+),?\s*)*", re.I)
_NO_VALUE = re.compile(
    r"\b(?:wrong|expired|reset|forgot|forgotten|forget|change|changed|new password|not working|locked|invalid|incorrect|lost|"
    r"problem|the same|safe|for (?:the|my))\b",
    re.I,
)

_CONDITIONS = (
    r"(?:(?:type (?:one|two|1|2) )?diabet(?:es|ic)|(?:\w+ )?cancer|leuk\w+|lymphoma|melanoma|tumou?r|hiv|aids|hepatitis|"
    r"herpes|chlamydia|epilep(?:sy|tic)|(?-i:MS|ALS|IBS|CFS)|miscarriage|"
    r"multiple sclerosis|parkinson['’]?s|alzheimer['’]?s|dementia|lupus|crohn['’]?s|colitis|ulcerative colitis|depress(?:ion|"
    r"ed disorder)|clinical depression|bipolar(?: disorder)?|"
    r"schizophreni\w+|ptsd|ocd|adhd|autis(?:m|tic)|anorexi\w+|bulimi\w+|anxiety disorder|panic disorder|asthma(?:tic)?|copd|"
    r"emphysema|angina|arrhythmia|atrial fibrillation|"
    r"heart failure|kidney (?:disease|failure)|cirrhosis|endometriosis|pcos|fibromyalgia|arthritis|osteoporosis|"
    r"celiac disease|coeliac disease|sickle cell|cystic fibrosis|"
    r"hypothyroidism|tuberculosis|long covid|glaucoma|sleep apn(?:ea|oea)|migraine disorder|addiction|alcoholi(?:sm|c)|"
    r"high blood pressure|hypertension)"
)
_DIAGNOSED = re.compile(
    r"\bdiagnosed (?:me |him |her |my \w+ )?(?:with|as) (?:having )?(?P<value>[\w\s'’\-]{3,50}?)(?= (?:in|last|this|and|but|"
    r"so|when|back|after|on|at|about)\b|[,.;!?]|$)",
    re.I,
)
# A named illness told of somebody the caller speaks of, not of a ward or a charity.
_CONDITION = re.compile(rf"\b(?P<value>{_CONDITIONS})\b(?! (?:research|charity|society|ward|nurse|clinic|centre|center|awareness))", re.I)
_OF_SOMEONE = re.compile(
    r"\b(?:i|i['’]\w+|my|me|he|he['’]s|she|she['’]s|his|her|we|our|it['’]s|it is|they|they['’]\w+|found|who has|suffer\w*)\b", re.I
)
_CONFIDED = re.compile(
    r"\b(?:(?:please )?(?:don['’]?t|do not|never) (?:you )?(?:tell|mention (?:it|this|that)? ?to|share (?:it|this|"
    r"that)? ?with|breathe a word|repeat (?:it|this|that)|say (?:it|that|anything) to|let (?:on|anyone|anybody))|"
    r"between (?:you and me|us|ourselves)|keep (?:it|this|that) (?:to yourself|quiet|between us|secret|confidential|private|"
    r"under your hat)|"
    r"(?:it|that|this)(?:['’]s| is) (?:a secret|confidential|strictly private|not public)|(?:nobody|no one)(?: else|"
    r" at \w+| in [\w ]{3,14}?| here)? (?:knows|is to know|must know|can know)(?: yet| about (?:it|this))?|"
    r"off the record|in confidence)\b",
    re.I,
)
_TELLING = re.compile(r"\b(?:tell|mention|share|say|let)\b", re.I)
_TO_WHOM = re.compile(
    r"^\W*(?:anyone|anybody|the \w+|my \w+|him|her|them|everyone|people|[A-Z]\w+)?\s*(?:that|this|it|about (?:it|that|"
    r"this))?\b",
    re.I,
)
_WHEN = re.compile(r"(?:and |so |but )*(?:if|when|yet|until|because)\b", re.I)
_TOO_SHORT = 12
_TELLING_STEM = 6


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
        return f"{self.label}: {self.words}" if self.label and self.label.lower() not in self.words.lower() else self.words


def find_secrets(turns: tuple[Turn, ...]) -> list[Secret]:
    secrets: list[Secret] = []
    question = ""
    for turn in turns:
        if turn.speaker == "agent":
            question = turn.text
            continue
        clauses = split_clauses(turn)
        secrets += [*_codes(turn, clauses, question), *_diagnoses(turn, clauses), *_confidences(clauses)]
        question = ""
    return _once(secrets)


def mask(text: str, secrets: list[Secret]) -> str:
    """The text with every secret's value blotted out, letter for letter."""
    for pattern in (pattern for secret in secrets for pattern in _patterns(secret.value)):
        text = re.sub(pattern, lambda match: MASK * len(match.group()), text, flags=re.I)
    return text


def secret_facts(secrets: list[Secret]) -> list[FactDraft]:
    return [
        FactDraft(
            category=secret.category,
            text=secret.text,
            summary=secret.text[:100],
            visibility="secret",
            confidence=0.9,
            sentiment="negative" if secret.category == "emotional" else "neutral",
            turns=(secret.seq,),
            words=secret.words,
        )
        for secret in secrets
    ]


def _tells(run: list[str]) -> bool:
    found = stems(" ".join(run))
    return len(found) > 1 or any(len(stem) >= _TELLING_STEM for stem in found)


def _patterns(value: str) -> list[str]:
    """The whole value first; then the groups of a long number and the telling runs of a sentence, which agents repeat."""
    figures = digits(value)
    if len(figures) >= 3:
        groups = [group for group in (*re.findall(r"\d{3,}", value), figures[:4], figures[-4:]) if len(figures) >= 6]
        return [rf"(?<!\d){digit_pattern(group)}(?!\d)" for group in (figures, *groups)]
    words = re.findall(r"\w+", value)
    telling = [words[at : at + 3] for at in range(len(words) - 2) if _tells(words[at : at + 3])] if len(words) > 3 else []
    return [r"(?<!\w)" + r"\W+".join(map(re.escape, run)) + r"(?!\w)" for run in (words, *telling) if run]


def _codes(turn: Turn, clauses: list[Clause], question: str) -> Iterator[Secret]:
    asked = _SECRET_NUMBER.search(question) if "?" in question else None
    for clause in clauses:
        text = clause.text
        if (cue := _PASSWORD.search(text)) and (value := _password(text, cue.end())):
            yield Secret(turn.seq, text, value, "technical")
        elif (figures := FIGURES.search(text)) and (cue := _SECRET_NUMBER.search(_with_sentence_before(turn.text, text)) or asked):
            yield Secret(turn.seq, text, figures.group(), "technical", cue.group().strip())


def _with_sentence_before(text: str, clause: str) -> str:
    before = text[: text.find(clause)]
    return f"{re.split(r'[.!?] ', before.rstrip(' .!?'))[-1]} {clause}"


def _password(text: str, start: int) -> str:
    """What follows "the password is"; nothing where a password is only talked about."""
    says = list(_SAYS.finditer(text, start))
    value = text[says[-1].end() :].strip(" .,!?\"'") if says else ""
    return "" if not value or _NO_VALUE.search(text[start:]) or len(value.split()) > 12 else value


def _diagnoses(turn: Turn, clauses: list[Clause]) -> Iterator[Secret]:
    for clause in clauses:
        match = _DIAGNOSED.search(clause.text) or (_CONDITION.search(clause.text) if _OF_SOMEONE.search(clause.text) else None)
        if match and not clause.is_question and not re.search(r"\b(?:allerg\w+|if i)\b", clause.text, re.I):
            yield Secret(turn.seq, clause.text, match["value"].strip(), "person")


def _beside(clauses: list[Clause], index: int) -> str:
    """What stands next to a bare "between us": the rest of the sentence it opens, or the words before it, whichever tells something."""
    clause = clauses[index]
    before = clauses[index - 1] if index else None
    after = clauses[index + 1] if index + 1 < len(clauses) else None
    opens = before is None or before.sentence != clause.sentence
    sides = (after, before) if opens and after and after.sentence == clause.sentence else (before, after)
    tells = (side.text for side in sides if side and stems(side.body) and not _CONFIDED.search(side.text) and not is_asking(side.text))
    return next(tells, "")


def _confidences(clauses: list[Clause]) -> Iterator[Secret]:
    """ "…, don't tell anyone": the words before it in the sentence, or the sentence before, or what follows."""
    for index, clause in enumerate(clauses):
        match = _CONFIDED.search(clause.text)
        if not match:
            continue
        before = clause.text[: match.start()].strip(" ,;:-")
        rest = clause.text[match.end() :]
        after = (_TO_WHOM.sub("", rest, count=1) if _TELLING.search(match.group()) else rest).strip(" ,;:-")
        told = next(
            (words for words in (before, after) if len(LEAD_IN.sub("", words, count=1)) >= _TOO_SHORT and not _WHEN.match(words)), ""
        )
        if not told:
            told = _beside(clauses, index)
        if len(told) >= _TOO_SHORT and not is_asking(told) and not FIGURES.search(told):
            yield Secret(clause.seq, told, told, "emotional" if FEELING.occurs(told) else "person")


FEELING = Caseless(
    r"\b(?:burn(?:t|ed|ing)?[ -]?out|feel(?:ing)? (?:like (?:such )?a|so (?:alone|low|lost|bad|guilty)|awful|terrible|lost|"
    r"alone|guilty|useless|hopeless|down)|nerves|end of my (?:rope|tether)|(?:broke|breaks|breaking) my heart|in bits|sacked|"
    r"worry (?:all|so|about him|about her)|just worry|(?:he|she)['’]s gone|without (?:him|her)\b|can['’]?t stop (?:crying|"
    r"thinking|worrying)|don['’]?t sleep|depress\w*|anxious|anxiety|scared|afraid(?! (?:i|we|it|that|not|so|you|he|"
    r"she|the)\b)|terrified|lonely|grie(?:f|ving|ve)|"
    r"heartbroken|devastated|overwhelmed|crying|cried|tears|miserable|"
    r"exhausted|stressed|struggling|hard for me|still hard|so hard|really hard|hit me hard|sleeping (?:terribly|badly)|"
    r"can['’]?t sleep|not sleeping|haven['’]?t slept|"
    r"laid off|lost my job|made redundant|got fired|let me go|divorc\w+|split up|passed away|passed (?:in|on|last)|died|"
    r"not coping|can['’]?t cope|been (?:awful|terrible|a nightmare|a rough|hell)|can['’]?t go on|rough (?:year|month|time|"
    r"patch)|hard (?:year|time|month)|lost my (?:brother|sister|wife|husband|partner|best friend|nan|grandmother|grandfather|"
    r"mother|father|mom|mum|dad|son|daughter|dog|cat)|"
    r"miss (?:him|her|them) |at my wits? end|falling apart|breaking point|upset|worried sick|fed up|ashamed|embarrassed)\b",
)


def _once(secrets: list[Secret]) -> list[Secret]:
    kept: list[Secret] = []
    for secret in secrets:
        if all(secret.seq != other.seq or secret.words not in other.words for other in kept):
            kept.append(secret)
    return kept
