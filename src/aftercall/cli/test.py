"""`aftercall test`."""

import asyncio
import json as json_text
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from aftercall.cli.console import make_table
from aftercall.cli.context import (
    CliContext,
    get_cli_context,
    print_json,
    report_refused,
)
from aftercall.errors import ConfigError, NotFound, ScenarioRefused
from aftercall.model.json_fields import Json

if TYPE_CHECKING:
    from aftercall.cli.test_run import SavedRun
    from aftercall.tester.results import RunResults

group = typer.Typer(
    no_args_is_help=True,
    help="Call an agent with scripted callers, and see what goes wrong.",
)
_JSON = typer.Option(False, "--json", help="Answer as JSON.")
_COLOURS = {
    "passed": "green",
    "failed": "red",
    "inconclusive": "yellow",
    "re-listen": "yellow",
}


def scenario_folder(cli: CliContext) -> Path:
    settings = cli.config.settings
    if settings.tester.scenarios:
        return Path(settings.tester.scenarios).expanduser()
    return settings.home / "scenarios"


@group.command("list")
def list_all(
    context: typer.Context,
    schema: bool = typer.Option(
        False, "--schema", help="Print the JSON Schema of scenario files, for editors."
    ),
    json: bool = _JSON,
) -> None:
    """List the scenarios of your folder and of the library."""
    from aftercall.tester.library import find_scenarios
    from aftercall.tester.scenario import json_schema

    cli = get_cli_context(context)
    if schema:
        print_json(json_schema())
        return
    found = find_scenarios(["all"], scenario_folder(cli))
    report_refused(found.refused)
    if json:
        fields = {"name", "test_type", "description", "goal"}
        print_json([item.model_dump(include=fields) for item in found.scenarios])
    else:
        table = make_table("name", "type", "calls", "description")
        for item in found.scenarios:
            table.add_row(
                item.name, item.test_type, str(len(item.calls)), item.description
            )
        cli.console.print(table)
    if found.refused:
        raise typer.Exit(ScenarioRefused.exit_code)


@group.command("run")
def run(
    context: typer.Context,
    scenario: Annotated[
        list[str] | None,
        typer.Option(
            "--scenario",
            "-s",
            help="A name, a file, or `all`; may be given again. The default if unset.",
        ),
    ] = None,
    agent: str = typer.Option(
        "receptionist",
        help=(
            "`receptionist`, `practice[:fault,…]`, `http://…`, `ws://…`, `twilio:wss://…`, "
            "`python[-audio]:module:function`, a phone number (by Twilio), or "
            "`inbound:NUMBER` or `inbound:https://…` for an agent that calls."
        ),
    ),
    runs: int = typer.Option(
        0, min=0, help="Runs of each scenario; its `runs` if unset."
    ),
    parallel: int = typer.Option(
        0, min=0, help="Calls at a time; `tester.parallel` if unset."
    ),
    live: bool = typer.Option(False, "--live", help="Real pace; else no pauses."),
    voice: str = typer.Option(
        "", help="`espeak`, `tones`, or `words` in the lab; `tester.voice` if unset."
    ),
    max_pause: float = typer.Option(
        30.0, min=0, help="Longest pause between two calls to wait for, in seconds."
    ),
    shrink: bool = typer.Option(
        True, help="Find the fewest steps that show a bug (not by phone)."
    ),
    strict: bool = typer.Option(
        False, "--strict", help="Undecided runs count as failed."
    ),
    resume: str = typer.Option(
        "",
        "--resume",
        metavar="RUN",
        help="Go on with a run that was cut short: its id, or `last`. It keeps its options.",
    ),
    run_id: str = typer.Option("", "--id", help="Id of the run; a new one if unset."),
    json: bool = _JSON,
) -> None:
    """Run scenarios against an agent.

    Exit 1 if one fails or none passes, 2 if a scenario file was refused.
    """
    from aftercall.cli.test_run import RunPlan, run_tests

    cli = get_cli_context(context)
    names, folder = tuple(scenario or ()), str(scenario_folder(cli))
    options = (agent, runs or None, parallel, live, voice, shrink, folder, max_pause)
    plan = RunPlan(names, *options)
    saved = asyncio.run(run_tests(cli, plan, resume=resume, run_id=run_id, quiet=json))
    if json:
        _print_report(saved)
    raise typer.Exit(_exit_code(saved, strict=strict))


