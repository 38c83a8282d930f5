"""Text made fit to be spoken: one sentence, nothing that a voice cannot say."""

import re
import unicodedata

# Emoji that Unicode does not class as "other symbol": joiners, selectors, skin tones, tags and a few marks and arrows.
_PICTURES = re.compile(
    "[\u200d\u203c\u2049\u20e3\u2194\u21a9\u21aa\u2934\u2935\u3030\ufe00-\ufe0f\U0001f000-\U0001faff\U000e0000-\U000e007f]"
)
_SPOKEN_SYMBOLS = frozenset("°")
_QUOTES = re.compile('["“”„‟«»‹›‚‛『』「」〝〞＂`´]')
_STRAY_APOSTROPHES = re.compile(r"(?<!\w)['‘’]|['‘’](?!\w)")
_END = re.compile(r"[.!?…]+[)\]]*(?=\s|$)|[。！？]+")
_TITLE = re.compile(r"(?:^|\W)(?:mr|mrs|ms|mx|dr|prof|st)\.$", re.IGNORECASE)
_SHORTENED = re.compile(r"(?:^|\W)(?:(?:[^\W\d_]\.)+[^\W\d_]|vs|no|approx)\.$", re.IGNORECASE)
_SALUTATION = re.compile(r"(?:hey|hi|hello|hiya|howdy|good (?:morning|afternoon|evening)|welcome back)\b(?:\W+\w+){0,3}\W*$", re.IGNORECASE)
# Words that lose their capital when they come to stand within a sentence; a name would not.
_LOWERED = frozenset(
    {
        *("a", "and", "any", "are", "can", "could", "did", "do", "does", "good", "great", "had", "has", "have", "hope", "how", "is"),
        *("it", "it's", "last", "let", "let's", "nice", "ready", "so", "still", "thanks", "that", "the", "this", "want"),
        *("was", "welcome", "were", "what", "what's", "when", "where", "who", "why", "will", "would", "you", "your"),
    }
)


def strip_unspoken(text: str) -> str:
    """Without emoji and quotation marks; the apostrophe of a word stays."""
    drawn = "".join(mark for mark in _PICTURES.sub("", text) if mark in _SPOKEN_SYMBOLS or unicodedata.category(mark) != "So")
    return " ".join(_STRAY_APOSTROPHES.sub("", _QUOTES.sub("", drawn)).split())


def first_sentence(text: str) -> str:
    """The first sentence; a salutation by itself is joined to what it leads up to: `Hey Bill, how was the soup?`"""
    first, rest = _split(text)
    if not rest or not _SALUTATION.match(first):
        return first
    word = rest.split(maxsplit=1)[0]
    begin = word.lower() if word.lower().strip(",") in _LOWERED else word
    return f"{first.rstrip('.!?…。！？ ')}, {begin}{_split(rest)[0][len(word) :]}"


def cut(text: str, longest: int) -> str:
    """At most `longest` characters, cut between words where there is a gap."""
    if len(text) <= longest:
        return text
    head = text[: longest + 1].rpartition(" ")[0] or text[:longest]
    return head.rstrip(" ,;:–—-(")


def _split(text: str) -> tuple[str, str]:
    for end in _END.finditer(text):
        head, rest = text[: end.end()], text[end.end() :].strip()
        if not rest or not _goes_on(head, rest):
            return head.strip(), rest
    return text, ""


def _goes_on(head: str, rest: str) -> bool:
    """Whether the full stop belongs to a word: `Dr. Brown`, `at 3 p.m. tomorrow`."""
    return bool(_TITLE.search(head)) or (rest[0].islower() and bool(_SHORTENED.search(head)))
