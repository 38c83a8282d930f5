"""The names a caller gives for themself: full name, the form they want to be called by,
pronouns.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from aftercall.llm.rules.cue import Cue, Table, lowered
from aftercall.llm.rules.memo import remember
from aftercall.llm.rules.sentences import split_sentences
from aftercall.llm.rules.spelling import respell, spelled_words, without_spelling
from aftercall.llm.rules.uncased import find_uncased
from aftercall.llm.rules.vocabulary import vocabulary
from aftercall.model.turns import Turn

_UPPER = "A-ZÀ-ÖØ-ÞĆČĎĐĞİŁŃŇŐŒŘŚŞŠŤŮŰŹŻŽ"
_LOW = r"[^\W\d_A-Z]"
PART = rf"(?:(?:al|el|ben|bin)-)?[{_UPPER}]{_LOW}*(?:['’\-][^\W\d_]+|[A-Z]{_LOW}+)*"
_PARTICLE = (
    r"(?:de|da|di|del|della|der|den|van|von|zu|la|le|el|al|bin|ibn|dos|du|ter|ten)"
)
NAME = rf"{PART}(?: (?:{_PARTICLE} ){{0,2}}{PART}){{0,3}}"
TITLE = (
    "(?:(?:Mr|Mrs|Ms|Miss|Mister|Doctor|Dr|Professor|Prof|Sir|Madam|Father|Sister|Sergeant"
    r"|Captain)\b\.? )?"
)
END = r"(?!['’]s\b|\w)"

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
    that's surname hiya me who whose whose's what's here's there's let's he's she's they're we're you're
    all also always never am may shall should has have had were been let tell ask get give send call does put make use say write
    """
)
# "It's Hollow Farm": a house, not a person.
_PLACES = vocabulary(
    """
    farm house lodge cottage street road hotel school avenue drive terrace gardens square surgery clinic inn barn manor villa
    tower towers apartments centre center shop cafe garage
    """
)
_HERE = (
    r"(?: here| calling| speaking| from\b| again| with\b| over at| at\b|[,.!?;]|$| and (?:i|my"
    r"|we|this)\b| i\b| um\b| uh\b| on\b| in\b)"
)
_INTRODUCED = tuple(
    Cue(pattern, 0)
    for pattern in (
        (
            r"\b(?i:(?:my (?:full |maiden )?|full )name(?:['’]s| is| would be| will be|,)) "
            "(?:(?i:uh|um|"
            rf"actually),? )*{TITLE}(?P<name>{NAME}){END}"
        ),
        (
            r"(?:\b(?i:(?<!my )(?:the|and the) name)|(?:^|, )(?i:(?:hi|hello|yeah|yes|and),? "
            ")?(?i:name))(?i:['’]s| is) (?:(?i:uh|"
            rf"um),? )*{TITLE}(?P<name>{NAME}){END}"
        ),
        (
            r"\b(?i:(?:it['’]?s|it is|that['’]s|put it|book it|reservation|booking|order|table"
            "|appointment|all|is|be|account|"
            rf"account['’]s)(?: is| all)? under(?: the name(?: of)?)?) {TITLE}(?P<name>{NAME}){END}"
        ),
        rf"\b(?i:under the name(?: of)?|in the name of|name of) {TITLE}(?P<name>{NAME}){END}",
        rf"^(?i:(?:it['’]s )?under) {TITLE}(?P<name>{NAME}){END}",
        # "It's Leo's mum, Ines Duarte", "I'm her daughter, Simone Hunt", "I'm the tenant,
        # Jerome Baptiste"
        (
            rf"\b(?i:it['’]s|this is|i['’]m|i am) (?:{PART}['’]s|(?i:her|his|their|the|your)) "
            "(?:(?!(?i:name|"
            rf"number|address|same)\b)[a-z-]+ ?){{1,3}}, "
            rf"{TITLE}(?P<name>{PART} (?:{_PARTICLE} ){{0,2}}{PART}){END}"
        ),
        (
            r"\b(?i:i['’]m|i am|it['’]s|this is) (?i:her|his|their|your) (?:[a-z]+ )?(?i:son"
            "|daughter|wife|husband|partner|mother|mum|"
            r"mom|father|"
            "dad|brother|sister|carer|assistant|secretary|neighbou?r|landlord|tenant"
            f"|friend),? (?P<name>{NAME}){END}"
        ),
        rf"(?:^|[.,!?] )(?P<name>{PART}(?: {PART})?)['’]s (?i:the|my) (?i:name)\b",
        (
            rf"\b(?i:(?:it['’]s |this is )?for me|it['’]s me|(?:tell|let) (?:him|her|"
            f"them)(?: know)?(?: that)?),? (?P<name>{PART} {PART}){END}(?=[.,!]|$| (?i:rang"
            "|called|phoned))"
        ),
        (
            r"\b(?i:name(?:['’]s| has| is)? (?:changed|different)[^.]*?\bit['’]s (?:now "
            f")?)(?:{PART}(?i: now)?, )?(?P<name>{NAME}){END}"
        ),
        (
            r"(?:^|[.!?,] |(?i:\b(?:hi|hello|hey|yeah|and|so|but|well|um|uh|yes) ))(?i:i['’]m"
            "|i am|im) (?:(?i:uh|um|actually|"
            rf"called),? )*{TITLE}(?P<name>{NAME}){END}(?! (?:time|Time)\b)"
        ),
    )
)
_OPENING = tuple(
    Cue(pattern, 0)
    for pattern in (
        (
            r"\b(?i:this is|this['’]ll be|it['’]ll be|it['’]?s|it is|you['’]re (?:speaking"
            "|talking) (?:to|with)) (?:(?i:uh|um|just|only|"
            rf"me),? )*{TITLE}(?P<name>{NAME}){END}(?={_HERE})"
        ),
        (
            "^(?:(?i:hi|hiya|hello|hey|yes|yeah|good morning|good afternoon|good evening"
            "|morning|oh|um|uh|so|okay|there|right|"
            f"dear),? )*{TITLE}(?P<name>{NAME})(?i:,? (?:here|speaking|calling|again|this "
            r"side|on the line)\b)"
        ),
        (
            "^(?:(?i:hi|hello|hey|good morning|good afternoon|good evening|morning|there|yes"
            "|yeah|oh|um|uh)[,.!]? )*"
            rf"{TITLE}(?P<name>{PART} {PART})(?=,? (?:from|in|at|over|on)\b(?! (?:year|class"
            r"|form|grade|room)\b))"
            r"(?!.*\b(?:won['’]t|isn['’]t|(?:is|['’]s) (?:off|sick|ill)|can['’]t come)\b)"
        ),
        (
            "(?:^|[.!?,] )(?i:me again|it['’]s only me|only me|just me|me),? "
            f"(?P<name>{NAME}){END}(?=[.,!]|$)"
        ),
        (
            "^(?i:(?:hi|hello|hey|good morning|good afternoon|good evening|yes)[,.!]? )*(?:Mr"
            "|Mrs|Ms|Miss|"
            rf"Dr)\b\.? (?P<name>{PART}(?: {PART})?)"
            r"(?=,? (?:from|in|at|over|on|here|again|room|flat|apartment|number|unit|table)\b)"
        ),
        (
            r"\b(?i:this is|it['’]s) (?i:room|flat|apartment|unit|number) [\w ]+?,? (?:Mr|Mrs|Ms"
            rf"|Miss|Dr)\b\.? (?P<name>{NAME}){END}"
        ),
        (
            r"\b(?i:it['’]s|it is) (?i:only |just )?(?i:me)(?i: again)?[,.!]? "
            f"(?P<name>{NAME}){END}(?=[.,!]|$)"
        ),
        (
            rf"^(?i:(?:hi|hello|hey|good morning|good afternoon|yes|yeah|um|"
            rf"uh)[,.!]? )*(?P<name>{PART}) from (?:the )?[a-z]+(?: [a-z]+)?[,.](?= |$)"
        ),
    )
)
_FOREIGN = Cue(
    r"\b(?i:ich heiße|ich heisse|mein name ist|je m['’]appelle|mon nom est|me llamo|mi nombre "
    "es|mi chiamo|il mio nome è|"
    rf"meu nome é|chamo-me|ik heet|mijn naam is|nazywam się) (?P<name>{NAME}){END}",
    0,
)
_WITHIN = Table((cue, None) for cue in (*_INTRODUCED, _FOREIGN))
_AT_OPENING = Table((cue, None) for cue in (*_INTRODUCED, *_OPENING, _FOREIGN))
_NAMED_PART = Cue(
    r"(?<!his )(?<!her )(?<!their )\b(?i:(?P<which>first|last|family|sur) ?name)(?i:['’]s| is"
    "| would be|,)? (?i:uh,? |"
    rf"um,? )*(?P<name>{NAME}){END}",
    0,
)
# A sentence that is nothing but a full name.
_BARE = Cue(
    rf"(?:{TITLE}(?P<name>{PART} (?:{_PARTICLE} ){{0,2}}{PART}(?: {PART})?))(?: is)?[.!,]?",
    0,
)
_ABOUT_ONESELF = Cue(
    "(?:(?:hi|hello|hey|yes|yeah|yep|um+|uh+|oh|right|so|well|okay|good|morning|afternoon"
    r"|evening|there|sorry)\b[ !.]*)+$|"
    "(?:(?:hi|hello|hey|yes|yeah|um|uh|so|well|and|but) )*(?:i['’]m|i am|it['’]s me|it is me"
    "|me again|my name|"
    r"it['’]s in my name|that['’]s me)\b",
)
_OTHER_PERSON = Cue(
    r"\b(?:for|with|to|from|about|behalf|calling|named|called|mother|father|mum|mom|dad|wife"
    "|husband|partner|son|daughter|brother|sister|"
    r"friend|boss|doctor|dr|neighbou?r|colleague|assistant|carer|manager)['’]?s?$",
)
_ASKED_WHICH = Cue(
    r"\bwho(?:['’]s| is) (?:it|this|that) (?:for|going|from|to|by|with)\b|\bwho (?:wrote|made"
    r"|did)\b|\b(?:deliver|send|go) (?:it |them |"
    r"this )?to\b|"
    r"\b(?:which|where|what (?!name|can|may|could|['’])\w+|address|street|town|company|who "
    "(?:is|are|should|shall|"
    r"was) (?!calling|this|speaking))\b|"
    r"\b(?:his|her|their|child|patient|pet|recipient)\b|['’]s name\b",
)
# The agent says a name back to have it confirmed: "Ana Lopes?"
_ECHO = Cue(
    "^(?:(?i:was that|is that|so that['’]s|sorry|and|got it|thank you|did you say"
    rf"|that['’]s)[,.]? )*{NAME}\?",
    0,
)
# "And it's Mr. Rowe, James?", "Mrs. Pruitt?": the agent takes the caller for somebody.
_TAKEN_FOR = Cue(
    rf"\b(?:Mr|Mrs|Ms|Miss|Mister|Mx)\b\.? {NAME}(?:, {NAME})?\?|(?i:(?:and (?:it['’]s"
    rf"|that['’]s|the name is)|is it)) {NAME}\?|"
    rf"(?i:it['’]s|that['’]s|is it) {NAME}, (?i:right|correct|isn['’]t it|yes)\?",
    0,
)
# "Am I speaking with Ana Lopes?" "You are."
_ADDRESSED = Cue(
    r"\b(?i:is (?:this|that)|am i (?:speaking|talking) (?:to|with)|you['’]re|you are) "
    rf"{TITLE}(?P<name>{NAME})\?",
    0,
)
_IS_ME = Cue(
    "(?:yes|yeah|yep|speaking|that['’]s (?:me|right|correct)|you are|correct|it is|this is "
    r"(?:she|he|me)|the same)\b"
)
_FULLER = Cue(rf"^(?: (?i:here|speaking|again))?(?:,| —|\.)? (?P<name>{NAME}){END}", 0)
_ASKED = Cue(
    r"\b(?:(?:your(?: own)?|full|last|first|family|the|account holder['’]?s?|owner['’]?s|what"
    "|which|a) (?:full |last |"
    "first )?(?:sur)?name|surname|who should (?:i|we|he|she|they) ask for|who(?:['’]s| is| "
    "am i| do i have)"
    "(?: i)?(?: the pleasure of)? ?(?:calling|speaking|talking|this|on the line)|who['’]s "
    r"calling|who shall i say)\b|"
    r"\bwhose name\b|\bwhat (?:should|shall|can|may|do) (?:i|we) call you\b|\band you are\?"
    r"|^name\?|\bname,? please\b",
)
_ASKED_OTHER = Cue(
    r"(?:\b(?:patient|child|kid|student|pet|son|daughter|dog|cat|guest|recipient|doctor"
    "|company|business|street|baby|account|"
    r"file|user|model|product)(?:['’]?s)? (?:full |last |first )?name|\bhis name|\bher name"
    r"|\btheir name|\busername)",
)
_ASKING = Cue(
    r"\?|\bname,? please\b|\bmay i\b|\bcan i\b|\bi(?:['’]ll| just)? need\b|\btell me\b"
)
_SURNAME = Cue(r"\b(?:last name|surname|family name)\b")
_FIRST_NAME = Cue(r"\bfirst name\b")
_ANSWER = Cue(
    "^(?:(?i:yes|yeah|sure|okay|oh|um|uh|hi|hello|of course|it['’]s|it is|that['’]s|that "
    "would be|that['’]ll be|"
    r"so|well|er|with|to|just|me|sorry|put|under|"
    rf"right)[,.]? )*{TITLE}(?P<name>{NAME}){END}",
    0,
)
# "Caputo. Vincent." to "what name?"
_LAST_THEN_FIRST = Cue(
    rf"(?:(?i:it['’]s|that['’]s|uh|um|yes|oh|sure),? )*(?P<last>{PART})\. (?P<first>(?!(?i:yes"
    "|no|yeah|thanks?|please|"
    rf"just|sorry)\b){PART})[.!]?$",
    0,
)
_OPENING_TURNS = 2  # of the caller's, in which people say who they are
_CORRECTS = Cue(
    r"^(?:no\b|actually\b|sorry\b|it['’]s not\b)|\bnot [A-Z]|\byou have me (?:as|down)"
    r"|\bwrong\b|\bmisspel|\bspelled\b|"
    r"\bi said\b",
)
_SECOND_CALLER = Cue(
    r"\b(?:(?:her|his) (?:husband|wife|partner|mother|father|mum|mom|dad|son|daughter|sister"
    "|brother)|(?:i['’]m|this is|"
    r"it['’]s) \w+ now|put (?:you|me) on|handing you|on the line too|also here|both (?:of us"
    "|here)|here too|taking over|"
    r"took the phone)\b",
)
_TWO = Cue(
    rf"\b(?i:we['’]re|we are|this is|it['’]s) (?P<one>{NAME}) (?i:and) (?P<two>{NAME}){END}",
    0,
)


