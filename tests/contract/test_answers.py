"""Answers that were paid for: kept once, sealed, and gone with the caller."""

from sqlalchemy import func, select

from aftercall.app import App
from aftercall.compose import AnswerStore
from aftercall.db.tables import answers
from aftercall.encryption import Vault, is_sealed
from aftercall.llm.model.client import CachedAnswer, Usage
from fakes import make_call

KEY = Vault(b"k" * 32)
ANSWER = CachedAnswer('{"words": "my PIN is 4821"}', Usage(100, 10, 0.001))


def kept_text(app: App) -> str:
    with app.database.read() as connection:
        return str(connection.execute(select(answers.c.answer)).scalar())


def test_an_answer_is_sealed_at_rest_and_found_again_as_it_was(app: App) -> None:
    store = AnswerStore(app.database, app.clock, KEY)
    store.keep("k1", "call", ANSWER)
    store.keep("k1", "call", CachedAnswer("another", Usage()))
    assert (is_sealed(kept_text(app)), "4821" in kept_text(app)) == (True, False)
    assert store.find("k1") == ANSWER
    assert store.find("k2") is None


def test_an_answer_sealed_with_another_key_is_asked_for_again(app: App) -> None:
    AnswerStore(app.database, app.clock, Vault(b"o" * 32)).keep("k1", "call", ANSWER)
    store = AnswerStore(app.database, app.clock, KEY)
    assert store.find("k1") is None
    store.keep("k1", "call", ANSWER)
    assert store.find("k1") == ANSWER


def test_answers_go_with_their_caller(app: App) -> None:
    row, _ = app.journal.ingest(make_call())
    store = AnswerStore(app.database, app.clock, KEY)
    store.keep("k1", row.live.id, ANSWER)
    store.keep("k2", "of another caller", ANSWER)
    app.eraser.erase("+15550100")
    with app.database.read() as connection:
        assert (
            connection.execute(select(func.count()).select_from(answers)).scalar() == 1
        )
