"""One HTML page with verdicts, transcripts, timings, waveforms and players, without scripts."""

import wave
from base64 import b64encode
from collections.abc import Iterator, Sequence
from html import escape
from io import BytesIO

from aftercall.speech.sound import MULAW_TO_LINEAR, SAMPLE_RATE_HZ, cached_loudness
from aftercall.tester.bugs import Bug, bugs_of
from aftercall.tester.finding import CallView, Finding
from aftercall.tester.record import CallRecord, Side
from aftercall.tester.redact import Redactor
from aftercall.tester.run_report import (
    RunReport,
    rates_of,
    speak_calibration,
    speak_latency,
)
from aftercall.tester.score import ScenarioScore

WIDTH = 1000
HEIGHT = 40
COLUMNS = 500
FULL_SCALE_LEVEL = 6000.0


def waveform_svg(record: CallRecord, marks: Sequence[float] = ()) -> str:
    total_s = max(record.duration_s, 0.001)
    caller = _path(record, "caller", total_s)
    agent = _path(record, "agent", total_s)
    lines = seconds = ""
    for at_s in marks:
        x = f"{WIDTH * at_s / total_s:.0f}"
        lines += f'<line x1="{x}" x2="{x}" y1="-44" y2="44" stroke="var(--bad)"/>'
    for at in range(0, int(total_s) + 1, _step(total_s)):
        x = f"{WIDTH * at / total_s:.0f}"
        seconds += f'<text x="{x}" y="44" font-size="10" fill="var(--pale)">{at}</text>'
    return (
        f'<svg viewBox="0 -45 {WIDTH} 90" preserveAspectRatio="none" role="img" '
        'aria-label="waveform">'
        f'<path d="{caller}" fill="var(--caller)"/><path d="{agent}" fill="var(--agent)"/>'
        f'<line x1="0" x2="{WIDTH}" y1="0" y2="0" stroke="var(--line)"/>{lines}{seconds}</svg>'
    )


def _step(total_s: float) -> int:
    return next(step for step in (5, 10, 30, 60, 300, 100_000) if total_s / step <= 20)


def _path(record: CallRecord, who: Side, total_s: float) -> str:
    """The caller upwards, the agent downwards; blocks for turns without a recording."""
    sound = record.caller_sound if who == "caller" else record.agent_sound
    sign = -1 if who == "caller" else 1
    bars = [
        (span.start_s, span.end_s, 25.0) for span in record.spans if span.who == who
    ]
    if sound:
        size = max(1, int(total_s * SAMPLE_RATE_HZ / COLUMNS))
        bars = [
            (
                at / SAMPLE_RATE_HZ,
                (at + size) / SAMPLE_RATE_HZ,
                _height(sound, at, size),
            )
            for at in range(0, len(sound), size)
        ]
    scale = WIDTH / total_s
    return "".join(
        f"M{scale * start_s:.0f} 0V{sign * height:.0f}H{scale * end_s:.0f}V0"
        for start_s, end_s, height in bars
        if height >= 0.5
    )


def _height(sound: bytes, at: int, size: int) -> float:
    piece = sound[at : at + min(size, 160)]
    return min(1.0, cached_loudness(piece) / FULL_SCALE_LEVEL) * HEIGHT