def _exit_code(saved: "SavedRun", *, strict: bool) -> int:
    run = saved.run
    if run.failed or run.passed == 0 or (strict and run.undecided):
        return 1
    return ScenarioRefused.exit_code if saved.refused else 0


def _print_report(saved: "SavedRun") -> None:
    report = json_text.loads((saved.folder / "report.json").read_text("utf-8"))
    report["folder"] = str(saved.folder)
    report["refused"] = saved.list_refused()
    print_json(report)


@group.command("show")
def show(
    context: typer.Context,
    which: str = typer.Argument(
        "",
        metavar="[CALL|RUN]",
        help="A call's or a run's id, or `last`; without one, the runs there are.",
    ),
    reveal: bool = typer.Option(
        False, "--reveal", help="With names, numbers and dates of birth."
    ),
    json: bool = _JSON,
) -> None:
    """Show one test call turn by turn, one run, or all runs."""
    from aftercall.tester.library import find_scenarios
    from aftercall.tester.redact import Redactor
    from aftercall.tester.results import RunResults

    cli = get_cli_context(context)
    results = RunResults(cli.config.settings.home)
    if not which:
        _show_runs(cli, results, json)
        return
    call = results.read_call(which)
    known = find_scenarios(["all"], scenario_folder(cli)).scenarios
    redactor = Redactor([*results.read_scenarios(which), *known], is_on=not reveal)
    data = redactor.clean_data(call if call is not None else results.read_run(which))
    if json:
        print_json(data)
    elif call is not None:
        _show_call(cli, data)
    else:
        _show_run(cli, data)


def _show_runs(cli: CliContext, results: "RunResults", json: bool) -> None:
    runs = [results.read_run(run_id) for run_id in results.list_runs()]
    if json:
        fields = (
            "id",
            "target",
            "started_at",
            "runs",
            "passed",
            "failed",
            "is_finished",
        )
        print_json([{key: run[key] for key in fields} for run in runs])
        return
    table = make_table("run", "started", "agent", "runs", "passed", "failed", "")
    for item in runs:
        keys = ("id", "started_at", "target", "runs", "passed", "failed")
        state = "" if item["is_finished"] else "unfinished"
        table.add_row(*(str(item[key]) for key in keys), state)
    cli.console.print(
        table if runs else "No test runs yet. `aftercall test run` makes one."
    )


def _show_run(cli: CliContext, data: Json) -> None:
    """A run: its counts, then the verdict and calls of each scenario."""
    counts = f"{data['passed']} passed, {data['failed']} failed of {data['runs']}"
    cli.console.print(
        Text.assemble((data["id"], "bold"), f"  {data['target']}  {counts}")
    )
    for result in data["results"]:
        calls = ", ".join(call["id"] for call in result["calls"])
        verdict = (f"{result['verdict']:12}", _COLOURS[result["verdict"]])
        name = f" {result['scenario']}, run {result['run']}  "
        cli.console.print(Text.assemble(verdict, name, (calls, "dim")))
        if result.get("reason"):
            cli.console.print(f"    {result['reason']}")
        _show_findings(cli, result["findings"])
    if not data["is_finished"]:
        for call in data["unfinished_calls"]:
            text = (
                f" {call['scenario']}, run {call['run']}, {len(call['turns'])} turns  "
            )
            cli.console.print(
                Text.assemble(("unfinished  ", "yellow"), text, (call["id"], "dim"))
            )
        cli.console.print(
            f"The run is unfinished. Go on with `aftercall test run --resume {data['id']}`."
        )


def _show_findings(cli: CliContext, findings: list[Json]) -> None:
    for finding in findings:
        if finding["severity"] != "info":
            turns = ", ".join(str(turn) for turn in finding["turns"])
            place = f" (turns {turns})" if turns else ""
            about = f"{finding['severity']} · {finding['who']} · {finding['kind']}"
            cli.console.print(f"    {about}: {finding['text']}{place}")


