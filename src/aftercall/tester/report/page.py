"""One HTML page with everything in it: verdicts, transcripts, timings, waveforms and players; no script, nothing fetched."""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from html import escape

from aftercall.speech.sound import LINEAR, RATE
from aftercall.tester.finding import Finding, View
from aftercall.tester.ledger import Bug
from aftercall.tester.record import CallRecord
from aftercall.tester.redact import Redactor
from aftercall.tester.report.bugs import bugs_of
from aftercall.tester.report.run import Run, rates_of, speak_calibration, speak_latency
from aftercall.tester.report.waveform import waveform_svg
from aftercall.tester.score import Scored

MOST_SOUND = 9_000_000
_EIGHT_BITS = bytes((sample >> 8) + 128 for sample in LINEAR)
_STYLE = """
:root{color-scheme:light dark;--ink:#1c2430;--pale:#667085;--line:#d7dce3;--bad:#b42318;--good:#067647;--warn:#b54708;
--caller:#3565c0;--agent:#b0641d;--back:#fff}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ee;--pale:#98a2b3;--line:#363e4a;--bad:#f97066;--good:#47cd89;--warn:#fdb022;
--caller:#84adff;--agent:#f7b27a;--back:#14181f}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--back);max-width:1000px;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}table{border-collapse:collapse;width:100%}
td,th{text-align:left;padding:.25rem .6rem;border-bottom:1px solid var(--line);vertical-align:top}
.passed{color:var(--good)}.failed{color:var(--bad)}.inconclusive,.re-listen{color:var(--warn)}.pale{color:var(--pale)}
summary{cursor:pointer;padding:.35rem 0}svg{width:100%;height:90px}audio{width:100%}details{border-top:1px solid var(--line)}
.time{white-space:nowrap;font-variant-numeric:tabular-nums}.marked td:last-child{border-left:3px solid var(--bad)}
.caller td:nth-child(2){color:var(--caller)}.agent td:nth-child(2){color:var(--agent)}
"""


def html_page(run: Run, bugs: Sequence[Bug], redactor: Redactor) -> str:
    page = _Page(run, bugs, redactor)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(run.target)}</title>"
        f"<style>{_STYLE}</style></head><body>{''.join(page.parts())}</body></html>"
    )


