"""What a run leaves: whole, escaped, without what must not leave, and the same bug under the
same mark.
"""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from aftercall import errors
from aftercall.clock import SystemClock
from aftercall.errors import NotFound
from aftercall.tester.bugs import BugLedger
from aftercall.tester.library import list_scenarios
from aftercall.tester.redact import Redactor
from aftercall.tester.report_page import silence_redacted
from aftercall.tester.results import RunResults
from aftercall.tester.run_report import RunReport, github_annotations
from aftercall.tester.scenario import Scenario
from aftercall.tester.score import ScenarioScore
from aftercall.tester.statistics import Calibration
from aftercall.tester.suite import NO_STEPS, keep_only, shrink, steps_of
from fakes import START
from unit.tester.calls import LineAgent, scenario_of, try_agent, try_practice

LIBRARY = {scenario.name: scenario for scenario in list_scenarios()}
CALIBRATION = Calibration("clean", 20, 0.1, 0.2, 0.3, 0.0, 0.0, 0, 0.0)
CANARIES = ("Lucas", "Reyes", "February 17", "+15550120")


def make_run(*scored: ScenarioScore, name: str = "01RUN") -> RunReport:
    return RunReport(name, "practice", START, 1.5, scored, (CALIBRATION,))


async def keep(home: Path, *faults: str) -> tuple[Path, RunReport, BugLedger]:
    scored = await try_practice(LIBRARY["appointment_scheduling"], *faults)
    run = make_run(scored)
    results = RunResults(home)
    with results.open_ledger() as ledger:
        ledger.add(run.target, run.id, run.scored)
        return results.save(run, ledger, Redactor(LIBRARY.values())), run, ledger


async def test_every_report_is_there_and_nothing_private_leaves(tmp_path: Path) -> None:
    folder, run, _ = await keep(tmp_path, "asks_again")
    for name in ("BUG_REPORT.md", "report.json", "junit.xml", "report.html"):
        text = (folder / name).read_text()
        assert [canary for canary in CANARIES if canary in text] == [], name
        assert "asks_again" in text
        assert "barge-ins" in text or "false_barge_ins" in text, (
            "each report carries the tester's own error"
        )
    raw = folder / "calls" / f"{run.scored[0].records[0].id}.json"
    assert "Lucas" in raw.read_text()
    assert raw.stat().st_mode & 0o077 == 0
    assert (
        folder / "calls" / f"{run.scored[0].records[0].id}.wav"
    ).stat().st_size > 1000


async def test_only_speech_is_redacted(tmp_path: Path) -> None:
    folder, run, _ = await keep(tmp_path, "asks_again")
    seen = run.scored[0].records[0].started_at.isoformat()[:19]
    assert seen in (folder / "BUG_REPORT.md").read_text()
    assert json.loads((folder / "report.json").read_text())["results"][0]["calls"][0][
        "started_at"
    ].startswith(seen)


async def test_the_page_needs_nothing_from_outside(tmp_path: Path) -> None:
    folder, _, _ = await keep(tmp_path, "slow")
    page = (folder / "report.html").read_text()
    assert re.findall(r"""(?:src|href)=["'](?!data:|calls/)[^"']*""", page) == []
    assert "<script" not in page
    assert page.count("<svg") == 1
    assert "data:audio/wav;base64," in page


async def test_what_an_agent_says_is_escaped_everywhere(tmp_path: Path) -> None:
    scored = await try_agent(
        LineAgent("<script>alert(1)</script> & more \x00 words."),
        scenario_of("caller_context: {opening: Hi.}"),
    )
    results = RunResults(tmp_path)
    folder = results.save(
        make_run(scored), BugLedger(tmp_path / "ledger.json"), Redactor()
    )
    assert "<script>" not in (folder / "report.html").read_text()
    ElementTree.parse(folder / "junit.xml")


