"""What the agent on an emulated engine answers, and how the engine misbehaves."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class EngineBehaviour(StrEnum):
    """How an emulated engine treats one connection."""

    FINE = "as documented"
    MUTE = "accepts the socket and sends nothing"
    DEAF = "accepts the settings and sends nothing after that"
    STRICT = "refuses typed words in the caller's place"
    LATE = "transcribes the caller after the answer"


@dataclass(frozen=True)
class ScriptSay:
    text: str


@dataclass(frozen=True)
class ScriptToolCall:
    """Calls a tool and continues after its answer."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ScriptDrop:
    """Cuts the connection like a server that crashes."""


@dataclass(frozen=True)
class ScriptSilence:
    """Says nothing more."""


Act = ScriptSay | ScriptToolCall | ScriptDrop | ScriptSilence
Reply = str | Act | Sequence[Act]
Script = Callable[[str], Reply]


def reply_in_order(*replies: Reply, then: Reply = "Anything else?") -> Script:
    """Gives these replies one after the other, whatever is heard."""
    waiting = list(replies)
    return lambda heard: waiting.pop(0) if waiting else then


def to_acts(reply: Reply) -> Sequence[Act]:
    if isinstance(reply, str):
        return (ScriptSay(reply),)
    return (reply,) if isinstance(reply, Act) else reply
