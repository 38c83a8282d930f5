"""How the agent speaks: what no voice can say, another language, a wrong pace.

And how it sounds, on lines that carry the agent's own sound: clipped, chopped, noise behind it,
or no speech at all. On a phone the carrier may be the cause.
"""

import math
import re
from collections.abc import Iterator
from itertools import pairwise
from statistics import quantiles

from aftercall.english.language import LANGUAGES, detect_language
from aftercall.speech.sound import (
    FRAME_BYTES,
    FRAME_S,
    LOUDNESS,
    SAMPLE_RATE_HZ,
    measure_loudness,
)
from aftercall.tester.claims import HOLLOW
from aftercall.tester.finding import CallView, Findings
from aftercall.tester.phrases import sentences_of, word_set, words_of
from aftercall.tester.scenario import Who
from aftercall.tester.slots import DAYS, HOUR_WORDS, MONTHS

_UNSPEAKABLE = re.compile(r"https?://\S{25,}|[\U0001F300-\U0001FAFF\u2600-\u27BF]")
# what was meant for a machine: tool calls, markup, empty templates
_MARKUP = re.compile(
    r"```|\{\s*[\"'][\w -]+[\"']\s*:|</?[a-z][\w:-]*(?:\s[^<>]*)?/?>|<\|.*?\|>"
    r"|\{\{.*?\}\}|\$?\{[a-z_.]+\}|\b[a-z]+(?:_[a-z]+)+\b|\b\w+\(\s*(?:\w+\s*=|[\"'{])"
    r"|\[(?:[A-Z][A-Z_ ]{2,}|/?[a-z]+[_:= ][^\]]*|[a-z]{3,})\]|&(?:amp|lt|gt|nbsp|quot);"
    r"|\bundefined\b|\bNaN\b|\[object \w+\]|\b(?:tool|function) ?call\b:?"
    r"|\b(?:backslash|newline|curly|json)s?\b|\bhashtag hashtag\b"
    r"|\b(?:asterisk|underscore|semicolon)s?\b(?=.*\b(?:asterisk|underscore|semicolon)s?\b)"
    r"|\b(?:open|close|left|right|square|angle) (?:bracket|brace|parenthes[ie]s|paren)s?\b"
    r"|\*\*|(?:^|\s)#{1,6} \w|\|.+\||\*[a-z][a-z ]{2,20}\*|\b\w+=[\w\"']|\\n"
    r"|\bTraceback\b|\b\w+(?:Error|Exception): "
)
_ENGLISH = word_set("""
    the a an is are was you your i we can what how to of for and in on it that this please thank
    thanks yes no have do not with at my me help hello name will be or one i'm i'll i've i'd
    you're we're we'll we've that's it's what's there here am has had was were if but so just
    from by as they them he she his her all any some more time when where which who would could
    should may let get got like know need want see call calling back good great okay sure day
    today out up down about then than been our us its were doctor sorry anything else
""")
_MORE_ENGLISH = word_set("""
    zero oh days weeks hours minutes working number street takes costs dollars pounds percent
""")
_ANY_ENGLISH = _ENGLISH | _MORE_ENGLISH | {*HOLLOW, *HOUR_WORDS, *DAYS, *MONTHS}
_OTHER_LANGUAGES = word_set("""
    el la los las es por que para gracias usted su de una como en le les des est pour vous merci
    je nous der die das und ist ich sie bitte danke wie kann nicht il per grazie sono che con
    buenos días bonjour guten muchas hasta luego adiós señor señora tardes noches está muy bien
    favor beaucoup bonne journée revoir avec très vielen dank wiedersehen tschüss schönen noch
    mille arrivederci buona giornata obrigado obrigada tchau até dank wel tot ziens dziękuję
    widzenia proszę tak spasibo
""")
SLOW_WPM, FAST_WPM = 70, 260
MIN_LANGUAGE_WORDS = 4
MIN_UNKNOWN_WORDS = 6
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")


