"""Response latency of one known agent as two testers report it: ours, and LangWatch's
`scenario` where a Python has it.

LangWatch is never a dependency here: it is installed into an environment of its own, or one is
named.
"""

import json
import os
import subprocess
import tempfile
import time
import venv
from dataclasses import dataclass
from pathlib import Path

from aftercall.clock import SystemClock
from aftercall.speech.sound import MULAW_TO_LINEAR
from aftercall.tester.call import CallRig, ScriptedCall, run_call
from aftercall.tester.caller import Caller
from aftercall.tester.drivers.text_agent import AudioAgentConnection
from aftercall.tester.finding import CallView
from aftercall.tester.findings.timing import latencies
from aftercall.tester.line import TickPace
from aftercall.tester.scenario_file import parse_scenarios
from aftercall.tester.voice import ToneVoice
from known_agent import KnownAgent, write_question

PACKAGE = "langwatch-scenario"
MOST_OFF_S = 0.03
RATE = 8000
LEADS_S = (0.01, 0.51)
FORMS = ("gated", "open")
_SILENT = {
    "LANGWATCH_ENDPOINT": "http://127.0.0.1:9",
    "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
    "OPENAI_API_KEY": "none",
}
_WORDS = {
    "gated": "socket that is quiet between replies",
    "open": "phone line, always open",
}
_LEADS = {0.01: "none", 0.51: "0.5 s"}
COLUMNS = (
    "line",
    "truth",
    "Aftercall",
    "took",
    PACKAGE,
    "took",
    f"≤ {MOST_OFF_S * 1000:.0f} ms off",
)
CALL = """
name: known
turns:
  - {say: question, clip: question.wav, after: {event: call_starts, delay_ms: 100}}
  - {hang_up: true}
"""


@dataclass(frozen=True)
class Told:
    """What a tester says of a call, what was true of that very call, and how long it took."""

    truth_s: float
    reported_s: float | None
    took_s: float

    def speak(self) -> str:
        return (
            "nothing"
            if self.reported_s is None
            else (
                f"{self.reported_s:.3f} s ({abs(self.reported_s - self.truth_s) * 1000:.0f} ms off)"
            )
        )

    @property
    def is_near(self) -> bool:
        return (
            self.reported_s is not None
            and abs(self.reported_s - self.truth_s) <= MOST_OFF_S
        )


async def call_ours(lead_s: float, form: str) -> Told:
    agent = KnownAgent(RATE, lead_s, is_open_line=form == "open")

    def answer(frame: bytes) -> bytes:
        return (
            agent.tick(any(abs(MULAW_TO_LINEAR[sample]) > 500 for sample in frame))
            or b""
        )

    (scenario,) = parse_scenarios(CALL)
    pace = TickPace(SystemClock(), is_live=True)
    with tempfile.TemporaryDirectory() as folder:
        write_question(Path(folder) / "question.wav", RATE)
        began = time.perf_counter()
        record = await run_call(
            CallRig(ToneVoice(), pace, Path(folder)),
            AudioAgentConnection(answer, rate=RATE),
            ScriptedCall(Caller(scenario, scenario.calls[0], 1), scenario),
        )
    found = latencies(CallView(record, scenario))
    return Told(agent.truth_s, found[0] if found else None, time.perf_counter() - began)


def call_theirs(python: Path, lead_s: float, form: str) -> Told:
    script = Path(__file__).with_name("langwatch_call.py")
    environment = os.environ | _SILENT | {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    done = subprocess.run(
        [python, script, str(lead_s), form],
        capture_output=True,
        text=True,
        timeout=600,
        env=environment,
        check=False,
    )
    last = done.stdout.strip().splitlines()[-1:]
    if done.returncode or not last:
        raise RuntimeError(
            f"{PACKAGE} ended with {done.returncode}: {done.stderr.strip()[-300:]}"
        )
    data = json.loads(last[0])
    return Told(
        data["truth_s"],
        data["reported_s"][0] if data["reported_s"] else None,
        data["took_s"],
    )


def find_langwatch(wanted: str, folder: Path) -> Path:
    """The Python that was named, or one with LangWatch freshly installed (a minute or two, and
    700 MB).
    """
    if wanted != "install":
        return Path(wanted)
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    subprocess.run(
        [
            python,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            f"{PACKAGE}[voice]",
        ],
        check=True,
    )
    return python


async def compare_latency(langwatch: str) -> list[tuple[str, ...]]:
    """A row for each form of line and each lead: the truth, ours, theirs."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        python = find_langwatch(langwatch, Path(folder)) if langwatch else None
        for form in FORMS:
            for lead_s in LEADS_S:
                ours = await call_ours(lead_s, form)
                rows.append(
                    _row(
                        form,
                        lead_s,
                        ours,
                        call_theirs(python, lead_s, form) if python else None,
                    )
                )
    return rows


def _row(form: str, lead_s: float, ours: Told, theirs: Told | None) -> tuple[str, ...]:
    other = (theirs.speak(), f"{theirs.took_s:.1f} s") if theirs else ("not run", "")
    verdict = "met" if ours.is_near else "MISSED"
    return (
        f"{_WORDS[form]}, leading silence {_LEADS[lead_s]}",
        f"{ours.truth_s:.2f} s",
        ours.speak(),
        f"{ours.took_s:.1f} s",
        *other,
        verdict,
    )
