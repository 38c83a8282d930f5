"""The one other person a request is for, to or with."""

from aftercall.llm.rules.cue import Cue
from aftercall.llm.rules.names import NOT_NAMES
from aftercall.llm.rules.vocabulary import vocabulary

_NAME = r"(?P<name>[^\W\d_a-z][^\W\d_A-Z'’\-]+(?:['’\-]\w+)?(?: [^\W\d_a-z][^\W\d_A-Z'’\-]+)?)"
_TITLE = (
    "(?:(?:Dr|Mr|Mrs|Ms|Miss|Missus|Mister|Doctor|Professor|Prof|Nurse|Aunt|Uncle|Auntie"
    r"|Coach|Father)\b\.? )"
)
_RELATION = (
    "(?:wife|husband|partner|son|daughter|brother|sister|mother|father|mum|mom|dad|boss"
    "|manager|assistant|friend|colleague|"
    r"neighbou?r|cousin|aunt|uncle|niece|nephew|"
    "grandson|granddaughter|grandmother|grandfather|boyfriend|girlfriend|fianc[eé]e?|kid|boy"
    "|girl|landlord|lawyer|accountant|"
    r"doctor|tenant|client|roommate|flatmate|secretary)"
)
_WHO = tuple(
    Cue(pattern, 0)
    for pattern in (
        rf"\b{_TITLE}{_NAME}",
        rf"\b(?:(?i:my|our|his|her)) (?:\w+ )?{_RELATION}(?: in law)?,? {_NAME}",
        (
            r"\b(?i:tell|ask|remind|call|ring|phone|text|email|message|notify|inform|contact"
            "|invite|let|pay|give|see|warn|"
            rf"have) {_NAME}(?!['’]s)"
        ),
        (
            rf"\b(?i:send|give|get|bring|buy|write|forward|wire|mail|order|pass) {_NAME} (?:a|an"
            r"|the|my|his|her|that|this|some)\b"
        ),
        (
            r"\b(?i:with|to|for|from|assign(?:ed)? (?:it |this |that )?to|call(?:ed)? from|"
            f"behalf of) (?:{_TITLE})?{_NAME}(?!['’]s| (?i:street|road|avenue|lane|drive"
            "|hotel|hospital|airport|station|office|"
            r"time)\b)"
        ),
        (
            rf"\b{_NAME}['’]s (?i:birthday|appointment|present|gift|party|prescription|order|room"
            r"|number|flight|lesson|school)\b"
        ),
    )
)
_NOTED = Cue(
    rf"\b(?i:about|regarding|concerning) (?i:the )?{_NAME}(?: (?i:conversation|meeting|call"
    r"|talk|chat))?(?=(?:\W*please)?\W*(?:$|[:,.]))",
    0,
)
_NO_PERSON = vocabulary(
    """
    wednesday english street road avenue lane drive court plaza hotel airport station hospital clinic bank team support
    sales finance marketing accounting legal engineering berlin london paris tokyo lisbon boston chicago denver york
    madrid rome vienna munich dublin toronto sydney texas ohio california florida google apple amazon microsoft netflix
    slack zoom postgres windows android iphone visa mastercard paypal cvs walgreens costco target tesco ikea fedex ups
    dhl monday's happy birthday merry saint north south east west
    """
)


def person_noted(text: str) -> str | None:
    """Whom a note is about: "note what we decided about Carl"."""
    return _first_name(text, (_NOTED,))


def person_in(text: str) -> str | None:
    return _first_name(text, _WHO)


def _first_name(text: str, patterns: tuple[Cue, ...]) -> str | None:
    for pattern in patterns:
        for match in pattern.finditer(text):
            words = [
                word
                for word in match["name"].removesuffix("'s").removesuffix("’s").split()
                if _can_be_name(word)
            ]
            if words and words[0] == match["name"].split()[0].removesuffix(
                "'s"
            ).removesuffix("’s"):
                return " ".join(words)
    return None


def _can_be_name(word: str) -> bool:
    return (
        word.lower() not in NOT_NAMES
        and word.lower() not in _NO_PERSON
        and len(word) > 1
    )
