"""Write docs/reference from the code, or with --check say which page no longer tells the truth."""

import argparse
import inspect
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from starlette.routing import WebSocketRoute

from aftercall import telemetry
from aftercall.app import build
from aftercall.cli.main import COMMANDS, load_command
from aftercall.config import list_settings
from aftercall.errors import AftercallError
from aftercall.settings import Settings
from aftercall.tester.criterion import Criterion, Expect, ScenarioProbe, TurnPart
from aftercall.tester.scenario import (
    After,
    AntiRepetition,
    CallerContext,
    CallerHabits,
    CallLimits,
    LineNoise,
    LineQuality,
    PlannedCall,
    Scenario,
    ScenarioStage,
    ScriptedAnswer,
    ScriptedTurn,
    SpeakingManner,
    Verification,
)
from aftercall.web.server import make_server

REFERENCE = Path(__file__).parent.parent / "docs" / "reference"
NOTE = "<!-- Written by `make docs` from the code; edit the code instead. -->\n"


def settings_page() -> Iterator[str]:
    yield "# Settings\n"
    yield (
        "From `aftercall.toml` in the current folder (or `--config FILE`), overridden by the "
        "environment."
    )
    yield (
        "`[section] name` in the file is the part after the dot here. Unknown keys are "
        "refused with the nearest valid name."
    )
    yield (
        "`aftercall config` shows each value and where it came from, without secrets and without "
        "what follows the host of a webhook."
    )
    yield (
        "Tokens and keys that you make up need a minimum of characters; a weak one is refused at "
        "start."
    )
    yield (
        "An `aftercall.toml` that was found in the current folder and names commands to run is "
        "reported at start.\n"
    )
    yield "| setting | environment | meaning | default |"
    yield "|---|---|---|---|"
    for key, env, field in list_settings():
        default = "" if field.default in (None, "", (), {}) else f"`{field.default}`"
        yield f"| `{key}` | `{env}` | {field.description} | {default} |"


def commands_page() -> Iterator[str]:
    yield "# Commands\n"
    yield (
        "Exit codes: 0 done, 1 it failed, 2 wrong use or configuration. Errors are one line: "
        "what, where, what to do."
    )
    yield "`--config FILE` before the command names a settings file.\n"
    for name in sorted(COMMANDS):
        yield from _describe(load_command(name), f"aftercall {name}")


def _describe(command: Any, path: str) -> Iterator[str]:
    """Typer brings its own copy of Click, whose types are private: we go by what every command
    has.
    """
    inner = getattr(command, "commands", {})
    for name in sorted(inner):
        yield from _describe(inner[name], f"{path} {name}")
    if inner:
        return
    options = [
        parameter
        for parameter in command.params
        if parameter.param_type_name == "option"
    ]
    words = [
        parameter.metavar or parameter.name.upper()
        for parameter in command.params
        if parameter.param_type_name == "argument"
    ]
    yield f"## `{' '.join([path, *words])}`\n"
    yield (command.help or "").strip() + "\n"
    for option in options:
        yield f"- `{', '.join(option.opts)}`: {option.help or ''}"
    yield ""


def metrics_page() -> Iterator[str]:
    yield "# Metrics\n"
    yield (
        "`GET /metrics` of a server and of a worker with `--metrics-port`, for Prometheus "
        "([how](../howto/monitoring.md)). Times are histograms: each has `_count`, `_sum` and "
        "`_bucket`. Counts belong to a process; gauges of waiting work are the same in all. "
        "Besides these there are `process_…` and `python_info`.\n"
    )
    yield "| metric | kind | labels | meaning |"
    yield "|---|---|---|---|"
    kinds = (
        ("histogram", "_seconds", telemetry.TIMES),
        ("counter", "_total", telemetry.COUNTERS),
        ("gauge", "", telemetry.GAUGES),
    )
    for kind, suffix, forms in kinds:
        for name, form in forms.items():
            labels = ", ".join(f"`{label}`" for label in form.labels)
            full = f"{telemetry.PREFIX}{name}{suffix}"
            yield f"| `{full}` | {kind} | {labels} | {form.help} |"


