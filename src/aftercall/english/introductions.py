"""Names that callers plainly give for themselves: "this is Ann", or an answer when asked."""

import itertools
import re
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from aftercall.english.clauses import split_plain_sentences
from aftercall.english.names import (
    MIN_LIKENESS,
    MIN_SPELLED,
    NEVER_NAMES,
    NO_NAME,
    PRANKS,
    TITLES,
    describes,
    find_addressed_name,
    find_spelled,
    given_names,
    has_capitals,
    is_full_name,
    measure_likeness,
    respell,
    short_forms,
    take_name,
)
from aftercall.english.text import Plain, cut_text, normalise
from aftercall.english.words import (
    compile_pattern,
    listed_words,
    load_patterns,
    vocabulary,
    word_class,
)

_PATTERNS = load_patterns("aftercall.english", "names")
_LEAD = (
    r"(?:(?:hi|hello|hey|g'day|yes|no|so|well|ok|right|sorry|actually"
    r"|good|day|morning|afternoon|evening|there|and|but|wait|hang on|sure|alright"
    r"|thank you|thanks|me|again|please|it is me"
    r"|that would be|put|say|only|love|dear|mate|pal|uh|um|erm|certainly|of course|absolutely) )*"
)
_SURE = tuple(
    compile_pattern(pattern)
    for pattern in (
        r"(?:^|.*? )my (?:full |first |own |last |sur|family )?(?:name is|names)(?: also| my)?",
        rf"^{_LEAD}(?:(?:<title> )?\S+ )?{_LEAD}(?:this is(?: actually)?|here is)",
        rf"^{_LEAD}(?:myself|you (?:are )?(?:speak|speaking|talking) (?:to|with))",
        r"(?:^|.* )i am (?:his|her|their|the \S+'s) (?:<kin>|<people>)",
        r"(?:^|.*? )(?:is|its|be|put it|put me)(?: down)? under(?: the name| mine)?",
        r"(?:^|.*? )(?:the |that is )?(?:sur|last )?(?:name (?:is|of)|names)",
        r"^(?:well|or|first name)",
        r".*my name is not \S+(?: \S+)? (?:it is|but)",
        r"^(?P<own>\S+) (?:\S+ ){1,3}put(?= (?P=own) )",
    )
)
_OPENING = compile_pattern(
    rf"^{_LEAD}(?:(?:<title> )?\S+ )?{_LEAD}(?:it is|i am|that is|we are)"
    r"(?: me| only| called| actually| again| it is)*"
)
_AFTER = vocabulary(
    """
    here speaking calling again now from with not on and i at over but ringing is my we in the
    um so can could would this it about
    """
)
# After a lone first name these say nothing: "it's Anna the cat ran off with".
_AFTER_FULL = vocabulary("is the in on can could would it about")
_SPEAKS = vocabulary("here speaking calling again ringing")
_SPOKEN_BETWEEN = (
    _SPEAKS | {"well", "or", "it", "is"} | frozenset("abcdefghijklmnopqrstuvwxyz")
)
_OWN_AFTER = re.compile(r" (?:this side|is (?:my|the) name)\b")
_RELATED = compile_pattern(r"(?:^|.* )i am (?:his|her|their|the) \S+(?: \S+)?")
_IN_FULL = re.compile(
    r"\b(?P<part>[A-Z][\w'’-]{2,})(?: is my name| from (?:the )?\w+)?[.,]"
    r"(?: (?:(?:[A-Za-z]|double)(?:[ .,]+|$))+)?"
    r" ?(?P<full>[A-Z][\w'’-]+(?: [A-Z][\w'’-]+){1,2})"
)
_OF_OTHERS = vocabulary("her his their my she he they was for tell ask")
# Two people on one phone: only a full name tells whose profile it is.
_TWO = re.compile(
    r"(?:\b(?:[Ii]t[’']s|[Tt]his is|[Ww]e[’']re) |^|[.!?] )(?P<one>[A-Z][a-z]+)"
    r",? and (?P<two>[A-Z][a-z]+)(?:(?:[’']s| is) (?:here|on)\b|(?: [A-Z][a-z]+)?(?:[.,!]|$))"
)
_ON_SPEAKER = re.compile(r"\bon (?:the )?speaker\b")
# Before a name these show that it is somebody else's, or part of a message.
_OTHERS = _PATTERNS["others"]
_ASKS_NAME = re.compile(
    r"\b(?:"
    r"(?:your|the) (?:full |first |last |own )?(?:name(?! on (?:it|them)\b)|surname)"
    r"|who am i (?:speaking|talking)"
    r"|who(?:'?s| is) (?:calling|this|speaking|placing|ordering|booking)"
    r"|what name"
    r"|name (?:is it|should|shall|please)"
    r"|owner's (?:last |full |first )?name"
    r"|(?:have|take|get) (?:a|your) name"
    r"|need a name"
    r"|name for the (?:booking|order|reservation)"
    r"|who(?:'s| is) it"
    r"|name on the"
    r"|who(?:'s| is) (?:that|the \w+) for"
    r"|(?:and|who) (?:are you|you are)"
    r")\b|\bname\?",
    re.I,
)
_OTHERS_NAME = re.compile(
    r"\b(?:"
    r"patient|company|dog|cat|pet|child|contact|street|school|doctor|file|account|business"
    r"|son|daughter|student|person|his|her|their|wife|husband"
    r")(?:'s)? (?:full |first |last )?name"
    r"|\bname of (?:the|your)\b"
    r"|\bcompany\b",
    re.I,
)
_OWN_NAME = re.compile(r"(?<!in )(?<!under )\byour (?:own |full |first )?name\b", re.I)
_CORRECTS = compile_pattern(r"^(?:no|sorry|actually|wait)|.* not \S+|.*i said")
_OF_SELF = compile_pattern(rf"^{_LEAD}i am")
_MIN_ECHO = 0.6
_GREETS = re.compile(
    r"\b(?:help|assist|do for|can i do|calling|speaking|hear|need|going|how are)\b",
    re.I,
)
_PARTS = re.compile(r"(?<!Mr)(?<!Mrs)(?<!Ms)(?<!Dr)[.!]")


