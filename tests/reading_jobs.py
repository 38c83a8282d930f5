"""Readings for a process of their own, which has to be able to import them."""

import multiprocessing
import os
import signal

from aftercall.model.calls import Call
from aftercall.model.reading import Reading


def tell_process(call: Call) -> Reading:
    """Tells by which process the call was read. A child that reads "die" is killed."""
    is_child = multiprocessing.parent_process() is not None
    if is_child and call.turns[0].text.startswith("die"):
        os.kill(os.getpid(), signal.SIGKILL)
    return Reading(language="en", summary=str(os.getpid()))


def fail(call: Call) -> Reading:
    raise ValueError(f"{len(call.turns)} turns")
