"""A real call as a scenario: what the caller said becomes a list of turns, what the agent did
wrong can then be seen again.
"""

import re
from collections.abc import Callable

from aftercall.model.calls import Call
from aftercall.tester.phrases import asked_fields, questions_of
from aftercall.tester.redact import Redactor

_SAFE = re.compile(r"[^A-Za-z0-9_-]+")
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ,.'-]*")


def scenario_yaml(call: Call, *, name: str = "", redactor: Redactor | None = None) -> str:
    """YAML that `test run` takes; names, numbers and dates of birth are stand-ins unless the
    redactor is off.
    """
    clean = (redactor or Redactor()).clean
    title = name or "from_call_" + _SAFE.sub("_", call.id).lower()
    lines = [
        f"name: {title[:80]}",
        f"description: {_quote(f'From the call {call.id} of {call.started_at:%Y-%m-%d}.')}",
        "test_type: edge",
        "caller_context:",
        "  background: " + _quote(_background(call, clean)),
        '  number: "+15550199"',
        "turns:",
    ]
    turns = _caller_turns(call)
    for text in turns:
        lines.append(f"  - say: {_quote(clean(text))}")
    if not turns:
        lines.append("  - silence: 5")
    asked = sorted(
        {
            field
            for turn in call.turns
            if turn.speaker == "agent"
            for field in asked_fields(turn.text)
        }
    )
    lines += [
        "limits:",
        f"  max_turns: {max(20, 4 * len(call.turns))}",
        (
            f"# The agent asked {_count_questions(call)} questions, for: "
            f"{', '.join(asked) or 'nothing'}."
        ),
    ]
    lines += [
        "# Add `expect:` below a turn, or `goal:` and `success:`, to say what should have happened."
    ]
    return "\n".join(lines) + "\n"


def _caller_turns(call: Call) -> list[str]:
    """What was said in one go stands in one turn, however the recogniser cut it."""
    joined: list[str] = []
    last = ""
    for turn in call.turns:
        text = " ".join(turn.text.split())
        if turn.speaker == "caller" and text:
            if last == "caller":
                joined[-1] += f" {text}"
            else:
                joined.append(text)
        last = turn.speaker
    return joined


def _background(call: Call, clean: Callable[[str], str]) -> str:
    first = next(iter(_caller_turns(call)), "say nothing")
    return f"As in the call: {clean(first)[:120]}"


def _count_questions(call: Call) -> int:
    return sum(len(questions_of(turn.text)) for turn in call.turns if turn.speaker == "agent")


def _quote(text: str) -> str:
    if _PLAIN.fullmatch(text) and not text[-1].isspace():
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