@dataclass(frozen=True, slots=True)
class Candidate:
    seq: int
    name: str
    corrects: bool
    second: bool = False
    part: str = ""
    """ "first" or "last" where that part alone is named."""


@dataclass(frozen=True, slots=True)
class Named:
    name: str | None
    candidates: tuple[Candidate, ...] = ()
    together: tuple[tuple[int, str], ...] = ()
    """Two people on one line: where each gave a name."""

    @property
    def parts(self) -> set[str]:
        return {
            part for candidate in self.candidates for part in candidate.name.split()
        }


def read_names(turns: tuple[Turn, ...]) -> Named:
    candidates = list(_candidates(turns))
    together = _together(turns, candidates)
    name = None if together else _fullest(_settle(candidates), turns)
    return Named(
        respell(name, (turn.text for turn in turns if turn.speaker == "caller"))
        if name
        else None,
        tuple(candidates),
        together,
    )


def _fullest(name: str | None, turns: tuple[Turn, ...]) -> str | None:
    """A lone name in the full form the caller uses elsewhere: "it's Gwen with a G … Gwen
    Pritchard".
    """
    if name is None or " " in name:
        return name
    fuller = re.compile(
        f"(?:^|[.!?,] |(?i:it['’]s|i['’]m|is|under|name) ){TITLE}(?P<name>{re.escape(name)} "
        f"{PART}|"
        rf"{PART} {re.escape(name)}){END}(?=[.,!?]|$)"
    )
    found = (
        match["name"]
        for turn in turns
        if turn.speaker == "caller"
        for match in fuller.finditer(turn.text)
    )
    return next((longer for longer in found if clean_name(longer) == longer), name)


