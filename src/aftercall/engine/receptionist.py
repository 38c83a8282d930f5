"""The built-in receptionist. It needs no key and no account.

`Receptionist` works by rules: it greets callers by name, takes requests down and confirms each in
a sentence, says what the last call was about, and says goodbye. It never claims that work was
done, and says that it took something down only if a request of the call holds it.

`ModelReceptionist` lets a model choose the words. The rules still decide what is taken down, and
speak whenever the model is late or lost, so the caller always hears something.
"""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from typing import Protocol

from aftercall.clock import Clock
from aftercall.engine.voice import AgentReply, TurnSession
from aftercall.english.text import cut_text
from aftercall.errors import ModelError
from aftercall.llm.model.client import (
    Completion,
    InvalidAnswer,
    Prompt,
    parse_answer,
)
from aftercall.llm.model.questions import SPOKEN, fence
from aftercall.llm.reader import (
    Reader,
    join,
    rephrase_title,
    speak_date,
    to_second_person,
)
from aftercall.llm.rules.acts import calls_off, corrects, denies_number
from aftercall.log import get_logger
from aftercall.model.briefing import Briefing
from aftercall.model.calls import Call, Speaker, Turn
from aftercall.model.reading import Reading, Request

_CLOSING = re.compile(
    r"\b(?:good ?bye|bye|nothing else|that(?:'s| is| will be|'ll be) (?:all|it|everything)"
    r"|have a (?:good|nice|great) (?:day|one|evening|weekend))\b",
    re.IGNORECASE,
)
_NO = re.compile(
    r"\W*(?:no|nope|nah|no thanks|no thank you|i'm good|i'm fine|all good|not "
    r"today)\b[\w\s,.!']{0,40}",
    re.IGNORECASE,
)
_RECALL = re.compile(
    r"\b(?:last (?:time|call)|previous call|do you remember|remember (?:me|what|our)"
    r"|what did (?:we|i)|where (?:were|did) we|we talked about)\b",
    re.IGNORECASE,
)
_QUESTION = re.compile(
    r"\?\s*$|^\s*(?:what|when|where|who|why|how|is|are|do|does|did|can|could|will|would)\b",
    re.IGNORECASE,
)
_HELLO = re.compile(
    r"\W*(?:(?:hi|hello|hey|good (?:morning|afternoon|evening|day))\b(?: again| there)?\W*)*"
    r"(?:(?:it's|it is|this is|i'm|i am|my name is) (?P<name>[\w'-]+)(?: [\w'-]+){0,2})?\W*",
    re.IGNORECASE,
)
_ASKED = re.compile(r"^.{1,80}? asked for: ")
MAX_QUESTION_CHARS = 200
MAX_WORK_ITEMS = 3
MODEL_TIMEOUT_S = 2.5  # the bridge waits 4 s; the rest is for the rules
MAX_REPLY_CHARS = 600
MAX_TRANSCRIPT_CHARS = 12_000
MAX_LIVE_CHARS = 20_000  # read again at each turn, while the caller waits
_MORE = ("Is there anything else?", "Anything else?", "What else can I take down?")

log = get_logger("engine")


class Receptionist:
    """The receptionist whose words are chosen by rules."""

    def __init__(self, reader: Reader, clock: Clock, zone: tzinfo = UTC) -> None:
        self._reader = reader
        self._clock = clock
        self._zone = zone

    async def connect(self, briefing: Briefing) -> "ReceptionistSession":
        session = ReceptionistSession(briefing, self._reader, self._clock, self._zone)
        await session.pick_up()
        return session


