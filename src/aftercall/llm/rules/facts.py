"""Durable truths a caller tells: preferences, decisions, people, own to-dos, corrections,
equipment, habits, feelings.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from aftercall.llm.rules.asks import tidy, visible
from aftercall.llm.rules.corrections import (
    REPAIRS,
    after_repair,
    erase,
    is_broken_off,
    longest_without,
    values_denied,
)
from aftercall.llm.rules.cue import Caseless, Cue
from aftercall.llm.rules.faults import FAULT
from aftercall.llm.rules.ordinary import has_descriptive_word
from aftercall.llm.rules.reality import is_others_wish, is_real
from aftercall.llm.rules.relations import RELATION, is_about_someone
from aftercall.llm.rules.secrets import FEELING
from aftercall.llm.rules.sentences import Clause
from aftercall.llm.rules.standing import find_standing
from aftercall.llm.rules.stems import overlap_coefficient, stems
from aftercall.llm.rules.triggers import find_trigger
from aftercall.llm.rules.withdrawals import find_call_off
from aftercall.model.reading import Category, FactDraft, Sentiment

_DAYS = r"(?:mon|tues|wednes|thurs|fri|satur|sun)days"


@dataclass(frozen=True, slots=True)
class _Rule:
    category: Category
    confidence: float
    pattern: Caseless


def _rule(category: Category, confidence: float, pattern: str) -> _Rule:
    return _Rule(category, confidence, Caseless(pattern))


# One clause may make one fact of each category; the first rule of a category that matches makes it.
_RULES = (
    _rule(
        "decision",
        0.85,
        r"(?<!what )\b(?:we|i)(?:['’]ve| have)? (?:all |both |finally |already |just "
        ")?(?:decided|agreed|settled on|made up (?:my|"
        r"our) mind|chosen|chose|opted|committed)\b|\b(?:we|i)(?:['’]re|['’]m| are| am) "
        "(?:definitely |now |"
        "not )?(?:going with|sticking with|staying(?! (?:at|in|for|until|till|over|there"
        "|here))|keeping|dropping|"
        "switching to|moving (?:to|the|our|it)|getting rid of|not renewing|selling|freezing"
        r"|shutting)\b|"
        r"\bthat['’]s (?:settled|final|decided)\b|\bthe decision is\b|\bwe settled\b"
        r"|\bit['’]s decided\b|\bwe['’]ll go with\b|"
        r"\bi['’]ll go with\b|\bgoing with\b|\b(?:we|i)(?:['’]re|['’]m| are| am) "
        "(?:definitely |now )?(?:going ahead|quitting|"
        "leaving|retiring|not (?:doing|taking|going)|done with|cancell?ing|closing|opening"
        "|hiring|launching|moving (?:in|out|"
        r"house|to)|sticking to)\b|\b(?:we|i)(?:['’]ve| have)? (?:picked|signed|accepted"
        "|turned down|ruled out|committed to|"
        r"voted)\b|"
        r"\bfrom now(?: on)?\b|\bi(?:['’]ve)? quit\b|^(?:and |so |but )*(?:i|we) (?:take|do"
        r"|have|use|want|make) no more\b|\bit['’]s "
        r"going to be the\b|\bthe plan is\b|\bwe won['’]?t be\b|\bwe['’]re not\b.*\b(?:doing|using|"
        r"buying|taking)\b",
    ),
    _rule(
        "preference",
        0.85,
        r"^(?:and |but |oh |so )*never (?:before|after|on)\b|^(?:and |but |so )*(?:call|ring"
        "|text|come|email|phone) (?:after|before|"
        r"between)\b|"
        r"\b(?:before|after) \w+ (?:guy|person|girl|man|woman)\b|\b(?:i|we) (?:always )?pay "
        r"(?:by|in|with|cash)\b|\beverything by\b|"
        r"^(?:and |but )*(?:nothing|not anything) with\b|\bring (?:twice|three times|the "
        r"bell)\b|\b(?:text|email|call|"
        r"ring|message|phone|whatsapp) me (?:instead|only|on|at|rather|any ?time|first)\b"
        r"|\b(?:only|always|just|"
        r"please) (?:text|email|call|ring|use)\b|\b(?:don['’]?t|do not|never|please "
        "don['’]?t) (?:ever )?(?:call|ring|phone|"
        r"leave (?:a |me |any )?(?:voicemails?|messages?)|email|text|use|knock|contact)\b|"
        r"\buse (?:the|my) (?:cell|mobile|work|home|office|side|back|other|landline|email)\b"
        r"|\b(?:best|easiest|better|"
        r"quickest) (?:time|way|to reach|to get|to call|number)\b|\bnot before \w+|\bi "
        "don['’]?t (?:do|use|check|answer|"
        r"pick up) \w+|\bi (?:never|hardly ever|rarely) (?:pick up|answer|check|listen|use)\b"
        r"|\b(?:email|text|texts|phone|"
        r"mornings?|afternoons?|evenings?|weekends?|weekdays|after \w+|before \w+|(?:mon|tues"
        "|wednes|thurs|fri|satur|"
        "sun)days?)(?:['’]s| is| are| works?| suits?) (?:always |usually |much )?(?:best"
        "|better|easiest|easier|good|fine|"
        r"ideal|me best)(?: for (?:me|us))?\b|"
        r"\b(?:i|we) can(?: only|['’]?t| not|not) (?:do|manage|make|come|talk|take "
        r"calls)\b.*\b(?:mornings?|afternoons?|"
        r"evenings?|weekends?|weekdays|before|after|between|days)\b|\bdon['’]?t (?:work|suit) "
        r"for (?:me|us)\b|\b(?:email|text|"
        r"phone|letter|post)s? only\b|\bno (?:phone calls|calls|texts|emails|voicemails?"
        r"|letters|visits)\b|\bsend (?:it|them|"
        r"everything|things|letters|mail) to my\b|\b(?:to|use) my (?:work|school|office|other"
        "|personal|home|new) (?:email|"
        r"address|number|phone)\b|\bnot (?:by|via|over) (?:phone|email|post|text)\b",
    ),
    _rule(
        "preference",
        0.8,
        r"\bi(?:['’]d| would) (?:much |really |always )?(?:prefer|rather)\b|\bi (?:always "
        "|really |much |usually |do |"
        "just )*(?:prefer|like (?:it|my|to|the|them)|love (?:it|my|to|the)|hate|dislike|enjoy"
        "|can['’]?t stand|can['’]?t eat|"
        r"don['’]?t (?:like|eat|drink|want (?:any|to see|the \w+ again))|only (?:eat|drink|use"
        r"|want|take))\b|\b(?:favou?rite|"
        "vegetarian|vegan|gluten[- ]free|dairy[- ]free|kosher|halal|nut[- ]free|lactose|decaf"
        "|window seat|aisle seat|"
        r"non[- ]smoking|ground floor)\b|"
        r"\b(?:she|he|they|my \w+)(?: really| absolutely| just)? (?:hates?|loves?|prefers?"
        "|likes?|can['’]?t stand|"
        r"won['’]?t eat|only eats?|only drinks?)\b|^(?:and |but |oh |so |with )*no (?:nuts"
        "|onions?|dairy|gluten|milk|sugar|"
        "ice|garlic|mushrooms|meat|pork|shellfish|eggs|peanuts|cilantro|coriander|cheese|fish"
        r"|stairs|perfume)\b|\b(?:is|"
        r"are) (?:quite |more than )?enough for (?:me|us)\b|\bnot the \w+ (?:we|i) (?:used|had"
        r"|got|saw|went)\b|\b(?:speak up|"
        r"one good ear|hard of hearing|speak slowly|speak louder)\b|"
        r"\bi (?:always|usually|normally) (?:get|have|order|take|go (?:to|for|with)|use|drink"
        r"|sit|stay)\b|\bthe usual\b|"
        r"\b(?:organic|fragrance[- ]free|scent[- ]free|sugar[- ]free|oat milk|soy milk"
        "|decaffeinated|aisle|quiet (?:room|"
        "table)|high floor|low floor|firm pillow|same (?:one|doctor|room|driver|cleaner"
        "|stylist) (?:as|if)|male doctor|"
        r"female doctor|(?:a|any) (?:woman|female|man|male) (?:doctor|driver|therapist))\b"
        r"|\bi(?:['’]m| am) (?:very |really |"
        "quite |a bit )?(?:picky|fussy|particular|sensitive|left[- ]handed|colou?r ?blind"
        r"|scared of|afraid of)\b|"
        r"\bworks best for (?:me|us)\b|\bi can['’]?t (?:do|have|manage|handle|take) (?:stairs"
        "|spicy|dairy|gluten|lifts|milk|"
        r"aspirin|penicillin|ibuprofen|the noise)\b|\bi['’]m (?:not )?(?:a|an) (?:\w+ "
        r")?(?:person|fan|drinker|eater)\b",
    ),
    _rule(
        "technical",
        0.8,
        r"\b(?:the|an?) error (?:says|message|is|reads)\b|\b(?:says|shows|showing|displays) "
        r"(?:e|f|error|code|fault)[ -]?\w+|"
        r"\b(?:the|my|our) (?:car|van|truck|bike|unit|fridge|oven|dishwasher|washing machine"
        "|dryer|tv|phone|laptop|tablet|"
        "printer|boiler|router|heater|mower|camera)(?:['’]s| is| was) (?:a|an|the|from|on"
        r"|about|one of)\b|\bit['’]s (?:a|an|"
        r"the) (?:[\w-]+ ){0,2}(?:unit|machine|boiler|printer|router|laptop|engine|diesel"
        "|hybrid|van|truck|fridge|oven|"
        r"scooter|system)\b|\brunning (?:ubuntu|windows|linux|mac\w*|ios|android)\b"
        r"|\b(?:version|firmware|build|model|serial|"
        r"error code|error message|release) (?:number |is |says |of )?\w+|\b(?:windows|macos"
        "|mac os|ios|android|ubuntu|linux|"
        r"chrome|firefox|safari|outlook|office) (?:\d+|eleven|ten|seven|eight|twelve|thirteen"
        "|fourteen|fifteen|sixteen|pro|"
        r"\d{4})\b|"
        r"\b(?:postgres|mysql|mongo\w*|redis|kafka|kubernetes|docker|aws|azure|terraform"
        "|python|node|java|php|wordpress|"
        r"shopify|salesforce|sql server|oracle)\b|\b(?:thinkpad|macbook|imac|ipad|iphone"
        "|galaxy|pixel|chromebook|surface|xbox|"
        r"playstation|latitude|elitebook|laserjet|officejet|inspiron|raspberry pi)\b|"
        r"\b(?:it['’]s|it is|i have|i['’]ve got|we have|we['’]ve got|i drive|i['’]m on"
        "|we['’]re on|running|is) (?:a|an|the|on|"
        r"my) (?:old |new |\d{4} |twenty \w+ |nineteen \w+ |silver |black |white |blue |red "
        ")*(?:honda|toyota|ford|bmw|audi|"
        "volkswagen|vw|mercedes|tesla|nissan|mazda|subaru|hyundai|kia|volvo|skoda|fiat"
        "|renault|peugeot|jeep|chevy|chevrolet|"
        r"dodge|lexus|"
        "worcester|vaillant|bosch|baxi|samsung|lg|whirlpool|siemens|miele|dyson|hp|dell"
        "|lenovo|asus|acer|epson|canon|brother|"
        "netgear|linksys|cisco|tp-?link|combi|septic|heat pump|fibre|fiber|android|iphone|mac"
        r"|pc)\b|\blog says\b|"
        r"\b(?:staging|production|prod) (?:box|server|is|runs|database|on)\b|\bthe (?:log"
        "|screen|display|panel|light|"
        r"dashboard|app|machine) (?:says|shows|reads)\b|\b(?:i['’]m|we['’]re) (?:on|using"
        "|running) (?:a |an |the )?(?:mac|pc|"
        "windows|linux|chrome|android|version|iphone|laptop|tablet|old|new|fibre|fiber|wifi"
        r"|wi-fi|vpn)\b|\b(?:we|i) (?:use|"
        r"run|host|deploy)\b.*\b(?:server|software|system|app|database|cloud|version|cluster"
        r"|stack|laptop|platform|browser)\b|"
        r"\b(?:error|code|fault) [A-Za-z]{0,2}[- ]?\d+\b|\b(?:error|fault) code\b|\b(?:gas"
        "|electric|oil|diesel|petrol|hybrid|"
        "automatic|manual) (?:boiler|heater|car|engine|furnace|oven|stove|hob|cooker"
        r"|transmission|van|model)\b|\b(?:inch|"
        r"gigabytes?|gig|megabytes?|terabytes?|volts?|watts?|amp|horsepower|btu)\b|\b(?:serial"
        "|model|part|registration|reg|"
        r"vin|plate|license plate|asset tag)(?: number)?(?:['’]s| is)\b|\berror \w*\d+\b"
        r"|\b(?:router|modem|boiler|furnace|"
        r"server|printer|alternator|thermostat)(?:['’]s| is| was) (?:a|an|from|about|\w+ years)\b",
    ),
    _rule(
        "routine",
        0.8,
        rf"\b{_DAYS}\b|\b(?:bed|bath|dinner|lunch|tea|supper|breakfast|nap|school)(?: "
        r"?time)?(?:['’]s| is) at\b|\bevery (?:other |single "
        rf"|second )?(?:day|week|month|morning|afternoon|evening|night|year|(?:mon|tues|"
        "wednes|thurs|fri|satur|sun)day|weekend|two weeks|three months|six months|couple of"
        "|spring|summer|autumn|fall|winter|"
        r"christmas|time)\b|\b(?:once|twice|three times) (?:a|every) (?:day|week|month|year)\b|"
        r"\b(?:(?:i|we|he|she|they)(?:['’]m|['’]re|['’]s)?|my \w+) (?:usually|normally"
        "|generally|always|typically|tends? to|"
        r"is always|never)\b(?! (?:mind|got|had|did|been|asked|heard|said|told))|\b(?:naps?"
        "|works? (?:nights|days|shifts|"
        "from home|weekends|late|mornings)|on (?:night|day|early|late) shifts?|weekdays|on "
        "weekends|in the mornings|"
        r"most (?:days|mornings|nights|weeks|evenings|weekends))\b|\b(?:i|we|he|she)(?:['’]m"
        "|['’]re|['’]s| am| is|"
        " are)? (?:work|works|swim|swims|walk|walks|run|runs|train|trains|teach|teaches|meet"
        "|meets|eat|eats|start|starts|"
        "finish|finishes|get off|gets off|go to bed|take (?:it|them|my|the)|takes (?:it|them"
        "|his|her|the)|at work|on shift|"
        "in the office|in the shop|open|closed?|picks?|drops?|pray|prays|visit|visits) "
        r"(?:[\w ]{0,30} )?(?:at|until|till|"
        r"from|before|after|on|with) (?:\w+ ){0,2}(?:\w+day|noon|midnight|lunch|breakfast"
        "|dinner|school|work|one|two|three|"
        r"four|five|six|seven|eight|nine|ten|eleven|twelve|\d+|night|mornings?|evenings?)\b"
        r"|\b(?:first thing|"
        r"last thing) (?:every|in the|at)\b|\b(?:daily|weekly|monthly|fortnightly|yearly"
        r"|annually)\b|\bon the \w+ (?:food|"
        r"diet) now\b|\b(?:a|per) (?:day|week|month) since\b|\bi (?:get|wake) up at\b|\bby "
        "(?:six|five|seven|eight|"
        r"nine) (?:every|each)\b",
    ),
    _rule(
        "person",
        0.8,
        r"\b(?:allerg\w+|intoleran\w+|epi-?pen|wheelchairs?|walks with (?:a|the)|pregnant"
        "|expecting a|blind in|deaf|"
        "hearing aids?|pacemaker|walking frame|uses a (?:walker|cane|stick|frame)|crutches"
        "|on oxygen|on dialysis|service dog|"
        "guide dog|stroke|surgery|operation|hip replacement|blood thinners?|insulin|hard of "
        r"hearing|dyslexi\w+|stammer|"
        "come (?:up|out) in (?:hives|a rash|spots)|brings? me out in|reacts? (?:badly )?to"
        "|(?:can['’]?t|mustn['’]?t|shouldn['’]?t) have "
        r"(?!a\b|the\b|that\b|it\b)|inhaler|"
        "widow(?:er|ed)?|vegetarian|vegan|diabetic|high[- ]risk|bedridden|recovering from|in "
        "(?:the )?hospital|in a (?:care|"
        r"nursing) home|newborn|premature|disabled|disability|anaphyla\w+|due in (?:\w+))\b"
        r"|\b(?:i|we)(?:['’]ve got|['’]ve| got|"
        r" have) (?:a |an |two |three |four |five |twin |young |small |little |\d+ )+(?:kids?"
        "|children|boys|girls|sons?|"
        "daughters?|dogs?|cats?|babies|baby|toddlers?|toddler|grandkids|grandchildren|puppy"
        "|kitten|employees|staff|year old|"
        r"teenagers?|horses?)\b|\bthere(?:['’]s| are| is|['’]re) (?:just |only )?(?:two|three"
        r"|four|five|six|seven) of us\b|"
        r"\bi(?:['’]m| am) (?:his|her|their|the) (?:carer|caregiver|mother|father|mum|mom|dad"
        "|wife|husband|daughter|son|"
        r"guardian|landlord|tenant|owner|manager|assistant|executor)\b|"
        r"\bi (?:live|work) (?:in|"
        r"on|at|near|for) (?:the|a) \w+|\b(?:we|i)(?:['’]re|['’]m| are| am) expecting\b"
        r"|\b(?:he|she)(?:['’]s| is) (?:only |"
        "nearly |almost |about )?(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
        r"|\d+)\b|\bi(?:['’]m| am) (?:a|"
        "an) (?:nurse|teacher|doctor|driver|student|pensioner|single|retired|lawyer|chef"
        "|pilot|carer|veteran|widow|widower|"
        r"plumber|engineer|freelance\w*|contractor|landlord|tenant|vegetarian|vegan)\b"
        r"|\bi(?:['’]m| am) (?:retired|"
        "self[- ]employed|divorced|widowed|married|single|engaged|left[- ]handed|new (?:here"
        r"|in town|to the area))\b|"
        r"\bi(?:['’]m| am) (?:seventy|eighty|ninety|sixty|\d\d)(?:[- ]\w+)?(?: years old)?\b",
    ),
)
_EMOTIONAL = _Rule("emotional", 0.75, FEELING)
# "I live in Porto": the capital tells a place from "in a hurry".
_PLACED = Cue(
    r"\bi(?:['’]m| am| live| moved| work| teach|['’]ve moved)(?: all the way| based| living| "
    "working| over| out| here|"
    r" just| now| currently)* "
    r"(?:in|to|for|at|as a|near|here from) (?-i:[A-Z][\w'’]+)(?! time)\b",
)
# The same of an office, and where not even the caller is written large: then no word that
# describes is a place.
_PLACED_PLAINLY = Cue(
    r"\b(?:i|we|(?:our|my) (?:office|shop|clinic|surgery|company|firm|practice|school"
    "|warehouse|restaurant|studio))"
    r"(?:['’]ve| have| has)?(?: just| now)? (?:live|lives|moved|work|works)(?: out| over| now)? "
    r"(?:in|to|at|for) (?P<place>[a-zà-ÿ'’-]{3,})\b",
)
_ADDRESS = Cue(
    r"\bdot (?:com|net|org|co|edu|io|de|uk)\b|\b(?:row|hill|gardens|grove|mews|street|road"
    "|avenue|lane|drive|court|close|way|"
    "place|terrace|boulevard|square|crescent|apartment|flat|suite|unit|house number|number"
    "|address|e-?mail|post ?code|"
    "zip(?: code)?|phone|mobile|surname|last name|spelled|spelling|birth ?day|date of birth"
    r"|dot com|at gmail|account)\b",
)
_PUTS_RIGHT = Cue(
    r"\b(?:always been|should be|is wrong|it['’]s actually|actually it['’]s|used to be|not "
    r"(?:\d+|(?-i:[A-Z])\w+|\w+(?:teen|"
    "ty)|one|two|three|four|five|six|seven|eight|nine|ten)|no longer|old (?:one|address"
    "|number)|we moved|i moved|"
    "i['’]ve moved|has changed|changed|is now|that['’]s the old|wrong (?:address|number|email"
    r"|name|one)|with a [A-Z]\b|"
    r"misspelled|you have (?:me|it) (?:as|under|down)|on file)\b",
)
_STILL = Cue(
    r"\b(?:still|correct|right|is that|is it|i have you|we have you|on file|address is|email "
    r"is|number is)\b.*\?"
)
_REFUSES = Cue(r"(?:oh,? |um,? |sorry,? )*no\b")
_WITH_NUMBER = Cue(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|\w+ty)\b"
)
_DENIAL = Cue(r"(?:,| and|,? but|,? so) not (?:the |a |an |at |in |on )?[\w .'’@-]+$")
_WHICH = Cue(
    r"\b(?:which|what) (?:pharmacy|store|branch|location|shop|doctor|dentist|bank|office"
    "|clinic|hospital|airport|airline|size|"
    r"brand|colou?r|vet|stylist|provider)\b|\bwhere should (?:i|it|they|we) (?:go|send)\b"
    r"|\bdo you have a preference\b|"
    r"\bany (?:preferences?|dietary|allergies)\b",
)
_NAMES_SOMEONE = Cue(rf"\b(?i:my|our) (?:\w+ )?(?i:{RELATION}),? [A-Z]\w+", 0)
_POINTS_BACK = Cue(r"^(?:it|that|they|she|he|those|these)\b")
_IF = Cue(r"(?:(?:and|but|so|or|well|oh)[, ]+)*if\b")
_NEIGHBOURS = Cue(
    r"(?:my|our|the) (?:[\w-]+ )?(?:neighbou?rs?|friend|colleague|mate|cousin|pal|boss|coworker)\b"
)
_OF_THEM = Cue(r"(?:he|she|they)(?:['’]\w+)?\b")
# Preferences and family are shared; what is told of somebody's health, and of feelings,
# concerns the caller alone.
_HEALTH = Cue(
    r"\b(?:epi-?pen|wheelchairs?|pregnan\w+|blind in|deaf|hearing aids?|hard of hearing"
    "|pacemaker|walking frame|uses a (?:walker|cane|"
    "stick|frame)|crutches|on oxygen|dialysis|stroke|surgery|operation|hip replacement|blood "
    r"thinners?|insulin|inhaler|diabet\w+|"
    r"bedridden|recovering from|disab\w+|anaphyla\w+|in (?:the )?hospital|in a (?:care"
    r"|nursing) home|penicillin|ibuprofen)\b",
)
_LENGTH = 30
_WE = re.compile(r"(?<!what )\b(?:we|I)\b.+", re.I)
_LEAST_WORDS = 2


@dataclass(frozen=True, slots=True)
class Heard:
    """A caller's turn and what the agent had just said."""

    clauses: list[Clause]
    question: str