def routes_page() -> Iterator[str]:
    yield "# Routes\n"
    yield (
        "API and pages ask for `Authorization: Bearer` with the API token (`aftercall token`); "
        "[security](security.md) says what else is checked."
    )
    yield "The machine-readable form is at `/openapi.json`, a page to try them at `/docs`.\n"
    yield "| route | for |"
    yield "|---|---|"
    with tempfile.TemporaryDirectory() as home:
        app = build(Settings(home=Path(home)))
        server = make_server(app)
        app.close()
    for path, methods in server.openapi()["paths"].items():
        for method, route in methods.items():
            yield f"| `{method.upper()} {path}` | {route['summary']} |"
    for route in server.routes:
        if isinstance(route, WebSocketRoute):
            yield f"| `WS {route.path}` | {one_line(route.endpoint.__doc__)} |"


def errors_page() -> Iterator[str]:
    yield "# Errors\n"
    yield "Each has a stable code; `retryable` ones are tried again by themselves.\n"
    yield "| code | meaning | retryable | exit | HTTP |"
    yield "|---|---|---|---|---|"
    for error in sorted(_family(AftercallError), key=lambda error: error.code):
        meaning = one_line(error.__doc__)
        yield (
            f"| `{error.code}` | {meaning} | {'yes' if error.retryable else ''} | "
            f"{error.exit_code} | {error.http_status} |"
        )


PARTS: tuple[type[TurnPart], ...] = (
    *(
        Scenario,
        PlannedCall,
        CallerContext,
        SpeakingManner,
        CallerHabits,
        ScenarioStage,
        Verification,
        ScriptedAnswer,
        AntiRepetition,
        ScriptedTurn,
        After,
        Expect,
    ),
    *(Criterion, ScenarioProbe, CallLimits, LineNoise, LineQuality),
)


def scenario_page() -> Iterator[str]:
    yield "# A scenario\n"
    yield (
        "One YAML file is one test call, or several. A plain word stays a word until a field "
        "asks for a number: `say: No` and"
    )
    yield (
        "`dtmf: 012` are what they look like. Mistakes are named with file and line. "
        "`aftercall test list --schema` prints this"
    )
    yield (
        "as JSON Schema. `patient_context` (or `caller_context`) and `turns` at the top are "
        "the short form of one call in `calls`."
    )
    yield (
        "Older files with a list under `scenarios`, stages as a mapping or as prose (`When "
        "the agent asks for X, say Y`), and"
    )
    yield "`behavior` are read, too.\n"
    yield (
        "Patterns are words, `|` between alternatives, `*` for up to six words, or `/a "
        "regular expression/`; case does not matter.\n"
    )
    for part in PARTS:
        yield from _describe_part(part)


def _describe_part(part: type[TurnPart]) -> Iterator[str]:
    yield f"## {part.__name__}\n"
    if part.__doc__ and part.__doc__ != TurnPart.__doc__:
        yield f"{inspect.cleandoc(part.__doc__)}\n"
    yield "| field | meaning | default |"
    yield "|---|---|---|"
    for name, field in part.model_fields.items():
        default = (
            f"`{field.default}`"
            if isinstance(field.default, str | int | float) and field.default != ""
            else ""
        )
        yield (
            f"| `{field.alias or name}` | {field.description} | "
            f"{'required' if field.is_required() else default} |"
        )
    yield ""


def _family(root: type[AftercallError]) -> Iterator[type[AftercallError]]:
    yield root
    for child in root.__subclasses__():
        yield from _family(child)


PAGES = {
    "settings.md": settings_page,
    "commands.md": commands_page,
    "metrics.md": metrics_page,
    "routes.md": routes_page,
    "errors.md": errors_page,
    "scenario.md": scenario_page,
}


def one_line(text: str | None) -> str:
    return " ".join((text or "").split()).rstrip(".")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    stale = []
    for name, page in PAGES.items():
        text = NOTE + "\n" + "\n".join(page()).rstrip() + "\n"
        file = REFERENCE / name
        if check and (not file.exists() or file.read_text() != text):
            stale.append(name)
        elif not check:
            file.write_text(text)
    if stale:
        print(
            f"docs/reference is stale: {', '.join(stale)}; run `make docs`",
            file=sys.stderr,
        )
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main())