MAX_SOUND_BYTES = 9_000_000
_EIGHT_BITS = bytes((sample >> 8) + 128 for sample in MULAW_TO_LINEAR)
# The colours and forms of the pages (web/static/aftercall.css); a report is one file.
_STYLE = """
:root{color-scheme:light dark;--paper:#f7f6f3;--sheet:#fff;--ink:#1c1917;--pale:#5d5750;
--line:#e4e0d9;--tint:#f0eee9;--bad:#b91c1c;--good:#15803d;--warn:#a16207;
--caller:#4338ca;--agent:#0f766e}
@media(prefers-color-scheme:dark){:root{--paper:#161412;--sheet:#201d1a;--ink:#f3f0ea;
--pale:#b3aca2;--line:#38332e;--tint:#2a2622;--bad:#fca5a5;--good:#4ade80;--warn:#fbbf24;
--caller:#a5b4fc;--agent:#5eead4}}
*{box-sizing:border-box}
body{font:1rem/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;
color:var(--ink);background:var(--paper);max-width:74rem;margin:0 auto;
padding:2rem clamp(1rem,4vw,3rem) 4rem}
h1{font-size:1.75rem;line-height:1.2;letter-spacing:-.01em;margin:0 0 .6rem;
overflow-wrap:anywhere}
h2{font-size:1.02rem;margin:2rem 0 .7rem}
table{border-collapse:collapse;width:100%;font-size:.92rem}
td,th{text-align:left;vertical-align:top;padding:.5rem .8rem .5rem 0;
border-top:1px solid var(--line);overflow-wrap:break-word}
th{border-top:0;color:var(--pale);font-weight:500}
code{background:var(--tint);padding:.1em .35em;border-radius:.3em}
.passed{color:var(--good)}.failed{color:var(--bad)}.inconclusive,.re-listen{color:var(--warn)}
.pale{color:var(--pale)}.scroll{overflow-x:auto}.scroll table{min-width:40rem}
summary{cursor:pointer}svg{width:100%;height:90px}audio{width:100%}
.card,details{background:var(--sheet);border:1px solid var(--line);border-radius:.9rem;
padding:.8rem 1.2rem;margin-bottom:.8rem}
.time{white-space:nowrap;font-variant-numeric:tabular-nums}
td:last-child{overflow-wrap:anywhere}
.marked td:last-child{border-left:3px solid var(--bad);padding-left:.6rem}
.caller td:nth-child(2){color:var(--caller)}.agent td:nth-child(2){color:var(--agent)}
:focus-visible{outline:3px solid var(--agent);outline-offset:2px;border-radius:.3rem}
"""


def html_page(run: RunReport, bugs: Sequence[Bug], redactor: Redactor) -> str:
    page = _Page(run, bugs, redactor)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        'content="width=device-width">'
        f"<title>{escape(run.target)}</title>"
        f"<style>{_STYLE}</style></head><body>{''.join(page.parts())}</body></html>"
    )


