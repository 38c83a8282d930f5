"""Whose memory a call opens: decided here and nowhere else."""

from aftercall.errors import RefusedInput
from aftercall.model.facts import SHARED_CALLER, MemoryKey
from aftercall.model.people import normalise_party
from aftercall.settings import Settings


def memory_key(settings: Settings, agent_id: str, party: str | None) -> MemoryKey | None:
    """None where nobody is to be remembered: scope `none`, and callers who withhold their number.

    A party is a number, whose memory is its owner's, or a person at a number
    (`+15550100#anna`), whose memory is their own.
    """
    try:
        known = normalise_party(party)
    except ValueError as error:
        raise RefusedInput("caller", str(error)) from None
    if known is None or settings.memory.scope == "none":
        return None
    return MemoryKey(agent_id, SHARED_CALLER if settings.memory.scope == "shared" else known)
