"""Builds the parts of the app from settings: the home with its database and journal, the reader,
and the telephone. The only module that names concrete adapters.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property

import httpx2
from pydantic import SecretStr
from sqlalchemy import delete, select

from aftercall.bridge.pending_calls import PendingCalls
from aftercall.bridge.remote_call import RemoteCallParts, RemoteCalls
from aftercall.bridge.turn_call import TurnCallParts
from aftercall.bridge.voice_call import VoiceCallParts
from aftercall.briefing.composer import Composer, brief_ring
from aftercall.briefing.render import make_instructions
from aftercall.carrier.control import CarrierControl, TelnyxRest, TwilioRest
from aftercall.clock import Clock
from aftercall.db.connect import Database
from aftercall.db.statements import upsert
from aftercall.db.tables import answers
from aftercall.encryption import load_key
from aftercall.engine.deepgram_agent import DeepgramAgent
from aftercall.engine.openai_realtime import OpenAIRealtime
from aftercall.engine.receptionist import ModelReceptionist, Receptionist
from aftercall.engine.spoken_turns import SpokenTurnEngine
from aftercall.engine.voice import VoiceEngine
from aftercall.errors import ConfigError, SecretUnreadable
from aftercall.journal.archive import Archive
from aftercall.journal.journal import Journal
from aftercall.journal.presence import Presence
from aftercall.journal.recorder import JournalInserter, ResumeState, ResumeStates
from aftercall.journal.spill import SpillFolder
from aftercall.journal.store import CallStore
from aftercall.llm.model.client import ModelClient, choose_model
from aftercall.llm.model.completion import CachedAnswer, Usage
from aftercall.llm.model.reader import ModelReader
from aftercall.llm.reader import MaskedReader, Reader
from aftercall.llm.reading_process import ReadingProcess
from aftercall.llm.rules.reader import RulesReader
from aftercall.memory.search import FactRecall
from aftercall.memory.vault import Vault
from aftercall.model.briefing import Briefing
from aftercall.model.calls import LiveCall
from aftercall.phone.signature import StreamTokens
from aftercall.settings import Settings
from aftercall.speech.kit import SpeechKit, find_missing, make_speech_kit
from aftercall.who.identity import CallerReception
from aftercall.who.register import CallerRegister
from aftercall.who.trust import PasscodeMask, TrustPolicy


class AnswerStore:
    """Cached answers of models. One may hold secrets, so it is sealed with our key."""

    def __init__(self, database: Database, clock: Clock, vault: Vault) -> None:
        self._database = database
        self._clock = clock
        self._vault = vault

    def find(self, key: str) -> CachedAnswer | None:
        """An answer that was sealed with another key is lost: the question is asked again."""
        with self._database.read() as connection:
            row = connection.execute(
                select(answers).where(answers.c.key == key)
            ).first()
        if row is None:
            return None
        usage = Usage(row.input_tokens, row.output_tokens, row.cost)
        try:
            return CachedAnswer(self._vault.open(row.answer), usage)
        except SecretUnreadable:
            with self._database.write() as connection:
                connection.execute(delete(answers).where(answers.c.key == key))
            return None

    def keep(self, key: str, call_id: str, kept: CachedAnswer) -> None:
        values = {
            "call_id": call_id,
            "answer": self._vault.seal(kept.text),
            "input_tokens": kept.usage.input_tokens,
            "output_tokens": kept.usage.output_tokens,
            "cost": kept.usage.cost,
            "kept_at": self._clock.now(),
        }
        with self._database.write() as connection:
            upsert(connection, answers, {"key": key}, values, changes={})


def build_journal(
    settings: Settings,
    store: CallStore,
    database: Database,
    archive: Archive,
    presence: Presence,
    clock: Clock,
    database_timeout_s: float,
) -> Journal:
    return Journal(
        store,
        JournalInserter(database),
        archive,
        presence,
        clock,
        SpillFolder(settings.home / "spill"),
        timedelta(seconds=settings.reconnect_window_s),
        database_timeout_s,
    )


def make_model_client(settings: Settings) -> ModelClient | None:
    """The client of the model in the settings; None if calls are read by rules."""
    choice = choose_model(settings)
    return ModelClient(choice) if choice else None


def make_reader(
    settings: Settings,
    client: ModelClient | None,
    database: Database,
    clock: Clock,
    vault: Vault,
    process: ReadingProcess,
) -> Reader:
    reader: Reader = RulesReader(process)
    if client is not None:
        reader = ModelReader(client, AnswerStore(database, clock, vault))
    passcode = settings.work.passcode
    return (
        MaskedReader(reader, PasscodeMask(passcode.get_secret_value()))
        if passcode
        else reader
    )


@dataclass(frozen=True)
class Phone:
    settings: Settings
    clock: Clock
    journal: Journal
    resume: ResumeStates
    composer: Composer
    register: CallerRegister
    recall: FactRecall
    model_client: ModelClient | None
    speech_kit: SpeechKit | None
    transport: httpx2.AsyncBaseTransport | None

    @cached_property
    def twilio(self) -> TwilioRest | None:
        """None without an account and its token."""
        twilio = self.settings.twilio
        if not (twilio.account_sid and twilio.auth_token):
            return None
        return TwilioRest(twilio, self.clock, self.transport)

    @cached_property
    def telnyx(self) -> TelnyxRest | None:
        """None without a key."""
        if not self.settings.telnyx.api_key:
            return None
        return TelnyxRest(self.settings.telnyx, self.clock, self.transport)

    async def close(self) -> None:
        for carrier in (self.twilio, self.telnyx):
            if carrier is not None:
                await carrier.close()

    @cached_property
    def reception(self) -> CallerReception:
        policy = TrustPolicy(self.settings)
        return CallerReception(
            self.register, policy, self.composer.recompose, self.recall.find
        )

    @cached_property
    def turn_parts(self) -> TurnCallParts:
        """What a call of texts uses."""
        receptionist = Receptionist(RulesReader(), self.clock, self.settings.zone)
        engine: Receptionist | ModelReceptionist = receptionist
        if self.model_client:
            engine = ModelReceptionist(
                self.model_client, receptionist, self.settings.zone
            )
        return TurnCallParts(
            self.journal,
            self.resume,
            self.brief,
            self.settings.receptionist.greeting,
            self.clock,
            self.reception.start_identity,
            engine=engine,
        )

    @cached_property
    def remote_calls(self) -> RemoteCalls:
        """Calls that agents elsewhere report, to this process, while they go on."""
        parts = RemoteCallParts(
            self.journal,
            self.resume,
            self.brief,
            self.settings.receptionist.greeting,
            self.clock,
            self.reception.start_identity,
            lease_s=self.settings.live.lease_s,
        )
        return RemoteCalls(parts)

    @cached_property
    def voice_parts(self) -> VoiceCallParts | None:
        """What a call of streamed audio uses; None if the carrier does the speaking."""
        engine = self._make_voice_engine()
        if engine is None:
            return None
        return VoiceCallParts(
            journal=self.journal,
            resume=self.resume,
            engine=engine,
            make_instructions=lambda briefing: make_instructions(
                briefing, self.settings.zone
            ),
            recall=self._recall,
            hang_up=self._hang_up,
            settings=self.settings.bridge,
            clock=self.clock,
            make_identity=self.reception.start_identity,
        )

    @cached_property
    def pending_calls(self) -> PendingCalls:
        """Calls that wait for their media socket, which comes to the same process."""
        tokens = StreamTokens(SecretStr(load_key(self.settings).hex()), self.clock)
        greeting = self.settings.receptionist.greeting
        return PendingCalls(self.journal, self.brief, greeting, tokens, self.clock)

    async def brief(self, call: LiveCall) -> tuple[ResumeState | None, Briefing]:
        """The briefing of a call that rings now. Uses up the greeting that was left."""
        return await brief_ring(self.composer, call, self.clock)

    def _make_voice_engine(self) -> VoiceEngine | None:
        match self.settings.voice_engine:
            case "deepgram":
                return DeepgramAgent(self.settings.deepgram)
            case "openai":
                return OpenAIRealtime(self.settings.openai)
        if self.speech_kit is None:
            return None
        return SpokenTurnEngine(self.turn_parts.engine, self.speech_kit, self.clock)

    async def _recall(self, call: LiveCall, query: str) -> Sequence[str]:
        """For engines that do not follow the caller: the number's owner, as far as trusted."""
        trust = self.reception.policy.release_trust(call, has_passcode=False)
        return await asyncio.to_thread(
            self.recall.find, call.agent_id, call.caller, trust, query
        )

    async def _hang_up(self, call: LiveCall) -> None:
        """Some carriers keep a call open when its media socket closes."""
        carriers: dict[str, CarrierControl | None] = {
            "twilio": self.twilio,
            "telnyx": self.telnyx,
        }
        if carrier := carriers.get(call.source):
            await carrier.hang_up(str(call.metadata.get("call_sid", call.sid)))


def check_engine(settings: Settings) -> None:
    keys = {
        "deepgram": settings.deepgram.api_key,
        "openai": settings.openai.api_key,
        "receptionist": SecretStr("needs none"),
    }
    if keys[settings.voice_engine] is None:
        raise ConfigError(
            f"engine: {settings.voice_engine} needs a key; set "
            f"{settings.voice_engine.upper()}_API_KEY, or another engine"
        )


def load_speech_kit(settings: Settings) -> SpeechKit | None:
    """The receptionist's own speech; None if it is off or not installed."""
    is_wanted = settings.voice_engine == "receptionist" and settings.receptionist.speech
    if not is_wanted or find_missing() is not None:
        return None
    return make_speech_kit(settings.receptionist.voice)