def _show_call(cli: CliContext, call: Json) -> None:
    """One call of a run, turn by turn."""
    console = cli.console
    place = f"{call['scenario']}, call {call['call']}, run {call['run']}"
    console.print(
        Text.assemble((call["id"], "bold"), f"  {place}  {call['sid'] or ''}")
    )
    length = f"{call['duration_s']:.1f} s, {len(call['turns'])} turns"
    ending = f"ended by {call['ended_by']} ({call['end_why']})"
    console.print(f"{call['outcome']}, {length}, {ending}")
    for turn in call["turns"]:
        sure = "" if turn["confidence"] is None else f" ({turn['confidence']:.2f})"
        about = "~" if turn.get("is_estimated") else " "
        time = (f"{turn['turn']:3} {about}{turn['start_s']:6.2f}", "dim")
        who = (f"{turn['who']:6}", "bold")
        console.print(
            Text.assemble(time, "  ", who, f"  {turn['text']}", (sure, "dim"))
        )
    if call["whisper"]:
        _show_transcript(cli, call["whisper"])
    if call["measures"]:
        console.print(_speak_measures(call["measures"]), style="dim")
    if call["file"]:
        console.print(f"sound: {call['file']}", style="dim")
    _show_findings(cli, call["findings"])


def _speak_measures(measures: Json) -> str:
    names = {
        "latency_p50_s": "latency p50",
        "latency_p95_s": "p95",
        "first_word_s": "first word",
    }
    parts = []
    for key, name in names.items():
        value = measures[key]
        parts.append(
            f"{name} not measured" if value is None else f"{name} {value:.2f} s"
        )
    about = "; times with ~ are estimates" if measures.get("unmeasured_turns") else ""
    return ", ".join(parts) + about


def _show_transcript(cli: CliContext, transcript: Json) -> None:
    """What a second recogniser heard, piece by piece."""
    length = (
        ""
        if transcript["duration_s"] is None
        else f", {transcript['duration_s']:.1f} s"
    )
    about = f"(Whisper: {transcript['language'] or 'language unknown'}{length})"
    cli.console.print(Text.assemble(("second transcript", "bold"), " ", (about, "dim")))
    for part in transcript["segments"]:
        time = (f"    {part['start_s']:7.2f}", "dim")
        cli.console.print(Text.assemble(time, f"  {part['text']}"))
    if not transcript["segments"]:
        cli.console.print(f"  {transcript['text']}")


@group.command("compare")
def compare(
    context: typer.Context,
    a: str = typer.Argument(metavar="A", help="A run's id; with --budget, an agent."),
    b: str = typer.Argument(metavar="B", help="Another run's id, or agent."),
    budget: int = typer.Option(
        0,
        min=0,
        help="Compare two agents now, with at most so many calls; stop once it is decided.",
    ),
    scenario: Annotated[
        list[str] | None,
        typer.Option(
            "--scenario",
            "-s",
            help="With --budget: the scenarios to use; the whole library if unset.",
        ),
    ] = None,
    json: bool = _JSON,
) -> None:
    """Is B worse than A? Exit 1 if it is."""
    from aftercall.cli.test_run import RunPlan, compare_agents
    from aftercall.tester.results import RunResults
    from aftercall.tester.statistics import compare as compare_pairs
    from aftercall.tester.statistics import wilson

    cli = get_cli_context(context)
    if budget:
        names, folder = tuple(scenario or ("all",)), str(scenario_folder(cli))
        plan = RunPlan(names, a, None, 1, False, "", False, folder)
        answer = asyncio.run(compare_agents(cli, plan, b, budget))
    else:
        answer = compare_pairs(_pairs(RunResults(cli.config.settings.home), a, b))
    if json:
        rates = {
            f"pass_rate_{name}": {
                "passed": passed,
                "interval": wilson(passed, answer.pairs),
            }
            for name, passed in (("a", answer.passed_a), ("b", answer.passed_b))
        }
        print_json(asdict(answer) | rates)
    else:
        cli.console.print(answer.sentence)
    if answer.answer == "worse":
        raise typer.Exit(1)


def _pairs(results: "RunResults", a: str, b: str) -> dict[str, list[tuple[bool, bool]]]:
    """The same scenario and run of both, where both are decided."""
    first, second = _decided(results, a), _decided(results, b)
    pairs: dict[str, list[tuple[bool, bool]]] = {}
    for key, passed in first.items():
        if key in second:
            pairs.setdefault(key[0], []).append((passed, second[key]))
    if not pairs:
        raise NotFound(
            "the two runs have no decided scenario in common; run the same scenarios against both"
        )
    return pairs


def _decided(results: "RunResults", run_id: str) -> dict[tuple[str, int], bool]:
    """By scenario and run: whether it passed."""
    return {
        (item["scenario"], item["run"]): item["verdict"] == "passed"
        for item in results.read_run(run_id)["results"]
        if item["verdict"] in ("passed", "failed")
    }


