"""Names that callers plainly give for themselves: "this is Ann", or an answer when asked."""

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from importlib.resources import files
from typing import Literal

from aftercall.english.clauses import split_plain_sentences
from aftercall.english.pieces import cut_text
from aftercall.english.text import Plain, Word, normalise
from aftercall.english.words import (
    compile_pattern,
    is_descriptive,
    load_patterns,
    vocabulary,
    word_class,
)

_PATTERNS = load_patterns("aftercall.english", "names")

_LEAD = (
    r"(?:(?:hi|hello|hey|yes|no|so|well|ok|right|sorry|actually|good|morning|afternoon|evening"
    r"|there|and|but|wait|hang on|sure|alright|thank you|thanks|me|again|please|it is me"
    r"|that would be|put|say|only|love|dear|certainly|of course|absolutely) )*"
)
_SURE = tuple(
    compile_pattern(pattern)
    for pattern in (
        r"(?:^|.*? )my (?:full |first |own |last |sur|family )?(?:name is|names)(?: also| actually| my)?",
        rf"^{_LEAD}(?:(?:<title> )?\S+ )?{_LEAD}this is(?: actually)?",
        rf"^{_LEAD}you (?:are )?(?:speak|speaking|talking) (?:to|with)",
        r"(?:^|.* )i am (?:his|her|their|the \S+'s) (?:<kin>|<people>)",
        r"(?:^|.* )(?:in|on|under) the name(?: of)?",
        r"(?:^|.*? )(?:it is|its|it would be|put it|put me|that is)(?: down)? under(?: the name)?",
        rf"^{_LEAD}under(?: the name(?: of)?)?",
        r"(?:^|.*? )(?:the |that is )?name is",
        r".*my name is not \S+(?: \S+)? (?:it is|but)",
        r"(?:^|.* )(?:i am|this is) not \S+ (?:it is|i am|this is)",
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
_AFTER_FULL = vocabulary("is the in on can could would it about at")
_SPEAKS = vocabulary("here speaking calling again ringing")
_SPOKEN_BETWEEN = _SPEAKS | frozenset("abcdefghijklmnopqrstuvwxyz")
_RELATED = compile_pattern(r"(?:^|.* )i am (?:his|her|their|the) \S+(?: \S+)?")
_I_AM = compile_pattern(r".* (?:but |and )?i am")
_IN_FULL = re.compile(
    r"\b(?P<part>[A-Z][\w'’-]{2,})[.,](?: (?:(?:[A-Za-z]|double)(?:[ .,]+|$))+)?"
    r" ?(?P<full>[A-Z][\w'’-]+(?: [A-Z][\w'’-]+){1,2})"
)
_OF_OTHERS = vocabulary("her his their my she he they was for tell ask")
# Two people on one phone: neither is the caller.
_TWO = re.compile(
    r"(?:\b(?:[Ii]t[’']s|[Tt]his is|[Ww]e[’']re) |^|[.!?] )(?P<one>[A-Z][a-z]+)"
    r",? and (?P<two>[A-Z][a-z]+)(?:(?:[’']s| is) (?:here|on)\b|(?: [A-Z][a-z]+)?(?:[.,!]|$))"
)
# Before a name these show that it is somebody else's, or part of a message.
_OTHERS = _PATTERNS["others"]
_ASKS_NAME = re.compile(
    r"\b(?:your|the) (?:full |first |last |own )?(?:name|surname)\b|\bwho am i (?:speaking|talking)"
    r"|\bwho(?:'s| is) (?:calling|this|speaking)|\bwhat name\b|\bname (?:is it|should|shall|please)"
    r"|\bowner's (?:last |full |first )?name|\b(?:have|take|get) (?:a|your) name|\bname\?"
    r"|\bneed a name"
    r"|\bname for the (?:booking|order|reservation)|\bwho(?:'s| is) it\b|\bname on the\b"
    r"|\bwho(?:'s| is) (?:that|the \w+) for\b|\b(?:and|who) (?:are you|you are)\b",
    re.I,
)
_OTHERS_NAME = re.compile(
    r"\b(?:patient|company|dog|cat|pet|child|contact|street|school|doctor|file|account|business"
    r"|son|daughter|student|person|his|her|their|wife|husband)(?:'s)? (?:full |first |last )?name"
    r"|\bname of (?:the|your)\b|\bcompany\b",
    re.I,
)
_CORRECTS = compile_pattern(r"^(?:no|sorry|actually|wait)|.* not \S+|.*i said")
_NATIONAL = re.compile(
    r"(?:[a-z]{3,}(?:ish|ese)|[a-z]{4,}ian|german|french|dutch|greek|american)$"
)
_PARTICLES = vocabulary("de der den da di du la le van von bin al el del dos ter")
_NEVER = vocabulary(
    """
    monday tuesday wednesday thursday friday saturday sunday january february october november
    december english mister mrs christmas easter god jesus i me ok hello hi yes no thanks please
    street road lane avenue sorry speaker
    """
)
_PLACES = vocabulary(
    """
    street road lane avenue way drive court close row square park house hall hill new city
    county station chapel church school clinic hospital centre center
    """
)
# Days, figures, what somebody owns, addresses.
_NO_NAME = re.compile(
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?$|[\W\d_]|.*(?:'s?$|@)"
)
_MAX_PARTS = 4
_MAX_APPOSED = 3  # words: "it's Bramble, my rabbit" names somebody else
_MIN_SPELLED = 3
_MIN_LIKENESS = 0.5
_MIN_ECHO = 0.6
_GREETS = re.compile(
    r"\b(?:help|assist|do for|can i do|calling|speaking|hear|need|going|how are)\b",
    re.I,
)
_PARTS = re.compile(r"(?<!Mr)(?<!Mrs)(?<!Ms)(?<!Dr)[.!]")


@dataclass(frozen=True, slots=True)
class GivenName:
    """A name that a caller gave for themself, and whether it sets an earlier one right."""

    name: str
    corrects: bool = False


@cache
def short_forms() -> dict[str, frozenset[str]]:
    """Each given name with its short forms."""
    lines = files("aftercall.english").joinpath("given_names.txt").read_text("utf-8")
    pairs = (line.partition(":") for line in lines.splitlines() if line)
    return {full: frozenset(shorts.split()) for full, _, shorts in pairs}


@cache
def given_names() -> frozenset[str]:
    return frozenset(short_forms()).union(*short_forms().values())


def asks_name(text: str) -> bool:
    """Whether an agent asks the caller for a name."""
    plain = text.replace("’", "'")
    return bool(_ASKS_NAME.search(plain)) and not _OTHERS_NAME.search(plain)


def find_given_name(
    text: str,
    *,
    is_opening: bool,
    is_asked: bool = False,
    is_answer: bool = False,
    is_others: bool = False,
) -> GivenName | None:
    """The last name that the caller clearly gave for themself in one turn.

    A bare name counts where it was asked for, not where it answers another question.
    """
    found: GivenName | None = None
    is_first = is_opening and not is_answer
    for sentence in _all_sentences(cut_text(text)):
        name = _name_in(sentence, is_opening=is_opening, is_asked=is_asked)
        before = found.name if found else ""
        if not name and (is_asked or before or (is_first and has_capitals(sentence))):
            name = _bare_name(sentence, before, is_asked=is_asked)
        if name:
            corrects = bool(_CORRECTS.match(sentence.text))
            is_fuller = set(before.lower().split()) <= set(name.lower().split())
            is_new = is_fuller or corrects or not is_asked
            is_shorter = len(name.split()) < len(before.split()) and not corrects
            found = GivenName(name if is_new and not is_shorter else before, corrects)
        elif found and (spelled := find_spelled(sentence)):
            found = GivenName(respell(found.name, spelled), found.corrects)
    full = _said_in_full(text)
    is_of_it = found is None or found.name in full.split()
    is_given = bool(full) and is_of_it and not is_others
    return GivenName(full, bool(found and found.corrects)) if is_given else found


def _said_in_full(text: str) -> str:
    """ "Quayle. Leonard Quayle": a part, then the whole; so people name themselves."""
    for match in _IN_FULL.finditer(text):
        parts = match["full"].split()
        before = text[: match.start()].split()
        is_whole = not before or before[-1][0].islower() or before[-1][-1] in ".,!?"
        is_others = bool(_OF_OTHERS & {word.lower() for word in before[-4:]})
        plain = word_class("stop") | word_class("hesitation")
        is_name = not any(
            part.lower() in plain or _NO_NAME.match(part.lower()) for part in parts
        )
        if is_whole and is_name and not is_others and match["part"] in parts:
            return match["full"]
    return ""


def take_name(plain: Plain, at: int) -> str:
    """The name that begins at a word, or nothing."""
    words = plain.words
    while at < len(words) and words[at].norm in word_class("title"):
        at += 1
    is_cased = has_capitals(plain)
    parts: list[str] = []
    for index in range(at, min(at + _MAX_PARTS, len(words))):
        word = words[index]
        if not _is_name_word(plain, word, is_cased=is_cased, is_first=not parts):
            break
        parts.append(plain.source[word.start : word.end])
        is_said_twice = (
            parts[1:] and "," in plain.source[words[index - 1].end : word.start]
        )
        if word.stop or is_said_twice:
            break
    kept = _tidy_parts(parts)
    return " ".join(_capitalise(part) for part in (kept if is_cased else kept[:3]))


def _tidy_parts(parts: list[str]) -> list[str]:
    while parts and parts[-1] in _PARTICLES:
        parts = parts[:-1]
    is_twice = len(parts) > 2 and parts[0].lower() == parts[-1].lower()
    return parts[1:] if is_twice else parts  # "Abernathy, Wendell Abernathy"


def has_capitals(plain: Plain) -> bool:
    """Whether the text marks names by capitals; a lone "I" says nothing."""
    return any(
        plain.source[word.start].isupper()
        and word.norm not in ("i", "am", "will", "have", "would")
        for word in plain.words
    )


def _is_name_word(plain: Plain, word: Word, *, is_cased: bool, is_first: bool) -> bool:
    norm, said = word.norm, plain.source[word.start : word.end]
    is_code = said.isupper() and len(said) < _MIN_SPELLED and not plain.source.isupper()
    if norm in _NEVER or _NO_NAME.match(norm) or is_code:
        return False
    is_given = norm in given_names()
    is_plain = norm in word_class("stop") and not is_given
    if is_cased:
        is_particle = norm in _PARTICLES and not is_first
        return is_particle or (said[0].isupper() and len(said) > 1 and not is_plain)
    if is_first and is_given:
        return True
    known = word_class("stop") | word_class("ends")
    return norm not in known and len(norm) > 1


def _capitalise(word: str) -> str:
    if word in _PARTICLES or any(char.isupper() for char in word):
        return word
    return "-".join(part[:1].upper() + part[1:] for part in word.split("-"))


def _name_in(sentence: Plain, *, is_opening: bool, is_asked: bool) -> str:
    for frame in (*_SURE, _OPENING):
        match = frame.match(sentence.text)
        if not match or (
            _OTHERS.search(" ".join(match.group().split()[-5:]))
            and not _RELATED.fullmatch(match.group())
        ):
            continue
        at = sentence.index(match.end())
        name = take_name(sentence, at)
        if not name:
            continue
        is_free = frame is not _OPENING or is_opening or is_asked
        is_speaking = _after(sentence, at, name) in _SPEAKS
        is_full = has_capitals(sentence) and len(name.split()) > 1 and frame in _SURE
        is_named = is_full or " name is" in f" {match.group()}"
        if _describes(name) and len(name.split()) > 1:
            continue
        if is_named or (
            (is_free or is_speaking) and _is_plainly_given(sentence, at, name)
        ):
            return _said_after(sentence) or _fuller_after(sentence, at, name)
    return _said_after(sentence) or _named_first(sentence)


def _said_after(sentence: Plain) -> str:
    """ "It's the Osteria, I am Ettore": who speaks, behind what they speak for."""
    match = _I_AM.match(sentence.text)
    if match is None or not has_capitals(sentence):
        return ""
    at = sentence.index(match.end())
    name = take_name(sentence, at)
    is_own = bool(name) and not _describes(name)
    is_contrast = match.group().endswith("but i am")
    stop = sentence.words[at + len(name.split()) - 1].stop if is_own else ""
    return name if is_own and (stop or is_contrast) else ""


def _named_first(sentence: Plain) -> str:
    """ "Tess McAllister calling", "Anna here"."""
    lead = re.match(_LEAD, sentence.text)
    at = sentence.index(lead.end()) if lead else 0
    name = take_name(sentence, at)
    after = _after(sentence, at, name) if name else ""
    is_full = len(name.split()) > 1 or name.lower() in given_names()
    is_from = after in ("from", "this") and is_full and has_capitals(sentence)
    is_mine = after == "is" and " is my name" in sentence.text
    is_side = after == "this" and " this side" in sentence.text
    is_speaking = bool(name) and (after in _SPEAKS or is_from or is_side or is_mine)
    return name if is_speaking and not _describes(name) else ""


def _after(sentence: Plain, at: int, name: str) -> str:
    while at < len(sentence.words) and sentence.words[at].norm in word_class("title"):
        at += 1
    end = at + len(name.split())
    return sentence.words[end].norm if end < len(sentence.words) else ""


def _is_plainly_given(sentence: Plain, at: int, name: str) -> bool:
    """A name after "it's" or "I'm" ends the clause or goes on as an introduction does."""
    after = _after(sentence, at, name)
    while at < len(sentence.words) - 1 and sentence.words[at].norm in word_class(
        "title"
    ):
        at += 1
    end = min(at + len(name.split()), len(sentence.words)) - 1
    rest = sentence.words[end + 1 :]
    if after == "my" and len(rest) <= _MAX_APPOSED:
        return False
    is_closed = not after or bool(sentence.words[end].stop)
    is_full = len(name.split()) > 1
    goes_on = after in _AFTER and (is_full or after not in _AFTER_FULL)
    return (is_closed or goes_on) and not _describes(name)


def _describes(name: str) -> bool:
    first, last = name.split()[0].lower(), name.split()[-1].lower()
    if first in word_class("kin") or last in word_class("company"):
        return True
    is_full = len(name.split()) > 1 and first not in word_class("descriptive")
    if first in given_names() or is_full:
        return False
    return is_descriptive(first) or bool(_NATIONAL.match(first))


def _fuller_after(sentence: Plain, at: int, name: str) -> str:
    """ "It's Meg, Margarethe Solberg": the fuller name behind the comma."""
    end = at + len(name.split())
    end += sum(word.norm in word_class("title") for word in sentence.words[at:end])
    while end < len(sentence.words) and sentence.words[end].norm in _SPOKEN_BETWEEN:
        end += 1
    if end >= len(sentence.words) or sentence.words[end - 1].stop != ",":
        return name
    fuller = take_name(sentence, end)
    return fuller if len(fuller.split()) > len(name.split()) else name


def _bare_name(sentence: Plain, before: str, *, is_asked: bool) -> str:
    """A sentence that is nothing but a name."""
    at = _skip_to_name(sentence)
    name = take_name(sentence, at)
    if not name or _describes(name):
        return ""
    after = _after(sentence, at, name)
    end = min(at + len(name.split()), len(sentence.words)) - 1
    stop = sentence.words[end].stop
    if len(after) > 1 and after not in _AFTER and not stop:
        return ""
    is_last = end == len(sentence.words) - 1
    is_whole = stop == "," or (is_last and stop in (".", "\n"))
    is_given = is_asked or _is_own_name(sentence, name, before, is_whole=is_whole)
    return name if is_given else ""


def _is_own_name(sentence: Plain, name: str, before: str, *, is_whole: bool) -> bool:
    """Whether a bare name that nobody asked for is the caller's."""
    parts = name.lower().split()
    if before:
        return is_whole and set(before.lower().split()) < set(parts)
    is_spelled = len(parts) > 1 and bool(find_spelled(sentence))
    return is_spelled or (is_whole and _is_full_name(parts))


def _skip_to_name(sentence: Plain) -> int:
    """Where a bare name may begin: behind small words, titles and spelled letters."""
    words = sentence.words
    lead = re.match(_LEAD, f"{sentence.text} ")
    at = max(sentence.index(lead.end()) if lead else 0, _after_letters(sentence))
    while at < len(words) - 1 and words[at].norm in word_class("title"):
        at += 1
    return at


def _after_letters(sentence: Plain) -> int:
    letters = [at for at, word in enumerate(sentence.words) if len(word.norm) == 1]
    is_followed = bool(letters) and letters[-1] + 1 < len(sentence.words)
    return letters[-1] + 1 if is_followed and len(letters) >= _MIN_SPELLED else 0


def _is_full_name(parts: list[str]) -> bool:
    plain = word_class("stop") | _PLACES
    return len(parts) > 1 and not any(
        part in plain or is_descriptive(part) for part in parts
    )


def find_spelled(sentence: Plain) -> str:
    """The word that is spelled out letter by letter: "P E double L"."""
    best, letters, repeat = "", "", 1
    for word in (*sentence.words, None):
        norm = word.norm if word else ""
        if norm in ("double", "triple"):
            repeat = 2 if norm == "double" else 3
        elif len(norm) == 1 and norm.isalpha():
            letters, repeat = letters + norm * repeat, 1
        else:
            best, letters = max(best, letters, key=len), ""
    return best if len(best) >= _MIN_SPELLED else ""


def respell(name: str, spelled: str) -> str:
    """The name with the part that sounds like the spelled word written as it was spelled."""
    parts = name.split()
    likeness = [_likeness(part.lower(), spelled) for part in parts]
    best = max(range(len(parts)), key=lambda index: likeness[index])
    is_there = spelled in parts[best].lower().split("-")
    if likeness[best] >= _MIN_LIKENESS and not is_there:
        parts[best] = spelled.capitalize()
    return " ".join(parts)


def _is_part(name: str, whole: str) -> bool:
    parts = set(name.lower().split())
    return bool(whole) and parts < set(whole.lower().split())


Speaker = Literal["agent", "caller"]
OPENING_TURNS = 2  # of the caller's, in which people say who they are


class NameListener:
    """Reads the turns of one call in order: earlier turns decide how much a name counts."""

    def __init__(self) -> None:
        self._heard = 0
        self._is_asked = False
        self._is_echoed = False
        self._is_answering = False
        self._is_others = False
        self.last = ""

    def process_turn(self, speaker: Speaker, text: str) -> GivenName | None:
        if speaker == "agent":
            self._is_echoed = bool(self.last) and _echoes(text, self.last)
            self._is_asked = asks_name(text)
            self._is_answering = "?" in text and not _GREETS.search(text)
            self._is_others = bool(_OTHERS_NAME.search(text))
            return None
        self._heard += 1
        asked, echoed = self._is_asked, self._is_echoed
        self._is_asked = self._is_echoed = False
        given = find_given_name(
            text,
            is_opening=self._heard <= OPENING_TURNS,
            is_asked=asked or echoed,
            is_answer=self._is_answering,
            is_others=self._is_others,
        )
        if given is None:
            return None
        if echoed:
            given = GivenName(given.name, corrects=True)
        self.last = given.name
        return given


def _echoes(text: str, name: str) -> bool:
    """Whether an agent says a name back to ask for it: "Fans McReady?" """
    asked = [part for part in _PARTS.split(text) if "?" in part]
    said = [word.strip(",?").lower() for word in " ".join(asked[:1]).split()]
    is_short = len(said) <= len(name.split()) + 3
    pairs = itertools.product(said, name.lower().split())
    return is_short and any(_likeness(*pair) >= _MIN_ECHO for pair in pairs)


def _likeness(first: str, second: str) -> float:
    return SequenceMatcher(None, first, second).ratio()


def resolve_name(turns: Iterable[tuple[Speaker, str]]) -> str | None:
    """The caller's own name in its fullest form, as last put right."""
    listener = NameListener()
    best = ""
    for speaker, text in turns:
        if speaker == "caller" and _names_two(text):
            return None
        given = listener.process_turn(speaker, text)
        if given is None:
            continue
        is_fuller = set(best.lower().split()) < set(given.name.lower().split())
        if not best or given.corrects or is_fuller:
            best = _joined(best, given) if given.corrects else given.name
    return best or None


def _names_two(text: str) -> bool:
    match = _TWO.search(text)
    if match is None:
        return False
    plain = word_class("stop") | _NEVER
    return not any(name.lower() in plain for name in match.group("one", "two"))


def _joined(best: str, given: GivenName) -> str:
    """A corrected part keeps the parts beside it; a short form corrects nothing."""
    parts, new = best.split(), given.name.lower()
    if len(new.split()) > 1 or len(parts) < 2:
        return given.name
    is_short = any(new in short_forms().get(part.lower(), ()) for part in parts)
    likeness = [_likeness(part.lower(), new) for part in parts]
    at = likeness.index(max(likeness))
    if is_short or likeness[at] < _MIN_LIKENESS:
        return best
    return " ".join((*parts[:at], given.name, *parts[at + 1 :]))


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
            is_denied = _NOT_CALLED.search(sentence.text[: match.start()])
            if name and not is_plain and not is_denied and not _describes(name):
                return name
    return None


def find_pronouns(texts: Iterable[str]) -> str | None:
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


_FOREIGN = re.compile(
    r"(?i:mein name ist|ich heiße|ich heisse|hier spricht|je m['’]appelle|mon nom est|me llamo"
    r"|mi nombre es|mi chiamo|il mio nome è|meu nome é|mijn naam is|ik heet|nazywam się)"
    r" (?P<name>[^\W\d_a-z][\w'’-]*(?: [^\W\d_a-z][\w'’-]*){0,3})"
)


def find_foreign_name(texts: Iterable[str]) -> str | None:
    """The name that a caller gives in another language, by its plainest phrases only."""
    return next(
        (match["name"] for text in texts if (match := _FOREIGN.search(text))), None
    )