class ReceptionistSession:
    """One call of the built-in receptionist: greets, takes requests, says what it knows."""

    def __init__(
        self, briefing: Briefing, reader: Reader, clock: Clock, zone: tzinfo
    ) -> None:
        self._briefing = briefing
        self._reader = reader
        self._clock = clock
        self._zone = zone
        self._turns: list[Turn] = []
        self._known = Reading(language="en", summary="")
        self._asked_more = 0

    async def greet(self) -> AgentReply:
        return self._say(self._briefing.first_words)

    async def answer(self, said: str) -> AgentReply:
        self._add("caller", said)
        before = self._known
        # audio of other calls goes on
        now = self._known = await asyncio.to_thread(self._read)
        said = cut_text(said)[-1]  # the end of a long turn decides how to answer it
        is_closing = _CLOSING.search(said) is not None
        changes = _describe_changes(before, now, self._turns[-1].seq)
        if changes:
            return (
                self._goodbye(changes)
                if is_closing
                else self._say(f"{changes} {self._more()}")
            )
        if _RECALL.search(said):
            return self._say(f"{self._recall()} {self._more()}")
        declines = self._asked_more and _NO.fullmatch(said) and not denies_number(said)
        if is_closing or declines:
            return self._goodbye()
        if greeting := self._acknowledge(said, before, now):
            return self._say(f"{greeting} {self._more()}")
        return self._respond(said, now)

    async def update_briefing(self, briefing: Briefing, *, is_another: bool) -> None:
        self._briefing = briefing
        if is_another:
            self._turns.clear()
            self._known = Reading(language="en", summary="")
            await self.pick_up()

    async def close(self) -> None:
        return

    def replace_last_reply(self, said: str) -> None:
        """The caller heard these words instead: a model chose them."""
        self._turns[-1] = self._turns[-1].model_copy(update={"text": said})

    def lines(self) -> list[str]:
        """What was said so far, without the last reply."""
        return [
            f"[{turn.seq}] {turn.speaker.capitalize()}: {' '.join(turn.text.split())}"
            for turn in self._turns[:-1]
        ]

    async def pick_up(self) -> None:
        """Reads the dropped call that this one continues, or what was said of this one."""
        for turn in self._briefing.pick_up.turns if self._briefing.pick_up else ():
            self._add(turn.speaker, turn.text)
            self._asked_more += turn.speaker == "agent" and turn.text.endswith(_MORE)
        if self._turns:
            self._known = await asyncio.to_thread(self._read)

    def _acknowledge(self, said: str, before: Reading, now: Reading) -> str:
        """The answer to a name or a greeting; empty for other words."""
        name = now.profile.spoken_name or self._briefing.spoken_name
        if (
            now.profile.spoken_name
            and now.profile.spoken_name != before.profile.spoken_name
        ):
            return f"Thank you, {name}."
        hello = _HELLO.fullmatch(said)
        if hello and (
            not hello["name"] or hello["name"].lower() in (name or "").lower().split()
        ):
            return f"Hello, {name}." if name else "Hello."
        return ""

    def _respond(self, said: str, now: Reading) -> AgentReply:
        """The answer to words that brought no request, change or withdrawal."""
        seq = self._turns[-1].seq
        is_question = _QUESTION.search(said) is not None
        about = [request.title for request in now.requests if seq in request.turns]
        if about:
            titles = join([rephrase_title(title) for title in about])
            return self._say(f"I have taken that down: {titles}. {self._more()}")
        is_correction = corrects(said) or denies_number(said)
        if now.requests and is_correction and not is_question:
            return self._say(
                "I could not change that. Please tell me once more, all of it."
            )
        if calls_off(said):
            return self._say(f"I have nothing like that to cross out. {self._more()}")
        if not is_question:
            return self._say(f"I see. {self._more()}")
        title = f"Question: {' '.join(said.split())}"
        if any(fact.visibility == "secret" and seq in fact.turns for fact in now.facts):
            title = "Answer a question of the caller"
        words = f"I can't answer that myself, but I have taken your question down. {self._more()}"
        return self._say(
            words, taken={"kind": "other", "title": title[:MAX_QUESTION_CHARS]}
        )

    def _recall(self) -> str:
        if not self._briefing.recent:
            return "I have nothing from an earlier call of yours."
        last = self._briefing.recent[-1]
        day = speak_date(last.at.astimezone(self._zone).date())
        work = [
            f"{to_second_person(item)}."
            for item in self._briefing.work[-MAX_WORK_ITEMS:]
        ]
        return " ".join(
            [f"On {day} you called. {to_spoken_summary(last.summary)}", *work]
        )

    def _goodbye(self, changes: str = "") -> AgentReply:
        name = self._known.profile.spoken_name or self._briefing.spoken_name
        thanks = f"Thank you for calling{f', {name}' if name else ''}. Goodbye!"
        return self._say(f"{changes} {thanks}".strip(), ends_call=True)

    def _more(self) -> str:
        if (
            not self._known.requests
            and not self._known.withdrawn
            and not self._asked_more
        ):
            return "What can I do for you?"
        self._asked_more += 1
        return _MORE[(self._asked_more - 1) % len(_MORE)]

    def _say(
        self,
        text: str,
        *,
        ends_call: bool = False,
        taken: Mapping[str, str] | None = None,
    ) -> AgentReply:
        self._add("agent", text)
        return AgentReply(text, ends_call, taken)

    def _add(self, speaker: Speaker, text: str) -> None:
        last = self._turns[-1].at if self._turns else self._clock.now()
        at = max(self._clock.now(), last)
        self._turns.append(
            Turn(seq=len(self._turns) + 1, speaker=speaker, text=text, at=at)
        )

    def _read(self) -> Reading:
        """Reads the call so far with the reader that reads it after its end.

        Of a long call only the end: all of it is read once it is over.
        """
        start = self._turns[0].at
        end = self._turns[-1].at
        turns = self._recent_turns()
        call = Call(
            source="live", sid="live", started_at=start, ended_at=end, turns=turns
        )
        return self._reader.read(call)

    def _recent_turns(self) -> tuple[Turn, ...]:
        """All turns, so that their numbers stay; words beyond the limit are left out."""
        recent: list[Turn] = []
        room = MAX_LIVE_CHARS
        for turn in reversed(self._turns):
            text = turn.text[:room]
            is_whole = len(text) == len(turn.text)
            recent.append(turn if is_whole else turn.model_copy(update={"text": text}))
            room -= len(text)
        return tuple(reversed(recent))


