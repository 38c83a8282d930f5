"""The time zone a caller says they are in, as an IANA name."""

from functools import cache
from zoneinfo import available_timezones

from aftercall.llm.rules.cue import Cue, Table

# Spoken names beside the cities that name zones themselves.
_SPOKEN = {
    "America/Los_Angeles": (
        "pacific|pst|pdt|west coast|california|san francisco|san "
        "diego|seattle|portland|oregon|nevada|las vegas"
    ),
    "America/Denver": "mountain|mst|mdt|colorado|utah|salt lake city|salt lake|montana|wyoming",
    "America/Chicago": (
        "central|cst|cdt|texas|dallas|houston|austin|minneapolis|minnesota|milwaukee|wisconsin|nashville|st "
        "louis"
    ),
    "America/New_York": (
        "eastern|est|edt|east "
        "coast|boston|miami|atlanta|washington|philadelphia|pittsburgh|brooklyn|manhattan|baltimore"
    ),
    "America/Phoenix": "arizona",
    "America/Anchorage": "alaska",
    "Pacific/Honolulu": "hawaii|hawaiian",
    "America/Halifax": "atlantic|nova scotia",
    "America/St_Johns": "newfoundland",
    "America/Toronto": "ottawa|montreal|quebec",
    "America/Edmonton": "calgary|alberta",
    "America/Sao_Paulo": "rio|rio de janeiro|brasilia",
    "Europe/London": "uk|british|britain|england|scotland|scottish|wales|manchester|edinburgh|glasgow|cardiff|bristol|leeds",
    "UTC": "gmt|greenwich|utc",
    "Europe/Dublin": "irish|ireland|cork|galway",
    "Europe/Berlin": "central european|cet|cest|german|germany|munich|hamburg|frankfurt|cologne",
    "Europe/Paris": "french|france|lyon|marseille",
    "Europe/Madrid": "spanish|spain|barcelona|valencia|seville",
    "Europe/Rome": "italian|italy|milan|naples|turin",
    "Europe/Zurich": "swiss|switzerland|geneva|basel|bern",
    "Europe/Lisbon": "portugal|porto",
    "Europe/Amsterdam": "dutch|holland|rotterdam|the hague",
    "Europe/Warsaw": "polish|poland|krakow",
    "Europe/Athens": "greek|greece",
    "Europe/Istanbul": "turkish|turkey|ankara",
    "Asia/Kolkata": "india|indian|mumbai|delhi|bangalore|bengaluru|chennai|pune|hyderabad",
    "Asia/Shanghai": "beijing|china|chinese|shenzhen",
    "Asia/Tokyo": "japan|japanese|osaka|kyoto",
    "Asia/Seoul": "korea|korean",
    "Asia/Ho_Chi_Minh": "saigon|vietnam|hanoi",
    "Asia/Dubai": "abu dhabi",
    "Africa/Johannesburg": "cape town|south africa|durban|pretoria",
    "Africa/Lagos": "nigeria|nigerian|abuja",
    "Africa/Nairobi": "kenya|kenyan",
    "Australia/Brisbane": "queensland",
    "Australia/Perth": "western australia",
    "Pacific/Auckland": "wellington|new zealand|christchurch",
}
_ALIASES = {name: zone for zone, names in _SPOKEN.items() for name in names.split("|")}
_REGIONS = (
    "Africa/",
    "America/",
    "Asia/",
    "Atlantic/",
    "Australia/",
    "Europe/",
    "Indian/",
    "Pacific/",
)
# Zone names that are also words or countries with several zones: too little to go by.
_TOO_VAGUE = frozenset(
    {
        "center",
        "winamac",
        "north",
        "south",
        "west",
        "east",
        "easter",
        "general",
        "same",
        "local",
        "this",
        "that",
        "lunch",
        "first",
    }
)

