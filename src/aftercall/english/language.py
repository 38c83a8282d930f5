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
    best = max(hits, key=hits.__getitem__)
    return best if hits[best] >= _ENOUGH and hits[best] > hits["en"] * 1.3 else "en"


_REGIONS = word_list(
    """
    Africa/ America/ Asia/ Atlantic/ Australia/ Europe/ Indian/ Pacific/
    """
)
# Cities in names of zones that are also plain words.
_VAGUE = vocabulary("center north south west east easter general knox vincennes")
_STATED = compile_pattern(
    r"(?P<place>[a-z]+(?: [a-z]+)?)(?: standard| daylight)? time(?! ?zone)"
    r"|(?:(?:i|we) (?:am|are)(?: still| now| back)* on|(?:my|our) time ?zone is)"
    r" (?P<zone>pacific|mountain|central|eastern)"
)
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
    for match in _STATED.finditer(clause.text):
        place = match["place"] or match["zone"]
        zone = _zones().get(place) or _zones().get(place.rpartition(" ")[2])
        if zone and not _OTHERS.search(clause.text[: match.start()]):
            return zone
    return None