def _describe_changes(before: Reading, now: Reading, seq: int) -> str:
    """What this turn asked for, changed or called off, in sentences; empty if nothing.

    What only we said back in other words has not changed.
    """
    fresh = []
    moved = []
    for request in now.requests:
        known = _earlier(request, before, now)
        if known is None:
            fresh.append(_confirm(request))
        elif request.due != known.due or (
            seq in request.turns and request.title != known.title
        ):
            moved.append(_confirm(request))
    titles = {item.title for item in before.withdrawn}
    gone = [
        rephrase_title(item.title) for item in now.withdrawn if item.title not in titles
    ]
    sentences = []
    if fresh:
        sentences.append(f"I have taken down: {join(fresh)}.")
    if moved:
        sentences.append(f"I have changed that: {join(moved)}.")
    if gone:
        sentences.append(f"All right, I have crossed out: {join(gone)}.")
    return " ".join(sentences)


def _earlier(request: Request, before: Reading, now: Reading) -> Request | None:
    """The same request before this turn. A correction may change its title, not its first turn."""
    titles = {other.title for other in now.requests}
    for known in before.requests:
        is_same_place = (known.kind, known.turns[:1]) == (
            request.kind,
            request.turns[:1],
        )
        if known.title == request.title or (
            is_same_place and known.title not in titles
        ):
            return known
    return None


def _confirm(request: Request) -> str:
    spoken = rephrase_title(request.title)
    due = request.due
    if due is None or str(due.day) in spoken or f"{due:%A}".lower() in spoken.lower():
        return spoken
    preposition = "on" if request.kind in ("booking", "reminder") else "by"
    return f"{spoken}, {preposition} {speak_date(due)}"


def to_spoken_summary(summary: str) -> str:
    """A stored summary as the agent says it to the caller."""
    return to_second_person(_ASKED.sub("You asked for: ", " ".join(summary.split())))


class ModelVoice(Protocol):
    """A client of a model with a timeout for each question."""

    @property
    def name(self) -> str: ...

    async def ask_within(self, prompt: Prompt, timeout_s: float) -> Completion: ...


@dataclass(frozen=True)
class ModelReceptionist:
    """The receptionist whose words are chosen by a model."""

    model: ModelVoice
    fallback: Receptionist
    zone: tzinfo

    async def connect(self, briefing: Briefing) -> TurnSession:
        return _ModelSession(self, await self.fallback.connect(briefing), briefing)


class _ModelSession:
    def __init__(
        self, engine: ModelReceptionist, rules: ReceptionistSession, briefing: Briefing
    ) -> None:
        self._engine = engine
        self._rules = rules
        self._briefing = briefing

    async def greet(self) -> AgentReply:
        """The greeting is prepared after the last call, so the caller does not wait for it."""
        return await self._rules.greet()

    async def answer(self, said: str) -> AgentReply:
        reply = await self._rules.answer(said)
        spoken = await self._ask(reply)
        if spoken is None:
            return reply
        self._rules.replace_last_reply(spoken.text)
        return spoken

    async def update_briefing(self, briefing: Briefing, *, is_another: bool) -> None:
        self._briefing = briefing
        await self._rules.update_briefing(briefing, is_another=is_another)

    async def close(self) -> None:
        await self._rules.close()

    async def _ask(self, reply: AgentReply) -> AgentReply | None:
        """The model's words for this reply; None if they are late or unusable."""
        model = self._engine.model
        prompt = Prompt(SPOKEN.prompt, self._data(reply), SPOKEN.schema, SPOKEN.name)
        try:
            answer = await model.ask_within(prompt, MODEL_TIMEOUT_S)
            form = parse_answer(answer, SPOKEN, model.name)
        except (ModelError, InvalidAnswer) as error:
            code = getattr(error, "code", "model.off_form")
            log.info("the receptionist speaks by rules", error=code)
            return None
        text = " ".join(form.say.split())
        if not text or len(text) > MAX_REPLY_CHARS:
            return None
        return replace(reply, text=text, ends_call=form.ends_call or reply.ends_call)

    def _data(self, reply: AgentReply) -> str:
        """The transcript, what earlier calls left, and the rules' reply, which names what was
        taken down.
        """
        briefing = self._briefing
        zone = self._engine.zone
        recent = [
            f"{call.at.astimezone(zone):%A, %d %B}: {' '.join(call.summary.split())}"
            for call in briefing.recent
        ]
        known = [
            f"{fact.since.astimezone(zone):%d %B %Y}: {' '.join(fact.text.split())}"
            for fact in briefing.facts
        ]
        transcript = "\n".join(self._rules.lines())[-MAX_TRANSCRIPT_CHARS:]
        blocks = [fence("transcript", transcript), fence("taken down", reply.text)]
        for name, lines in (
            ("earlier calls", recent),
            ("what the caller told before", known),
            ("work from earlier calls", briefing.work),
            ("caller's name", [briefing.caller_name] if briefing.caller_name else []),
        ):
            if lines:
                blocks.append(fence(name, "\n".join(lines)))
        return "\n\n".join(blocks)
