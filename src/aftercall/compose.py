"""Builds the parts of the app from settings: the home with its database and journal, the reader,
and the telephone. The only module that names concrete adapters.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta, tzinfo
from functools import cached_property

import httpx2
from pydantic import SecretStr
from sqlalchemy import delete, select

from aftercall.bridge.pending_calls import PendingCalls
from aftercall.bridge.remote_call import RemoteCallParts, RemoteCalls
from aftercall.bridge.switchboard import CallIntake, Switchboard
from aftercall.bridge.turn_call import TurnCallParts
from aftercall.bridge.voice_call import VoiceCallParts
from aftercall.briefing.composer import Composer, brief_ring
from aftercall.briefing.render import make_instructions
from aftercall.carrier.control import CarrierControl, TelnyxRest, TwilioRest
from aftercall.clock import Clock
from aftercall.db.connect import Database
from aftercall.db.statements import upsert
from aftercall.db.tables import answers
from aftercall.encryption import Vault, load_key
from aftercall.engine.deepgram_agent import DeepgramAgent
from aftercall.engine.openai_realtime import OpenAIRealtime
from aftercall.engine.receptionist import ModelReceptionist, Receptionist
from aftercall.engine.spoken_turns import SpokenTurnEngine
from aftercall.engine.voice import VoiceEngine
from aftercall.errors import AftercallError, ConfigError, SecretUnreadable
from aftercall.journal.archive import Archive
from aftercall.journal.handover import Handovers, LateEnd, Presence
from aftercall.journal.journal import Journal
from aftercall.journal.recorder import (
    JournalInserter,
    PreparedBriefing,
    ResumeStates,
)
from aftercall.journal.spill import SpillFolder
from aftercall.journal.store import CallStore
from aftercall.llm.checked_reader import CheckedReader
from aftercall.llm.long_calls import ReadingProcess
from aftercall.llm.model.client import (
    AnswerCache,
    CachedAnswer,
    ModelClient,
    Usage,
    choose_model,
)
from aftercall.llm.model.reader import ModelReader
from aftercall.llm.reader import LocalReader, Mask, Reader
from aftercall.llm.rules.reader import RulesReader
from aftercall.log import get_logger
from aftercall.memory.search import FactRecall
from aftercall.model.calls import LiveCall
from aftercall.phone.signature import StreamTokens
from aftercall.settings import Settings
from aftercall.speech.kit import SpeechKit, find_missing, make_speech_kit
from aftercall.who.identity import CallerReception
from aftercall.who.register import CallerRegister
from aftercall.who.trust import PasscodeMask, TrustPolicy

MAX_LATE_END_S = 300.0  # a call without its stream has ended by itself by then

log = get_logger("phone")


class AnswerStore:
    """Cached answers of models. One may hold secrets, so it is sealed with our key."""

    def __init__(self, database: Database, clock: Clock, vault: Vault) -> None:
        self._database = database
        self._clock = clock
        self._vault = vault

    def find(self, key: str) -> CachedAnswer | None:
        """An answer that was sealed with another key is lost: the question is asked again."""
        row = self._database.fetch_first(select(answers).where(answers.c.key == key))
        if row is None:
            return None
        usage = Usage(row.input_tokens, row.output_tokens, row.cost)
        try:
            return CachedAnswer(self._vault.open(row.answer), usage)
        except SecretUnreadable:
            self._database.execute(delete(answers).where(answers.c.key == key))
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
        Handovers(database, store, presence, clock),
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


def choose_reader(
    client: ModelClient | None,
    rules: RulesReader,
    zone: tzinfo,
    answers: AnswerCache | None = None,
    mask: Mask | None = None,
) -> Reader:
    reader: Reader = rules
    if client is not None and client.checks_rules:
        reader = CheckedReader(rules, client, answers)
    elif client is not None:
        reader = ModelReader(client, answers)
    return LocalReader(reader, zone, mask)


def make_reader(
    settings: Settings,
    client: ModelClient | None,
    database: Database,
    clock: Clock,
    vault: Vault,
    process: ReadingProcess,
) -> Reader:
    passcode = settings.work.passcode
    return choose_reader(
        client,
        RulesReader(process),
        settings.zone,
        AnswerStore(database, clock, vault),
        PasscodeMask(passcode.get_secret_value()) if passcode else None,
    )


@dataclass(frozen=True)
class Phone:
    """Everything that answers calls, put together from the settings."""

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
    late_ends: dict[tuple[str, str], LateEnd] = field(default_factory=dict)
    """Ends that the database has not heard of, by source and sid."""

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

    def is_audible(self, call_id: str) -> bool:
        """Whether one can listen: the call is live, and its audio runs through this process."""
        parts = self.voice_parts
        return parts is not None and parts.taps.is_audible(call_id)

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
        zone = self.settings.zone
        reader = LocalReader(RulesReader(), zone)
        receptionist = Receptionist(reader, self.clock, zone)
        engine: Receptionist | ModelReceptionist = receptionist
        if self.model_client and not self.model_client.checks_rules:
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
    def intake(self) -> CallIntake:
        return CallIntake(self.journal, self.clock, self.settings.bridge.finish_s)

    @cached_property
    def pending_calls(self) -> PendingCalls:
        """Calls that wait for their media socket."""
        tokens = StreamTokens(SecretStr(load_key(self.settings).hex()), self.clock)
        greeting = self.settings.receptionist.greeting
        return PendingCalls(self.journal, self.brief, greeting, tokens, self.clock)

    @cached_property
    def switchboards(self) -> dict[str, Switchboard]:
        """Of each carrier, the calls that it asks about turn by turn."""
        return {
            source: Switchboard(self.turn_parts, self.clock, source)
            for source in ("twilio", "telnyx")
        }

    async def end_call(self, source: str, sid: str, reason: str) -> None:
        """A carrier reports that a call is over, which may be live in another process."""
        is_ended = await self.pending_calls.end(source, sid, reason)
        if source in self.switchboards and not is_ended:
            is_ended = await self.switchboards[source].end(sid, reason)
        if is_ended or not self.journal.handovers.is_shared:
            return
        if not await self._store_end(source, sid, reason):
            now_s = self.clock.monotonic()
            self.late_ends.setdefault((source, sid), LateEnd(reason, now_s))

    async def _store_end(self, source: str, sid: str, reason: str) -> bool:
        """False if the call is unknown, or the database away."""
        handovers = self.journal.handovers
        journal = self.journal
        try:
            if not await asyncio.to_thread(handovers.find_last_leg, source, sid):
                return False
            row = await asyncio.to_thread(handovers.take_ended, source, sid, reason)
            if row is not None:
                await asyncio.to_thread(journal.seal_abandoned, row)
        except AftercallError as error:
            log.warning("the end of a call is stored later", error=error.code)
            return False
        return True

    async def _store_late_ends(self) -> None:
        """A call that nobody knows may wait in a process that is cut off from the database."""
        now_s = self.clock.monotonic()
        for key, end in list(self.late_ends.items()):
            if now_s < end.due_s:
                continue
            is_stored = await self._store_end(*key, end.reason)
            if is_stored or end.age_s(now_s) > MAX_LATE_END_S:
                del self.late_ends[key]
            else:
                end.due_s = now_s + max(1.0, end.age_s(now_s))

    async def follow_handovers(self) -> None:
        """Lets go of the calls that other processes took, ends those that others saw end."""
        await self._store_late_ends()
        for switchboard in self.switchboards.values():
            await switchboard.rejoin_calls()
        handovers = self.journal.handovers
        recorders = {one.call.id: one for one in self.journal.live_recorders}
        if not handovers.is_shared or not recorders:
            return
        changes = await asyncio.to_thread(handovers.list_changes, list(recorders))
        for call_id, reason in changes:
            call = recorders[call_id].call
            sid = str(call.metadata.get("call_sid", call.sid))
            if reason is not None and (remote := self.remote_calls.find_by_id(call_id)):
                await remote.interrupt()
                continue
            if reason is not None:
                await self.end_call(call.source, sid, reason)
                continue
            if not await recorders[call_id].let_go():
                continue  # its words return to the database first
            self.journal.release(recorders[call_id])
            self.pending_calls.forget(call)
            if call.source in self.switchboards:
                self.switchboards[call.source].forget(sid)

    async def brief(self, call: LiveCall) -> PreparedBriefing:
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
