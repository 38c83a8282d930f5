"""Whose memory a call opens: decided here and nowhere else."""

from aftercall.errors import RefusedInput
from aftercall.model.knowledge import SHARED, MemoryKey
from aftercall.model.people import normalise_caller
from aftercall.settings import Settings


def memory_key(settings: Settings, agent_id: str, caller: str | None) -> MemoryKey | None:
    """None where nobody is to be remembered: scope `none`, and callers who withhold their number."""
    try:
        known = normalise_caller(caller)
    except ValueError as error:
        raise RefusedInput("caller", str(error)) from None
    if known is None or settings.memory.scope == "none":
        return None
    return MemoryKey(agent_id, SHARED if settings.memory.scope == "shared" else known)