def find_facts(turns: list[Heard], misheard: list[str]) -> list[FactDraft]:
    found: list[FactDraft] = []
    denied = misheard + [
        word
        for heard in turns
        for clause in heard.clauses
        for word in values_denied(clause.text)
    ]
    for heard in turns:
        for draft in _of_turn(heard):
            kept = _without(draft, denied)
            if kept and not any(_says_again(kept, known) for known in found):
                found.append(kept)
    return found


def _without(fact: FactDraft, denied: list[str]) -> FactDraft | None:
    """What was put right somewhere in the call is not told here as it was first said."""
    text, words = erase(fact.text, denied), longest_without(fact.words, denied)
    if text == fact.text and words == fact.words:
        return fact
    enough = len(text.split()) > 1 and len(words.split()) > 1
    return (
        fact.model_copy(update={"text": text, "summary": text[:100], "words": words})
        if enough
        else None
    )


def draft(
    clause: Clause, siblings: list[Clause], category: Category, confidence: float
) -> FactDraft | None:
    """A fact resting on a clause, with the whole sentence as evidence where that is short and
    clean.
    """
    words = _evidence(clause, siblings)
    text = (
        _decided(words)
        if category == "decision"
        else tidy(_DENIAL.sub("", clause.text))
    )
    if len(text.split()) < 2:
        return None
    if _POINTS_BACK.match(text) and (matter := _matter(clause, siblings)):
        text = f"{matter}. {text}"
    sentiment: Sentiment = "negative" if category == "emotional" else "neutral"
    return FactDraft(
        category=category,
        text=text,
        summary=text if len(text) <= 100 else text[:100].rsplit(" ", 1)[0],
        visibility="private"
        if category == "emotional" or _HEALTH.search(f"{text} {words}")
        else "shared",
        confidence=confidence,
        sentiment=sentiment,
        turns=(clause.seq,),
        words=words,
    )


