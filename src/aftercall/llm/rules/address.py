"""How a caller wants to be addressed: the form of the name asked for, and pronouns."""

import itertools

from aftercall.llm.rules.cue import Caseless, Cue
from aftercall.llm.rules.names import (
    END,
    NOT_NAMES,
    PART,
    TITLE,
    Named,
    asks_name,
    clean_name,
)
from aftercall.llm.rules.sentences import split_sentences
from aftercall.model.turns import Turn

_WORD_CASED = rf"(?:{PART}(?: {PART})?)"
_CALLED = tuple(
    Cue(pattern, 0)
    for pattern in (
        (
            r"\b(?i:(?:everyone|everybody|people|they|friends|all) (?:is|are|just|always|only"
            "|all)* ?(?:call|calling)s? me) "
            rf"(?P<name>{_WORD_CASED}){END}"
        ),
        (
            r"(?<!on't )(?<!on’t )(?<!not )(?<!obody )(?<!o one )(?<!never )\b(?i:(?:please "
            "|just |can |to |"
            r"you can |could you |everyone |everybody |people |"
            "friends |folks |they all )?calls? me)(?i:,? (?:um|uh|just))* "
            f"(?P<name>{TITLE}{_WORD_CASED}){END}"
        ),
        (
            r"\b(?i:i (?:usually |normally |just |mostly )?go by|i['’]m (?:usually |better "
            ")?known as|i (?:prefer to be called|"
            "answer to)|i['’]d (?:rather|prefer to) be called|people (?:just )?say|you (?:can"
            "|may) say|"
            rf"known to everyone as) (?P<name>{_WORD_CASED}){END}"
        ),
        (
            rf"\b(?P<name>{PART})(?i:,? for short| to (?:my friends|everyone|everybody|most people"
            r"|you))\b"
        ),
    )
)
# Said of anything ("Terrace is fine"), so a form of the name only where a name was being given.
_CALLED_BESIDE_NAME = tuple(
    Cue(pattern, 0)
    for pattern in (
        (
            "^(?:(?i:oh|no|please|um|uh|but|and|well|yes),? )*(?i:just "
            f")?(?P<name>{PART})(?i: is fine|['’]s fine| will do|"
            r" works| is good| is what i go by|['’]s good)\b"
        ),
        (
            rf"\b(?i:but|or|and|just) (?P<name>{PART})(?i:['’]s| is) (?i:fine|good|okay|ok|what "
            r"(?:people|everyone) calls? me)\b"
        ),
        (
            rf"\b(?i:(?:or|but|it['’]s) just) (?P<name>{PART})(?:[.,!]|$| (?i:is fine|please|for "
            "short))"
        ),
        rf"\b(?i:(?:say|put|use|write|make it|just)) (?P<name>{PART})(?=[.,!]|$)",
        rf"\b(?i:it['’]s|i['’]m) (?P<name>{PART})(?i:,? please)\b",
        rf", (?P<name>{PART})(?i:['’]s| is) (?i:fine|good|okay|grand|enough|plenty)\b",
    )
)
_TITLED = Cue(r"\b(?:Mr|Mrs|Ms|Miss|Mister|Dr)\b\.? [A-Z]", 0)
_JUST = Cue(
    rf"^(?i:oh,? |no,? |just |it['’]s |please,? )*(?P<name>{PART})(?i:,? please)?[.!]$",
    0,
)
_CALLED_LOWER = Cue(
    r"\b(?:everyone|everybody|people|friends|folks) calls? me (?P<name>[a-zà-ÿ]{2,})\b",
    0,
)
_PRONOUN = r"(?:she|he|they|ze|xe|it|her|him|them|zir|hir|xem|its|hers|his|theirs)"
_PRONOUNS = Cue(
    r"(?:\b(?:pronouns (?:are|is|would be)|(?:it['’]?s|i use|i go by|i['’]m|i am|use|prefer|i "
    "prefer)) (?:now )?|(?:^|"
    r"[,.;!?—-] ?| from (?-i:[A-Z])\w+ )(?:and )?)"
    r"(?P<a>she|he|they|ze|xe)(?:\s*/\s*|,? (?:and |slash )?)(?P<b>her|him|them|they|zir|hir"
    r"|xem)\b(?=\W*$|[,.;!?]| (?:but|and|haha|please|"
    r"actually|not|by the way|thanks|pronouns|for me|because|cos|so)\b)|"
    r"\b(?P<c>she|he|they) ?/ ?(?P<d>her|him|them)\b",
)
# One form alone, where only a correction of how one was addressed can be meant: "it's they,
# actually".
_ONE_PRONOUN = Cue(
    (
        r"\b(?:it['’]s|i use|i go by|my pronoun is|use) (?P<a>she|he|they)\b(?=[,.!]? "
        "(?:actually|please|not (?:he|she|"
        r"sir|ma['’]?am|mr|mrs|ms)|pronouns)\b)"
    ),
)
_MAY_CALL = Caseless(
    r"\b(?:call|go by\b|known|says?\b|short|answer|prefer|to (?:my|every|most|you))"
)
_MAY_TELL = Caseless(
    r"\b(?:she|he|they|ze|xe)\b[\s,/]+(?:and |slash )?(?:her|him|them|they|zir|hir|xem)\b"
    "|(?:it['’]s|use|go by|"
    r"pronoun is) (?:she|he|they)\b"
)
_OTHER_FORM = {"she": "her", "he": "him", "they": "them"}
_NOT_ME = Cue(
    r"\b(?:his|her|their|my (?:wife|husband|son|daughter|partner|friend|colleague|boss|kid"
    r"|child)['’]?s?) pronouns\b"
)


