"""What goes wrong in the box, on order: each fault meets the next request, or the next
connection, of one emulated server.
"""

from collections.abc import Callable
from typing import Any, get_args

from aftercall.errors import RefusedInput
from aftercall.lab import github, remem
from aftercall.lab.models import script
from aftercall.lab.script import EngineBehaviour
from aftercall.lab.server import Lab

_BEHAVIOURS = {"mute": EngineBehaviour.MUTE, "deaf": EngineBehaviour.DEAF}
_STATUSES = {"cut_off": 0, "rate_limit": 429, "server_error": 500, "unavailable": 503}
_MODEL_FAULTS = {name: name for name in get_args(script.Fault)}

FAULTS: dict[str, dict[str, Any]] = {
    "anthropic": _MODEL_FAULTS,
    "openai": _MODEL_FAULTS,
    "audio": _STATUSES,
    "deepgram": _BEHAVIOURS | {"strict": EngineBehaviour.STRICT},
    "realtime": _BEHAVIOURS,
    "remem": {name: name for name in get_args(remem.Fault)},
    "github": {name: name for name in get_args(github.Fault)},
}
_QUEUES: dict[str, Callable[[Lab], Any]] = {
    "anthropic": lambda lab: lab.anthropic.faults,
    "openai": lambda lab: lab.openai.faults,
    "audio": lambda lab: lab.audio.faults,
    "deepgram": lambda lab: lab.deepgram.behaviours,
    "realtime": lambda lab: lab.realtime.behaviours,
    "remem": lambda lab: lab.remem.faults,
    "github": lambda lab: lab.github.faults,
}


def queue_fault(lab: Lab, spec: str) -> None:
    """`anthropic=rate_limit`: the next request there is refused so, the one after it is not."""
    where, _, kind = spec.partition("=")
    if where not in FAULTS:
        raise RefusedInput("fault", f"is SERVER=KIND, and the servers are {', '.join(FAULTS)}")
    if kind not in FAULTS[where]:
        raise RefusedInput("fault", f"{where} knows {', '.join(FAULTS[where])}")
    _QUEUES[where](lab).append(FAULTS[where][kind])
