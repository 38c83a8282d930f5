"""How it sounds: things no voice can say, another language, too fast, too slow, too loud for
the line.
"""

import re
from collections.abc import Iterator

from aftercall.speech.sound import LOUDNESS
from aftercall.tester.finding import CallView, Finding
from aftercall.tester.phrases import words_of

_UNSPEAKABLE = re.compile(
    r"\*\*|```|^#{1,6} |\|.+\||\{\s*\"|</?[a-z]+>|https?://\S{25,}"
    r"|[\U0001F300-\U0001FAFF\u2600-\u27BF]",
    re.MULTILINE,
)
_ENGLISH = frozenset(
    [
        "the",
        "a",
        "an",
        "is",
        "are",
        "was",
        "you",
        "your",
        "i",
        "we",
        "can",
        "what",
        "how",
        "to",
        "of",
        "for",
        "and",
        "in",
        "on",
        "it",
        "that",
        "this",
        "please",
        "thank",
        "thanks",
        "yes",
        "no",
        "have",
        "do",
        "not",
        "with",
        "at",
        "my",
        "me",
        "help",
        "hello",
        "name",
        "will",
        "be",
        "or",
        "one",
    ]
)
_OTHERS = frozenset(
    [
        "el",
        "la",
        "los",
        "las",
        "es",
        "por",
        "que",
        "para",
        "gracias",
        "usted",
        "su",
        "de",
        "una",
        "como",
        "en",
        "le",
        "les",
        "des",
        "est",
        "pour",
        "vous",
        "merci",
        "je",
        "nous",
        "der",
        "die",
        "das",
        "und",
        "ist",
        "ich",
        "sie",
        "bitte",
        "danke",
        "wie",
        "kann",
        "nicht",
        "il",
        "per",
        "grazie",
        "sono",
        "che",
        "con",
        "buenos",
        "días",
        "bonjour",
        "guten",
    ]
)
SLOW_WPM, FAST_WPM = 70, 260
CLIPPED = 32_000


def find(view: CallView) -> Iterator[Finding]:
    for number, span in view.agent_turns():
        if found := _UNSPEAKABLE.search(span.text):
            yield view.finding(
                "unspeakable",
                "minor",
                "agent",
                f"said what no voice can say: {found.group(0)!r}",
                number,
            )
            break
    yield from _language(view)
    if view.record.line != "text":
        yield from _speed(view)
        yield from _clipping(view)


def _language(view: CallView) -> Iterator[Finding]:
    if view.scenario.language != "en":
        return
    for number, span in view.agent_turns():
        words = re.findall(r"\w+", span.text.lower())
        foreign = sum(word in _OTHERS and word not in _ENGLISH for word in words) + sum(
            not word.isascii() for word in words
        )
        if len(words) >= 4 and foreign >= 2 and foreign > sum(word in _ENGLISH for word in words):
            yield view.finding(
                "other_language", "critical", "agent", "answers in another language", number
            )
            return


def _speed(view: CallView) -> Iterator[Finding]:
    spans = [
        span
        for _, span in view.agent_turns()
        if len(words_of(span.text)) >= 5 and span.seconds > 0 and not span.is_estimated
    ]
    words, seconds = (
        sum(len(words_of(span.text)) for span in spans),
        sum(span.seconds for span in spans),
    )
    if words < 20:
        return
    pace = 60 * words / seconds
    if not SLOW_WPM <= pace <= FAST_WPM:
        yield view.finding("wrong_pace", "minor", "agent", f"speaks {pace:.0f} words a minute")


def _clipping(view: CallView) -> Iterator[Finding]:
    sound = view.record.agent_sound
    loud = [sample for sample in sound if sample != 0xFF]
    if loud and sum(LOUDNESS[sample] >= CLIPPED for sample in loud) / len(loud) > 0.05:
        yield view.finding("clipping", "minor", "agent", "too loud for the line")
