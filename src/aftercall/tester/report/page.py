"""One HTML page with verdicts, transcripts, timings, waveforms and players, without scripts."""

import struct
from base64 import b64encode
from collections.abc import Iterator, Sequence
from html import escape

from aftercall.speech.sound import MULAW_TO_LINEAR, SAMPLE_RATE_HZ, cached_loudness
from aftercall.tester.bug_ledger import Bug
from aftercall.tester.finding import CallView, Finding
from aftercall.tester.record import CallRecord
from aftercall.tester.redact import Redactor
from aftercall.tester.report.bugs import bugs_of
from aftercall.tester.report.run import (
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
    caller = _path(record.caller_sound, total_s, up=True) or _blocks(
        record, "caller", total_s
    )
    agent = _path(record.agent_sound, total_s, up=False) or _blocks(
        record, "agent", total_s
    )
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


def _path(sound: bytes, total_s: float, *, up: bool) -> str:
    if not sound:
        return ""
    size = max(1, int(total_s * SAMPLE_RATE_HZ / COLUMNS))
    sign = -1 if up else 1
    points = []
    for column, at in enumerate(range(0, len(sound), size)):
        piece = sound[at : at + min(size, 160)]
        height = min(1.0, cached_loudness(piece) / FULL_SCALE_LEVEL) * HEIGHT
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


MAX_SOUND_BYTES = 9_000_000
_EIGHT_BITS = bytes((sample >> 8) + 128 for sample in MULAW_TO_LINEAR)
_STYLE = """
:root{color-scheme:light dark;--ink:#1c2430;--pale:#667085;--line:#d7dce3;--bad:#b42318;
--good:#067647;--warn:#b54708;
--caller:#3565c0;--agent:#b0641d;--back:#fff}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ee;--pale:#98a2b3;--line:#363e4a;
--bad:#f97066;--good:#47cd89;--warn:#fdb022;
--caller:#84adff;--agent:#f7b27a;--back:#14181f}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--back);max-width:1000px;
margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}table{border-collapse:collapse;width:100%}
td,th{text-align:left;padding:.25rem .6rem;border-bottom:1px solid var(--line);vertical-align:top}
.passed{color:var(--good)}.failed{color:var(--bad)}.inconclusive,.re-listen{color:var(--warn)}
.pale{color:var(--pale)}
summary{cursor:pointer;padding:.35rem 0}svg{width:100%;height:90px}audio{width:100%}
details{border-top:1px solid var(--line)}
.time{white-space:nowrap;font-variant-numeric:tabular-nums}
.marked td:last-child{border-left:3px solid var(--bad)}
.caller td:nth-child(2){color:var(--caller)}.agent td:nth-child(2){color:var(--agent)}
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
        yield f"<h2>Bugs</h2><table><tr>{head}</tr>"
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
        yield "</table>"

    def _run_part(self, item: ScenarioScore, *, is_first: bool) -> Iterator[str]:
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
    form = struct.pack("<IHHIIHH", 16, 1, 2, SAMPLE_RATE_HZ, 2 * SAMPLE_RATE_HZ, 2, 8)
    head = struct.pack("<4sI8s", b"RIFF", 36 + len(sound), b"WAVEfmt ")
    return head + form + struct.pack("<4sI", b"data", len(sound)) + bytes(sound)