def find(view: CallView) -> Findings:
    yield from _markup(view)
    yield from _language(view)
    if view.record.line != "text":
        yield from _pace(view)
    yield from _sound(view)


def _markup(view: CallView) -> Findings:
    for pattern, kind, what in (
        (_MARKUP, "reads_markup", "read out what is meant for a machine"),
        (_UNSPEAKABLE, "unspeakable", "said what no voice can say"),
    ):
        for number, span in view.agent_turns():
            if found := pattern.search(span.text):
                text = f"{what}: {found.group(0)[:40]!r}"
                yield view.finding(kind, text, number)
                break


def _language(view: CallView) -> Findings:
    """Speaks another language than the caller, in a turn or in a sentence of it."""
    wanted = view.scenario.language
    for number, span in view.agent_turns():
        spoken = _spoken_language(span.text)
        if spoken in ("", wanted):
            parts = (_spoken_language(part) for part in sentences_of(span.text))
            others = (part for part in parts if part not in ("", wanted))
            spoken = next(
                (part for part in others if part != "?" or not spoken), spoken
            )
        if spoken and spoken != wanted and (wanted == "en" or spoken != "?"):
            name = LANGUAGES.get(spoken, "another language")
            text = f"answers in {name}; the call is in {LANGUAGES.get(wanted, wanted)}"
            yield view.finding("other_language", text, number)
            return


def _spoken_language(text: str) -> str:
    """The language of a turn, `?` for an unknown one, empty for too few words to tell."""
    words = _WORD.findall(text.lower())
    if len(words) < MIN_LANGUAGE_WORDS:
        return ""
    found = detect_language([text])
    english = sum(word in _ANY_ENGLISH for word in words)
    foreign = sum(word in _OTHER_LANGUAGES and word not in _ENGLISH for word in words)
    foreign += sum(not word.isascii() for word in words)
    if found == "en" and foreign >= 2 and foreign > english:
        return "?"
    plain = sum(word[:1].islower() for word in _WORD.findall(text))
    if found == "en" and english == 0 and plain >= MIN_UNKNOWN_WORDS:
        return "?"
    return found if found != "en" or english else ""


def _pace(view: CallView) -> Findings:
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


_LOUDEST_CODES = (0x00, 0x80)  # of μ-law
_SILENT_CODES = (0x7F, 0xFF)
MAX_CLIPPED_SHARE = 0.03
MIN_SPEECH_LEVEL = 300  # of 32,767; quieter frames are no speech
MIN_SPEECH_S = 1.0
MAX_GAP_FRAMES = 4
MAX_GAPS_PER_S = 4.0
MIN_SIGNAL_TO_NOISE_DB = 12.0
NOISE_CROSSINGS = 0.35  # sign changes per sample: speech has fewer, noise about half
NOISE_SHARE = 0.7
PAUSE_FRAMES = 15  # before a first word
MAX_QUIET_LEVEL = 30
MIN_SOUND_LEVEL = MAX_QUIET_LEVEL  # of a sample: a louder frame has one
ONSET_S = 0.04
MAX_STEP = 0.7  # the first sample against the level of the first sounds
MIN_CUT_ONSETS = 2
MAX_CUT_SHARE = 0.4
SAMPLED_FRAMES = 4  # every fourth frame tells as much as all


def _sound(view: CallView) -> Findings:
    sound = view.record.agent_sound
    if view.record.line == "text" or not sound:
        return
    frames = [
        sound[at : at + FRAME_BYTES]
        for at in range(0, len(sound) - FRAME_BYTES + 1, FRAME_BYTES)
    ]
    levels = [measure_loudness(frame) for frame in frames]
    loud = [level for level in levels if level > MIN_SPEECH_LEVEL]
    if len(loud) * FRAME_S < MIN_SPEECH_S:
        return
    who: Who = "unknown" if view.record.line == "phone" else "agent"
    faults = (
        _clipping(sound),
        _gaps(levels),
        _noise(levels),
        _garbage(frames, levels),
        _cut_onsets(sound, levels),
    )
    for kind, text in (fault for fault in faults if fault is not None):
        yield view.finding(kind, text, who=who)


