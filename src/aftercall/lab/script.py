"""What an emulated agent does when it hears something, and how an emulated engine misbehaves."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class EngineBehaviour(StrEnum):
    """How an emulated engine treats one connection."""

    FINE = "as documented"
    MUTE = "takes the socket and never says a word"
    DEAF = "takes the settings and never says a word after that"
    STRICT = "takes no typed words in the caller's place"


@dataclass(frozen=True)
class ScriptSay:
    text: str


@dataclass(frozen=True)
class ScriptToolCall:
    """Ask for a tool, and go on when it has answered."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ScriptDrop:
    """Cut the connection, as a server that crashes would."""


@dataclass(frozen=True)
class ScriptSilence:
    """Say nothing, for ever."""


Act = ScriptSay | ScriptToolCall | ScriptDrop | ScriptSilence
Reply = str | Act | Sequence[Act]
Script = Callable[[str], Reply]


def reply_in_order(*replies: Reply, then: Reply = "Anything else?") -> Script:
    """These replies one after the other, whatever is heard."""
    waiting = list(replies)
    return lambda heard: waiting.pop(0) if waiting else then


def to_acts(reply: Reply) -> Sequence[Act]:
    if isinstance(reply, str):
        return (ScriptSay(reply),)
    return (reply,) if isinstance(reply, Act) else reply
