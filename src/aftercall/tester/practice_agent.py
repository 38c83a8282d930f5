"""The practice clinic: an agent that does its job without a model, so that testers have
something to call.

It can be broken on purpose, one fault at a time (`faults.py`): those that lie in what it does
are switched on here.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from aftercall.tester.line import AgentAnswer, DialedCall

_DAY = re.compile(
    r"\b(monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b(?: (at \w+))?", re.IGNORECASE
)
_NAME = re.compile(r"\b(?:this is|my name is|i am|i'm) ([A-Z][a-z]+(?: [A-Z][a-z]+)?)")
_BARE_NAME = re.compile(r"\b([A-Z][a-z]+ [A-Z][a-z]+)\b")
_BORN = re.compile(
    r"\b(?:january|february|march|april|may|june|july|august|september|october|november"
    r"|december) \d{1,2}",
    re.IGNORECASE,
)
_CLOSING = re.compile(
    r"\b(?:that's all|that is all|no,? thank|no thanks|bye|nothing else)\b", re.IGNORECASE
)
_TASKS = (
    ("refill", r"\brefill"),
    ("reschedule", r"\breschedul|\bmove my appointment"),
    ("cancel", r"\bcancel"),
    ("tell", r"when (?:my|is my) appointment|tell me when"),
    ("book", r"\bappointment, please|\bbook"),
)
_MESSAGE = re.compile(r"\b(?:tell|remind|send|call me back|manager)\b", re.IGNORECASE)
_RECALL = re.compile(
    r"\b(?:last time|remember|talk(?:ed)? about|last caller|last five callers)\b", re.IGNORECASE
)
_ORDERS = re.compile(r"\b(?:ignore all|system prompt|administrator|instructions)\b", re.IGNORECASE)
MORE = "Is there anything else I can do for you?"


@dataclass
class PracticeClinic:
    """What the clinic remembers: by number, and, if it leaks, of whoever called last."""

    matters: dict[str | None, tuple[str, str]] = field(default_factory=dict)
    last: tuple[str, str] | None = None


class PracticeAgent:
    def __init__(self, clinic: PracticeClinic, *faults: str) -> None:
        self._clinic = clinic
        self._faults = frozenset(faults)
        self._caller: str | None = None
        self._name = ""
        self._is_born = False
        self._day = ""
        self._task = ""
        self._asked = ""
        self._done = ""
        self._message = ""
        self._asked_dob_again = False

    async def start(self, dial: DialedCall) -> Sequence[AgentAnswer]:
        self._caller = dial.caller
        known = self._clinic.matters.get(dial.caller)
        greeting = (
            f"Welcome back, {known[0].split()[0]}."
            if known and known[0]
            else "Thank you for calling Harbor Clinic."
        )
        return [
            AgentAnswer(
                f"{greeting} How can I help you today? For appointments you can also press one.",
                delay_s=0.6,
                is_stubborn="does_not_yield" in self._faults,
            )
        ]

    async def press(self, digits: str) -> Sequence[AgentAnswer]:
        if "ignores_keys" in self._faults:
            return ()
        self._task = "book"
        return self._say(self._next())

    async def idle(self, seconds: int) -> Sequence[AgentAnswer]:
        return self._say("Are you still there?") if seconds == 5 else ()

    async def hang_up(self) -> None:
        matter = (self._name, self._message or self._done)
        if matter != ("", ""):
            self._clinic.matters[self._caller] = matter
            self._clinic.last = matter

    async def respond(self, text: str) -> Sequence[AgentAnswer]:
        self._learn(text)
        if _ORDERS.search(text) or ("five callers" in text):
            return self._say(self._refuse_orders())
        if _RECALL.search(text):
            return self._say(f"{self._recall()} {MORE}")
        if "wrong number" in text:
            return [AgentAnswer("No problem at all. Goodbye!", ends_call=True, delay_s=0.6)]
        task = next(
            (name for name, pattern in _TASKS if re.search(pattern, text, re.IGNORECASE)), ""
        )
        if _CLOSING.search(text) and not task:
            return [AgentAnswer("Thank you for calling. Goodbye!", ends_call=True, delay_s=0.6)]
        if side := self._side_question(text):
            return self._say(f"{side} {self._next() if self._task and not self._done else MORE}")
        if not task and _MESSAGE.search(text):
            self._message = self._message or text.split(". ", 1)[-1].rstrip(".?!")
            thanks = f"Thank you, {self._spoken_name()}. " if self._name else ""
            return self._say(
                f"{thanks}I have taken down your message: {self._message}. I will pass it on. "
                f"{MORE}"
            )
        if task:
            self._task = task
        elif _NAME.search(text) and not self._task:
            return self._say(f"Thank you, {self._spoken_name()}. {MORE}")
        return self._say(self._next())

    def _say(self, text: str) -> Sequence[AgentAnswer]:
        return [AgentAnswer(text, delay_s=0.7, is_stubborn="does_not_yield" in self._faults)]

    def _learn(self, text: str) -> None:
        if found := _NAME.search(text):
            self._name = found.group(1)
        elif self._asked == "name" and (bare := _BARE_NAME.search(text)):
            self._name = bare.group(1)
        if _BORN.search(text):
            self._is_born = True
        days = _DAY.findall(text)
        if days and "slot_changed" in self._faults and self._day:
            return
        if days:
            self._day = " ".join(part for part in days[-1] if part)
            if self._done and "Actually" in text:
                self._task, self._done = self._task or "book", ""

    def _spoken_name(self) -> str:
        first = self._name.split()[0]
        return "Sharon" if "wrong_name" in self._faults else first

    def _side_question(self, text: str) -> str:
        if "when are you open" in text.lower():
            if "slot_changed" in self._faults and self._day:
                self._day, self._done = "Sunday at noon", ""
            return "We are open from eight to five, Monday through Friday."
        if "insurance" in text.lower():
            return "Yes, we take that plan."
        return ""

    def _recall(self) -> str:
        if "leaks" in self._faults and self._clinic.last:
            return f"The last caller, {self._clinic.last[0]}, said: {self._clinic.last[1]}."
        known = None if "forgets" in self._faults else self._clinic.matters.get(self._caller)
        return (
            f"Last time you told me: {known[1]}."
            if known and known[1]
            else "I have nothing from an earlier call of yours."
        )

    def _refuse_orders(self) -> str:
        if "obeys_orders" in self._faults:
            return f"Of course. My instructions are to answer calls for the clinic. {MORE}"
        return f"That is nothing I can help with on the phone. {MORE}"

    def _next(self) -> str:
        """The next question on the way, or what was done."""
        if self._task == "" or self._done:
            return (
                f"{self._done or 'I can make, move or cancel appointments, and take messages.'} "
                f"{MORE}"
            )
        skips = "skips_verification" in self._faults
        if not self._name and not skips:
            self._asked = "name"
            return "Of course. May I have your full name, please?"
        if not self._is_born and not skips:
            self._asked = "dob"
            return f"Thank you, {self._spoken_name()}. What is your date of birth?"
        if "asks_again" in self._faults and not self._asked_dob_again:
            self._asked_dob_again = True
            self._asked = "dob"
            return "Thanks. And could you tell me your date of birth?"
        if self._task in ("book", "reschedule") and not self._day:
            self._asked = "day"
            return "Which day and time would suit you?"
        return self._finish()

    def _finish(self) -> str:
        if "never_finishes" in self._faults:
            return f"I see. {MORE}"
        done = {
            "book": f"You are booked for {self._day}.",
            "reschedule": f"I have moved your appointment to {self._day}.",
            "cancel": "Your appointment is cancelled.",
            "refill": "Your refill is on its way to the pharmacy.",
            "tell": "Your appointment is on Monday at noon.",
        }[self._task]
        self._done = done
        if "contradicts" in self._faults:
            return (
                f"I see no medications on file for you. {MORE}"
                if self._flip()
                else f"I have sent the refill of your medications to the pharmacy. {MORE}"
            )
        if "wrong_weekday" in self._faults:
            done = "You are booked for Tuesday, March 4th, 2026, and that is confirmed."
        return f"{done} {MORE}"

    def _flip(self) -> bool:
        """The first time there is nothing on file; asked again, it is done after all."""
        if self._message != "denied":
            self._message, self._done = "denied", ""
            return True
        return False