def _clipping(sound: bytes) -> tuple[str, str] | None:
    heard = len(sound) - sum(sound.count(code) for code in _SILENT_CODES)
    share = sum(sound.count(code) for code in _LOUDEST_CODES) / max(1, heard)
    if share <= MAX_CLIPPED_SHARE:
        return None
    return "clipping", f"the sound is clipped: {share:.0%} of it is at the limit"


def _gaps(levels: list[float]) -> tuple[str, str] | None:
    """Holes of a few frames in the middle of loud sound: packets that never came."""
    loud_at = [at for at, level in enumerate(levels) if level > MIN_SPEECH_LEVEL]
    holes = [
        (one, other)
        for one, other in pairwise(loud_at)
        if 1 < other - one <= MAX_GAP_FRAMES + 1
        and max(levels[one + 1 : other]) < 0.05 * min(levels[one], levels[other])
    ]
    rate = len(holes) / (len(loud_at) * FRAME_S)
    if rate <= MAX_GAPS_PER_S:
        return None
    return "choppy", f"the sound is chopped: {rate:.1f} holes in a second of speech"


def _noise(levels: list[float]) -> tuple[str, str] | None:
    """The level of the quietest tenth against the loudest."""
    tenths = quantiles(levels, n=10)
    if tenths[0] <= 0 or tenths[-1] <= 0:
        return None
    ratio_db = 20 * math.log10(tenths[-1] / tenths[0])
    if ratio_db >= MIN_SIGNAL_TO_NOISE_DB:
        return None
    return "noisy", f"noise behind the agent: speech is only {ratio_db:.0f} dB louder"


def _garbage(frames: list[bytes], levels: list[float]) -> tuple[str, str] | None:
    loud = [
        frame
        for frame, level in zip(frames, levels, strict=True)
        if level > MIN_SPEECH_LEVEL
    ][::SAMPLED_FRAMES]
    noise = sum(_crossings(frame) > NOISE_CROSSINGS for frame in loud)
    if noise < NOISE_SHARE * len(loud):
        return None
    return "garbled", "the sound is noise, not speech; is its format the line's?"


def _cut_onsets(sound: bytes, levels: list[float]) -> tuple[str, str] | None:
    """First words that start in the middle of a wave: what came before it is missing.

    A mouth or a voice starts from nothing, within a few samples. One start in fifty does not,
    so several must show it.
    """
    steps = list(_measure_steps(sound, levels))
    cut = sum(step > MAX_STEP for step in steps)
    if cut < MIN_CUT_ONSETS or cut < MAX_CUT_SHARE * len(steps):
        return None
    text = f"the start of the words is missing: {cut} of {len(steps)} starts are cut"
    return "cut_onset", text


def _measure_steps(sound: bytes, levels: list[float]) -> Iterator[float]:
    """For each start after a pause, how high its first sample is against what follows."""
    length = round(ONSET_S * SAMPLE_RATE_HZ)
    quiet_frames = 0
    for number, level in enumerate(levels):
        if level <= MAX_QUIET_LEVEL:
            quiet_frames += 1
            continue
        if quiet_frames >= PAUSE_FRAMES:
            begin = (number - 1) * FRAME_BYTES  # the start may be in the frame before
            while LOUDNESS[sound[begin]] <= MIN_SOUND_LEVEL:
                begin += 1
            onset_level = measure_loudness(sound[begin : begin + length])
            if onset_level > MIN_SPEECH_LEVEL:
                yield LOUDNESS[sound[begin]] / onset_level
        quiet_frames = 0


def _crossings(frame: bytes) -> float:
    """The share of samples whose sign differs from the sample before."""
    changes = sum((one ^ other) & 0x80 != 0 for one, other in pairwise(frame))
    return changes / (len(frame) - 1)
