"""The time zone that a caller says they are in, as an IANA name."""

import re
from functools import cache
from importlib.resources import files
from zoneinfo import available_timezones

from aftercall.english.text import Plain
from aftercall.english.words import compile_pattern, vocabulary, word_list

_REGIONS = word_list(
    """
    Africa/ America/ Asia/ Atlantic/ Australia/ Europe/ Indian/ Pacific/
    """
)
# Cities in names of zones that are also plain words.
_VAGUE = vocabulary("center north south west east easter general knox vincennes")
_PLACE = r"(?P<place>[a-z]+(?: [a-z]+)?)"
_STANDARD = r"(?: standard| daylight)?"
_HOUR = r"(?:half past |quarter to |quarter past )?\d\S*(?: \d\d)?(?: am| pm| oclock)?"
_STATED = tuple(
    compile_pattern(pattern)
    for pattern in (
        rf"(?:i|we) (?:am|are)(?: still| now| back)? (?:on|in) {_PLACE}{_STANDARD} time",
        rf"(?:everything|all|it|things) (?:on|by|in|to) {_PLACE} time",
        r"(?:i|we) (?:am|are)(?: still| now| back)* on (?P<place>pacific|mountain|central|eastern)",
        rf"(?:go|going|work|working|run|live) (?:by|on|off) {_PLACE}{_STANDARD} time",
        rf"(?:my|our) (?:time zone|timezone|local time) is(?: now)?(?: the)? {_PLACE}",
        rf"(?:i|we) (?:am|are)(?: now)? in(?: the)? {_PLACE} time ?zone",
        rf"(?:at|after|before|around|by|from) {_HOUR} (?P<place>pacific|mountain|central|eastern)",
        rf"(?:at|after|before|around|by|from|^) ?{_HOUR} {_PLACE} time",
        rf"(?:so|and|but) {_PLACE} time$",
        rf"^(?:it is |that is |in |use |on )?{_PLACE} time(?= please| i am| for me| my time|$)",
    )
)
_MAY_STATE = re.compile(r"\btime|zone|pacific|mountain|central|eastern")
_OTHERS = compile_pattern(
    r"(?:if(?: i| we)?|he|she|they|his|her|their|my <kin>|used to)"
)


@cache
def _zones() -> dict[str, str]:
    lines = (
        files("aftercall.english").joinpath("zones.txt").read_text("utf-8").splitlines()
    )
    cities = {
        zone.rpartition("/")[2].replace("_", " ").lower(): zone
        for zone in sorted(available_timezones())
        if zone.startswith(_REGIONS)
    }
    spoken = {
        name.replace("_", " "): zone
        for zone, _, names in (line.partition(": ") for line in lines)
        for name in names.split()
    }
    return {name: zone for name, zone in cities.items() if name not in _VAGUE} | spoken


def find_zone(clause: Plain) -> str | None:
    """The zone that a clause states of the caller; somebody else's zone is none."""
    if not _MAY_STATE.search(clause.text):
        return None
    matches = (match for each in _STATED if (match := each.search(clause.text)))
    own = (each for each in matches if not _OTHERS.search(each.string[: each.start()]))
    zones = (_zone_of(match["place"]) for match in own)
    return next((zone for zone in zones if zone), None)


def _zone_of(place: str) -> str | None:
    return _zones().get(place) or _zones().get(place.rpartition(" ")[2])
