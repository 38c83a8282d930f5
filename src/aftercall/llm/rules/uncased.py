"""Names in transcripts that write no capitals: only in frames that nothing but a name fills,
and never a common word.
"""

import re

from aftercall.llm.rules.spelling import without_spelling
from aftercall.llm.rules.vocabulary import vocabulary

_WORD = r"[a-zà-ÿ][a-zà-ÿ'’\-]+"
_GREETING = (
    "(?:(?:hi|hello|hey|yo|yes|yeah|yep|sure|okay|ok|oh|um+|uh+|er+m?|so|well|good|morning"
    "|afternoon|evening|day|there|sorry|no)[,.!]* )*"
)
_AFTER = r"(?=,? (?:here|speaking|calling|again|from|with|over at|on the line)\b)"
# "this is ana lopez from the bakery": what follows shows that the words before it name somebody.
_FRAMES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\bmy (?:full )?name(?:['’]?s| is) (?P<name>{_WORD}(?: {_WORD}){{0,2}})",
        (
            rf"\b(?:it['’]?s|this is|i['’]?m) (?P<once>{_WORD})(?: by the way| that['’]?s|,)? "
            rf"(?P<name>(?P=once) {_WORD})\b"
        ),
        rf"\b(?:the )?name(?:['’]?s| is) (?P<name>{_WORD}(?: {_WORD})?)(?=[,.!]|$)",
        (
            r"\b(?:i['’]?m|i am|it['’]?s) (?:the|her|his|their|your) (?:tenant|owner|daughter"
            "|son|wife|husband|"
            r"mum|mom|mother|father|dad|parent|"
            "account holder|customer|manager|carer|landlord|sister|brother),? "
            rf"(?P<name>{_WORD} {_WORD})\b"
        ),
        (
            rf"\b(?:this is|it['’]?s|it is) (?:uh |um |just |me )*(?P<name>{_WORD}(?: "
            f"{_WORD}){{0,2}}?){_AFTER}"
        ),
        (
            rf"\b(?:i['’]m|i am) (?:uh |um )*(?P<name>{_WORD}(?: {_WORD})?),? (?=(?:from|with"
            r"|calling from)\b)"
        ),
        (
            rf"\b(?:this is|it['’]?s|it is) (?:uh |um )*(?P<name>{_WORD} {_WORD})(?=[,.!]|$| "
            "(?:i|i['’]m|i['’]ve|and|we|my|about|in|at|"
            rf"um+|uh+)\b)"
        ),
        (
            f"^{_GREETING}(?:this is|it['’]?s|it is) (?:uh |um |me |again "
            f")*(?P<name>{_WORD})(?=[,.!]? (?:so|um|uh|i|i['’]m|"
            r"i['’]ve|and i|my)\b|[,.!]*$)"
        ),
        (
            f"^{_GREETING}(?P<name>{_WORD}(?: {_WORD}){{0,2}}?),? (?:here|speaking|calling)(?! "
            r"(?:about|from|to|for)\b)\b"
        ),
    )
)
_ANSWER = re.compile(
    f"^{_GREETING}(?:(?:it['’]?s|it is|that['’]s|that would be|this is|i['’]m|my "
    "name(?:['’]?s| is)?|yeah|uh|um) )*"
    f"(?P<name>{_WORD}(?: {_WORD}){{0,2}})(?=[,.!]|$| (?:i|i['’]m|and|from|with|spelled"
    r"|that['’]s|it['’]s)\b)"
)
_LEAD = re.compile(rf"^{_GREETING}")
_MOST = 3
_SURE = 4  # frames that nothing but a name fills, wherever in the call they stand
# What fills the same places as a name and is none.
_COMMON = vocabulary(
    """
    back behind calling closer flat fresh left locked looking phoning ringing speaking straight stuck through trying
    travelling unhappy happy broken dead empty gone dark late loud wet frozen ready over early better worse
    a about actually afraid again ages all almost already also always an and another any anything are around as ask at
    away awful awkward bad because been bit both but by can cannot cheap close cold confusing correct could crazy day
    different difficult do does done down due easy embarrassing emergency enough even every everything expensive fair
    far fine first for free from full funny good great had half happened hard has have he her here his home hot how
    i i'd i'll i'm i've if important in is it it's its just kind last late later leave like long lot lovely luck made
    maybe me mine more most much my need never new next nice no nobody not nothing now of off old on one only open or
    our out over perfect please possible probably problem quick quite really right ridiculous sad same serious she
    short sick silly simple since so some someone something soon sorry spell spelled still strange such super sure
    terrible that that's the their then there these they thing things this those time to today tomorrow tonight too
    true two under unfair until up urgent us usual very was way we weird well what what's when where which while who
    why will with working wrong yeah yes yesterday yet you your yours
    morning afternoon evening monday tuesday wednesday thursday friday saturday sunday january february march april
    june july august september october november december
    """
)


def find_uncased(text: str, *, asked: bool, opening: bool = True) -> str | None:
    """The caller's own name in a text without capitals; a bare answer counts where the agent
    had asked for one.
    """
    for pattern in _FRAMES if opening else _FRAMES[:_SURE]:
        if (match := pattern.search(text)) and (name := _named(match["name"])):
            return name
    return _answer(text) if asked else None


def _named(words: str) -> str | None:
    parts = words.split()
    if any(part in _COMMON or part.endswith(("ing", "ed", "ly")) for part in parts[:1]):
        return None
    parts = [part for at, part in enumerate(parts) if not at or part != parts[at - 1]]
    kept = next(
        (
            parts[:at]
            for at, part in enumerate(parts)
            if part in _COMMON or part.startswith(("i'", "i’"))
        ),
        parts,
    )
    return " ".join(part.capitalize() for part in kept)


def _answer(text: str) -> str | None:
    plain = without_spelling(text)
    match = _ANSWER.match(plain)
    first = _named(match["name"]) if match else None
    words = [
        word for word in re.findall(_WORD, _LEAD.sub("", plain)) if word not in _COMMON
    ]
    # "grant. tully t u l l y grant tully": said in pieces, spelled, then said whole.
    # "under abernathy wendell abernathy"
    again = len(words) == _MOST and words[0] == words[-1]
    if again or (
        len(words) > _MOST and words[-2] in words[:-2] and words[-1] in words[:-1]
    ):
        return _named(" ".join(words[-2:]))
    return first
