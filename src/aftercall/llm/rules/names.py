"""The names a caller gives for themself: full name, the form they want to be called by, pronouns."""

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from aftercall.llm.rules.sentences import split_sentences
from aftercall.llm.rules.spelling import respell, without_spelling
from aftercall.llm.rules.uncased import find_uncased
from aftercall.llm.rules.vocabulary import vocabulary
from aftercall.model.turns import Turn

_UPPER = "A-ZÀ-ÖØ-ÞĆČĎĐĞİŁŃŇŐŒŘŚŞŠŤŮŰŹŻŽ"
_LOW = r"[^\W\d_A-Z]"
_PART = rf"[{_UPPER}]{_LOW}*(?:['’\-][^\W\d_]+|[A-Z]{_LOW}+)*"
_PARTICLE = r"(?:de|da|di|del|della|der|den|van|von|zu|la|le|el|al|bin|ibn|dos|du|ter|ten)"
NAME = rf"{_PART}(?: (?:{_PARTICLE} ){{0,2}}{_PART}){{0,3}}"
_TITLE = r"(?:(?:Mr|Mrs|Ms|Miss|Mister|Doctor|Dr|Professor|Prof|Sir|Madam|Father|Sister|Sergeant|Captain)\b\.? )?"
_END = r"(?!['’]s\b|\w)"