def clean_name(words: str) -> str | None:
    """The leading words that can be a name; None when the first cannot."""
    kept: list[str] = []
    for word in words.split():
        if word.lower().replace("’", "'") in NOT_NAMES and word.lower() not in (
            "de",
            "la",
            "al",
            "di",
            "da",
        ):
            break
        if word not in kept[-1:]:
            kept.append(word)
    while kept and kept[-1].islower():
        kept.pop()
    if (len(kept) > 1 and kept[-1].lower() in _PLACES) or all(
        len(word) == 1 for word in kept
    ):
        return None
    return " ".join(kept) or None


def _candidates(turns: tuple[Turn, ...]) -> Iterator[Candidate]:
    caller_turns = 0
    asked, echoed, part, said = False, False, "", ""
    for turn in turns:
        if turn.speaker == "agent":
            echoed = asked and bool(_ECHO.match(turn.text))
            asked = echoed or asks_name(turn.text) or bool(_TAKEN_FOR.search(turn.text))
            part = (
                "last"
                if _SURNAME.search(turn.text)
                else "first"
                if _FIRST_NAME.search(turn.text)
                else ""
            )
            said = turn.text
            continue
        caller_turns += 1
        if (
            (addressed := _ADDRESSED.search(said))
            and _IS_ME.match(turn.text)
            and (name := clean_name(addressed["name"]))
        ):
            yield Candidate(turn.seq, name, False)
        spells = bool(spelled_words(turn.text)) and not (
            _ASKED_OTHER.search(said) or _ASKED_WHICH.search(said)
        )
        # who spells a word is giving a name
        opening = caller_turns <= _OPENING_TURNS or asked or spells
        found = list(_introduced(turn, opening=opening))
        if asked and all(candidate.part for candidate in found):
            found = [*_answered(turn, part), *found]
        if (
            opening
            and not any(" " in candidate.name for candidate in found)
            and not _ASKED_WHICH.search(said)
        ):
            found += _bare(turn)
        yield from (
            (replace(candidate, corrects=True) for candidate in found)
            if echoed
            else found
        )


