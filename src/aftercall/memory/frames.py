"""The sentences that give an attribute its value: a table of patterns over plain sentences."""

import re
from typing import NamedTuple

_OF_CALLER = r"(?:my|the|his|her)"
_KIND = r"(?:(?P<kind>work|home|mobile|cell|office|personal|business|school|landline|billing|delivery|postal|mailing|second|other) )?"
_NEW = r"(?:(?:new|current|old|own|full|direct|actual) )*"
_ROLE = (
    r"wife|husband|partner|spouse|girlfriend|boyfriend|fiancee?|mother|mum|mom|father|dad|dentist|doctor|gp|vet|"
    r"boss|manager|landlord|landlady|"
    r"accountant|lawyer|solicitor|therapist|plumber|electrician|cleaner|gardener|physio|optician|hairdresser|"
    r"stylist|pharmacy|pharmacist|bank|"
    r"insurer|insurance company|provider|supplier|internet provider|emergency contact|next of kin|assistant|school|gym|church"
)
_THING = (
    r"car|van|truck|bike|motorbike|boiler|furnace|router|modem|printer|laptop|computer|phone|tablet|tv|television|"
    r"fridge|freezer|oven|cooker|hob|"
    r"dishwasher|washing machine|dryer|tumble dryer|heater|thermostat|server|database|camera|mower|heating|heat pump|alarm system|browser|"
    r"operating system|staging server|production server|phone system|till|scanner|lift|engine|pump|filter|battery"
)
_STREET = (
    r"street|road|avenue|lane|drive|court|close|way|place|terrace|boulevard|square|crescent|gardens|grove|mews|row|"
    r"hill|park|apartment|flat|st|rd|ave"
)
_CODE = (
    r"pin|pin number|pin code|passcode|password|pass phrase|passphrase|pass word|code|combination|security word|safe word|memorable word|"
    r"security code|access code|cvv|cvc"
)
WAY = {
    said: way
    for way, names in {
        "email": "email emails emailed e-mail",
        "text": "text texts texted sms texting message messages",
        "phone": "call calls called calling ring phone phoned phoning telephone",
        "whatsapp": "whatsapp",
        "post": "letter letters post mail",
    }.items()
    for said in names.split()
}
_WAYS = "|".join(sorted(WAY, key=len, reverse=True))
_HOURS = (
    r"(?:mornings?|afternoons?|evenings?|weekends?|weekdays?|nights?|lunchtimes?|(?:mon|tues|wednes|thurs|fri|satur|"
    r"sun)days?|(?:after|before|between|around) [\w: ]+)"
)
WISH = (
    r"(?:prefer|would rather|would like|like|want|love|choose|go for|need|take|have|get|book|order|drink|use|ask "
    r"for|request|give i|put i (?:in|on))"
)
DOMAINS: tuple[tuple[str, str], ...] = (
    ("seat", r"window|aisle"),
    ("floor", r"ground floor|top floor|high floor|low floor|upper floor|higher floor|lower floor|first floor"),
    ("milk", r"oat milk|soy milk|almond milk|whole milk|skimmed milk|skim milk|coconut milk|dairy milk"),
    ("coffee", r"decaf|espresso|flat white|cappuccino|latte|americano|black coffee|filter coffee|cortado"),
    ("steak", r"medium rare|medium well|well done|rare"),
    ("doctor", r"(?:female|woman|lady|male|man) doctor"),
    ("payment", r"pay(?:ing)? (?:by|in|with) (?:card|cash|invoice|cheque|check|transfer|direct debit|paypal)|invoices?|direct debit|cash"),
    ("language", r"(?:in|speak|speaking) (?:english|spanish|french|german|italian|portuguese|polish|dutch|arabic|hindi|mandarin)"),
    ("receiving", r"pick ?up|collect(?:ion)?|deliver(?:y|ed)"),
    ("bed", r"(?:king|queen|twin|double|single) (?:bed|room)|twin beds"),
    ("size", r"size (?:small|medium|large|xl|\d+)|extra large"),
    ("smoking", r"non-?smoking|smoking"),
    ("pillow", r"(?:firm|soft|feather|foam) pillows?"),
    ("water", r"sparkling|still water|tap water"),
)
_DIETS = r"vegetarian|vegan|pescatarian|keto|carnivore|omnivore|halal|kosher|gluten-?free"
_MARITAL = r"married|divorced|single|engaged|widowed|separated"
_JOBS = (
    r"nurse|teacher|doctor|driver|student|pensioner|lawyer|chef|pilot|carer|plumber|engineer|freelancer|contractor|"
    r"electrician|accountant|dentist|"
    r"designer|developer|programmer|manager|cleaner|cook|waiter|waitress|farmer|builder|carpenter|photographer|writer|journalist|architect|"
    r"consultant|vet|paramedic|police officer|firefighter|receptionist|secretary|librarian|musician|painter|mechanic|baker|butcher|barber|"
    r"hairdresser|therapist|translator|scientist|professor|lecturer|shop assistant|salesman|retired"
)


