"""The one state of a call, with its reason."""

from typing import Literal

from aftercall.work.health.store import Afterwards

CallHealth = Literal["ok", "pending", "failed", "recovered", "superseded", "nothing_said", "held"]
STATES: tuple[CallHealth, ...] = ("ok", "pending", "failed", "recovered", "superseded", "nothing_said", "held")


def judge_call(call: Afterwards) -> tuple[CallHealth, str]:
    """The worst first: what failed, then what is not over yet, then what was odd about it."""
    return _trouble(call) or _waiting(call) or _oddity(call) or ("ok", "")


def _trouble(call: Afterwards) -> tuple[CallHealth, str] | None:
    steps = [name for name, state, _ in call.steps if state == "failed"]
    if steps:
        return "failed", f"steps failed: {', '.join(sorted(steps))}"
    if call.run_state == "failed":
        return "failed", f"its follow-up failed: {call.run_reason}; `aftercall calls rerun ID followup` tries it again"
    failed = sum(kind == "request" and state == "failed" for kind, state in call.followups)
    return ("failed", f"{failed} of its requests failed") if failed else None


def _waiting(call: Afterwards) -> tuple[CallHealth, str] | None:
    if call.state != "sealed":
        return "pending", "it is going on" if call.state == "live" else "it is being sealed"
    if not call.steps or any(state in ("waiting", "running") for _, state, _ in call.steps):
        return "pending", "its steps are not over"
    if call.run_state == "due":
        return "pending", "its follow-up waits for the reconnect window"
    if call.run_state in ("running", None):
        return "pending", "its follow-up is on its way"
    if any(kind == "request" and state in ("open", "doing") for kind, state in call.followups):
        return "pending", "a request is being done"
    held = sum(kind == "request" and state == "held" for kind, state in call.followups)
    return ("held", f"{held} of its requests wait for approval") if held else None


def _oddity(call: Afterwards) -> tuple[CallHealth, str] | None:
    if call.caller_turns == 0:
        return ("superseded", "a reconnect took over") if call.is_resumed else ("nothing_said", "its caller said nothing")
    if call.end_reason == "interrupted":
        return "recovered", "it was interrupted and recovered"
    if call.most_attempts > 1:
        return "recovered", f"something took {call.most_attempts} attempts"
    return None