def _decided(words: str) -> str:
    """A decision is told as the sentence it was said in, without the request to note it."""
    return tidy(
        told.group() if find_trigger(words) and (told := _WE.search(words)) else words
    )


def _matter(clause: Clause, siblings: list[Clause]) -> str:
    """What "it" was: the clause before, where that is plain."""
    index = siblings.index(clause)
    before = siblings[index - 1] if index else None
    if (
        before is None
        or before.is_question
        or before.is_masked
        or not is_real(before)
        or find_call_off(before.text)
    ):
        return ""
    return tidy(before.text)


def _of_turn(heard: Heard) -> Iterator[FactDraft]:
    answered = _answer(heard)
    for clause in heard.clauses:
        if (
            clause.is_masked
            or (len(clause.body.split()) < _LEAST_WORDS and clause is not answered)
            or (clause.is_question and not _NAMES_SOMEONE.search(clause.text))
            or not is_real(clause)
            or _IF.match(clause.text)
            or is_broken_off(clause.text)
            or _is_taken_back(clause, heard.clauses)
            or _is_theirs(clause, heard.clauses)
        ):
            continue
        for category, confidence in _readings(clause, heard, answered):
            made = draft(clause, heard.clauses, category, confidence)
            if made and not (
                category == "decision"
                and len(made.text.split()) < 3
                and "stay" not in made.text
            ):
                yield made


