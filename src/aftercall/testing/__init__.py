"""For tests of agents and of Aftercall itself: a clock that you move, sample calls, fakes."""

from aftercall.testing.calls import START, make_call, make_calls, make_live_call
from aftercall.testing.clock import VirtualClock
from aftercall.testing.fakes import FakeEngine, FakeModel, FakePhone, FakeReader
from aftercall.testing.voice import FakeMediaSocket, FakeVoiceEngine, FakeVoiceSession

__all__ = [
    "START",
    "FakeEngine",
    "FakeMediaSocket",
    "FakeModel",
    "FakePhone",
    "FakeReader",
    "FakeVoiceEngine",
    "FakeVoiceSession",
    "VirtualClock",
    "make_call",
    "make_calls",
    "make_live_call",
]
