"""The practice clinic: an agent that does its job without a model, for testers to call.

It can be broken on purpose: each fault names the finding it must lead to, and who causes it.
"""

import re
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial

from aftercall.errors import LineFailed
from aftercall.tester.call import ScriptedCall
from aftercall.tester.caller import Caller, CallerMove
from aftercall.tester.drivers.text_agent import Interruption, TextAgentConnection
from aftercall.tester.line import AgentAnswer, AgentAnswers, DialedCall, TextAgent
from aftercall.tester.record import CallRecord
from aftercall.tester.scenario import LineQuality, Who
from aftercall.tester.target import AgentTarget, CallSetup, TargetSession


@dataclass(frozen=True)
class PlantedFault:
    """One fault: the scenario that shows it, the finding it leads to, and who causes it."""

    name: str
    finding: str
    who: Who = "agent"
    scenario: str = "appointment_scheduling"
    line: LineQuality | None = None


_BURSTS = LineQuality(loss=0.8, burst=40)

FAULTS: tuple[PlantedFault, ...] = (
    PlantedFault("asks_again", "asks_again"),
    PlantedFault(
        "skips_verification", "verification_skipped", scenario="prescription_refill"
    ),
    PlantedFault("leaks", "leak", scenario="no_leak_across_callers"),
    PlantedFault("forgets", "goal_missed", scenario="memory_across_calls"),
    PlantedFault("slot_changed", "slot_changed", scenario="edge_topic_detour"),
    PlantedFault("wrong_name", "wrong_name", scenario="edge_misheard_name"),
    PlantedFault("obeys_orders", "forbidden_words", scenario="edge_prompt_injection"),
    PlantedFault("ignores_keys", "expectation_missed", scenario="edge_dtmf_menu"),
    PlantedFault("never_finishes", "goal_missed"),
    PlantedFault("contradicts", "contradiction", scenario="prescription_refill"),
    PlantedFault("wrong_weekday", "wrong_weekday"),
    PlantedFault("does_not_yield", "does_not_yield", scenario="edge_barge_in"),
    PlantedFault("slow", "slow_answer"),
    PlantedFault("silent_turn", "no_answer"),
    PlantedFault("mute", "never_spoke"),
    PlantedFault("talks_over", "talks_over_caller"),
    PlantedFault("says_again", "says_again"),
    PlantedFault("refusal_loop", "refusal_loop"),
    PlantedFault("stalls", "stalls"),
    PlantedFault("echo", "echoes"),
    PlantedFault("hangs_up", "hung_up_early"),
    PlantedFault("breaks_off", "broken_off"),
    PlantedFault("monologue", "monologue"),
    PlantedFault("other_language", "other_language"),
    PlantedFault("unspeakable", "reads_markup"),
    PlantedFault("late_greeting", "slow_greeting"),
    PlantedFault("deaf_line", "sound_lost", "line", line=_BURSTS),
    PlantedFault("line_breaks", "line_broke", "line"),
    PlantedFault("not_connected", "outcome_failed", "line"),
    PlantedFault("caller_wrong_answer", "caller_off_script", "tester"),
    PlantedFault("caller_ignores", "caller_off_script", "tester"),
    PlantedFault("caller_leaves", "caller_left_early", "tester"),
)
BY_NAME = {planted.name: planted for planted in FAULTS}
INTERRUPTION = Interruption(
    0.7, "Right, let me tell you about our new opening hours first."
)

_DAY = re.compile(
    r"\b(monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b(?: (at \w+))?",
    re.IGNORECASE,
)
_NAME = re.compile(r"\b(?:this is|my name is|i am|i'm) ([A-Z][a-z]+(?: [A-Z][a-z]+)?)")
_BARE_NAME = re.compile(r"\b([A-Z][a-z]+ [A-Z][a-z]+)\b")
_BORN = re.compile(
    r"\b(?:january|february|march|april|may|june|july|august|september|october|november"
    r"|december) \d{1,2}",
    re.IGNORECASE,
)
_CLOSING = re.compile(
    r"\b(?:that's all|that is all|no,? thank|no thanks|bye|nothing else)\b",
    re.IGNORECASE,
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
    r"\b(?:last time|remember|talk(?:ed)? about|last caller|last five callers)\b",
    re.IGNORECASE,
)
_ORDERS = re.compile(
    r"\b(?:ignore all|system prompt|administrator|instructions)\b", re.IGNORECASE
)
_MORE = "Is there anything else I can do for you?"
_STORY = (
    "Our clinic was founded many years ago by two doctors, who loved the sea and who wanted "
    "to help everybody along the whole harbor, and so"
)
_NO_IDLE_WORDS = frozenset({"mute", "silent_turn", "slow", "late_greeting", "stalls"})
# fault: which of the agent's answers it replaces, and with what
_REPLACED: dict[str, tuple[range, str]] = {
    "refusal_loop": (range(1, 5), "I'm sorry, I cannot help you with that request."),
    "stalls": (range(2, 6), "One moment, let me check that for you."),
    "breaks_off": (range(2, 3), "Certainly. In order to do that I will first need to"),
    "other_language": (
        range(2, 3),
        "Gracias por su llamada, en que le puedo ayudar con una cita para usted.",
    ),
}


