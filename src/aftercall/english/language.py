"""Which language a call is held in, told by its small words and its script."""

import re
from collections import Counter
from collections.abc import Iterable

_SMALL_WORDS = {
    "en": (
        "the and is you i to it a my for of that in on can please with have not we this what "
        "yes no thanks hello would could need want"
    ),
    "de": (
        "der die das und ist ich nicht sie ein eine zu es mit wir haben bitte für auf auch ja "
        "nein danke mein kann noch guten tag möchte"
    ),
    "fr": (
        "le la les et est je vous un une des pour pas que nous avec mon ma oui non merci "
        "bonjour dans sur voudrais il elle ce"
    ),
    "es": (
        "el la los las y es yo un una de que por para con no mi sí gracias hola buenos días "
        "quiero quisiera está usted en muy"
    ),
    "it": (
        "il la gli e è io un una di che per con non mi sì grazie ciao buongiorno vorrei sono "
        "della nel anche questo"
    ),
    "pt": (
        "o a os as e é eu um uma de que por para com não meu minha sim obrigado obrigada olá "
        "bom dia queria está você em"
    ),
    "nl": (
        "de het een en is ik niet u je van te dat met voor op mijn ja nee dank hallo graag "
        "wil kan ook zijn we"
    ),
    "pl": (
        "nie tak jest się to na do z w i dzień dobry proszę dziękuję mam chciałbym chciałabym "
        "czy mój moja jak"
    ),
}
_SETS = {language: frozenset(words.split()) for language, words in _SMALL_WORDS.items()}
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
        for language, small in _SETS.items()
    }
    best = max(hits, key=lambda language: hits[language])
    return best if hits[best] >= _ENOUGH and hits[best] > hits["en"] * 1.3 else "en"