_PLACE = r"(?P<place>[A-Za-z]+(?:[ _][A-Za-z]+)?)"
_STATED = Table(
    (Cue(pattern), None)
    for pattern in (
        (
            r"\b(?:i|we)(?:['’]m|['’]re| am| are)(?: still| now| back| all)? (?:on|in) "
            rf"{_PLACE}(?: standard| daylight)? time\b"
        ),
        (
            rf"\b(?:go|going|work|working|run|live|operate) (?:by|on|off) {_PLACE}(?: standard| "
            r"daylight)? time\b"
        ),
        rf"\bmy (?:time ?zone|local time) is (?:now )?(?:the )?{_PLACE}",
        rf"\btime ?zone(?: is|['’]s|,)? (?:now )?{_PLACE}",
        rf"\b(?:i|we)(?:['’]m|['’]re| am| are)(?: still| now)? in (?:the )?{_PLACE} time ?zone\b",
        (
            r"\b(?:at|after|before|around|by) [\w ]{1,14}? (?P<place>pacific|mountain|central"
            "|eastern|gmt|utc|cet|"
            r"[ecmp][sd]t)\b(?! (?:railway|station|park))"
        ),
        rf"^(?:\w+[,.]? )?{_PLACE} time,? (?:please|i['’]m|for me|my time)\b",
        (
            rf"\b{_PLACE} time,? (?:that['’]s where i|which is where i|i live here|because i live"
            r"|since i['’]m)\b"
        ),
        rf"\b(?:that['’]s|it['’]s|in|on|to|by|and|but|so|use|say) {_PLACE} time\b",
        (
            r"\b(?:at|after|before|around|by|from) (?:half past |quarter (?:to|past) "
            r")?[\w:]{1,6}(?: thirty|"
            rf" fifteen)?(?: ?[ap]\.?m\.?)?,? {_PLACE} time\b"
        ),
        (
            r"\b(?:in the )?(?P<place>pacific|mountain|central|eastern)(?: standard| daylight)? "
            r"time(?: ?zone)?\b"
        ),
        rf"^(?:[\w:']+ ){{0,4}}{_PLACE} time$",
        rf", {_PLACE} time[.!]?$",
        rf"\bmy time\b.*\bi['’]m in {_PLACE}",
        (
            r"\b(?:noon|midday|midnight|o['’]?clock|[ap]\.?m\.?|half past \w+|\d+|one|two"
            "|three|four|five|six|seven|eight|nine|ten|eleven|"
            rf"twelve) {_PLACE} time\b"
        ),
        (
            r"\b(?:i['’]m|we['’]re|it['’]s)(?: still| now| back)*(?: on)? (?P<place>pacific"
            "|mountain|central european|central|eastern|"
            r"gmt|utc|cet)\b"
            "(?=[,.!]|$| (?:here|by the way|now|over here|out here|so|and|till|until|if|but"
            r"|for)\b)"
        ),
    )
)
_NOT_MINE = Cue(
    r"\b(?:if|he|she|they|his|her|their|flight|lands?|used to|not|was|were|my (?:wife|husband"
    "|boss|son|daughter|brother|"
    r"sister|team|client|office))\b",
)


# "I'm in Winnipeg, so it's still Friday here": where one is counts once one speaks of the time
# there.
_BASED = Cue(
    r"\b(?:i|we)(?:['’]m|['’]re| am| are)(?: \w+)? (?:in|from|over in|out in|here in) "
    "(?P<place>(?-i:[A-Z][a-z]+(?: [A-Z][a-z]+)?))|"
    r"\b(?P<here>(?-i:[A-Z][a-z]+)),? (?:isn['’]t it|here)\b|\bhere in "
    r"(?P<in>(?-i:[A-Z][a-z]+(?: [A-Z][a-z]+)?))|\bcalling from "
    r"(?P<from>(?-i:[A-Z][a-z]+(?: [A-Z][a-z]+)?))",
)
_TIME_THERE = Cue(
    r"\b(?:it['’]?s|it is|that['’]s|already|still|only|now|gone|nearly|half past"
    r"|just)\b[^.!?]{0,30}\b(?:mon|tues|wednes|thurs|fri|satur|"
    r"sun)?"
    r"(?:day|morning|afternoon|evening|night|midnight|o['’]?clock|[ap]\.?m|one|two|three|four"
    "|five|six|seven|eight|nine|ten|eleven|"
    r"twelve)\b"
    r"[^!?]{0,20}\b(?:here|for me|over here|my end|where i am)\b|\bmy time\b|\btime "
    r"difference\b|\btime ?zone\b",
)


def zone_of_place(turn: str) -> str | None:
    """The zone of the city a caller says they are in, where they also speak of the time there."""
    based = _BASED.search(turn) if _TIME_THERE.search(turn) else None
    place = (
        (based["place"] or based["here"] or based["in"] or based["from"])
        if based
        else ""
    )
    return _cities().get(place.lower()) if place else None


@cache
def _cities() -> dict[str, str]:
    names = (
        name for name in sorted(available_timezones()) if name.startswith(_REGIONS)
    )
    return {name.rsplit("/", 1)[1].replace("_", " ").lower(): name for name in names}


def zone_of(place: str) -> str | None:
    """ "Berlin" is Europe/Berlin, "Mountain" America/Denver; None when the name is not surely a
    zone.
    """
    key = " ".join(place.lower().replace("_", " ").split())
    for candidate in (key, key.rpartition(" ")[2], key.partition(" ")[0]):
        if (
            candidate
            and candidate not in _TOO_VAGUE
            and (zone := _ALIASES.get(candidate) or _cities().get(candidate))
        ):
            return zone
    return None


def stated_zone(clause: str) -> str | None:
    """The zone that this clause of the caller's claims for the caller."""
    for pattern, _ in _STATED.of(clause):
        if (
            (match := pattern.search(clause))
            and not _NOT_MINE.search(clause[: match.end()])
            and (zone := zone_of(match["place"]))
        ):
            return zone
    return None