@remember
def asks_name(text: str) -> bool:
    return (
        bool(_ASKED.search(text))
        and not _ASKED_OTHER.search(text)
        and bool(_ASKING.search(text))
    )


def _bare(turn: Turn) -> Iterator[Candidate]:
    """A piece of a sentence that is only a full name, set off by commas, after a greeting or
    words about oneself.
    """
    for sentence in split_sentences(without_spelling(turn.text)):
        before = ""
        for piece in re.split(r"[,;:]\s+", sentence):
            if (
                (match := _BARE.fullmatch(piece))
                and clean_name(match["name"]) == match["name"]
                and _leads_to_name(before)
            ):
                yield Candidate(turn.seq, match["name"], False)
            before = piece


def _leads_to_name(before: str) -> bool:
    return not before or bool(
        _ABOUT_ONESELF.match(before) and not _OTHER_PERSON.search(before)
    )


def _introduced(turn: Turn, *, opening: bool) -> Iterator[Candidate]:
    patterns = _AT_OPENING if opening else _WITHIN
    text = without_spelling(turn.text)
    for sentence in (text,) if text.islower() else _with_next(text):
        for pattern, _ in patterns.of(sentence):
            if (match := pattern.search(sentence)) and (
                name := clean_name(match["name"])
            ):
                fuller = _FULLER.match(sentence[match.end("name") :])
                if (
                    fuller
                    and (longer := clean_name(fuller["name"]))
                    and " " in longer
                    and " " not in name
                ):
                    name = longer
                yield Candidate(
                    turn.seq,
                    name,
                    bool(_CORRECTS.search(sentence)),
                    bool(_SECOND_CALLER.search(turn.text)),
                )
                break
        if _is_uncased(sentence) and (
            name := find_uncased(sentence, asked=False, opening=opening)
        ):
            yield Candidate(turn.seq, name, False)
    yield from _in_parts(turn.seq, text)