class _Page:
    def __init__(self, run: RunReport, bugs: Sequence[Bug], redactor: Redactor) -> None:
        self._run = run
        self._bugs = bugs_of(run, bugs)
        self._redactor = redactor
        self._sound = 0

    def text(self, words: str) -> str:
        return escape(self._redactor.clean(words))

    def parts(self) -> Iterator[str]:
        run = self._run
        yield f"<h1>Test of {escape(run.target)}</h1>"
        yield f'<p>{len(run.scored)} runs: <b class="passed">{run.passed} passed</b>, '
        yield f'<b class="failed">{run.failed} failed</b>, '
        yield f"{run.undecided} undecided, in {run.seconds:.1f} s. "
        if rates := rates_of(run):
            yield f"{rates.sentence.capitalize()}."
        figures = escape(f"{speak_latency(run)}; {speak_calibration(run)}")
        yield f'</p><p class="pale">{figures}.</p>'
        yield from self._bug_table()
        yield "<h2>Runs</h2>"
        for _, items in run.by_scenario():
            for item in items:
                yield from self._run_part(item, is_first=item is items[0])

    def _bug_table(self) -> Iterator[str]:
        if not self._bugs:
            yield "<p>No bugs of the agent were found.</p>"
            return
        titles = ("severity", "kind", "what", "seen", "fewest steps")
        head = "".join(f"<th>{title}</th>" for title in titles)
        yield f"<h2>Bugs</h2><div class='card scroll'><table><tr>{head}</tr>"
        for bug in self._bugs:
            steps = (
                self.text("; ".join(bug.steps))
                or '<span class="pale">not looked for</span>'
            )
            runs = f"{bug.runs} run{'s' * (bug.runs != 1)}"
            since = f"since <span class=time>{escape(bug.first_seen[:10])}</span>"
            seen = f"{bug.seen} × in {runs}<br>{since}"
            cells = (bug.severity, escape(bug.kind), self.text(bug.text), seen, steps)
            yield f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
        yield "</table></div>"

    def _run_part(self, item: ScenarioScore, *, is_first: bool) -> Iterator[str]:
        """One run, folded in unless it failed; sound for the first run only."""
        state = " open" if item.verdict == "failed" and is_first else ""
        yield f'<details{state}><summary><b class="{item.verdict}">{item.verdict}</b> '
        yield f"{escape(item.scenario.name)}, run {item.run} "
        yield f"<span class=pale>{self.text(item.scenario.goal)}</span></summary>"
        for checked in item.criteria:
            mark = {"met": "✓", "missed": "✗"}.get(checked.state, "?")
            yield f"<div>{mark} {self.text(checked.name)}</div>"
        for finding in item.findings:
            if finding.severity != "info":
                yield self._finding(finding)
        for record in item.records:
            view = CallView(record, item.scenario)
            yield from self._call(view, item.findings, has_sound=is_first)
        yield "</details>"

    def _finding(self, finding: Finding) -> str:
        turns = ", ".join(str(turn) for turn in finding.turns)
        place = f"call {finding.call}"
        if turns:
            place = (
                f"turn{'s' * (len(finding.turns) > 1)} {turns}, {finding.at_s:.1f} s"
            )
        shade = "failed" if finding.is_bug else "pale"
        about = f"{finding.severity} · {finding.who} · {escape(finding.kind)}"
        return (
            f'<div class="{shade}">{about}: {self.text(finding.text)} ({place})</div>'
        )

    def _call(
        self, view: CallView, findings: Sequence[Finding], *, has_sound: bool
    ) -> Iterator[str]:
        """The waveform with a mark for each bug, a player, and the turns."""
        record = view.record
        yield f'<p class="pale">Call {record.number} <code>{record.id}</code>: '
        yield f"{record.outcome}, {record.duration_s:.1f} s, "
        yield f"ended by {record.ended_by} ({self.text(record.end_why)})</p>"
        bugs = [
            finding
            for finding in findings
            if finding.call == record.number and finding.is_bug
        ]
        yield waveform_svg(record, [finding.at_s for finding in bugs])
        if has_sound and record.agent_sound:
            yield self._player(record)
        yield from self._turns(
            view, {turn for finding in bugs for turn in finding.turns}
        )

    def _turns(self, view: CallView, marked: set[int]) -> Iterator[str]:
        """Every turn with its times; for answers, how long the caller waited."""
        waits = {
            exchange.agent[0]: f"{exchange.latency_s:.2f} s"
            for exchange in view.exchanges
            if exchange.latency_s is not None
        }
        yield (
            "<table><tr class=pale><th></th><th></th><th>heard at</th><th>after</th><th></th></tr>"
        )
        for number, span in enumerate(view.spans, 1):
            about = "about " if span.is_estimated else ""
            shade = " marked" if number in marked else ""
            yield f'<tr class="{span.who}{shade}"><td class=pale>{number}</td><td>{span.who}</td>'
            yield f"<td class='pale time'>{about}{span.start_s:.2f}–{span.end_s:.2f}</td>"
            has_wait = number in waits
            yield (
                f"<td class='pale time'>{waits[number]}</td>"
                if has_wait
                else "<td></td>"
            )
            yield f"<td>{self.text(span.text)}"
            if span.confidence is not None:
                yield f" <span class=pale>{span.confidence:.2f}</span>"
            yield "</td></tr>"
        yield "</table>"

    def _player(self, record: CallRecord) -> str:
        """Both channels; turns with redacted words are silent."""
        sound = _eight_bit_wav(*silence_redacted(record, self._redactor))
        self._sound += len(sound)
        if self._sound > MAX_SOUND_BYTES:
            path = f"calls/{record.id}.wav"
            return f'<p class="pale">Sound: <a href="{path}">{path}</a></p>'
        note = ""
        if record.is_read_out:
            note = " (read out by the tester: this line carries words only)"
        source = f"data:audio/wav;base64,{b64encode(sound).decode()}"
        player = f'<audio controls preload="none" src="{source}"></audio>'
        return f'{player}<span class="pale">{note}</span>'


def silence_redacted(record: CallRecord, redactor: Redactor) -> tuple[bytes, bytes]:
    """Both channels, silent where words were taken out of the transcript."""
    channels = {
        "caller": bytearray(record.caller_sound),
        "agent": bytearray(record.agent_sound),
    }
    for span in record.spans:
        if redactor.clean(span.text) != span.text:
            start, end = (
                int(span.start_s * SAMPLE_RATE_HZ),
                int(span.end_s * SAMPLE_RATE_HZ) + 1,
            )
            channel = channels[span.who]
            end = min(end, len(channel))
            channel[start:end] = b"\xff" * max(0, end - start)
    return bytes(channels["caller"]), bytes(channels["agent"])


def _eight_bit_wav(left: bytes, right: bytes) -> bytes:
    """Two channels of 8 bits: half the size of the recording beside it."""
    length = max(len(left), len(right))
    sound = bytearray(2 * length)
    sound[0::2] = left.ljust(length, b"\xff").translate(_EIGHT_BITS)
    sound[1::2] = right.ljust(length, b"\xff").translate(_EIGHT_BITS)
    file = BytesIO()
    with wave.open(file, "wb") as wav:
        wav.setparams((2, 1, SAMPLE_RATE_HZ, length, "NONE", ""))
        wav.writeframes(sound)
    return file.getvalue()