@group.command("load")
def load(
    context: typer.Context,
    scenario: Annotated[
        list[str] | None,
        typer.Option("--scenario", "-s", help="A name, a file, or `all`."),
    ] = None,
    agent: str = typer.Option("receptionist", help="As for `run`, but not by phone."),
    at_once: str = typer.Option(
        "1,5,20", help="Calls at a time: a list, one step after the other."
    ),
    runs: int = typer.Option(
        0, min=0, help="Runs of each scenario in a step; two per call at once if unset."
    ),
    live: bool = typer.Option(False, "--live", help="Real pace; else no pauses."),
    json: bool = _JSON,
) -> None:
    """Call an agent many times at once; print its latency step by step.

    Exit 1 if a run of any step fails.
    """
    from aftercall.cli.test_run import RunPlan, load_agent, print_load, read_steps

    cli = get_cli_context(context)
    steps = read_steps(at_once)
    names, folder = tuple(scenario or ()), str(scenario_folder(cli))
    plan = RunPlan(names, agent, runs or None, 1, live, "", False, folder, 0.0)

    async def collect() -> list[Json]:
        return [step.as_json() async for step in load_agent(cli, plan, steps)]

    found = asyncio.run(collect())
    if json:
        print_json(found)
    else:
        print_load(cli, found)
    raise typer.Exit(int(any(step["failed"] for step in found)))


@group.command("calibrate")
def calibrate(
    context: typer.Context,
    turns: int = typer.Option(60, min=1, max=130, help="Turns on each line."),
    live: bool = typer.Option(False, "--live", help="Real pace; a minute or more."),
    json: bool = _JSON,
) -> None:
    """Call an agent whose delays, overlaps and words are known; print the tester's error."""
    from aftercall.clock import SystemClock
    from aftercall.tester.calibrate import calibrate as measure_tester
    from aftercall.tester.target import CallSetup
    from aftercall.tester.voice import choose_voice

    cli = get_cli_context(context)
    wanted = cli.config.settings.tester.voice or "tones"
    voices = (choose_voice(wanted), choose_voice(wanted, for_agent=True))
    setup = CallSetup(SystemClock(), *voices, is_live=live)
    found = asyncio.run(measure_tester(setup, turns=turns))
    if json:
        print_json([item.as_json() for item in found])
        return
    times = ("latency p50", "p95", "max", "overlap", "silence")
    table = make_table("line", "turns", *times, "false barge-ins", "word errors")
    for item in found:
        latencies = (item.latency_p50_ms, item.latency_p95_ms, item.latency_max_ms)
        figures = [
            f"{ms:.1f} ms" for ms in (*latencies, item.overlap_ms, item.silence_ms)
        ]
        barge_ins = (
            f"{item.false_barge_ins} ({_speak_interval(item.false_barge_in_interval)})"
        )
        errors = f"{100 * item.word_error_rate:.1f} % ({_speak_interval(item.word_error_interval)})"
        table.add_row(item.line, str(item.turns), *figures, barge_ins, errors)
    cli.console.print(table)


def _speak_interval(bounds: tuple[float, float]) -> str:
    return f"95 %: {100 * bounds[0]:.0f} to {100 * bounds[1]:.0f} %"


@group.command("from-call")
def from_call(
    context: typer.Context,
    call_id: str = typer.Argument(metavar="ID"),
    name: str = typer.Option("", help="What the scenario is called."),
    reveal: bool = typer.Option(
        False,
        "--reveal",
        help="With names, numbers and dates of birth as they were said.",
    ),
    save: bool = typer.Option(
        False, "--save", help="Into the folder of scenarios; else it is printed."
    ),
) -> None:
    """Turn an archived call into a scenario."""
    from aftercall.journal.view import read_whole
    from aftercall.tester.library import scenario_yaml
    from aftercall.tester.redact import Redactor

    cli = get_cli_context(context)
    with cli.open_stores() as stores:
        call_id = stores.find_id("call", call_id)
        row = stores.store.get(call_id)
        if row.archive_name is None:
            raise NotFound(f"call {call_id} is still going on")
        call = read_whole(stores.archive, row)
    text = scenario_yaml(call, name=name, redactor=Redactor(is_on=not reveal))
    if not save:
        typer.echo(text, nl=False)
        return
    path = scenario_folder(cli) / f"{text.splitlines()[0].removeprefix('name: ')}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ConfigError(
            f"{path}: is there already; give the scenario another --name"
        ) from None
    cli.console.print(str(path))
