"""NEXT_GREETING.txt: the first sentence of a caller's next call.

Written after a call, used once, expired after 30 days.
"""

import re
import unicodedata
from datetime import datetime, timedelta
from typing import TypeVar

from aftercall.log import get_logger
from aftercall.model.people import NAMELESS, find_greeted_name, replace_old_name
from aftercall.workspace import files
from aftercall.workspace.markdown import bare_value, replace_undecodable
from aftercall.workspace.paths import WorkspacePerson
from aftercall.workspace.user_md import UserProfile

# Emoji that are not "other symbol" in Unicode: joiners, selectors, skin tones, tags, some arrows.
_PICTURES = re.compile(
    "[\u200d\u203c\u2049\u20e3\u2194\u21a9\u21aa\u2934\u2935"
    "\u3030\ufe00-\ufe0f\U0001f000-\U0001faff\U000e0000-\U000e007f]"
)
_SPOKEN_SYMBOLS = frozenset("°")
_QUOTES = re.compile('["“”„‟«»‹›‚‛『』「」〝〞＂`´]')
_STRAY_APOSTROPHES = re.compile(r"(?<!\w)['‘’]|['‘’](?!\w)")
_END = re.compile(r"[.!?…]+[)\]]*(?=\s|$)|[。！？]+")
_TITLE = re.compile(r"(?:^|\W)(?:mr|mrs|ms|mx|dr|prof|st)\.$", re.IGNORECASE)
_SHORTENED = re.compile(
    r"(?:^|\W)(?:(?:[^\W\d_]\.)+[^\W\d_]|vs|no|approx)\.$", re.IGNORECASE
)
_SALUTATION = re.compile(
    "(?:hey|hi|hello|hiya|howdy|good (?:morning|afternoon|evening)|welcome "
    r"back)\b(?:\W+\w+){0,3}\W*$",
    re.IGNORECASE,
)
# Words that lose their capital inside a sentence; names do not.
_LOWERED_WORDS = (
    "a and any are can could did do does good great had has have hope how is it it's last let "
    "let's nice ready so still thanks that the this want was welcome were what what's when "
    "where who why will would you your"
)
_LOWERED = frozenset(_LOWERED_WORDS.split())


def strip_unspoken(text: str) -> str:
    """Removes emoji and quotation marks, keeps apostrophes within words."""
    drawn = "".join(
        mark
        for mark in _PICTURES.sub("", text)
        if mark in _SPOKEN_SYMBOLS or unicodedata.category(mark) != "So"
    )
    return " ".join(_STRAY_APOSTROPHES.sub("", _QUOTES.sub("", drawn)).split())


def first_sentence(text: str) -> str:
    """The first sentence. A salutation is joined to the next: `Hey Bill, how was the soup?`"""
    first, rest = _split(text)
    if not rest or not _SALUTATION.match(first):
        return first
    word = rest.split(maxsplit=1)[0]
    begin = word.lower() if word.lower().strip(",") in _LOWERED else word
    return f"{first.rstrip('.!?…。！？ ')}, {begin}{_split(rest)[0][len(word) :]}"


def truncate(text: str, max_chars: int) -> str:
    """At most `max_chars` characters, cut between words if possible."""
    if len(text) <= max_chars:
        return text
    head = text[: max_chars + 1].rpartition(" ")[0] or text[:max_chars]
    return head.rstrip(" ,;:–—-(")


def _split(text: str) -> tuple[str, str]:
    for end in _END.finditer(text):
        head = text[: end.end()]
        rest = text[end.end() :].strip()
        if not rest or not _goes_on(head, rest):
            return head.strip(), rest
    return text, ""


def _goes_on(head: str, rest: str) -> bool:
    """Whether the full stop belongs to a word: `Dr. Brown`, `at 3 p.m. tomorrow`."""
    return bool(_TITLE.search(head)) or (
        rest[0].islower() and bool(_SHORTENED.search(head))
    )


MAX_GREETING_CHARS = 200
MAX_NAME_CHARS = 100  # of them
LIFETIME = timedelta(days=30)

T = TypeVar("T")

_log = get_logger("workspace")


def clean_greeting(text: str) -> str | None:
    """One sentence of at most 200 characters without quotes or emoji; None if nothing is left."""
    spoken = strip_unspoken(
        bare_value(text.lstrip("#> \t\r\n"))[: 10 * MAX_GREETING_CHARS]
    )
    greeting = truncate(first_sentence(spoken), MAX_GREETING_CHARS)
    return greeting if any(mark.isalnum() for mark in greeting) else None


def save_greeting(person: WorkspacePerson, text: str, now: datetime) -> str | None:
    """Saves a greeting for the next call over an unused one. The file's date is its date."""
    greeting = clean_greeting(text)
    if greeting:
        files.write(person.greeting, greeting + "\n", now)
    return greeting


def claim_greeting(person: WorkspacePerson, now: datetime) -> str | None:
    """Removes and returns the greeting unless it has expired. Of two calls, one gets it."""
    return _open_greeting(files.claim(person.greeting), now)


def peek_greeting(person: WorkspacePerson, now: datetime) -> str | None:
    """What `claim_greeting` would return, without removing it."""
    return _open_greeting(files.read_dated(person.greeting), now)


def _open_greeting(saved: files.DatedText | None, now: datetime) -> str | None:
    if saved is None or now - saved[1] > LIFETIME:
        return None
    return clean_greeting(replace_undecodable(saved[0]))


def choose_greeting(saved: str | None, profile: UserProfile, configured: str) -> str:
    """The saved greeting, with the name as known by now; else by name; else the configured."""
    name = strip_unspoken(profile.spoken_name or "").rstrip(" .,;:!?")
    name = truncate(name, MAX_NAME_CHARS)
    if not saved:
        return f"Hey {name}!" if name else configured
    if name and saved.startswith(NAMELESS):
        named = f"Hey {name}, {saved.removeprefix(NAMELESS)}"
        return truncate(named, MAX_GREETING_CHARS)
    old = find_greeted_name(saved)
    return replace_old_name(saved, old, profile.name, profile.call_name)