def find_call_name(turns: tuple[Turn, ...], named: Named) -> str | None:
    """The form a caller asks for; short ways of saying it count only while a name is being
    given or by the name itself.
    """
    given = {candidate.seq for candidate in named.candidates}
    asked = False
    for turn in turns:
        if turn.speaker == "agent":
            asked = asks_name(turn.text) or bool(_TITLED.search(turn.text))
            continue
        for sentence in split_sentences(turn.text):
            if (
                _MAY_CALL.occurs(sentence) and (name := _called(sentence, _CALLED))
            ) or (
                (turn.seq in given or asked)
                and (name := _called(sentence, _CALLED_BESIDE_NAME))
                and _is_form_of(name, named.parts)
            ):
                return name
            if (match := _CALLED_LOWER.search(sentence)) and match[
                "name"
            ] not in NOT_NAMES:
                return match["name"].capitalize()
    return None


def _called(sentence: str, patterns: tuple[Cue, ...]) -> str | None:
    found = (match for pattern in patterns if (match := pattern.search(sentence)))
    return next((name for match in found if (name := _nick(match["name"]))), None)


def _is_form_of(name: str, parts: set[str]) -> bool:
    """Whether it can be short for one of the names given: it begins alike, or nothing but a
    nickname could stand there.
    """
    return any(part[0].lower() == name[0].lower() for part in parts)


def put_right(turns: tuple[Turn, ...], known: set[str]) -> str | None:
    """Addressed by title, the caller answers with the short form: "Mr. Rowe?", "Jim, please." """
    for said, answered in itertools.pairwise(turns):
        if (
            said.speaker == "agent"
            and answered.speaker == "caller"
            and _TITLED.search(said.text)
        ):
            first = next(iter(split_sentences(answered.text)), "")
            if (
                (match := _JUST.match(first))
                and match["name"] in known
                and "please" in first.lower()
            ):
                return match["name"]
    return None


def _nick(words: str) -> str | None:
    title, _, rest = words.rpartition(". ") if ". " in words else ("", "", words)
    name = clean_name(rest)
    return f"{title}. {name}" if title and name else name


def find_pronouns(texts: list[str]) -> str | None:
    for text in texts:
        if _NOT_ME.search(text):
            continue
        if not _MAY_TELL.occurs(text):
            continue
        if match := _PRONOUNS.search(text):
            first, second = (
                (match["a"] or match["c"]).lower(),
                (match["b"] or match["d"]).lower(),
            )
            return f"{first}/{second}" if first != second else None
        if match := _ONE_PRONOUN.search(text):
            first = match["a"].lower()
            return f"{first}/{_OTHER_FORM[first]}"
    return None
