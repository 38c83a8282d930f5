"""The receptionist with a model's voice.

The one by rules listens along and speaks whenever the model is late or lost.

So the caller always hears something, and what is taken down does not depend on how it was said.
"""

from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import Protocol

from aftercall.engine.receptionist import Receptionist, ReceptionistSession
from aftercall.engine.session import AgentReply, TurnSession
from aftercall.errors import ModelError
from aftercall.llm.model.completion import Completion, InvalidAnswer, Prompt, parse_answer
from aftercall.llm.model.questions import SPOKEN, fence
from aftercall.log import get_logger
from aftercall.model.briefing import Briefing

MODEL_TIMEOUT_S = 2.5  # the bridge waits four; the one by rules has to have its turn
MAX_REPLY_CHARS = 600
MAX_TRANSCRIPT_CHARS = 12_000

log = get_logger("engine")


class ModelVoice(Protocol):
    """A line to a model that can be hurried."""

    @property
    def name(self) -> str: ...

    async def ask_within(self, prompt: Prompt, timeout_s: float) -> Completion: ...


@dataclass(frozen=True)
class ModelReceptionist:
    model: ModelVoice
    fallback: Receptionist
    zone: tzinfo

    async def connect(self, briefing: Briefing) -> TurnSession:
        return _ModelSession(self, await self.fallback.connect(briefing), briefing)


class _ModelSession:
    def __init__(
        self, engine: ModelReceptionist, listener: ReceptionistSession, briefing: Briefing
    ) -> None:
        self._engine = engine
        self._listener = listener
        self._briefing = briefing

    async def greet(self) -> AgentReply:
        """As the one by rules does: the greeting was made after the last call, and a caller
        should not wait for it.
        """
        return await self._listener.greet()

    async def answer(self, said: str) -> AgentReply:
        usual = await self._listener.answer(said)
        spoken = await self._ask(usual)
        if spoken is None:
            return usual
        self._listener.replace_last_reply(spoken.text)
        return spoken

    async def update_briefing(self, briefing: Briefing, *, is_another: bool) -> None:
        self._briefing = briefing
        await self._listener.update_briefing(briefing, is_another=is_another)

    async def close(self) -> None:
        await self._listener.close()

    async def _ask(self, usual: AgentReply) -> AgentReply | None:
        put = Prompt(SPOKEN.prompt, self._data(usual), SPOKEN.schema, SPOKEN.name)
        try:
            form = parse_answer(
                await self._engine.model.ask_within(put, MODEL_TIMEOUT_S),
                SPOKEN,
                self._engine.model.name,
            )
        except (ModelError, InvalidAnswer) as error:
            log.info(
                "the receptionist speaks by rules", error=getattr(error, "code", "model.off_form")
            )
            return None
        text = " ".join(form.say.split())
        if not text or len(text) > MAX_REPLY_CHARS:
            return None
        return replace(usual, text=text, ends_call=form.ends_call or usual.ends_call)

    def _data(self, usual: AgentReply) -> str:
        """What was said so far, what earlier calls left, and what the one by rules would say,
        which names what it took down.
        """
        blocks = [
            fence("transcript", "\n".join(self._listener.lines())[-MAX_TRANSCRIPT_CHARS:]),
            fence("taken down", usual.text),
        ]
        recent = [
            f"{call.at.astimezone(self._engine.zone):%A, %d %B}: {' '.join(call.summary.split())}"
            for call in self._briefing.recent
        ]
        if recent:
            blocks.append(fence("earlier calls", "\n".join(recent)))
        known = [
            f"{fact.since.astimezone(self._engine.zone):%d %B %Y}: {' '.join(fact.text.split())}"
            for fact in self._briefing.facts
        ]
        if known:
            blocks.append(fence("what the caller told before", "\n".join(known)))
        if self._briefing.work:
            blocks.append(fence("work from earlier calls", "\n".join(self._briefing.work)))
        if self._briefing.caller_name:
            blocks.append(fence("caller's name", self._briefing.caller_name))
        return "\n\n".join(blocks)