async def test_junit_counts_failures_and_what_is_undecided(tmp_path: Path) -> None:
    scenario = LIBRARY["appointment_scheduling"]
    scored = [
        await try_practice(scenario, *faults)
        for faults in ((), ("asks_again",), ("line_breaks",))
    ]
    results = RunResults(tmp_path)
    folder = results.save(
        make_run(*scored), BugLedger(tmp_path / "ledger.json"), Redactor()
    )
    suite = ElementTree.parse(folder / "junit.xml").getroot()
    assert {name: suite.get(name) for name in ("tests", "failures", "skipped")} == {
        "tests": "3",
        "failures": "1",
        "skipped": "1",
    }


async def test_one_run_that_passed_is_little_evidence_in_every_report(
    tmp_path: Path,
) -> None:
    folder, _, _ = await keep(tmp_path)
    for name in ("BUG_REPORT.md", "report.html"):
        assert "Pass rate 100 % (95 %: 21 to 100 %)" in (folder / name).read_text()
    rates = json.loads((folder / "report.json").read_text())["rates"]
    assert (rates["pass_1"], rates["high"], round(rates["low"], 2)) == (1.0, 1.0, 0.21)


async def test_turns_with_redacted_words_are_silent_on_the_page() -> None:
    record = (await try_practice(LIBRARY["appointment_scheduling"])).records[0]
    caller, _ = silence_redacted(record, Redactor(LIBRARY.values()))
    name = next(span for span in record.caller_spans if span.why == "answer:name")
    opening = next(span for span in record.caller_spans if span.why == "opening")
    assert set(caller[int(name.start_s * 8000) : int(name.end_s * 8000)]) == {0xFF}
    assert set(caller[int(opening.start_s * 8000) : int(opening.end_s * 8000)]) != {
        0xFF
    }


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("Call +1 (555) 123-4567 now", "Call [number] now"),
        ("five five five, zero one two", "[number]"),
        (
            "born on 03/04/1990 or 4th of May 1990",
            "born on [date of birth] or [date of birth]",
        ),
        ("mail me at a.b@example.org", "mail me at [email]"),
        ("Thank you, Sharon.", "Thank you, [name]."),
        (
            "My name is Ann Lee and it is 10 past 8",
            "My name is [name] and it is 10 past 8",
        ),
        ("Tuesday at ten, room 12", "Tuesday at ten, room 12"),
        ("March the fourth, nineteen eighty-six", "[date of birth]"),
        ("the twenty first of May, two thousand and one", "[date of birth]"),
        ("I was born on March fourth.", "I was born on [date of birth]."),
    ],
)
def test_what_looks_private_is_left_out(text: str, clean: str) -> None:
    assert Redactor().clean(text) == clean
    assert Redactor(is_on=False).clean(text) == text


def test_a_name_is_left_out_whole_though_one_part_is_known() -> None:
    redactor = Redactor(LIBRARY.values())
    assert redactor.clean("Yes, Lucas Grey-Miller, that's me") == (
        "Yes, [name], that's me"
    )
    assert redactor.clean("Okay Lucas Tuesday works") == "Okay [name] Tuesday works"


async def test_a_report_has_the_trend_of_the_agents_runs(tmp_path: Path) -> None:
    results = RunResults(tmp_path)
    for name, faults in (("01A", ("asks_again",)), ("01B", ())):
        scored = await try_practice(LIBRARY["appointment_scheduling"], *faults)
        run = make_run(scored, name=name)
        with results.open_ledger() as ledger:
            ledger.add(run.target, run.id, run.scored)
            folder = results.save(run, ledger, Redactor(LIBRARY.values()))
    text = (folder / "BUG_REPORT.md").read_text()
    assert "| `01A` |" in text
    assert "No longer seen since the run before: `asks_again`" in text


async def test_a_run_knows_its_own_scenarios_for_redaction(tmp_path: Path) -> None:
    _, run, _ = await keep(tmp_path)
    call = run.scored[0].records[0].id
    for which in (call, run.id):
        (scenario,) = RunResults(tmp_path).read_scenarios(which)
        assert scenario.name == "appointment_scheduling"