class GivenName(NamedTuple):
    """A name that a caller gave for themself, and whether it sets an earlier one right."""

    name: str
    corrects: bool = False
    is_own: bool = False
    """Whether the agent asked for the caller's own name."""


def asks_name(text: str) -> bool:
    """Whether an agent asks the caller for a name."""
    plain = text.replace("’", "'")
    is_others = _OTHERS_NAME.search(plain) and not _OWN_NAME.search(plain)
    return bool(_ASKS_NAME.search(plain)) and not is_others


class Hearing(NamedTuple):
    """How much a name in a turn of the caller counts, by what the agent said before it."""

    is_opening: bool = False
    is_asked: bool = False
    is_echoed: bool = False
    is_answer: bool = False
    is_others: bool = False
    is_own: bool = False


def find_given_name(text: str, hearing: Hearing) -> GivenName | None:
    """The last name that the caller clearly gave for themself in one turn.

    A bare name counts where it was asked for, not where it answers another question.
    """
    found: GivenName | None = None
    for sentence in _all_sentences(cut_text(text)):
        found = _hear_sentence(found, sentence, hearing)
    full = "" if hearing.is_others else _said_in_full(text)
    if full and (found is None or found.name in full.split()):
        return GivenName(full, bool(found and found.corrects))
    return found


def _hear_sentence(
    found: GivenName | None, sentence: Plain, hearing: Hearing
) -> GivenName | None:
    """A fuller name, a correction or an unasked one replaces the name; letters respell it."""
    before = found.name if found else ""
    name = _name_in(sentence, hearing) or _maybe_bare(sentence, before, hearing)
    if name:
        return _choose_name(before, name, sentence, hearing)
    spelled = find_spelled(sentence) if found else ""
    if found and spelled:
        return GivenName(respell(found.name, spelled), found.corrects)
    return found


def _choose_name(
    before: str, name: str, sentence: Plain, hearing: Hearing
) -> GivenName:
    """Of two names in one turn that after "I'm", the fuller one, or both as its parts."""
    corrects = bool(_CORRECTS.match(sentence.text))
    is_self = name in sentence.source and not _is_alike(before, name)
    is_self = is_self and bool(_OF_SELF.match(sentence.text))
    is_new = not hearing.is_asked or _is_fuller(before, name)
    is_new = is_new or (" " in name and " " not in before)
    if corrects or is_self or (is_new and len(name.split()) >= len(before.split())):
        return GivenName(name, corrects)
    if not hearing.is_asked or not _is_other_part(sentence, before, name):
        return GivenName(before)
    is_first = hearing.is_own or before.lower() in given_names()
    return GivenName(f"{before} {name}" if is_first else f"{name} {before}")


