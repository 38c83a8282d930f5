"""The sentences that give an attribute its value: a table of patterns over plain sentences."""

import re
from typing import NamedTuple

from aftercall.memory.lexicon import (
    CODE,
    DIETS,
    HOURS,
    HOW_GOOD,
    JOBS,
    KIND,
    MARITAL,
    MONTHS,
    NEW,
    ROLE,
    STREET,
    THING,
    WAYS,
)

_OF_CALLER = r"(?:my|the)"
_NO_NAME = (
    "(?:this|that|these|it|he|she|who|what|which|here|there|the|my|our|where|how|one|all|and"
    r"|but|so)\b"
)


class Frame(NamedTuple):
    """A sentence that gives an attribute its value; it holds at least one of `needs`, which is
    quickly told.
    """

    attribute: str
    needs: tuple[str, ...]
    pattern: re.Pattern[str]


def _frame(attribute: str, needs: tuple[str, ...], pattern: str) -> Frame:
    return Frame(attribute, needs, re.compile(pattern))


FIGURE = "any figure"
"""Among what a frame is told by."""
_REST = r"(?P<value>\S.*)"
FRAMES = (
    _frame(
        "{kind} email",
        ("mail",),
        rf"\b{_OF_CALLER} {NEW}{KIND}{NEW}e-?mail(?: address)?(?: has changed to| changed to| "
        f"is| should be|:)(?: now)? {_REST}",
    ),
    _frame(
        "{kind} phone",
        ("number", "mobile", "cell", "landline"),
        (
            rf"\b{_OF_CALLER} {NEW}{KIND}{NEW}(?:phone |telephone |contact )?(?:number"
            "|(?P<device>mobile|cell|landline))(?: has "
            rf"changed to| changed to| is| should be|:)(?: now)? (?P<value>\+?\d.*)"
        ),
    ),
    _frame(
        "{kind} phone",
        ("reach i", "call i", "ring i", "phone i", "text i"),
        rf"\b(?:reach|call|ring|phone|text) i (?:on|at) (?:my {KIND}(?:number|phone)?,? "
        rf"?)?(?P<value>\+?\d{{6,}})",
    ),
    _frame("phone", ("am on ", "now on "), r"\bi am (?:now )?on (?P<value>\+?\d{6,})"),
    _frame(
        "phone",
        ("can be ",),
        r"\bi can be (?:reached|called|contacted|phoned) (?:on|at) (?P<value>\+?\d{6,})",
    ),
    _frame(
        "residence",
        (" home",),
        r"\bi am (?:now )?in (?P<value>(?!a |the )[\w' ]+ (?:care|nursing|residential) home)\b",
    ),
    _frame("email", ("email i ",), r"\bemail i (?:on|at) (?P<value>\S+@\S+)"),
    _frame(
        "{kind} address",
        ("address",),
        rf"\b{_OF_CALLER} {NEW}{KIND}{NEW}address(?: has changed to| changed to| is| should be"
        f"|:)(?: now)? {_REST}",
    ),
    _frame(
        "school's name",
        ("school", "primary", "college", "academy", "university", "nursery"),
        (
            r"\bi (?:now )?(?:go to|attend|am (?:now )?at|study at|have started at|started "
            "at)(?: now)? "
            r"(?P<value>(?!the )[\w' ]+ (?:school|primary|college|academy|university|nursery))\b"
        ),
    ),
    _frame(
        "address",
        ("live", "living", "stay", "am ", "move"),
        (
            r"\bi (?:now )?(?:(?:live|am living|stay|moved?|have moved)(?: now)? (?:at|to"
            r"|into|on|in(?! \d)) "
            rf"(?P<value>\d+\w? .*|[\w ]+ (?:{STREET})\b.*)|am(?: now)? at "
            rf"(?P<value2>(?:\d+\w? )?(?:[\w']+ ){{1,3}}(?:{STREET})\b.*))"
        ),
    ),
    _frame(
        "address",
        ("is ",),
        (
            rf"(?:\b(?:it|that|home|my (?:home|house|flat|place)) is|^is)(?: now)? "
            rf"(?P<value>(?:\d+\w? )?(?:[\w']+ ){{1,2}}(?:{STREET})\b.*now.*|\d+\w? "
            rf"(?:[\w']+ ){{1,2}}(?:{STREET})\b.*)"
        ),
    ),
    _frame(
        "residence",
        ("live", "living", "reside", "based", "stay"),
        (
            r"\bi (?:now )?(?:live|am (?:now )?living|have been living|have gone to live"
            "|reside|am (?:now )?based|stay)(?: now)? "
            rf"(?:in|near|outside) {_REST}"
        ),
    ),
    _frame(
        "residence",
        ("moved", "relocated"),
        (
            rf"\bi (?:have )?(?:left [\w ]+? and )?(?:now |recently )*(?:moved|relocated)"
            rf"(?: house| home| over| back| out| down| up| away| now)*(?: from [\w ]+?)? to {_REST}"
        ),
    ),
    _frame(
        "surname",
        ("name",),
        rf"\bmy {NEW}(?:surname|last name|family name|maiden name) is(?: now)? {_REST}",
    ),
    _frame("name", ("name is",), rf"\bmy {NEW}(?:first )?name is(?: now)? {_REST}"),
    _frame(
        "call name",
        ("call i ", "i go by "),
        r"\b(?:call i|i go by|people call i) (?P<value>[a-z]+)$",
    ),
    _frame(
        "birthday",
        ("birth", "dob"),
        rf"\bmy (?:birthday|date of birth|birth date|dob) is(?: on| in)? {_REST}",
    ),
    _frame(
        "birthday",
        ("born ",),
        rf"\bi was born (?:on |in )?(?P<value>(?:the )?(?:\d|(?:{MONTHS})\b).*)",
    ),
    _frame("birthplace", ("born ",), rf"\bi was born in {_REST}"),
    _frame(
        "employer",
        ("work", "started", "job", "employed"),
        (
            r"\bi (?:now )?(?:work|am (?:now )?working|have started|started working|started"
            "|(?:have )?got a (?:new )?job|am employed)"
            r"(?: now)? (?:at|for|with|by) (?P<value>(?!home\b|night|i\b|(?:the )?weekends?\b"
            r"|\d)\S.*)"
        ),
    ),
    _frame(
        "diet",
        ("vege", "vegan", "pesca", "keto", "vore", "halal", "kosher", "gluten"),
        r"\bi (?:am|have become|became|have gone|went|have turned|eat)(?: now)?(?: a| an)? "
        rf"(?P<value>{DIETS})\b",
    ),
    _frame(
        "marital status",
        ("married", "divorced", "single", "engaged", "widowed", "separated"),
        r"\bi (?:am|got|have got|have been|am getting|was)(?: now| recently)? "
        rf"(?P<value>{MARITAL})\b",
    ),
    _frame(
        "job",
        ("am ", "work as ", "become", "became"),
        (
            r"\bi (?:(?:am|have become|became)(?: now)? (?:a|an|the)|(?:now )?work as(?: an?"
            "| the)?) "
            rf"(?P<value>(?:(?!{HOW_GOOD})\w+ )?(?:{JOBS}))\b"
        ),
    ),
    _frame(
        "job",
        ("retired", "employed"),
        r"\bi (?:am (?:now )?|have (?:now )?)?(?P<value>retired|unemployed|self-employed)\b",
    ),
    _frame("bank's name", ("bank with ",), rf"\bi (?:now )?bank with {_REST}"),
    _frame(
        "bank's name",
        ("account is",),
        rf"\bmy (?:bank |current )?account is (?:now )?(?:at|with) {_REST}",
    ),
    _frame("boss's name", ("report to ",), rf"\bi (?:now )?report to {_REST}"),
    _frame(
        "marital status",
        ("ried", "separated", "divorced"),
        r"\bi have (?P<value>remarried|separated|divorced)\b",
    ),
    _frame("employer", ("employer is",), rf"\bmy {NEW}employer is(?: now)? {_REST}"),
    _frame(
        "postcode",
        ("postcode", "zip"),
        rf"\bmy {NEW}(?:postcode|zip(?: code)?) is(?: now)? {_REST}",
    ),
    _frame(
        "age",
        (FIGURE,),
        r"\bi (?:am|turned|have turned)(?: now| only| nearly)* (?P<value>\d{1,3})(?: years old"
        "| years| year old| today| now)*$",
    ),
    _frame("timezone", ("zone",), rf"\bmy time ?zone is {_REST}"),
    _frame("timezone", (" time",), r"\bi am (?:on|in) (?P<value>\w+) time\b"),
    _frame(
        "favourite {what}",
        ("favo",),
        rf"\bmy favou?rite (?P<what>\w+(?: \w+)?) (?:is|are)(?: now)? {_REST}",
    ),
    _frame(
        "{what}'s name",
        ("my ",),
        (
            rf"\bmy (?:new )?(?P<what>{ROLE})(?P<name>'s name)? (?:is|was)(?: "
            "now)?(?P<called> called| named)?(?: a)? "
            rf"(?P<value>(?P<title>dr |doctor |mr |mrs |ms |miss )?[a-z][\w'-]+(?: [a-z][\w'-]+)?)$"
        ),
    ),
    _frame(
        "{what}'s name",
        (" my ",),
        (
            "^(?:it is )?(?P<value>(?P<called>(?:dr |doctor |mr |mrs |ms "
            rf")?(?!{_NO_NAME})[a-z][\w'-]+(?: [a-z][\w'-]+)?)) "
            rf"(?:who is|is|was)(?: now)? my (?:new )?(?P<what>{ROLE})(?: now)?$"
        ),
    ),
    _frame(
        "{what}",
        ("pin", "pass", "code", "combination", "word", "cvv", "cvc"),
        (
            rf"(?:^|\b(?:my|the) ){NEW}(?P<what>(?!(?:the |my )?(?:error|fault|status)|that"
            rf"|this|it)(?:[\w-]+ ){{0,3}}(?:{CODE})"
            r"(?: (?:for|of|to|on|at) [\w' ]+?)?) (?:is|has been changed to|has changed to"
            f"|changed to|was|:)(?: now)? {_REST}"
        ),
    ),
    _frame(
        "{what} number",
        (FIGURE,),
        (
            rf"\b(?:my|the) {NEW}(?P<what>(?:bank |credit |debit )?(?:card|account|policy"
            "|member|membership|customer|"
            rf"reference|order|passport|licen[cs]e|registration|insurance|loyalty|tax|"
            "national insurance|social security|routing|booking|case|ticket|frequent flyer"
            "|extension|room|locker|unit|"
            r"serial|model))(?: number| no| id| plate)?(?: is| was|:)(?: now)? (?P<value>\S*\d.*)"
        ),
    ),
    _frame(
        "kind of {what}",
        ("my ", "the "),
        rf"\b(?:my|the) {NEW}(?P<what>(?:[\w-]+ )?(?:{THING})) (?:is|runs|was)(?: now)?(?: "
        f"on)? (?:an?|one of those|the|from) {_REST}",
    ),
    _frame(
        "kind of car",
        ("drive", "driving"),
        r"\bi (?:now )?(?:drive|am driving)(?: now)? (?:an?|the|my) (?P<value>\S.*)",
    ),
    _frame(
        "best time",
        ("best", "better", "easie", "ideal", "good", "fine", "preferable"),
        (
            rf"(?:\bthe )?\b(?P<value>{HOURS}) (?:is|are|work|works|suit|suits)(?: i)? "
            r"(?:best|better|easiest|easier|ideal|good|fine|preferable)\b"
        ),
    ),
    _frame(
        "best time",
        ("time",),
        (
            r"\b(?:my |the )?(?:best|easiest|better) (?:time|times)(?: to (?:reach|call|get"
            "|ring|phone)(?: i)?)? (?:is|are)"
            rf"(?: in)?(?: the)? (?P<value>{HOURS})"
        ),
    ),
    _frame(
        "best time",
        ("prefer", "rather", "like", "want"),
        (
            r"\bi (?:(?:prefer|would prefer|would rather have|like)(?: (?:my|to have|calls"
            "|appointments|being called|to be called|visits|"
            "them|it))*|(?:want|would like|would rather)(?: calls| to be called| be "
            f"called)+)(?: in| on)?(?: the)? (?P<value>{HOURS})$"
        ),
    ),
    _frame(
        "best time",
        ("call i", "ring i", "phone i", "reach i", "contact i"),
        rf"\b(?:call|ring|phone|reach|contact) i (?:only )?(?:in the |on )?(?P<value>{HOURS})",
    ),
    _frame(
        "best time",
        ("can only",),
        rf"\bi can only (?:do|manage|make|come|talk|take calls)(?: in the| on)? (?P<value>{HOURS})",
    ),
    _frame(
        "contact",
        (" i",),
        rf"\b(?P<value>{WAYS}) i (?:instead|only|rather|first|in future|from now on|on the "
        rf"phone)\b|^(?P<value2>{WAYS}) i$",
    ),
    _frame(
        "contact",
        ("prefer", "rather", "like", "want"),
        (
            r"\bi (?:would )?(?:prefer|rather|like|want)(?: to| be| get| getting| being| have"
            "| an?| by| contact| contacted| "
            rf"i| you| if you)* (?P<value>{WAYS})\b"
        ),
    ),
    _frame(
        "contact",
        ("best", "easiest", "better", "quickest"),
        (
            r"(?:\b(?:the|my) )?\b(?:best|easiest|better|quickest) (?:way|to reach|to contact"
            r"|to get)[\w ]*? "
            rf"(?:is|by|on|with)(?: by| an?)? (?P<value>{WAYS})\b"
        ),
    ),
    _frame(
        "contact",
        ("best", "better", "easie", "preferable", "fine", " only"),
        (
            rf"\b(?P<value>{WAYS})(?: is| are| works?)(?: much)? (?:best|better|easiest|easier"
            r"|preferable|fine)\b(?! time)|"
            rf"\b(?P<value2>{WAYS}) only\b"
        ),
    ),
    _frame(
        "contact",
        ("only ", "use "),
        rf"\b(?:only|use) (?P<value>{WAYS})(?: i)?$",
    ),
)


_BY_NEED = {
    need: tuple(place for place, frame in enumerate(FRAMES) if need in frame.needs)
    for need in dict.fromkeys(need for frame in FRAMES for need in frame.needs)
}
_WITH_FIGURE = _BY_NEED.pop(FIGURE)
_ANY_FIGURE = re.compile(r"\d")


class Fit(NamedTuple):
    attribute: str
    match: re.Match[str]


def fitting(text: str) -> Fit | None:
    """The attribute that a plain sentence gives a value to, and how."""
    told_by = [places for need, places in _BY_NEED.items() if need in text]
    if _ANY_FIGURE.search(text):
        told_by.append(_WITH_FIGURE)
    for place in sorted({place for places in told_by for place in places}):
        if match := FRAMES[place].pattern.search(text):
            return Fit(FRAMES[place].attribute, match)
    return None
