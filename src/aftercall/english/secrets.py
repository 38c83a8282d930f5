"""Secrets that a caller tells: codes, passwords, illnesses, confidences.

They are found first and masked, so that no later rule can repeat them.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from aftercall.english.clauses import Clause, split_clauses, split_plain_sentences
from aftercall.english.masking import ValueMask
from aftercall.english.text import Plain, Word, cut_text, normalise
from aftercall.english.words import (
    compile_pattern,
    load_patterns,
    remember,
    stems,
    vocabulary,
)
from aftercall.model.calls import Turn
from aftercall.model.reading import Category, FactDraft

_PATTERNS = load_patterns("aftercall.english", "secrets")

_OPENS = compile_pattern("<opens>")
_KNOWN = compile_pattern("<known>")
_STRONG = re.compile(r"(?:pin|pass ?code|cvv|cvc|combination)\b")
# "The PIN for the phone line is …": what it is for does not own the figures.
_BESIDE = re.compile(
    r"(?:for|on|of|to|in|at|by|with|from) (?:(?:the|my|our|his|her|a) )?(?:\S+ )?$"
)
_UNIT = re.compile(
    r"(?:oclock|am|pm"
    r"|pounds?|dollars?|euros?|quid|bucks|percent"
    r"|years?|months?|weeks?|days?|hours?|minutes?"
    r"|degrees|miles|square|inch(?:es)?|feet"
    r"|people|guests|copies|of (?:us|them)"
    r"|\S+ (?:street|road|avenue|lane|way|drive|court|close"
    r"|row|gardens|hill|place|terrace|grove))(?!\S)"
)
_POUND_KEY = re.compile(r"pound(?: (?:sign|key))?$")  # of a keypad
_HOUR_BEFORE = re.compile(
    r"(?:^| )(?:at|until|till|from|before|after|around|about|past|between|since) $"
)
_FIGURE = re.compile(r"[a-z]?\d+(?:[-.:/]\d+)*[a-z]?")
# A letter and figures on a device are no secret: "it is showing a code, E119".
_SHOWN = compile_pattern(r"(?:show|shows|showing|says|display\S*|flash\S*|blink\S*)")
_SAID = vocabulary("one nought")  # figures that are no number in other places
_BETWEEN = vocabulary("then and sorry no wait dash star hash left right")
_ASKED = re.compile(
    r"\?|\b(?:need|please|may i|tell me|give me|read me|take|confirm|enter|say)\b", re.I
)
_CODE = re.compile(r"code|pin|combination", re.I)  # what an agent may tell when asked
# "Don't tell me your password", "which door is it?": these ask for no code.
_WARNS = re.compile(
    r"\b(?:(?:do not|don['’]t|never) (?:tell|give|say|state|share|read)"
    r"|which (?:door|gate|lock|locker|key))\b",
    re.I,
)
_PASSWORD = _PATTERNS["password"]
_SAYS = _PATTERNS["says"]
_NO_VALUE = _PATTERNS["no_value"]
_GOES_ON = _PATTERNS["goes_on"]
_TYPED = re.compile(r"(?:put|typ|enter|try|tried|us)")
_MAX_PASSWORD_WORDS = 8
_POINTS = re.compile(r"(?:and |so |yes |only )*(?:it|that|this|they|mine)\b")
_KEY = re.compile(
    r"(?<!\w)(?:sk|pk|ghp|gho|xox[bp]|api|key)[-_][\w-]{4,}|(?<!\w)(?=\w*\d)(?=\w*[A-Za-z])\w{20,}"
)

_HIDDEN_KEY = re.compile(
    r"\b(?:spare |front door |back door |house )?keys?(?:[’']s| is| are)?"
    r"(?: kept| hidden| hanging)? (?P<where>(?:under|underneath|beneath|behind|above)"
    r" [^.,;?!]{3,40})",
    re.I,
)
_ILLNESS = _PATTERNS["illness"]
_DIAGNOSED = _PATTERNS["diagnosed"]
_ACRONYM = re.compile(r"(?<!\w)(?:MS|ALS|IBS|CFS|MND|CKD|POTS|TB|ADHD|HIV|PTSD)(?!\w)")
_OF_SOMEONE = _PATTERNS["of_someone"]
_NO_ILLNESS = compile_pattern(
    r"(?:allerg\S+|hearing aids?|if i|diagnosis|prognosis|hypnosis|osmosis)"
)
_MEDICINE = _PATTERNS["medicine"]

_CONFIDES = _PATTERNS["confides"]
_ASKS_OF_OTHER = _PATTERNS["asks_of_other"]
_LISTENER = _PATTERNS["listener"]
_CONFIDED = _PATTERNS["confided"]
_OPEN_END = re.compile(r"\b(?:it|that|this|if|to|did|does|do|would|you|will|be)$")
_JOINT = re.compile(r"(?: (?:and|so|but|please|because|cause|or))+$")
_STATES = re.compile(
    r"(?:(?:and|but|so|because|cause) )*(?:(?:about|that|i|we|me|my|our|he|she|they|it|there|the"
    r"|his|her|their)\b|(?!if|when|who)\S+ (?:is|are|was|has|have|will)\b)"
)
_POINTS_BACK = re.compile(
    r"(?:(?:and|but|so|because|or|anyway) )*(?:he|she|they|it|that|this|nobody|no one)\b"
    r"|.*\b(?:not (?:even )?know|get wind|find out)\b"
)
_DAY = re.compile(
    r"\b(?:tomorrow|today|tonight|\w+day|\d+(?:st|nd|rd|th)|the (?:first|second|third))\b"
)
_MAX_DAY_WORDS = 3  # of a clause that only names a day
_VAGUE_NOUNS = vocabulary("code number pin digits")
_MIN_TOLD_WORDS = 2
_MAX_COMPARED = 20  # secrets of one turn
_REACH = 3  # clauses that a plea for silence reaches back over
_MAX_GAP_WORDS = 2  # between two clauses of one confidence
_NEAR = 45  # characters after figures in which a noun may say what they are
_MIN_FIGURES = 3
_NUMBERED = re.compile(
    r"\b(?:order|invoice|ticket|reference|tracking|confirmation|parcel|serial)\b"
)
_CARD_FIGURES = 14  # more than any telephone number has


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
    def hidden(self) -> str:
        """What is hidden wherever the call is shown: of a code, not who said it beside it."""
        return self.value if self.category == "technical" else self.words

    @property
    def text(self) -> str:
        is_told = not self.label or self.label.lower() in self.words.lower()
        return self.words if is_told else f"{self.label}: {self.words}"


def find_secrets(turns: Sequence[Turn]) -> list[Secret]:
    secrets: list[Secret] = []
    question = ""
    earlier: list[Clause] = []
    pieces = ((turn, text) for turn in turns for text in cut_text(turn.text))
    for turn, text in pieces:
        said_before, question = question, text
        codes = _find_codes(turn.seq, text, said_before)
        if turn.speaker == "agent":
            if _CODE.search(_asked_for(said_before)):
                known = {secret.value for secret in secrets}
                secrets += [code for code in codes if code.value not in known]
            continue
        secrets += codes
        clauses = split_clauses(turn.seq, text)
        secrets += _find_keys(turn.seq, text)
        secrets += _find_illnesses(clauses)
        secrets += _find_confidences(clauses, earlier)
        earlier = clauses
    return list(dict.fromkeys(secrets))


def secret_facts(secrets: Iterable[Secret]) -> list[FactDraft]:
    """Each piece of a turn once, though every value in it is masked."""
    kept: dict[int, list[Secret]] = {}
    for secret in secrets:
        known = kept.setdefault(secret.seq, [])
        if any(secret.words in other.words for other in known[-_MAX_COMPARED:]):
            continue
        while known and known[-1].words in secret.hidden:
            known.pop()
        known.append(secret)
    return [
        FactDraft(
            category=secret.category,
            text=secret.text,
            summary=secret.text[:100],
            visibility="secret",
            confidence=0.9,
            sentiment="negative" if secret.category == "emotional" else "neutral",
            turns=(secret.seq,),
            words=secret.hidden,
        )
        for known in kept.values()
        for secret in known
    ]


def mask(text: str, secrets: Iterable[Secret]) -> str:
    """The text with the value of every secret blotted out, letter for letter."""
    return make_mask(tuple(secret.value for secret in secrets)).apply(text)


# A call has one list of secrets and many texts.
make_mask = remember(ValueMask, max_answers=4)


def _is_figure(word: Word) -> bool:
    """A figure, a letter, or a word for one: what codes are made of."""
    is_letter = len(word.norm) == 1 and word.norm not in "ai"
    return is_letter or word.norm in _SAID or bool(_FIGURE.fullmatch(word.norm))


def _figures(words: Iterable[Word]) -> str:
    return "".join(char for word in words for char in word.norm if char.isdigit())


def _runs(plain: Plain) -> Iterator[list[Word]]:
    """Figures and letters in a row, over small words between them."""
    run: list[Word] = []
    between: list[Word] = []
    for word in plain.words:
        if _is_figure(word):
            run += [*between, word]
            between = []
        elif run and word.norm in _BETWEEN and len(between) < 2:
            between.append(word)
        else:
            if run:
                yield run
            run, between = [], []
    if run:
        yield run


def _find_keys(seq: int, text: str) -> Iterator[Secret]:
    """Keys of programs, as they look ("sk-…"), and where somebody says one is hidden."""
    for match in _KEY.finditer(text):
        yield Secret(seq, match.group(), match.group(), "technical", "A key")
    for hidden in _HIDDEN_KEY.finditer(text):
        yield Secret(seq, hidden.group(), hidden["where"], "technical")


def _find_codes(seq: int, text: str, question: str) -> Iterator[Secret]:
    """Numbers and passwords of one text, by the nouns in it and by the question before it."""
    asked = _asked_for(question)
    label = noun = _password_asked(question)
    before: Plain | None = None
    for sentence in split_plain_sentences(normalise(text)):
        if before:
            label, noun = _name_it(before, noun, asked)
        before = sentence
        is_pointing = label and _POINTS.match(sentence.text)
        for value, governor in _find_numbers(sentence, asked or noun):
            is_vague = governor in _VAGUE_NOUNS and noun not in ("", governor)
            shown = label if is_pointing or is_vague else asked or governor
            yield Secret(seq, sentence.cited, value, "technical", shown)
        is_named = bool(_PASSWORD.search(sentence.text))
        if (is_named or _PASSWORD.search(noun)) and (value := _password(sentence)):
            shown = "" if is_named else label
            yield Secret(seq, sentence.cited, value, "technical", shown)


def _name_it(before: Plain, noun: str, asked: str) -> tuple[str, str]:
    """What "it" is: what the sentence before names, else what was spoken of before that."""
    named, known = _last_noun(before.text), noun or asked
    return before.said if named or not known else known, named or noun


def _is_asking(question: str) -> bool:
    """ "Please don't tell me your password" asks for none."""
    return bool(_ASKED.search(question)) and not _WARNS.search(question)


def _password_asked(question: str) -> str:
    """The password that an agent asks for."""
    is_asking = _is_asking(question)
    noun = _PASSWORD.search(normalise(question).text) if is_asking else None
    return noun.group() if noun else ""


def _find_numbers(sentence: Plain, otherwise: str) -> Iterator[tuple[str, str]]:
    """Each secret number of a sentence, and the noun that says what it is."""
    if not any(map(str.isdigit, sentence.text)):
        return
    for run in _runs(sentence):
        figures = _figures(run)
        if not figures or max(len(figures), len(run)) < _MIN_FIGURES:
            continue
        governor = _governor(sentence, run, otherwise)
        is_shown = run[0].norm[0].isalpha() and _SHOWN.search(sentence.text)
        if governor == "code" and is_shown:
            continue
        is_long = len(figures) >= _CARD_FIGURES
        if is_long and not governor and not _NUMBERED.search(sentence.text):
            governor = otherwise = "card number"
        if governor:
            yield sentence.source[run[0].start : run[-1].end], governor


def _asked_for(question: str) -> str:
    """The secret that an agent asks for."""
    if not _is_asking(question):
        return ""
    plain = normalise(question)
    text = plain.text
    nouns = list(_OPENS.finditer(text))
    if not nouns:
        return ""
    known = list(_KNOWN.finditer(text))
    if known and known[-1].start() > nouns[-1].start():
        return ""
    return plain.between(nouns[0].start(), nouns[-1].end()).cited


def _last_noun(text: str) -> str:
    """ "The code for the gate is": the last thing that figures may open; none if all know it."""
    nouns = [*_OPENS.finditer(text), *_PASSWORD.finditer(text)]
    last = max(nouns, key=lambda match: match.start(), default=None)
    known = max((match.start() for match in _KNOWN.finditer(text)), default=-1)
    return last.group() if last and last.start() > known else ""


def _governor(sentence: Plain, run: list[Word], otherwise: str) -> str:
    """The noun that says what the figures are."""
    at = sentence.words.index(run[0])
    before = sentence.text[: sentence.offset(at)]
    after = sentence.slice(at + len(run)).text
    secret, known = _last(_OPENS, before), _last(_KNOWN, before)
    is_key = secret is not None and bool(_POUND_KEY.match(after))
    if (_UNIT.match(after) and not is_key) or _HOUR_BEFORE.search(before):
        return ""
    if known and not (secret and _outweighs(secret, known, before)):
        return ""
    if secret:
        return secret.group()
    later, plain = _OPENS.search(after[:_NEAR]), _KNOWN.search(after[:_NEAR])
    if plain and (later is None or plain.start() < later.start()):
        return ""
    return later.group() if later else otherwise


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return max(pattern.finditer(text), key=lambda match: match.start(), default=None)


def _outweighs(secret: re.Match[str], known: re.Match[str], before: str) -> bool:
    """Whether the secret noun owns the figures though a plain one is named as well."""
    is_beside = bool(_BESIDE.search(before[: known.start()]))
    is_beside = is_beside and " is " in before[known.end() - 1 :]
    return (
        bool(_STRONG.match(secret.group())) or is_beside or known.end() < secret.end()
    )


def _password(sentence: Plain) -> str:
    """What was said as the password; nothing where a password is only talked about."""
    noun = _PASSWORD.search(sentence.text)
    start = noun.end() if noun else 0
    found = list(_SAYS.finditer(sentence.text))
    behind = [way for way in reversed(found) if way.start() >= start]
    if noun and not behind and (value := _said_after(sentence, noun)):
        return value
    typed = [way for way in found if way.start() < start and _TYPED.match(way.group())]
    values = (_password_after(sentence.after(way.end())) for way in behind + typed)
    return next((value for value in values if value), "")


def _said_after(sentence: Plain, noun: re.Match[str]) -> str:
    """ "The password, Thistle Ninety-Nine"."""
    last = sentence.index(noun.end() - 1)
    is_apart = bool(sentence.words[last].stop)
    return _password_after(sentence.slice(last + 1)) if is_apart else ""


def _password_after(rest: Plain) -> str:
    """The words that are the password; none where the sentence only talks about one."""
    end = _GOES_ON.search(rest.text)
    value = rest.between(0, end.start()) if end else rest
    is_value = bool(value.words) and not _NO_VALUE.match(value.text)
    return value.cited if is_value and len(value.words) <= _MAX_PASSWORD_WORDS else ""


def _find_illnesses(clauses: list[Clause]) -> Iterator[Secret]:
    """What is told of somebody's health, outside of questions.

    An illness, a diagnosis, a medicine, or letters that stand for one ("MS").
    """
    for clause in clauses:
        text, cited = clause.text, clause.plain.cited
        is_told = _OF_SOMEONE.search(text) and not clause.is_question
        if not is_told or _NO_ILLNESS.search(text):
            continue
        if (
            match := _DIAGNOSED.search(text)
            or _ILLNESS.search(text)
            or _MEDICINE.search(text)
        ):
            value = clause.plain.between(*match.span("value")).cited
            yield Secret(clause.seq, cited, value, "person")
        elif acronym := _ACRONYM.search(cited):
            yield Secret(clause.seq, cited, acronym.group(), "person")


def _find_confidences(clauses: list[Clause], earlier: list[Clause]) -> Iterator[Secret]:
    """ "…, don't tell anyone": what is said with it, or else before it, or else after it."""
    for clause in clauses:
        told: list[Clause] = []
        if _CONFIDED.search(clause.text):
            told = [clause]
        elif match := _CONFIDES.search(clause.text):
            told = [replace(clause, plain=part) for part in _sides(clause.plain, match)]
            told += _beside(clause, clauses, earlier, is_enough=bool(told))
        told += _more_of_it(told, clauses)
        for part in told:
            words = _cite_confided(part, [clause, *told])
            yield Secret(part.seq, words, part.plain.cited, _feels(words.lower()))


def _cite_confided(part: Clause, told: list[Clause]) -> str:
    """The part with what was confided right beside it, and with the plea for silence."""
    source = part.plain.source
    start, end = part.plain.words[0].start, part.plain.words[-1].end
    near = [other.plain.words for other in told if other.seq == part.seq]
    for words in sorted(near, key=lambda words: words[0].start):
        if len(source[end : words[0].start].split()) <= _MAX_GAP_WORDS:
            end = max(end, words[-1].end)
    for words in sorted(near, key=lambda words: -words[-1].end):
        if len(source[words[-1].end : start].split()) <= _MAX_GAP_WORDS:
            start = min(start, words[0].start)
    return source[start:end]


def _beside(
    plea: Clause, clauses: list[Clause], earlier: list[Clause], *, is_enough: bool
) -> list[Clause]:
    """What a plea for silence is about: the rest of its sentence, or the nearest that tells."""
    near = [part for part in clauses if _tells(part.plain)]
    here = [part for part in near if part.sentence == plea.sentence]
    if here or is_enough:
        return here
    before = [part for part in near if part.sentence < plea.sentence]
    later = [part for part in near if part.sentence > plea.sentence]
    after = [part for part in later if part.sentence == later[0].sentence]
    said = [part for part in earlier if _tells(part.plain)]
    return (before or after or said)[-_REACH:]


def _more_of_it(told: list[Clause], clauses: list[Clause]) -> list[Clause]:
    """The sentences of a turn that go on about what was confided: "He doesn't know yet."."""
    ends = [part.sentence for part in told if part.seq == clauses[0].seq]
    more: list[Clause] = []
    for number, sentence in itertools.groupby(clauses, lambda part: part.sentence):
        parts = list(sentence)
        if not ends or number <= ends[-1]:
            continue
        if not _POINTS_BACK.match(parts[0].text) or parts[-1].is_question:
            break
        if any(_ASKS_OF_OTHER.search(part.text) for part in parts):
            break
        more += parts
    return more


def _sides(plain: Plain, match: re.Match[str]) -> list[Plain]:
    """What is told in the clause that asks for silence, before the plea or after it."""
    after = plain.after(match.end())
    while (listener := _LISTENER.match(after.text)) is not None:
        after = after.after(listener.end() + 1)
    if match.group().endswith("say") and after.words:
        return [after.slice(0, 1)]
    said = plain.text[: match.start()].rstrip()
    before = plain.between(0, len(_JOINT.sub("", said)))
    sides = []
    if not _OPEN_END.search(before.text):
        sides.append(before)
    if _STATES.match(after.text):
        sides.append(after)
    return [part for part in sides if len(part.words) > 2 and _tells(part)]


_FEELING = compile_pattern("<feeling>")


def _feels(text: str) -> Category:
    return "emotional" if _FEELING.search(text) else "person"


def _tells(part: Plain) -> bool:
    """Whether words tell something of the caller that could be kept quiet."""
    is_empty = len(part.words) < _MIN_TOLD_WORDS or not stems(part.text)
    if is_empty or _CONFIDES.search(part.text):
        return False
    if len(part.words) <= _MAX_DAY_WORDS and _DAY.search(part.text):
        return False
    return not _ASKS_OF_OTHER.search(part.text)