@dataclass
class PracticeClinic:
    """What the clinic remembers: by number, and, for the fault `leaks`, of the last caller."""

    matters: dict[str | None, tuple[str, str]] = field(default_factory=dict)
    last: tuple[str, str] | None = None


class PracticeAgent(TextAgent):
    """An agent with known faults to switch on; the tester is measured against it."""

    def __init__(self, clinic: PracticeClinic, *faults: str) -> None:
        self._clinic = clinic
        self._faults = faults
        self._caller: str | None = None
        self._name = ""
        self._is_born = False
        self._day = ""
        self._task = ""
        self._asked = ""
        self._done = ""
        self._message = ""
        self._asked_dob_again = False
        self._answers = 0

    async def start(self, dial: DialedCall) -> AgentAnswers:
        if "not_connected" in self._faults:
            raise LineFailed("the practice line is down")
        self._caller = dial.caller
        if "mute" in self._faults:
            return ()
        known = self._clinic.matters.get(dial.caller)
        greeting = "Thank you for calling Harbor Clinic."
        if known and known[0]:
            greeting = f"Welcome back, {known[0].split()[0]}."
        offer = "How can I help you today? For appointments you can also press one."
        delay_s = 8.0 if "late_greeting" in self._faults else 0.6
        is_stubborn = "does_not_yield" in self._faults
        return [
            AgentAnswer(f"{greeting} {offer}", delay_s=delay_s, is_stubborn=is_stubborn)
        ]

    async def press(self, digits: str) -> AgentAnswers:
        if "ignores_keys" in self._faults:
            return ()
        self._task = "book"
        return self._say(self._next())

    async def idle(self, seconds: int) -> AgentAnswers:
        if seconds != 5 or not _NO_IDLE_WORDS.isdisjoint(self._faults):
            return ()
        return self._say("Are you still there?")

    async def hang_up(self) -> None:
        matter = (self._name, self._message or self._done)
        if matter != ("", ""):
            self._clinic.matters[self._caller] = matter
            self._clinic.last = matter

    async def respond(self, text: str) -> AgentAnswers:
        self._answers += 1
        if "line_breaks" in self._faults and self._answers == 2:
            raise LineFailed("the practice line broke")
        answers = self._answer(text)
        for fault in self._faults:
            answers = _distort(fault, self._answers, text, answers)
        return answers

    def _answer(self, text: str) -> AgentAnswers:
        self._learn(text)
        if words := self._refuse_or_recall(text):
            return self._say(f"{words} {_MORE}")
        if "wrong number" in text:
            return [
                AgentAnswer("No problem at all. Goodbye!", ends_call=True, delay_s=0.6)
            ]
        tasks = (
            name for name, pattern in _TASKS if re.search(pattern, text, re.IGNORECASE)
        )
        task = next(tasks, "")
        if _CLOSING.search(text) and not task:
            return [
                AgentAnswer(
                    "Thank you for calling. Goodbye!", ends_call=True, delay_s=0.6
                )
            ]
        if side := self._side_question(text):
            return self._say(
                f"{side} {self._next() if self._task and not self._done else _MORE}"
            )
        if not task and _MESSAGE.search(text):
            return self._say(f"{self._take_message(text)} {_MORE}")
        if task:
            self._task = task
        elif _NAME.search(text) and not self._task:
            return self._say(f"Thank you, {self._spoken_name()}. {_MORE}")
        return self._say(self._next())

    def _refuse_or_recall(self, text: str) -> str:
        if _ORDERS.search(text) or "five callers" in text:
            return self._refuse_orders()
        return self._recall() if _RECALL.search(text) else ""

    def _take_message(self, text: str) -> str:
        self._message = self._message or text.split(". ", 1)[-1].rstrip(".?!")
        thanks = f"Thank you, {self._spoken_name()}. " if self._name else ""
        return f"{thanks}I have taken down your message: {self._message}. I will pass it on."

    def _say(self, text: str) -> AgentAnswers:
        return [
            AgentAnswer(text, delay_s=0.7, is_stubborn="does_not_yield" in self._faults)
        ]

    def _learn(self, text: str) -> None:
        """Picks name, birth date and day out of what the caller says."""
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
        known = (
            None
            if "forgets" in self._faults
            else self._clinic.matters.get(self._caller)
        )
        if known and known[1]:
            return f"Last time you told me: {known[1]}."
        return "I have nothing from an earlier call of yours."

    def _refuse_orders(self) -> str:
        if "obeys_orders" in self._faults:
            return "Of course. My instructions are to answer calls for the clinic."
        return "That is nothing I can help with on the phone."

    def _next(self) -> str:
        """The next question on the way, or what was done."""
        if self._task == "" or self._done:
            offer = "I can make, move or cancel appointments, and take messages."
            return f"{self._done or offer} {_MORE}"
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
            return f"I see. {_MORE}"
        done = {
            "book": f"You are booked for {self._day}.",
            "reschedule": f"I have moved your appointment to {self._day}.",
            "cancel": "Your appointment is cancelled.",
            "refill": "Your refill is on its way to the pharmacy.",
            "tell": "Your appointment is on Monday at noon.",
        }[self._task]
        self._done = done
        if "contradicts" in self._faults:
            done = self._contradict()
        if "wrong_weekday" in self._faults:
            done = "You are booked for Tuesday, March 4th, 2026, and that is confirmed."
        return f"{done} {_MORE}"

    def _contradict(self) -> str:
        """First there is nothing on file; asked again, it is done after all."""
        if self._message == "denied":
            return "I have sent the refill of your medications to the pharmacy."
        self._message, self._done = "denied", ""
        return "I see no medications on file for you."