async def test_the_same_bug_is_one_entry_over_runs_and_scenarios(
    tmp_path: Path,
) -> None:
    ledger = BugLedger(tmp_path / "ledger.json")
    for name in ("appointment_scheduling", "reschedule_appointment"):
        ledger.add("practice", name, [await try_practice(LIBRARY[name], "asks_again")])
        ledger.save()
        ledger = BugLedger(tmp_path / "ledger.json")
    (bug,) = ledger.bugs
    assert (bug.kind, bug.seen, bug.runs, bug.scenarios) == (
        "asks_again",
        2,
        2,
        ("appointment_scheduling", "reschedule_appointment"),
    )
    assert bug.first_seen < bug.last_seen
    assert len(bug.calls) == 2


async def test_other_bugs_have_other_marks() -> None:
    found = [
        await try_practice(LIBRARY["appointment_scheduling"], fault)
        for fault in ("asks_again", "wrong_weekday")
    ]
    assert len({scored.bugs[0].fingerprint("practice") for scored in found}) == 2


def test_a_broken_ledger_is_named_and_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "ledger.json").write_text("{")
    with pytest.raises(errors.TesterError, match="move it away"):
        BugLedger(tmp_path / "ledger.json")


async def test_the_fewest_steps_that_show_a_bug_are_found() -> None:
    scenario = scenario_of(
        "turns: [{say: one}, {say: two}, {say: three}, {say: four}, {say: five}]"
    )

    async def shows(smaller: Scenario) -> bool:
        said = {turn.say for turn in smaller.calls[0].turns}
        return {"two", "five"} <= said

    assert await shrink(scenario, shows) == ("turn 2: two", "turn 5: five")


async def test_a_bug_that_needs_no_step_needs_none_and_tries_are_limited() -> None:
    scenario = LIBRARY["appointment_scheduling"]
    tried = 0

    async def never(smaller: Scenario) -> bool:
        nonlocal tried
        tried += 1
        return False

    async def always(smaller: Scenario) -> bool:
        return True

    assert await shrink(scenario, always) == (NO_STEPS,)
    assert len(await shrink(scenario, never, tries=5)) == len(steps_of(scenario))
    assert tried == 5
    assert keep_only(scenario, []).calls[0].caller_context.opening == ()


async def test_runs_and_calls_are_found_again(tmp_path: Path) -> None:
    _, run, _ = await keep(tmp_path)
    results = RunResults(tmp_path)
    assert results.read_run("last")["id"] == run.id == results.read_run("RUN")["id"]
    call = results.read_call(run.scored[0].records[0].id)
    assert call
    assert call["scenario"] == "appointment_scheduling"
    assert results.read_call("none") is None
    with pytest.raises(NotFound, match="there is no test run"):
        results.read_run("none")


def test_the_json_of_a_run_is_json() -> None:
    assert json.dumps(CALIBRATION.as_json())
    assert SystemClock().now().tzinfo is not None


def test_the_date_of_an_appointment_is_no_date_of_birth() -> None:
    clean = Redactor().clean
    kept = "You are booked for Tuesday, March 3rd, 2026 at ten."
    assert clean(kept) == kept
    assert clean("I was born on March 3rd, 1976.") == "I was born on [date of birth]."
    assert clean("March 3rd, 1976") == "[date of birth]"


async def test_a_bug_says_what_was_expected_and_how_to_run_it_again(
    tmp_path: Path,
) -> None:
    folder, run, _ = await keep(tmp_path, "asks_again")
    text = (folder / "BUG_REPORT.md").read_text()
    assert "**Expected:** what the caller has given is not asked for again" in text
    assert "`aftercall test run -s appointment_scheduling --agent practice`" in text
    assert "the recogniser misheard the agent" in text
    lines = list(github_annotations(run, Redactor(LIBRARY.values())))
    assert lines[0].startswith(
        "::error title=appointment_scheduling, run 1 (asks_again)::"
    )


async def test_a_run_that_is_open_says_why_in_every_report(tmp_path: Path) -> None:
    folder, run, _ = await keep(tmp_path, "line_breaks")
    reason = "the practice line broke"
    for name in ("BUG_REPORT.md", "report.json", "junit.xml"):
        assert reason in (folder / name).read_text()
    assert reason in next(iter(github_annotations(run, Redactor())))