class _Page:
    def __init__(self, run: Run, bugs: Sequence[Bug], redactor: Redactor) -> None:
        self._run = run
        self._bugs = bugs_of(run, bugs)
        self._redactor = redactor
        self._sound = 0

    def text(self, words: str) -> str:
        return escape(self._redactor.clean(words))

    def parts(self) -> Iterator[str]:
        run = self._run
        yield f"<h1>Test of {escape(run.target)}</h1>"
        yield f'<p>{len(run.scored)} runs: <b class="passed">{run.passed} passed</b>, <b class="failed">{run.failed} failed</b>, '
        yield f"{len(run.scored) - run.passed - run.failed} undecided, in {run.seconds:.1f} s. "
        if rates := rates_of(run):
            yield f"{rates.sentence.capitalize()}."
        yield f'</p><p class="pale">{escape(speak_latency(run))}; {escape(speak_calibration(run))}.</p>'
        yield from self._bug_table()
        yield "<h2>Runs</h2>"
        for _, items in run.by_scenario():
            for item in items:
                yield from self._run_part(item, is_first=item is items[0])

    def _bug_table(self) -> Iterator[str]:
        if not self._bugs:
            yield "<p>No bugs of the agent were found.</p>"
            return
        yield "<h2>Bugs</h2><table><tr><th>severity</th><th>kind</th><th>what</th><th>seen</th><th>fewest steps</th></tr>"
        for bug in self._bugs:
            steps = self.text("; ".join(bug.steps)) or '<span class="pale">not looked for</span>'
            runs = f"{bug.runs} run{'s' * (bug.runs != 1)}"
            seen = f"{bug.seen} × in {runs}<br>since <span class=time>{escape(bug.first_seen[:10])}</span>"
            cells = (bug.severity, escape(bug.kind), self.text(bug.text), seen, steps)
            yield f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
        yield "</table>"

    def _run_part(self, item: Scored, *, is_first: bool) -> Iterator[str]:
        yield f'<details{" open" if item.verdict == "failed" and is_first else ""}><summary><b class="{item.verdict}">{item.verdict}</b> '
        yield f"{escape(item.scenario.name)}, run {item.run} <span class=pale>{self.text(item.scenario.goal)}</span></summary>"
        for checked in item.criteria:
            yield f"<div>{'✓' if checked.state == 'met' else '✗' if checked.state == 'missed' else '?'} {self.text(checked.name)}</div>"
        for finding in item.findings:
            if finding.severity != "info":
                yield self._finding(finding)
        for record in item.records:
            yield from self._call(View(record, item.scenario), item.findings, has_sound=is_first)
        yield "</details>"

    def _finding(self, finding: Finding) -> str:
        turns = ", ".join(str(turn) for turn in finding.turns)
        place = f"turn{'s' * (len(finding.turns) > 1)} {turns}, {finding.at_s:.1f} s" if turns else f"call {finding.call}"
        shade = "failed" if finding.is_bug else "pale"
        return (
            f'<div class="{shade}">{finding.severity} · {finding.who} · {escape(finding.kind)}: {self.text(finding.text)} ({place})</div>'
        )

    def _call(self, view: View, findings: Sequence[Finding], *, has_sound: bool) -> Iterator[str]:
        record = view.record
        yield f'<p class="pale">Call {record.number} <code>{record.id}</code>: {record.outcome}, {record.duration_s:.1f} s, '
        yield f"ended by {record.ended_by} ({self.text(record.end_why)})</p>"
        bugs = [finding for finding in findings if finding.call == record.number and finding.is_bug]
        yield waveform_svg(record, [finding.at_s for finding in bugs])
        if has_sound and record.agent_sound:
            yield self._player(record)
        yield from self._turns(view, {turn for finding in bugs for turn in finding.turns})

    def _turns(self, view: View, marked: set[int]) -> Iterator[str]:
        """Every turn with its times; for answers, how long the caller waited."""
        waits = {exchange.agent[0]: exchange.latency_s for exchange in view.exchanges if exchange.latency_s is not None}
        yield "<table><tr class=pale><th></th><th></th><th>heard at</th><th>after</th><th></th></tr>"
        for number, span in enumerate(view.spans, 1):
            sure = f" <span class=pale>{span.confidence:.2f}</span>" if span.confidence is not None else ""
            about = "about " if span.is_estimated else ""
            times = f"{about}{span.start_s:.2f}–{span.end_s:.2f}"
            cells = (f"<td class=pale>{number}</td>", f"<td>{span.who}</td>", f"<td class='pale time'>{times}</td>")
            wait = f"<td class='pale time'>{waits[number]:.2f} s</td>" if number in waits else "<td></td>"
            shade = " marked" if number in marked else ""
            yield f'<tr class="{span.who}{shade}">{"".join(cells)}{wait}<td>{self.text(span.text)}{sure}</td></tr>'
        yield "</table>"

    def _player(self, record: CallRecord) -> str:
        """Both channels; turns with words that are redacted are silent."""
        sound = _eight_bit_wav(*silence_redacted(record, self._redactor))
        self._sound += len(sound)
        if self._sound > MOST_SOUND:
            return f'<p class="pale">Sound: <a href="calls/{record.id}.wav">calls/{record.id}.wav</a></p>'
        note = " (read out by the tester: this line carries words only)" if record.is_read_out else ""
        source = f"data:audio/wav;base64,{b64encode(sound).decode()}"
        return f'<audio controls preload="none" src="{source}"></audio><span class="pale">{note}</span>'


def silence_redacted(record: CallRecord, redactor: Redactor) -> tuple[bytes, bytes]:
    channels = {"caller": bytearray(record.caller_sound), "agent": bytearray(record.agent_sound)}
    for span in record.spans:
        if redactor.clean(span.text) != span.text:
            start, end = int(span.start_s * RATE), int(span.end_s * RATE) + 1
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
    head = b"RIFF" + (36 + len(sound)).to_bytes(4, "little") + b"WAVEfmt " + (16).to_bytes(4, "little")
    form = b"".join(value.to_bytes(size, "little") for value, size in ((1, 2), (2, 2), (RATE, 4), (2 * RATE, 4), (2, 2), (8, 2)))
    return head + form + b"data" + len(sound).to_bytes(4, "little") + bytes(sound)