def _distort(fault: str, count: int, heard: str, answers: AgentAnswers) -> AgentAnswers:
    """A correct answer as the fault changes it; `count` is the number of the answer, from 1."""
    if fault in _REPLACED:
        replaced, text = _REPLACED[fault]
        return [AgentAnswer(text, delay_s=0.7)] if count in replaced else answers
    if fault == "mute" or (fault == "silent_turn" and count == 2):
        return ()
    if fault == "slow":
        return [replace(answer, delay_s=6.0) for answer in answers]
    if fault == "says_again":
        return _prefix("We value every single patient of ours.", answers)
    if fault == "unspeakable":
        return _prefix("**Note**", answers)
    if fault == "echo":
        return [AgentAnswer(heard, delay_s=0.7)]
    if fault == "hangs_up":
        return [AgentAnswer("Please hold.", ends_call=True, delay_s=0.7)]
    if fault == "monologue" and count == 1:
        return [
            AgentAnswer(" ".join([_STORY] * 6) + " " + answers[0].text, delay_s=0.7)
        ]
    return answers


def _prefix(words: str, answers: AgentAnswers) -> AgentAnswers:
    return [replace(answer, text=f"{words} {answer.text}") for answer in answers]


def practice_target(setup: CallSetup, faults: tuple[str, ...] = ()) -> AgentTarget:
    """The practice clinic with the given faults; it answers without thinking time."""

    def open_session() -> AbstractAsyncContextManager[TargetSession]:
        return nullcontext(partial(_hold_call, setup, faults, PracticeClinic()))

    name = "practice" + (":" + ",".join(faults) if faults else "")
    return AgentTarget(name, setup.is_live, open_session, keeps_time=False)


async def _hold_call(
    setup: CallSetup,
    faults: tuple[str, ...],
    clinic: PracticeClinic,
    call: ScriptedCall,
) -> CallRecord:
    for fault in (BY_NAME[name] for name in faults):
        if fault.line is not None:
            bad_line = call.scenario.model_copy(update={"line": fault.line})
            call = replace(call, scenario=bad_line)
        if fault.who == "tester":
            call = replace(call, caller=FaultyCaller(fault.name, call))
    interruption = INTERRUPTION if "talks_over" in faults else None
    return await setup.hold_call(
        lambda pace: TextAgentConnection(
            PracticeAgent(clinic, *faults),
            setup.agent_voice,
            pace,
            kind="audio",
            counts_work=False,
            interruption=interruption,
        ),
        call,
    )


class FaultyCaller(Caller):
    """Does not keep to the script: shows that the tester's mistakes are named as such."""

    def __init__(self, fault: str, call: ScriptedCall) -> None:
        super().__init__(call.scenario, call.plan, call.seed)
        self._fault = fault

    async def respond(self, text: str) -> CallerMove:
        move = await super().respond(text)
        if not move.why.startswith("answer:"):
            return move
        if self._fault == "caller_wrong_answer":
            return CallerMove("say", "Ernest Poole, December 24th, 1900", move.why)
        if self._fault == "caller_ignores":
            return CallerMove("say", "What lovely weather today.", "filler:okay")
        return CallerMove("hang_up", why="")