def _in_parts(seq: int, text: str) -> Iterator[Candidate]:
    """ "First name Yusuf, surname Demir." """
    for match in _NAMED_PART.finditer(text) if "name" in lowered(text) else ():
        if name := clean_name(match["name"]):
            yield Candidate(
                seq,
                name,
                False,
                part="first" if match["which"].lower() == "first" else "last",
            )


def _is_uncased(text: str) -> bool:
    return all(letter == "I" for letter in text if letter.isupper())


def _with_next(text: str) -> Iterator[str]:
    """Each sentence, joined with the next when that is only a (fuller) name: "It's Rhys.

    Rhys Howell.", "It's me. Ana."
    """
    sentences = list(split_sentences(text))
    for index, sentence in enumerate(sentences):
        follower = sentences[index + 1] if index + 1 < len(sentences) else ""
        last = sentence.rstrip(".!").rpartition(" ")[2]
        joins = re.fullmatch(rf"{NAME}[.!,]?", follower) and (
            last in follower.rstrip(".!,").split() or last == "me"
        )
        yield f"{sentence} {follower}" if joins else sentence


def _answered(turn: Turn, part: str) -> Iterator[Candidate]:
    if _is_uncased(turn.text):
        if name := find_uncased(turn.text, asked=True):
            yield Candidate(turn.seq, name, False, part=part)
        return
    sentences = list(split_sentences(without_spelling(turn.text)))
    if two := _LAST_THEN_FIRST.match(" ".join(sentences[:2])):
        yield Candidate(turn.seq, f"{two['first']} {two['last']}", False)
        return
    for sentence in sentences[:4]:
        if (
            (match := _ANSWER.match(sentence))
            and (name := clean_name(match["name"]))
            and len(name) > 1
        ):
            rest = sentence[match.end("name") :]
            if (
                re.match(
                    "[,.!?]|$|['’]ll do|['’]s (?:fine|it)| (?:here|speaking|calling|from|with"
                    r"|and|is|will do)\b",
                    rest,
                )
                or part
            ):
                yield Candidate(turn.seq, name, False, part=part)