def _is_other_part(sentence: Plain, before: str, name: str) -> bool:
    """ "Fairclough. Dominic.", "Fairclough. First name Dominic"."""
    is_one = " " not in f"{before}{name}" and not _is_alike(before, name)
    said = sentence.text.removeprefix("first name ").split()
    is_rare = name.lower() in given_names() or name.lower() not in listed_words()
    return is_one and is_rare and len(said) == 1


def _is_fuller(short: str, name: str) -> bool:
    """Whether a name holds every part of another, in full or in short; any does of none."""
    parts, whole = short.lower().split(), name.lower().split()
    is_held = all(any(_is_short(part, other) for other in whole) for part in parts)
    return is_held and sorted(parts) != sorted(whole) and len(whole) >= len(parts)


def _is_short(part: str, name: str) -> bool:
    is_start = len(part) >= MIN_SPELLED and name.startswith(part)
    return part == name or is_start or part in short_forms().get(name, ())


def _maybe_bare(sentence: Plain, before: str, hearing: Hearing) -> str:
    if hearing.is_others and not hearing.is_own:
        return ""
    is_first = hearing.is_opening and not hearing.is_answer and has_capitals(sentence)
    if not hearing.is_asked and not before and not is_first:
        return ""
    return _bare_name(sentence, before, is_asked=hearing.is_asked)


def _said_in_full(text: str) -> str:
    """ "Quayle. Leonard Quayle": a part, then the whole; so people name themselves."""
    for match in _IN_FULL.finditer(text):
        parts = match["full"].split()
        before = text[: match.start()].split()
        is_whole = not before or before[-1][0].islower() or before[-1][-1] in ".,!?"
        is_others = bool(_OF_OTHERS & {word.lower() for word in before[-4:]})
        plain = word_class("stop") | word_class("hesitation")
        is_name = not any(
            part.lower() in plain or NO_NAME.match(part.lower()) for part in parts
        )
        if is_whole and is_name and not is_others and match["part"] in parts:
            return match["full"]
    return ""


def _name_in(sentence: Plain, hearing: Hearing) -> str:
    for frame in (*_SURE, _OPENING):
        match = frame.match(sentence.text)
        if match is None or _is_of_others(match.group()):
            continue
        at = sentence.index(match.end())
        name = take_name(sentence, at)
        if name and _counts(sentence, at, name, match, hearing):
            return _fuller_after(sentence, at, name)
    return _named_first(sentence)


def _is_of_others(frame: str) -> bool:
    is_of_others = bool(_OTHERS.search(" ".join(frame.split()[-5:])))
    return is_of_others and not _RELATED.fullmatch(frame)


def _counts(
    sentence: Plain, at: int, name: str, match: re.Match[str], hearing: Hearing
) -> bool:
    """Whether a name behind a phrase like "this is" is the caller's."""
    is_full, is_sure = len(name.split()) > 1, match.re is not _OPENING
    if is_full and describes(name):
        return False
    is_first = hearing.is_opening and not hearing.is_answer
    is_written = is_full and (is_sure or is_first) and has_capitals(sentence)
    if is_written or " name is" in f" {match.group()}":
        return True
    is_free = is_sure or hearing.is_opening or hearing.is_asked
    is_speaking = _after(sentence, at, name) in _SPEAKS
    return (is_free or is_speaking) and _is_plainly_given(sentence, at, name)


def _named_first(sentence: Plain) -> str:
    """ "Tess McAllister calling", "Anna here", "Ravi this side", "Ann Lee is my name"."""
    lead = re.match(_LEAD, sentence.text)
    at = sentence.index(lead.end()) if lead else 0
    name = take_name(sentence, at)
    if not name or describes(name):
        return ""
    after = _after(sentence, at, name)
    is_known = len(name.split()) > 1 or name.lower() in given_names()
    is_from = after == "from" and is_known and has_capitals(sentence)
    is_own = _OWN_AFTER.search(sentence.text) and after in ("is", "this")
    return name if after in _SPEAKS or is_from or is_own else ""