NOT_NAMES = vocabulary(
    """
    room unit apartment flat suite building floor order invoice ticket flight gate number customer account block house
    i i'm i'd i've i'll it it's this that the a an my your his her our their and or but so no not yes yeah yep nope okay
    ok oh um uh well hi hello hey thanks thank please sorry sure right great good fine perfect lovely just still also
    now then there here what when where who why how which is are was can could would will do does did if monday tuesday
    wednesday thursday friday saturday sunday january february march april june july august september october november
    december today tomorrow tonight mom mum dad mama papa grandma grandpa nana granny god english german french spanish
    italian american british canadian indian chinese japanese korean dutch polish irish christmas easter wifi internet
    pacific mountain central eastern back later again anytime sometime soon when whenever before after at on in by about
    around between any every old crazy whatever names maybe if as up out over back only once first next asap immediately
    directly whichever or anything something everything nothing one two three calling speaking from with for to of mr
    mrs ms dr vegan vegetarian catholic muslim jewish christian nobody everybody someone ill sick busy free afraid happy
    glad trying looking going having getting wondering hoping interested ready done gonna very really pretty quite a bit
    all also always never am may shall should has have had were been let tell ask get give send call does
    """
)
_HERE = r"(?: here| calling| speaking| from\b| again| with\b| over at| at\b|[,.!?;]|$| and (?:i|my|we|this)\b| i\b| um\b| uh\b| on\b| in\b)"
_INTRODUCED = tuple(
    re.compile(pattern)
    for pattern in (
        (
            r"\b(?i:my (?:full |first |last |maiden )?name(?:['’]s| is| would be| will be)) (?:(?i:uh|um|"
            rf"actually),? )*{_TITLE}(?P<name>{NAME}){_END}"
        ),
        (
            r"(?:\b(?i:(?<!my )(?:the|and the|first|last) name)|^(?i:(?:hi|hello|yeah|yes),? )?(?i:name))(?i:['’]s| is) (?:(?i:uh|"
            rf"um),? )*{_TITLE}(?P<name>{NAME}){_END}"
        ),
        (
            r"\b(?i:(?:it['’]?s|it is|that['’]s|put it|book it|reservation|booking|order|table|appointment|all|is|be|account|"
            rf"account['’]s)(?: is| all)? under(?: the name(?: of)?)?) {_TITLE}(?P<name>{NAME}){_END}"
        ),
        rf"\b(?i:under the name(?: of)?|in the name of|name of) {_TITLE}(?P<name>{NAME}){_END}",
        rf"^(?i:(?:it['’]s )?under) {_TITLE}(?P<name>{NAME}){_END}",
        (
            r"(?:^|[.!?,] |(?i:\b(?:hi|hello|hey|yeah|and|so|but|well|um|uh|yes) ))(?i:i['’]m|i am|im) (?:(?i:uh|um|actually|"
            rf"called),? )*{_TITLE}(?P<name>{NAME}){_END}(?! (?:time|Time)\b)"
        ),
    )
)
_OPENING = tuple(
    re.compile(pattern)
    for pattern in (
        (
            r"\b(?i:this is|it['’]?s|it is|you['’]re (?:speaking|talking) (?:to|with)) (?:(?i:uh|um|just|only|"
            rf"me),? )*{_TITLE}(?P<name>{NAME}){_END}(?={_HERE})"
        ),
        (
            r"^(?:(?i:hi|hello|hey|yes|yeah|good morning|good afternoon|good evening|oh|um|uh|so|okay|there|"
            rf"dear),? )*{_TITLE}(?P<name>{NAME})(?i:,? (?:here|speaking|calling|again)\b)"
        ),
        (
            r"^(?i:hi|hello|hey|good morning|good afternoon|good evening|"
            rf"yes)(?i: there)?[,.!]? {_TITLE}(?P<name>{_PART} {_PART})(?=,? (?:from|in|at|over|on)\b)"
        ),
    )
)
# A sentence that is nothing but a full name.
_BARE = re.compile(rf"{_TITLE}(?P<name>{_PART} (?:{_PARTICLE} ){{0,2}}{_PART}(?: {_PART})?)(?: is)?[.!,]?")
_ASKED_WHICH = re.compile(r"\b(?:which|where|what (?!name)|address|street|town|company)\b", re.I)
# The agent says a name back to have it confirmed: "Ana Lopes?"
_ECHO = re.compile(rf"^(?:(?i:was that|is that|so that['’]s|sorry|and|got it|thank you|did you say|that['’]s)[,.]? )*{NAME}\?")
_FOREIGN = re.compile(
    r"\b(?i:ich heiße|ich heisse|mein name ist|je m['’]appelle|mon nom est|me llamo|mi nombre es|mi chiamo|il mio nome è|"
    rf"meu nome é|chamo-me|ik heet|mijn naam is|nazywam się) (?P<name>{NAME}){_END}"
)
_FULLER = re.compile(rf"^(?:,| —|\.)? (?P<name>{NAME}){_END}")
_ASKED = re.compile(
    r"\b(?:(?:your|full|last|first|family|the|account holder['’]?s?|owner['’]?s|what|which|a) (?:full |last |"
    r"first )?(?:sur)?name|surname|who(?:['’]s| is| am i| do i have)"
    r"(?: i)?(?: the pleasure of)? ?(?:calling|speaking|talking|this|on the line)|who['’]s calling|who shall i say)\b|"
    r"\band you are\?|^name\?|\bname,? please\b",
    re.I,
)
_ASKED_OTHER = re.compile(
    r"(?:\b(?:patient|child|kid|student|pet|son|daughter|dog|cat|guest|recipient|doctor|company|business|street|baby|account|"
    r"file|user|model|product)(?:['’]?s)? (?:full |last |first )?name|\bhis name|\bher name|\btheir name|\busername)",
    re.I,
)
_ASKING = re.compile(r"\?|\bname,? please\b|\bmay i\b|\bcan i\b", re.I)
_SURNAME = re.compile(r"\b(?:last name|surname|family name)\b", re.I)
_FIRST_NAME = re.compile(r"\bfirst name\b", re.I)
_ANSWER = re.compile(
    r"^(?:(?i:yes|yeah|sure|okay|oh|um|uh|hi|hello|of course|it['’]s|it is|that['’]s|that would be|so|well|er|"
    rf"right)[,.]? )*{_TITLE}(?P<name>{NAME}){_END}"
)
_WORD_CASED = rf"(?:{_PART}(?: {_PART})?)"
_CALLED = tuple(
    re.compile(pattern)
    for pattern in (
        (
            r"(?<!on't )(?<!on’t )(?<!not )\b(?i:(?:please |just |can |to |you can |could you |everyone |everybody |people |"
            rf"friends |folks |they all )?calls? me)(?i:,? (?:um|uh|just))* (?P<name>{_TITLE}{_WORD_CASED}){_END}"
        ),
        (
            r"\b(?i:i (?:usually |normally |just |mostly )?go by|i['’]m (?:usually |better )?known as|i (?:prefer to be called|"
            r"answer to)|i['’]d (?:rather|prefer to) be called|people (?:just )?say|"
            rf"known to everyone as) (?P<name>{_WORD_CASED}){_END}"
        ),
        (
            rf"^(?:(?i:oh|no|please|um|uh|but|and|well|yes),? )*(?i:just )?(?P<name>{_PART})(?i: is fine| will do| works| is good|"
            r",? for short)\b"
        ),
        rf"\b(?P<name>{_PART})(?i:,? for short)\b",
        rf"\b(?i:(?:or|but|it['’]s) just) (?P<name>{_PART})(?:[.,!]|$| (?i:is fine|please|for short))",
    )
)
_TITLED = re.compile(r"\b(?:Mr|Mrs|Ms|Miss|Mister|Dr)\b\.? [A-Z]")
_JUST = re.compile(rf"^(?i:oh,? |no,? |just |it['’]s |please,? )*(?P<name>{_PART})(?i:,? please)?[.!]$")
_CALLED_LOWER = re.compile(r"\b(?:everyone|everybody|people|friends|folks) calls? me (?P<name>[a-zà-ÿ]{2,})\b")
_PRONOUN = r"(?:she|he|they|ze|xe|it|her|him|them|zir|hir|xem|its|hers|his|theirs)"
_PRONOUNS = re.compile(
    r"\b(?:pronouns (?:are|is|would be)|(?:it['’]?s|i use|i go by|i['’]m|i am|use|prefer|i prefer)) (?:now )?(?P<a>she|he|"
    r"they|ze|xe)(?:\s*/\s*|,? (?:and |slash )?)(?P<b>her|him|them|they|zir|hir|xem)\b",
    re.I,
)
_NOT_ME = re.compile(
    r"\b(?:his|her|their|my (?:wife|husband|son|daughter|partner|friend|colleague|boss|kid|child)['’]?s?) pronouns\b", re.I
)
_OPENING_TURNS = 2  # of the caller's, in which people say who they are
_CORRECTS = re.compile(
    r"^(?:no\b|actually\b|sorry\b|it['’]s not\b)|\bnot [A-Z]|\byou have me (?:as|down)|\bwrong\b|\bmisspel|\bspelled\b|"
    r"\bi said\b",
    re.I,
)
_SECOND_CALLER = re.compile(
    r"\b(?:(?:her|his) (?:husband|wife|partner|mother|father|mum|mom|dad|son|daughter|sister|brother)|(?:i['’]m|this is|"
    r"it['’]s) \w+ now|put (?:you|me) on|handing you|on the line too|also here|both (?:of us|here)|here too|taking over|"
    r"took the phone)\b",
    re.I,
)
_TWO = re.compile(rf"\b(?i:we['’]re|we are|this is|it['’]s) (?P<one>{NAME}) (?i:and) (?P<two>{NAME}){_END}")


