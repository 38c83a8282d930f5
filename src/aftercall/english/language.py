"""Which language a call is held in, told by its small words and its script."""

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from zoneinfo import available_timezones

from aftercall.english.text import Plain
from aftercall.english.words import (
    compile_pattern,
    vocabulary,
    word_list,
    word_table,
)

_SMALL_WORDS = {
    language: vocabulary(words) for language, words in word_table("small_words").items()
}
_SCRIPTS = (
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("ko", re.compile(r"[\uac00-\ud7af]")),
    ("zh", re.compile(r"[\u4e00-\u9fff]")),
    ("ru", re.compile(r"[\u0400-\u04ff]")),
    ("el", re.compile(r"[\u0370-\u03ff]")),
    ("ar", re.compile(r"[\u0600-\u06ff]")),
    ("he", re.compile(r"[\u0590-\u05ff]")),
    ("hi", re.compile(r"[\u0900-\u097f]")),
    ("th", re.compile(r"[\u0e00-\u0e7f]")),
)
_WORD = re.compile(r"[^\W\d_]+")
_ENOUGH = 3

LANGUAGES = {
    "ar": "Arabic",
    "de": "German",
    "el": "Greek",
    "en": "English",
    "es": "Spanish",
    "fr": "French",
    "he": "Hebrew",
    "hi": "Hindi",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "nl": "Dutch",
    "pl": "Polish",
    "pt": "Portuguese",
    "ru": "Russian",
    "th": "Thai",
    "zh": "Chinese",
}


def detect_language(texts: Iterable[str]) -> str:
    """The two-letter code; English unless another language is clearly ahead."""
    text = " ".join(texts)
    if not text.isascii():
        letters = sum(character.isalpha() for character in text)
        for language, script in _SCRIPTS:
            if letters and len(script.findall(text)) > letters * 0.3:
                return language
    words = Counter(_WORD.findall(text.lower()))
    hits = {
        language: sum(words[word] for word in small)
        for language, small in _SMALL_WORDS.items()
    }
    best = max(hits, key=lambda language: hits[language])
    return best if hits[best] >= _ENOUGH and hits[best] > hits["en"] * 1.3 else "en"


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
        rf"{_PLACE}{_STANDARD} time(?! ?zone)",
        r"(?:i|we) (?:am|are)(?: still| now| back)* on (?P<place>pacific|mountain|central|eastern)",
        rf"(?:my|our) (?:time zone|timezone|local time) is(?: now)?(?: the)? {_PLACE}",
        rf"(?:i|we) (?:am|are)(?: now)? in(?: the)? {_PLACE} time ?zone",
        rf"(?:at|after|before|around|by|from) {_HOUR} (?P<place>pacific|mountain|central|eastern)",
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
    matches = (match for each in _STATED for match in each.finditer(clause.text))
    own = (each for each in matches if not _OTHERS.search(each.string[: each.start()]))
    zones = (_zone_of(match["place"]) for match in own)
    return next((zone for zone in zones if zone), None)


def _zone_of(place: str) -> str | None:
    return _zones().get(place) or _zones().get(place.rpartition(" ")[2])
