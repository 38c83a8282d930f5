"""How the agent sounds: text no voice can say, another language, wrong pace, too loud."""

import re
from collections.abc import Iterator

from aftercall.speech.sound import LOUDNESS
from aftercall.tester.finding import CallView, Finding
from aftercall.tester.phrases import word_set, words_of

_UNSPEAKABLE = re.compile(
    r"\*\*|```|^#{1,6} |\|.+\||\{\s*\"|</?[a-z]+>|https?://\S{25,}"
    r"|[\U0001F300-\U0001FAFF\u2600-\u27BF]",
    re.MULTILINE,
)
_ENGLISH = word_set("""
    the a an is are was you your i we can what how to of for and in on it that this please thank
    thanks yes no have do not with at my me help hello name will be or one
""")
_OTHER_LANGUAGES = word_set("""
    el la los las es por que para gracias usted su de una como en le les des est pour vous merci
    je nous der die das und ist ich sie bitte danke wie kann nicht il per grazie sono che con
    buenos días bonjour guten
""")
SLOW_WPM, FAST_WPM = 70, 260
CLIPPED_LEVEL = 32_000
MAX_CLIPPED_SHARE = 0.05


def find(view: CallView) -> Iterator[Finding]:
    for number, span in view.agent_turns():
        if found := _UNSPEAKABLE.search(span.text):
            text = f"said what no voice can say: {found.group(0)!r}"
            yield view.finding("unspeakable", text, number)
            break
    if view.scenario.language == "en":
        yield from _language(view)
    if view.record.line != "text":
        yield from _pace(view)
        yield from _clipping(view)


def _language(view: CallView) -> Iterator[Finding]:
    for number, span in view.agent_turns():
        words = re.findall(r"\w+", span.text.lower())
        english = sum(word in _ENGLISH for word in words)
        foreign = sum(
            word in _OTHER_LANGUAGES and word not in _ENGLISH for word in words
        )
        foreign += sum(not word.isascii() for word in words)
        if len(words) >= 4 and foreign >= 2 and foreign > english:
            yield view.finding("other_language", "answers in another language", number)
            return


def _pace(view: CallView) -> Iterator[Finding]:
    words, seconds = 0, 0.0
    for _, span in view.agent_turns():
        count = len(words_of(span.text))
        if count >= 5 and span.seconds > 0 and not span.is_estimated:
            words += count
            seconds += span.seconds
    if words >= 20 and not SLOW_WPM <= 60 * words / seconds <= FAST_WPM:
        yield view.finding(
            "wrong_pace", f"speaks {60 * words / seconds:.0f} words a minute"
        )


def _clipping(view: CallView) -> Iterator[Finding]:
    samples = [sample for sample in view.record.agent_sound if sample != 0xFF]
    clipped = sum(LOUDNESS[sample] >= CLIPPED_LEVEL for sample in samples)
    if samples and clipped / len(samples) > MAX_CLIPPED_SHARE:
        yield view.finding("clipping", "too loud for the line")