@dataclass(frozen=True, slots=True)
class Named:
    name: str | None
    call_name: str | None
    pronouns: str | None
    together: tuple[tuple[int, str], ...] = ()
    """Two people on one line: where each gave a name."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    seq: int
    name: str
    corrects: bool
    second: bool = False
    part: str = ""
    """ "first" or "last" where the agent asked for that part alone."""


def read_names(turns: tuple[Turn, ...]) -> Named:
    candidates = list(_candidates(turns))
    caller_texts = [turn.text for turn in turns if turn.speaker == "caller"]
    call_name = _call_name(caller_texts) or _put_right(turns, candidates)
    together = _together(turns, candidates)
    name = None if together else _settle(candidates)
    if name:
        name = respell(name, caller_texts)
    if call_name and name and call_name == name:
        call_name = None
    return Named(name, call_name, _pronouns(caller_texts), together)


def clean_name(words: str) -> str | None:
    """The leading words that can be a name; None when the first cannot."""
    kept: list[str] = []
    for word in words.split():
        if word.lower().replace("’", "'") in NOT_NAMES and word.lower() not in ("de", "la", "al", "di", "da"):
            break
        kept.append(word)
    while kept and kept[-1].islower():
        kept.pop()
    return " ".join(kept) or None


def _candidates(turns: tuple[Turn, ...]) -> Iterator[_Candidate]:
    caller_turns = 0
    asked, echoed, part, said = False, False, "", ""
    for turn in turns:
        if turn.speaker == "agent":
            echoed = asked and bool(_ECHO.match(turn.text))
            asked = echoed or _asks_name(turn.text)
            part = "last" if _SURNAME.search(turn.text) else "first" if _FIRST_NAME.search(turn.text) else ""
            said = turn.text
            continue
        caller_turns += 1
        opening = caller_turns <= _OPENING_TURNS or asked
        found = list(_introduced(turn, opening=opening))
        if not found and asked:
            found = list(_answered(turn, part))
        if not found and opening and not _ASKED_WHICH.search(said):
            found = list(_bare(turn))
        yield from (replace(candidate, corrects=True) for candidate in found) if echoed else found


def _asks_name(text: str) -> bool:
    return bool(_ASKED.search(text)) and not _ASKED_OTHER.search(text) and bool(_ASKING.search(text))


def _bare(turn: Turn) -> Iterator[_Candidate]:
    """A sentence that is only a full name; people say so in their first words, and are silent about whose it is."""
    for sentence in split_sentences(turn.text):
        if (match := _BARE.fullmatch(sentence)) and clean_name(match["name"]) == match["name"]:
            yield _Candidate(turn.seq, match["name"], False)


def _introduced(turn: Turn, *, opening: bool) -> Iterator[_Candidate]:
    patterns = (*_INTRODUCED, *_OPENING) if opening else _INTRODUCED
    for sentence in (turn.text,) if turn.text.islower() else _with_next(turn.text):
        for pattern in (*patterns, _FOREIGN):
            if (match := pattern.search(sentence)) and (name := clean_name(match["name"])):
                fuller = _FULLER.match(sentence[match.end("name") :])
                if fuller and (longer := clean_name(fuller["name"])) and " " in longer and " " not in name:
                    name = longer
                yield _Candidate(turn.seq, name, bool(_CORRECTS.search(sentence)), bool(_SECOND_CALLER.search(turn.text)))
                break
        if opening and _is_uncased(sentence) and (name := find_uncased(sentence, asked=False)):
            yield _Candidate(turn.seq, name, False)


def _is_uncased(text: str) -> bool:
    return all(letter == "I" for letter in text if letter.isupper())


def _with_next(text: str) -> Iterator[str]:
    """Each sentence, joined with the next when that is only a fuller name: "It's Rhys. Rhys Howell." """
    sentences = list(split_sentences(text))
    for index, sentence in enumerate(sentences):
        follower = sentences[index + 1] if index + 1 < len(sentences) else ""
        joins = re.fullmatch(rf"{NAME}[.!,]?", follower) and sentence.rstrip(".!").split()[-1] in follower.split()
        yield f"{sentence} {follower}" if joins else sentence


def _answered(turn: Turn, part: str) -> Iterator[_Candidate]:
    if _is_uncased(turn.text):
        if name := find_uncased(turn.text, asked=True):
            yield _Candidate(turn.seq, name, False, part=part)
        return
    sentences = list(split_sentences(without_spelling(turn.text)))
    for sentence in sentences[:4]:
        if (match := _ANSWER.match(sentence)) and (name := clean_name(match["name"])) and len(name) > 1:
            rest = sentence[match.end("name") :]
            if re.match(r"[,.!?]|$| (?:here|speaking|calling|from|with|and|is)\b", rest) or part:
                yield _Candidate(turn.seq, name, False, part=part)


def _settle(candidates: list[_Candidate]) -> str | None:
    """The fullest form; a correction replaces, a stranger name does not."""
    name: str | None = None
    for candidate in candidates:
        parts = set(candidate.name.split())
        if name is None or candidate.corrects:
            keeps_more = name and parts < set(name.split())
            name = name if keeps_more else candidate.name
        elif parts > set(name.split()):
            name = candidate.name
        elif candidate.part and " " not in name and " " not in candidate.name:
            name = f"{candidate.name} {name}" if candidate.part == "first" else f"{name} {candidate.name}"
    return name


def _together(turns: tuple[Turn, ...], candidates: list[_Candidate]) -> tuple[tuple[int, str], ...]:
    for turn in turns:
        if turn.speaker == "caller" and (match := _TWO.search(turn.text)):
            one, two = clean_name(match["one"]), clean_name(match["two"])
            if one and two and not re.search(rf"{re.escape(two)}(?: {_PART})* (?i:is|are|has|needs|wants)", turn.text):
                return ((turn.seq, one), (turn.seq, two))
    for later in candidates[1:]:
        first = candidates[0]
        if later.second and later.seq != first.seq and not set(later.name.split()) & set(first.name.split()):
            return ((first.seq, first.name), (later.seq, later.name))
    return ()


def _call_name(texts: list[str]) -> str | None:
    for text in texts:
        for sentence in split_sentences(text):
            for pattern in _CALLED:
                if (match := pattern.search(sentence)) and (name := _nick(match["name"])):
                    return name
            if (match := _CALLED_LOWER.search(sentence)) and match["name"] not in NOT_NAMES:
                return match["name"].capitalize()
    return None


def _put_right(turns: tuple[Turn, ...], candidates: list[_Candidate]) -> str | None:
    """Addressed by title, the caller answers with the short form: "Mr. Rowe?", "Jim, please." """
    known = {part for candidate in candidates for part in candidate.name.split()}
    for said, answered in itertools.pairwise(turns):
        if said.speaker == "agent" and answered.speaker == "caller" and _TITLED.search(said.text):
            first = next(split_sentences(answered.text), "")
            if (match := _JUST.match(first)) and match["name"] in known and "please" in first.lower():
                return match["name"]
    return None


def _nick(words: str) -> str | None:
    title, _, rest = words.rpartition(". ") if ". " in words else ("", "", words)
    name = clean_name(rest)
    return f"{title}. {name}" if title and name else name


def _pronouns(texts: list[str]) -> str | None:
    for text in texts:
        if (match := _PRONOUNS.search(text)) and not _NOT_ME.search(text):
            first, second = match["a"].lower(), match["b"].lower()
            return f"{first}/{second}" if first != second else None
    return None