def _end_of(sentence: Plain, at: int, name: str) -> int:
    """The place behind a name, before which a title may stand."""
    while at < len(sentence.words) and sentence.words[at].norm in TITLES:
        at += 1
    return at + len(name.split())


def _after(sentence: Plain, at: int, name: str) -> str:
    end = _end_of(sentence, at, name)
    return sentence.words[end].norm if end < len(sentence.words) else ""


def _is_plainly_given(sentence: Plain, at: int, name: str) -> bool:
    """A name after "it's" or "I'm" ends the clause or goes on as an introduction does."""
    after = _after(sentence, at, name)
    end = _end_of(sentence, at, name)
    is_closed = not after or bool(sentence.words[end - 1].stop)
    is_full = len(name.split()) > 1
    is_spelled = is_full and len(after) == 1 and after.isalpha()
    goes_on = is_spelled or (after in _AFTER and (is_full or after not in _AFTER_FULL))
    return (is_closed or goes_on) and not describes(name)


def _fuller_after(sentence: Plain, at: int, name: str) -> str:
    """ "It's Meg, Margarethe Solberg": the fuller name behind the comma."""
    end = _end_of(sentence, at, name)
    norms = [word.norm for word in sentence.words[end:]]
    end += len(list(itertools.takewhile(_SPOKEN_BETWEEN.__contains__, norms)))
    is_apart = "," in (word.stop for word in sentence.words[at:end])
    fuller = take_name(sentence, end) if is_apart else ""
    return fuller if len(fuller.split()) > len(name.split()) else name


def _bare_name(sentence: Plain, before: str, *, is_asked: bool) -> str:
    """A sentence that is nothing but a name."""
    at = _skip_to_name(sentence)
    name = take_name(sentence, at)
    if not name or describes(name):
        return ""
    after = _after(sentence, at, name)
    end = min(at + len(name.split()), len(sentence.words)) - 1
    stop = sentence.words[end].stop
    if len(after) > 1 and after not in _AFTER and not stop:
        return ""
    is_last = end == len(sentence.words) - 1
    is_whole = stop == "," or (is_last and stop in (".", "\n"))
    is_own = _is_fuller(before, name) if before else is_full_name(name.lower().split())
    return name if is_asked or (is_whole and is_own) else ""


def _skip_to_name(sentence: Plain) -> int:
    """Where a bare name may begin: behind small words, titles and spelled letters."""
    words = sentence.words
    lead = re.match(_LEAD, f"{sentence.text} ")
    at = max(sentence.index(lead.end()) if lead else 0, _after_letters(sentence))
    while at < len(words) - 1 and words[at].norm in TITLES:
        at += 1
    return at


def _after_letters(sentence: Plain) -> int:
    letters = [at for at, word in enumerate(sentence.words) if len(word.norm) == 1]
    is_followed = letters and letters[-1] + 1 < len(sentence.words)
    return letters[-1] + 1 if is_followed and len(letters) >= MIN_SPELLED else 0


Speaker = Literal["agent", "caller"]
OPENING_TURNS = 2  # of the caller's, in which people say who they are


class NameListener:
    """Reads the turns of one call in order: earlier turns decide how much a name counts."""

    def __init__(self) -> None:
        self._heard = 0
        self._hearing = Hearing()
        self.last = ""

    def process_turn(self, speaker: Speaker, text: str) -> GivenName | None:
        if speaker == "agent":
            self._hear_agent(text)
            return None
        self._heard += 1
        hearing = self._hearing._replace(is_opening=self._heard <= OPENING_TURNS)
        self._hearing = hearing._replace(is_asked=False, is_echoed=False, is_own=False)
        given = find_given_name(text, hearing)
        if given is None:
            return None
        self.last = given.name
        corrects = given.corrects or hearing.is_echoed
        return GivenName(given.name, corrects, hearing.is_own)

    def _hear_agent(self, text: str) -> None:
        """What the agent's words mean for the next answer: a name asked for, or said back."""
        is_echoed = bool(self.last) and _echoes(text, self.last)
        self._hearing = Hearing(
            is_asked=is_echoed or asks_name(text),
            is_echoed=is_echoed,
            is_answer="?" in text and not _GREETS.search(text),
            is_others=bool(_OTHERS_NAME.search(text)),
            is_own=bool(_OWN_NAME.search(text)),
        )


