"""The legs of one conversation, joined into one transcript that can be read from start to end."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from aftercall.model.calls import MAX_TURNS, Call
from aftercall.model.followups import TurnRef
from aftercall.model.turns import Event, Turn

REQUEST_EVENT = "request.taken"


@dataclass(frozen=True)
class JoinedConversation:
    """`whole` numbers the turns through; `spots` says which leg's turn each of them is."""

    id: str
    legs: tuple[Call, ...]
    merged_call: Call
    spots: tuple[TurnRef, ...]

    @property
    def noted_requests(self) -> list[tuple[str, Event]]:
        """Requests that the agent wrote down during a call, with the call's id."""
        return [
            (leg.id, event)
            for leg in self.legs
            for event in leg.events
            if event.kind == REQUEST_EVENT
        ]

    def to_spots(self, turns: Sequence[int]) -> tuple[TurnRef, ...]:
        return tuple(self.spots[seq - 1] for seq in turns if 0 < seq <= len(self.spots))


def join_legs(
    conversation: str, legs: Sequence[tuple[Call, tuple[Turn, ...]]]
) -> JoinedConversation:
    """Legs in the order they began, each with the late words of its addenda."""
    spoken = [(call.id, turn) for call, late in legs for turn in (*call.turns, *late)][-MAX_TURNS:]
    calls = tuple(call for call, _ in legs)
    turns = tuple(
        turn.model_copy(update={"seq": number}) for number, (_, turn) in enumerate(spoken, 1)
    )
    whole: dict[str, Any] = {
        "id": conversation,
        "turns": turns,
        "events": (),
        "ended_at": max(call.ended_at for call in calls),
    }
    return JoinedConversation(
        conversation,
        calls,
        calls[0].model_copy(update=whole),
        tuple((call_id, turn.seq) for call_id, turn in spoken),
    )
