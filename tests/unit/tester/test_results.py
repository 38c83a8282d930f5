"""What a run writes while it goes on: each turn as it was spoken, and enough to go on after a
crash.
"""

from pathlib import Path

import pytest

from aftercall import errors
from aftercall.clock import SystemClock
from aftercall.errors import NotFound
from aftercall.tester.drivers.text_agent import CallableAgent
from aftercall.tester.library import list_scenarios
from aftercall.tester.practice_agent import practice_target
from aftercall.tester.results import RunResults, StartedRun
from aftercall.tester.suite import SuiteParts, run_once, run_suite
from aftercall.tester.target import AgentTarget, CallSetup
from fakes import START

LIBRARY = {scenario.name: scenario for scenario in list_scenarios()}


def begin(home: Path, *names: str) -> RunResults:
    results = RunResults(home)
    results.start_run(
        StartedRun(
            "01RUN", "practice", START, tuple(LIBRARY[name] for name in names), (), {}
        )
    )
    return results


def make_target(*faults: str) -> AgentTarget:
    return practice_target(CallSetup(SystemClock()), faults)


@pytest.mark.parametrize(
    "name",
    ["appointment_scheduling", "edge_barge_in", "edge_dtmf_menu", "edge_silence"],
)
async def test_the_log_of_a_call_has_the_words_of_its_record(
    tmp_path: Path, name: str
) -> None:
    results = begin(tmp_path, name)
    with results.open_log("01RUN") as log:
        scored = await run_once(
            LIBRARY[name], make_target(), SuiteParts(SystemClock()), log=log
        )
    (record,) = scored.records
    kept = results.read_call(record.id)
    assert kept is not None
    assert kept["outcome"] == "unfinished"
    said = {
        who: " ".join(span.text for span in record.spans if span.who == who)
        for who in ("agent", "caller")
    }
    assert {
        who: " ".join(turn["text"] for turn in kept["turns"] if turn["who"] == who)
        for who in said
    } == said


async def test_a_finished_run_is_restored_as_it_was_scored(tmp_path: Path) -> None:
    results = begin(tmp_path, "appointment_scheduling", "memory_across_calls")
    crew, target = SuiteParts(SystemClock()), make_target("asks_again")
    with results.open_log("01RUN") as log:
        scored = await run_suite(
            log.started.scenarios, target, crew, parallel=1, log=log
        )
    with results.open_log("01RUN") as log:
        restored = [log.find(place, 1) for place in range(2)]
    assert restored == scored


async def test_a_line_that_was_being_written_is_dropped(tmp_path: Path) -> None:
    results = begin(tmp_path, "opening_hours", "opening_hours")
    crew, target = SuiteParts(SystemClock()), make_target()
    with results.open_log("01RUN") as log:
        (first, _) = await run_suite(
            log.started.scenarios, target, crew, parallel=1, log=log
        )
    path = tmp_path / "tests" / "01RUN" / "progress.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    with results.open_log("01RUN") as log:
        assert list(log.finished) == [(0, 1)]
        again, _ = await run_suite(
            log.started.scenarios, target, crew, parallel=1, log=log
        )
    assert again == first
    assert len(results.read_run("01RUN")["results"]) == 2


def test_a_run_is_worked_on_by_one_process_at_a_time(tmp_path: Path) -> None:
    results = begin(tmp_path, "opening_hours")
    with (
        results.open_log("01RUN"),
        pytest.raises(errors.TesterError, match="is going on in another process"),
        results.open_log("01RUN"),
    ):
        pass
    with results.open_log("01RUN") as log:
        log.remove()
    with pytest.raises(NotFound, match="no unfinished test run"):
        results.find_unfinished("last")


async def test_what_the_caller_says_is_on_disk_before_the_agent_hears_it(
    tmp_path: Path,
) -> None:
    results = begin(tmp_path, "opening_hours")
    missing = []

    def answer(said: str) -> str:
        (path,) = (tmp_path / "tests" / "01RUN" / "calls").glob("*.jsonl")
        missing.extend([said] if said not in path.read_text() else [])
        return "We are open from nine to five."

    target = AgentTarget.of_agent(
        "function", CallSetup(SystemClock()), lambda: CallableAgent(answer)
    )
    with results.open_log("01RUN") as log:
        await run_once(
            LIBRARY["opening_hours"], target, SuiteParts(SystemClock()), log=log
        )
    assert missing == []
