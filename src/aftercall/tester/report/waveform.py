"""A call as a picture: the caller above the line, the agent below it, marks where something was found."""

from collections.abc import Sequence

from aftercall.speech.sound import RATE, level
from aftercall.tester.record import CallRecord

WIDTH = 1000
HEIGHT = 40
COLUMNS = 500
LOUDEST = 6000.0


def waveform_svg(record: CallRecord, marks: Sequence[float] = ()) -> str:
    total_s = max(record.duration_s, 0.001)
    caller = _path(record.caller_sound, total_s, up=True) or _blocks(record, "caller", total_s)
    agent = _path(record.agent_sound, total_s, up=False) or _blocks(record, "agent", total_s)
    lines = "".join(
        f'<line x1="{WIDTH * at / total_s:.0f}" x2="{WIDTH * at / total_s:.0f}" y1="-44" y2="44" stroke="var(--bad)"/>' for at in marks
    )
    seconds = "".join(
        f'<text x="{WIDTH * at / total_s:.0f}" y="44" font-size="10" fill="var(--pale)">{at}</text>'
        for at in range(0, int(total_s) + 1, _step(total_s))
    )
    return (
        f'<svg viewBox="0 -45 {WIDTH} 90" preserveAspectRatio="none" role="img" aria-label="waveform">'
        f'<path d="{caller}" fill="var(--caller)"/><path d="{agent}" fill="var(--agent)"/>'
        f'<line x1="0" x2="{WIDTH}" y1="0" y2="0" stroke="var(--line)"/>{lines}{seconds}</svg>'
    )


def _step(total_s: float) -> int:
    return next(step for step in (5, 10, 30, 60, 300, 100_000) if total_s / step <= 20)


def _path(sound: bytes, total_s: float, *, up: bool) -> str:
    if not sound:
        return ""
    size = max(1, int(total_s * RATE / COLUMNS))
    sign = -1 if up else 1
    points = []
    for column, at in enumerate(range(0, len(sound), size)):
        piece = sound[at : at + min(size, 160)]
        height = min(1.0, level(piece) / LOUDEST) * HEIGHT
        if height >= 0.5:
            left, right = column * WIDTH / COLUMNS, (column + 1) * WIDTH / COLUMNS
            points.append(f"M{left:.0f} 0V{sign * height:.0f}H{right:.0f}V0")
    return "".join(points)


def _blocks(record: CallRecord, who: str, total_s: float) -> str:
    sign = -1 if who == "caller" else 1
    return "".join(
        f"M{WIDTH * span.start_s / total_s:.0f} 0V{sign * 25}H{WIDTH * span.end_s / total_s:.0f}V0"
        for span in record.spans
        if span.who == who
    )