_HOW_GOOD = r"(?:good|great|bad|terrible|keen|decent|lousy|lovely|nice|happy|slow|hopeless|poor|careful|nervous)\b"


class _Frame(NamedTuple):
    """A sentence that gives an attribute its value; it holds at least one of `needs`, which is quickly told."""

    attribute: str
    needs: tuple[str, ...]
    pattern: re.Pattern[str]


def _frame(attribute: str, needs: tuple[str, ...], pattern: str) -> _Frame:
    return _Frame(attribute, needs, re.compile(pattern))


_REST = r"(?P<value>\S.*)"
FRAMES = (
    _frame(
        "{kind} email",
        ("mail",),
        rf"\b{_OF_CALLER} {_NEW}{_KIND}{_NEW}e-?mail(?: address)?(?: has changed to| changed to| is| was| should be|:)(?: now)? {_REST}",
    ),
    _frame(
        "{kind} phone",
        (
            "number",
            "mobile",
            "cell",
            "landline",
        ),
        (
            rf"\b{_OF_CALLER} {_NEW}{_KIND}{_NEW}(?:phone |telephone |contact )?(?:number|mobile|cell|landline)(?: has "
            rf"changed to| changed to| is| was| should be|:)(?: now)? (?P<value>\+?\d.*)"
        ),
    ),
    _frame(
        "{kind} phone",
        (
            "reach i",
            "call i",
            "ring i",
            "phone i",
            "text i",
        ),
        rf"\b(?:reach|call|ring|phone|text) i (?:on|at) (?:my {_KIND}(?:number|phone)?,? ?)?(?P<value>\+?\d{{6,}})",
    ),
    _frame(
        "{kind} address",
        ("address",),
        rf"\b{_OF_CALLER} {_NEW}{_KIND}{_NEW}address(?: has changed to| changed to| is| was| should be|:)(?: now)? {_REST}",
    ),
    _frame(
        "address",
        (
            "live",
            "living",
            "stay",
            "am ",
            "move",
        ),
        (
            rf"\bi (?:now )?(?:(?:live|am living|stay|moved?|have moved)(?: now)? (?:at|to|on|in(?! \d))|am(?: now)? at) "
            rf"(?P<value>\d+\w? .*|[\w ]+ (?:{_STREET})\b.*)"
        ),
    ),
    _frame(
        "address",
        ("is ",),
        (
            rf"\b(?:it is|now it is|that is|is) (?P<value>(?:\d+\w? )?(?:[\w']+ ){{1,2}}(?:{_STREET})\b.*now.*|\d+\w? "
            rf"(?:[\w']+ ){{1,2}}(?:{_STREET})\b.*)"
        ),
    ),
    _frame(
        "residence",
        (
            "live",
            "living",
            "reside",
            "based",
            "stay",
        ),
        rf"\bi (?:now )?(?:live|am living|reside|am based|am staying|stay)(?: now)? (?:in|near|outside) {_REST}",
    ),
    _frame(
        "residence",
        (
            "moved",
            "relocated",
        ),
        rf"\bi (?:have )?(?:recently )?(?:moved|relocated)(?: house| over| back| out| down| up)*(?: from [\w ]+?)? to {_REST}",
    ),
    _frame(
        "surname",
        (
            "name",
            "surname",
        ),
        rf"\bmy {_NEW}(?:surname|last name|family name|maiden name) is(?: now)? {_REST}",
    ),
    _frame("name", ("name is",), rf"\bmy {_NEW}(?:first )?name is(?: now)? {_REST}"),
    _frame(
        "call name",
        (
            "call i ",
            "i go by ",
        ),
        r"\b(?:call i|i go by|people call i) (?P<value>[a-z]+)$",
    ),
    _frame(
        "birthday",
        (
            "birth",
            "dob",
        ),
        rf"\bmy (?:birthday|date of birth|birth date|dob) is(?: on)? {_REST}",
    ),
    _frame("birthday", ("born ",), rf"\bi was born (?:on|in) {_REST}"),
    _frame(
        "employer",
        (
            "work",
            "started",
        ),
        r"\bi (?:now )?(?:work|am working|have started|started working|started)(?: now)? (?:at|for) (?P<value>(?!home\b|night|\d)\S.*)",
    ),
    _frame(
        "diet",
        (
            "vege",
            "vegan",
            "pesca",
            "keto",
            "vore",
            "halal",
            "kosher",
            "gluten",
        ),
        rf"\bi (?:am|have become|became|have gone|went|have turned|eat)(?: now)?(?: a| an)? (?P<value>{_DIETS})\b",
    ),
    _frame(
        "marital status",
        (
            "married",
            "divorced",
            "single",
            "engaged",
            "widowed",
            "separated",
        ),
        rf"\bi (?:am|got|have got|have been|am getting|was)(?: now| recently)? (?P<value>{_MARITAL})\b",
    ),
    _frame(
        "job",
        (
            "am ",
            "work as ",
            "become",
            "became",
        ),
        rf"\bi (?:am|work as|have become|became)(?: now)?(?: a| an| the)? (?P<value>(?:(?!{_HOW_GOOD})\w+ )?(?:{_JOBS}))\b",
    ),
    _frame("timezone", ("zone",), rf"\bmy time ?zone is {_REST}"),
    _frame("timezone", (" time",), r"\bi am (?:on|in) (?P<value>\w+) time\b"),
    _frame("favourite {what}", ("favo",), rf"\bmy favou?rite (?P<what>\w+(?: \w+)?) (?:is|are)(?: now)? {_REST}"),
    _frame(
        "{what}'s name",
        ("my ",),
        (
            rf"\bmy (?:new )?(?P<what>{_ROLE})(?P<name>'s name)? (?:is|was)(?: now)?(?P<called> called| named)? (?P<value>(?P<title>dr |"
            rf"doctor |mr |mrs |ms |miss )?[a-z][\w'-]+(?: [a-z][\w'-]+)?)$"
        ),
    ),
    _frame(
        "{what}",
        (
            "pin",
            "pass",
            "code",
            "combination",
            "word",
            "cvv",
            "cvc",
        ),
        (
            rf"\b(?:my|the) {_NEW}(?P<what>(?!error|fault|status)(?:[\w-]+ ){{0,2}}(?:{_CODE})(?: (?:for|of|to|on) [\w' "
            rf"]+?)?) (?:is|has been changed to|has changed to|changed to|was|:)(?: now)? {_REST}"
        ),
    ),
    _frame(
        "{what} number",
        (*"0123456789",),
        (
            rf"\b(?:my|the) {_NEW}(?P<what>(?:bank |credit |debit )?(?:card|account|policy|member|membership|customer|"
            rf"reference|order|passport|licen[cs]e|registration|insurance|loyalty|tax|"
            r"national insurance|social security|routing|booking|case|ticket|frequent flyer|extension|room|locker|unit|"
            r"serial|model))(?: number| no| id| plate)?(?: is| was|:)(?: now)? (?P<value>\S*\d.*)"
        ),
    ),
    _frame(
        "kind of {what}",
        (
            "my ",
            "the ",
        ),
        rf"\b(?:my|the) {_NEW}(?P<what>{_THING}) (?:is|runs|was)(?: now)?(?: on)? (?:an?|one of those|the|from) {_REST}",
    ),
    _frame(
        "kind of car",
        (
            "drive",
            "driving",
        ),
        r"\bi (?:now )?(?:drive|am driving)(?: now)? (?:an?|the|my) (?P<value>\S.*)",
    ),
    _frame(
        "best time",
        (
            "best",
            "better",
            "easie",
            "ideal",
            "good",
            "fine",
            "preferable",
        ),
        rf"\b(?P<value>{_HOURS}) (?:is|are|work|works|suit|suits)(?: i)? (?:best|better|easiest|easier|ideal|good|fine|preferable)\b",
    ),
    _frame(
        "best time",
        ("time",),
        (
            rf"\b(?:best|easiest|better) (?:time|times)(?: to (?:reach|call|get|ring|phone)(?: i)?)? (?:is|are)(?: in the)? "
            rf"(?P<value>{_HOURS})"
        ),
    ),
    _frame(
        "best time",
        (
            "prefer",
            "rather",
            "like",
        ),
        (
            rf"\bi (?:prefer|would prefer|would rather have|like)(?: (?:my|to have|calls|appointments|being called|to be "
            rf"called|visits|them|it))*(?: in| on)?(?: the)? (?P<value>{_HOURS})$"
        ),
    ),
    _frame(
        "best time",
        (
            "call i",
            "ring i",
            "phone i",
            "reach i",
            "contact i",
        ),
        rf"\b(?:call|ring|phone|reach|contact) i (?:only )?(?:in the |on )?(?P<value>{_HOURS})",
    ),
    _frame("best time", ("can only",), rf"\bi can only (?:do|manage|make|come|talk|take calls)(?: in the| on)? (?P<value>{_HOURS})"),
    _frame("contact", (" i",), rf"\b(?P<value>{_WAYS}) i (?:instead|only|rather|first|in future|from now on)\b|^(?P<value2>{_WAYS}) i$"),
    _frame(
        "contact",
        (
            "prefer",
            "rather",
            "like",
            "want",
        ),
        (
            rf"\bi (?:would )?(?:prefer|rather|like|want)(?: to| be| get| getting| being| have| an?| by| contact| contacted| "
            rf"i| you| if you)* (?P<value>{_WAYS})\b"
        ),
    ),
    _frame(
        "contact",
        (
            "best",
            "easiest",
            "better",
            "quickest",
        ),
        (
            rf"\b(?:best|easiest|better|quickest) (?:way|to reach|to contact|to get)[\w ]*? (?:is|by|on|with)(?: by| an?)? "
            rf"(?P<value>{_WAYS})\b"
        ),
    ),
    _frame(
        "contact",
        (
            "best",
            "better",
            "easie",
            "preferable",
            "fine",
            " only",
        ),
        (
            rf"\b(?P<value>{_WAYS})(?: is| are| works?)(?: much)? (?:best|better|easiest|easier|preferable|fine)\b(?! time)|"
            rf"\b(?P<value2>{_WAYS}) only\b"
        ),
    ),
    _frame(
        "contact",
        (
            "only ",
            "use ",
        ),
        rf"\b(?:only|use) (?P<value>{_WAYS})(?: i)?$",
    ),
)


_NEEDS = tuple(dict.fromkeys(need for frame in FRAMES for need in frame.needs))


def fitting(text: str) -> tuple[str, re.Match[str]] | None:
    """The attribute that a plain sentence gives a value to, and how."""
    there = {need for need in _NEEDS if need in text}
    for frame in FRAMES:
        if not there.isdisjoint(frame.needs) and (match := frame.pattern.search(text)):
            return frame.attribute, match
    return None