def _is_theirs(clause: Clause, clauses: list[Clause]) -> bool:
    """What is said of somebody right after what they want: "My neighbour said she'd take him.

    But she's got birds."
    """
    before = clauses[: clauses.index(clause)][-1:]
    if _NEIGHBOURS.match(clause.body) and FAULT.occurs(clause.text):
        return True
    return bool(_OF_THEM.match(clause.body)) and any(
        is_others_wish(other.text) for other in before
    )


def _readings(
    clause: Clause, heard: Heard, answered: Clause | None
) -> Iterator[tuple[Category, float]]:
    text = clause.text
    seen: set[Category] = set()
    if _corrects(clause, heard):
        seen.add("correction")
        yield "correction", 0.8
    if is_about_someone(text):
        seen.add("person")
        yield "person", 0.85
    for rule in (*_RULES, _EMOTIONAL):
        if rule.category not in seen and (
            rule.pattern.occurs(text)
            or (rule.category == "person" and _tells_place(text))
        ):
            seen.add(rule.category)
            yield rule.category, rule.confidence
    if clause is answered and not seen:
        seen.add("preference")
        yield "preference", 0.7
    if not seen:
        yield from (
            (category, 0.6) for category in find_standing(clause, heard.question)
        )


def _tells_place(text: str) -> bool:
    if _PLACED.search(text):
        return True
    told = _PLACED_PLAINLY.search(text)
    return told is not None and (
        told["place"][0].isupper()
        or ("i" in text.split() and not has_descriptive_word([told["place"]]))
    )


