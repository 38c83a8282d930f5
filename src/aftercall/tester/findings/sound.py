"""How the agent's sound is: clipped, chopped, noise behind it, or no speech at all.

Only on lines that carry the agent's own sound. On a phone the carrier may be the cause.
"""

import math
from collections.abc import Iterator
from itertools import pairwise
from statistics import quantiles

from aftercall.speech.sound import FRAME_BYTES, FRAME_S, measure_loudness
from aftercall.tester.finding import CallView, Finding
from aftercall.tester.scenario import Who

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
SAMPLED_FRAMES = 4  # every fourth frame tells as much as all


def find(view: CallView) -> Iterator[Finding]:
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


def _crossings(frame: bytes) -> float:
    """The share of samples whose sign differs from the sample before."""
    changes = sum((one ^ other) & 0x80 != 0 for one, other in pairwise(frame))
    return changes / (len(frame) - 1)