def _settle(candidates: list[Candidate]) -> str | None:
    """The fullest form; a correction replaces, a stranger name does not."""
    name: str | None = None
    part = ""
    for candidate in candidates:
        parts, known = _parts(candidate.name), _parts(name or "")
        if name is None or candidate.corrects:
            keeps_more = name and parts < known
            name, part = (
                (name, part) if keeps_more else (candidate.name, candidate.part)
            )
        elif parts > known or (
            " " in candidate.name and " " not in name and not candidate.second
        ):
            name = candidate.name
        elif (
            candidate.part
            and (" " not in name or {part, candidate.part} == {"first", "last"})
            and " " not in candidate.name
        ):
            name = (
                f"{candidate.name} {name}"
                if candidate.part == "first"
                else f"{name} {candidate.name}"
            )
    return name


def _parts(name: str) -> set[str]:
    return set(name.lower().split())


def _together(
    turns: tuple[Turn, ...], candidates: list[Candidate]
) -> tuple[tuple[int, str], ...]:
    for turn in turns:
        if turn.speaker == "caller" and (match := _TWO.search(turn.text)):
            one, two = clean_name(match["one"]), clean_name(match["two"])
            if (
                one
                and two
                and not re.search(
                    rf"{re.escape(two)}(?: {PART})* (?i:is|are|has|needs|wants)",
                    turn.text,
                )
            ):
                return ((turn.seq, one), (turn.seq, two))
    for later in candidates[1:]:
        first = candidates[0]
        if (
            later.second
            and later.seq != first.seq
            and not set(later.name.split()) & set(first.name.split())
        ):
            return ((first.seq, first.name), (later.seq, later.name))
    return ()