def _corrects(clause: Clause, heard: Heard) -> bool:
    question = heard.question
    if not _ADDRESS.search(clause.text):
        return False
    if _PUTS_RIGHT.search(clause.text):
        return True
    agrees = re.match(
        r"(?:yes|yeah|yep|correct|right|that['’]s (?:right|correct|it))\b",
        clause.text,
        re.I,
    )
    told = _WITH_NUMBER.search(clause.text) or re.search(r"\bdot\b|@", clause.text)
    asked_back = _STILL.search(question) or (
        "?" in question and _REFUSES.match(heard.clauses[0].text)
    )
    return bool(asked_back and _ADDRESS.search(question) and told and not agrees)


def _answer(heard: Heard) -> Clause | None:
    """The clause that answers a question of choice, after any repair."""
    if not _WHICH.search(heard.question):
        return None
    clauses = [
        clause
        for clause in heard.clauses
        if len(tidy(clause.text).split()) >= 2
        and not clause.is_question
        and not REPAIRS.match(clause.text)
    ]
    return clauses[-1] if clauses else None


def _is_taken_back(clause: Clause, clauses: list[Clause]) -> bool:
    after = list(clauses[clauses.index(clause) + 1 :])[:1]
    return (
        any(REPAIRS.match(other.text) for other in after)
        and len(clause.text.split()) < 8
    ) or bool(
        find_call_off(clause.text)
        and not any(
            rule.pattern.occurs(clause.text)
            for rule in _RULES
            if rule.category == "preference"
        )
        and not is_about_someone(clause.text)
    )


def _evidence(clause: Clause, siblings: list[Clause]) -> str:
    sentence = [
        other
        for other in siblings
        if other.sentence == clause.sentence and other.seq == clause.seq
    ]
    clean = not any(
        not is_real(other) or find_call_off(other.text) or other.is_masked
        for other in sentence
        if other is not clause
    )
    text = visible(_DENIAL.sub("", after_repair(clause.text)))
    whole = sum(len(other.text.split()) for other in sentence)
    if (
        clean
        and len(sentence) > 1
        and whole <= _LENGTH
        and not clause.is_masked
        and after_repair(clause.whole) == clause.whole
        and not _DENIAL.search(clause.whole)
    ):
        return visible(clause.whole)
    return text


def _says_again(new: FactDraft, known: FactDraft) -> bool:
    return (
        new.category == known.category
        and overlap_coefficient(stems(new.text), stems(known.text)) >= 0.8
    )
