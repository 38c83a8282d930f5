"""The reader of calls: a model or rules, and never the passcode."""

from aftercall.clock import Clock
from aftercall.db.connect import Database
from aftercall.llm.model.client import ModelClient, choose_model
from aftercall.llm.model.reader import ModelReader
from aftercall.llm.reader import MaskedReader, Reader
from aftercall.llm.reading_process import ReadingProcess
from aftercall.llm.rules.reader import RulesReader
from aftercall.memory.vault import Vault
from aftercall.postcall.answer_store import AnswerStore
from aftercall.settings import Settings
from aftercall.who.passcode import PasscodeMask


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