def _echoes(text: str, name: str) -> bool:
    """Whether an agent says a name back to ask for it: "Fans McReady?" """
    asked = [part for part in _PARTS.split(text) if "?" in part]
    said = [word.strip(",?").lower() for word in " ".join(asked[:1]).split()]
    is_short = len(said) <= len(name.split()) + 3
    pairs = itertools.product(said, name.lower().split())
    return is_short and any(measure_likeness(*pair) >= _MIN_ECHO for pair in pairs)


def resolve_name(turns: Iterable[tuple[Speaker, str]]) -> str | None:
    """The caller's own name in its fullest form, as last put right."""
    heard = list(turns)
    if any(PRANKS[speaker].search(text) for speaker, text in heard):
        return None
    best = _follow_names(heard)
    said = (text for speaker, text in heard if speaker == "caller")
    if " " not in best and any(map(_names_two, said)):
        return None
    return best or None


def _follow_names(turns: list[tuple[Speaker, str]]) -> str:
    listener = NameListener()
    best = said = ""
    for speaker, text in turns:
        given = listener.process_turn(speaker, text)
        if speaker == "agent" and not best:
            best = find_addressed_name(said, text)
        said = text if speaker == "caller" else ""
        if given is None:
            continue
        is_other = given.is_own and not _is_alike(best, given.name)
        if is_other or _is_fuller(best, given.name):
            best = given.name
        elif given.corrects:
            best = _joined(best, given)
    return best


def _names_two(text: str) -> bool:
    """ "It's Ann and Peter here": neither first name is the caller's alone."""
    match = _TWO.search(text)
    if match is None:
        return bool(_ON_SPEAKER.search(text))
    plain = word_class("stop") | NEVER_NAMES
    return not any(name.lower() in plain for name in match.group("one", "two"))


def _is_alike(one: str, other: str) -> bool:
    """Whether two names share a part, in full or in short."""
    pairs = itertools.product(one.lower().split(), other.lower().split())
    return any(_is_short(*pair) or _is_short(*pair[::-1]) for pair in pairs)


def _joined(best: str, given: GivenName) -> str:
    """A corrected part keeps the parts beside it; what sounds otherwise is somebody else's."""
    parts = best.split()
    pairs = itertools.product(best.lower().split(), given.name.lower().split())
    alike = [measure_likeness(*pair) for pair in pairs]
    if parts and max(alike) < MIN_LIKENESS:
        return best
    if " " in given.name or len(parts) < 2:
        return given.name
    parts[alike.index(max(alike))] = given.name
    return " ".join(parts)


_CALLED = _PATTERNS["called"]
_NOT_CALLED = re.compile(r"(?:not|never|nobody|if) (?:\S+ )?$")
_PRONOUNS = _PATTERNS["pronouns"]
_SLASHED = re.compile(r"\b(she|he|they)/(her|him|them)\b")


def find_call_name(texts: Iterable[str]) -> str | None:
    """The form of the name that a caller asks to be called by."""
    for sentence in _all_sentences(texts):
        for match in _CALLED.finditer(sentence.text):
            at = sentence.index(match.end())
            name = take_name(sentence, at)
            norm = sentence.words[at].norm if at < len(sentence.words) else ""
            is_plain = norm in word_class("stop") and norm not in given_names()
            is_denied = bool(_NOT_CALLED.search(sentence.text[: match.start()]))
            is_denied |= bool(sentence.words[at - 1].stop)  # "call me, Ms Lee"
            if name and not is_plain and not is_denied and not describes(name):
                return name
    return None


def find_pronouns(texts: Iterable[str]) -> str | None:
    """ "My pronouns are they/them", "she/her"; not those of somebody else."""
    for sentence in _all_sentences(texts):
        if "pronouns" in sentence.text and re.search(
            r"\b(?:his|her|their) pronouns", sentence.text
        ):
            continue
        match = _PRONOUNS.search(sentence.text)
        if match:
            return f"{match['first']}/{match['second']}"
        if slashed := _SLASHED.search(sentence.text):
            return slashed.group()
    return None


def _all_sentences(texts: Iterable[str]) -> Iterator[Plain]:
    return (part for text in texts for part in split_plain_sentences(normalise(text)))
