"""Searching, on both databases: what is found, for whom, and as of when."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from sqlalchemy import select, text

from aftercall.app import App
from aftercall.db.connect import Database
from aftercall.db.tables import passages
from aftercall.errors import ConfigError, ModelUnavailable
from aftercall.memory.embedding import embed_missing, load_embedder
from aftercall.memory.passage_store import (
    REDACTED_TEXT,
    add,
    make_passages,
    make_summary_passage,
    record_mentions,
    remove_facts,
    replace_call,
    retire,
)
from aftercall.memory.search import FactRecall, MemorySearch, make_party_scope
from aftercall.model.calls import Call
from aftercall.model.passages import Passage, SearchHit, SearchScope
from aftercall.settings import Settings
from aftercall.settings.providers import OpenAISettings
from fakes import START, VirtualClock, make_call
from opened_apps import OpenApp, OpenDatabase

BILL, ANN = "+15550100", "+15550199"
OURS = SearchScope("main", BILL)


@pytest.fixture
def search(app: App) -> MemorySearch:
    return app.search


def fact(ref: str, told: str, caller: str | None = BILL, **fields: object) -> Passage:
    defaults: dict[str, object] = {"at": START, "category": "person", "ref": ref}
    agent_id = str(fields.pop("agent_id", "main"))
    return Passage("fact", agent_id, caller, None, told, **(defaults | fields))  # type: ignore[arg-type]


def keep(app: App, *kept: Passage) -> None:
    with app.database.write() as connection:
        add(connection, kept)


def index_call(
    app: App, call: Call, summary: str = "", secrets: Sequence[str] = ()
) -> int:
    fresh = make_passages(call, secrets)
    if summary:
        fresh.append(make_summary_passage(call, summary, secrets))
    with app.database.write() as connection:
        replace_call(connection, call.id, fresh, ["turn", "summary"])
    return len(fresh)


def refs(hits: list[SearchHit]) -> list[str | None]:
    return [hit.passage.ref for hit in hits]


def texts(hits: list[SearchHit]) -> set[str]:
    return {hit.passage.text for hit in hits}


def test_a_call_is_found_by_other_forms_of_its_words_with_the_turns_beside_it(
    app: App, search: MemorySearch
) -> None:
    said = [
        ("agent", "Hello!"),
        ("caller", "I adopted two greyhounds in June."),
        ("agent", "Congratulations!"),
        ("caller", "Bye."),
    ]
    index_call(app, make_call(said), "The caller told of greyhounds.")
    first = search.find("when did she adopt the greyhound", OURS)[0]
    assert (first.passage.kind, first.passage.seq, first.passage.speaker) == (
        "turn",
        2,
        "caller",
    )
    assert [turn.text for turn in first.before + first.after] == [
        "Hello!",
        "Congratulations!",
    ]
    assert texts(
        search.find("greyhound", SearchScope("main", BILL, kinds=("summary",)))
    ) == {"The caller told of greyhounds."}


def test_the_answer_to_a_question_is_found_by_the_question(
    app: App, search: MemorySearch
) -> None:
    said = [
        ("agent", "Hello."),
        ("agent", "What is your dog called?"),
        ("caller", "Biscuit."),
        ("agent", "Lovely."),
    ]
    index_call(app, make_call(said))
    assert "Biscuit." in [hit.passage.text for hit in search.find("dog", OURS)][:2]


def test_passages_that_hold_the_word_come_before_their_neighbours(
    app: App, search: MemorySearch
) -> None:
    told = [
        ("agent", "I see."),
        ("caller", "The invoice is wrong."),
        ("agent", "Noted."),
        ("caller", "Thanks."),
    ]
    index_call(app, make_call(told * 5))
    index_call(
        app, make_call([("agent", "Hello!"), ("caller", "Was there an invoice?")])
    )
    found = [hit.passage.text for hit in search.find("invoices", OURS, limit=12)]
    assert found[:6] == [*["The invoice is wrong."] * 5, "Was there an invoice?"]
    assert set(found[6:]) <= {"I see.", "Noted.", "Thanks.", "Hello!"}


def test_words_beside_many_others_do_not_crowd_out_what_holds_the_word(
    app: App, search: MemorySearch
) -> None:
    long = [("caller", "The invoice is wrong."), *[("agent", "I see.")] * 4] * 12
    index_call(app, make_call(long))
    for number in range(20):
        index_call(app, make_call([("caller", f"Is invoice {number} paid?")]))
    found = [hit.passage.text for hit in search.find("invoice", OURS, limit=30)]
    assert len(found) == 30
    assert all("invoice" in text for text in found)


def test_indexing_twice_leaves_one_of_each(app: App, search: MemorySearch) -> None:
    call = make_call([("caller", "The boiler is leaking.")])
    for summary in ("Boiler.", "A leaking boiler."):
        assert index_call(app, call, summary) == 2
    assert texts(search.find("boiler", OURS)) == {
        "The boiler is leaking.",
        "A leaking boiler.",
    }


def test_indexing_at_once_leaves_one_of_each(app: App, search: MemorySearch) -> None:
    call = make_call([("caller", "The boiler is leaking."), ("agent", "Which boiler?")])
    with ThreadPoolExecutor(4) as threads:
        assert set(
            threads.map(lambda _: index_call(app, call, "Boiler."), range(8))
        ) == {3}
    assert len(search.find("boiler", OURS)) == 3


def test_indexing_again_leaves_the_facts_of_the_call(
    app: App, search: MemorySearch
) -> None:
    call = make_call([("caller", "The boiler is leaking.")])
    keep(app, Passage("fact", "main", BILL, call.id, "Has a boiler", START, ref="F1"))
    index_call(app, call)
    assert "F1" in refs(search.find("boiler", OURS))


def test_a_secret_is_never_kept_for_search(app: App, search: MemorySearch) -> None:
    call = make_call(
        [
            ("agent", "What is your PIN?"),
            ("caller", "My PIN is 4471."),
            ("caller", "My cat is called Quillfeather."),
        ]
    )
    index_call(app, call, "Told a PIN.", secrets=["cat is called quillfeather"])
    keep(app, fact("F1", "the alarm code is 9913", visibility="secret"))
    with app.database.read() as connection:
        kept = str(connection.execute(select(passages)).fetchall())
    assert not any(
        word in kept for word in ("4471", "Quillfeather", "quillfeath", "9913")
    )
    assert f"My {REDACTED_TEXT}." in texts(search.find("my cat pin", OURS))


def test_a_phrase_must_stand_as_it_is_quoted(app: App, search: MemorySearch) -> None:
    keep(
        app,
        fact("F1", "the front door is green"),
        fact("F2", "the door at the front"),
        fact("F3", "Front doors stick"),
    )
    assert set(refs(search.find('"front door"', OURS))) == {"F1", "F3"}
    assert set(refs(search.find("front door", OURS))) == {"F1", "F2", "F3"}
    assert search.find('"door front" green', OURS) == []


def test_facts_are_found_once_told_and_as_of_the_time_they_held(
    app: App, search: MemorySearch
) -> None:
    for days, town in enumerate(("Leeds", "York")):
        said = [
            ("agent", "Hello!"),
            ("caller", f"Hi, this is Bill. I live in {town} now."),
            ("agent", "Noted."),
            ("caller", "Bye."),
        ]
        row, _ = app.journal.ingest(
            make_call(said, started_at=START + timedelta(days=10 * days))
        )
        app.step_runner.run(row.live.id, "facts")

    def found(days: int) -> str:
        where = SearchScope(
            "main", BILL, kinds=("fact",), as_of=START + timedelta(days=days)
        )
        return " ".join(texts(search.find("where does he live", where)))

    assert ["Leeds" in found(days) for days in (1, 30)] == [True, False]
    assert ["York" in found(days) for days in (1, 30)] == [False, True]


def test_the_words_around_a_fact_find_it_too(app: App, search: MemorySearch) -> None:
    keep(app, fact("F1", "Lives in Leeds", around="we moved here for the university"))
    assert refs(search.find("universities", OURS)) == ["F1"]


def test_a_retired_fact_is_found_as_of_the_time_it_held(
    app: App, search: MemorySearch
) -> None:
    later = START + timedelta(days=30)
    keep(app, fact("F1", "Lives in Leeds"), fact("F2", "Lives in York", at=later))
    with app.database.write() as connection:
        retire(connection, {"F1": later})
    as_of = [
        SearchScope("main", BILL, as_of=START + timedelta(days=days))
        for days in (-1, 1, 29, 30, 31)
    ]
    assert [refs(search.find("where does he live", where)) for where in as_of] == [
        [],
        ["F1"],
        ["F1"],
        ["F2"],
        ["F2"],
    ]
    assert refs(search.find("live", OURS)) == ["F2"]


def test_a_fact_told_often_and_lately_comes_first(
    app: App, search: MemorySearch
) -> None:
    keep(
        app,
        *(
            fact(f"F{number}", "likes tea", at=START - timedelta(days=300))
            for number in range(3)
        ),
    )
    with app.database.write() as connection:
        record_mentions(
            connection, [fact("F1", "likes tea", around="with milk", at=START)]
        )
    first = search.find("tea", OURS)[0].passage
    assert (first.ref, first.mentions) == ("F1", 2)
    assert refs(search.find("milk", OURS)) == ["F1"]


def test_a_fact_said_several_times_is_one_passage_with_all_the_words_around_it(
    app: App, search: MemorySearch
) -> None:
    keep(app, fact("F1", "likes tea", at=START - timedelta(days=9)))
    with app.database.write() as connection:
        record_mentions(
            connection,
            [
                fact("F2", "sings", around="in a choir"),
                fact("F1", "likes tea", around="with milk"),
            ],
        )
        record_mentions(
            connection,
            [
                fact("F3", "rows", around="on the Thames"),
                fact("F3", "rows", around="at dawn"),
                fact("F1", "likes tea"),
            ],
        )
    assert [
        refs(search.find(word, OURS)) for word in ("choir", "milk", "Thames", "dawn")
    ] == [
        ["F2"],
        ["F1"],
        ["F3"],
        ["F3"],
    ]
    mentions = {
        hit.passage.ref: hit.passage.mentions
        for hit in search.find("tea sings rows", OURS)
    }
    assert mentions == {"F1": 3, "F2": 1, "F3": 2}


def test_filters_leave_only_what_they_name(app: App, search: MemorySearch) -> None:
    old, new = START - timedelta(days=9), START
    keep(
        app,
        fact("F1", "tea at noon", category="routine", at=old),
        fact(
            "F2", "tea, not coffee", category="preference", visibility="private", at=new
        ),
    )
    index_call(app, make_call([("caller", "Tea please.")], started_at=new))

    def found(**where: object) -> set[str]:
        return texts(search.find("tea", SearchScope("main", BILL, **where)))  # type: ignore[arg-type]

    assert found() == {"tea at noon", "tea, not coffee", "Tea please."}
    assert found(kinds=("turn",)) == {"Tea please."}
    assert found(categories=("routine",)) == {"tea at noon"}
    assert found(visibilities=("private",)) == {"tea, not coffee"}
    assert found(since=new) == {"tea, not coffee", "Tea please."}
    assert found(before=new) == {"tea at noon"}


def test_a_fact_that_is_removed_is_found_no_more(
    app: App, search: MemorySearch
) -> None:
    keep(app, fact("F1", "tea at noon"), fact("F2", "tea for Ann", ANN))
    with app.database.write() as connection:
        remove_facts(connection, ["F1"])
        remove_facts(connection, ["F1"])
    assert search.find("tea", OURS) == []
    assert refs(search.find("tea", SearchScope("main", None))) == ["F2"]


def test_an_owner_searches_all_callers_of_one_agent(
    app: App, search: MemorySearch
) -> None:
    keep(app, fact("F1", "tea", BILL), fact("F2", "tea", ANN), fact("F3", "tea", None))
    keep(app, Passage("fact", "desk", BILL, None, "tea", START, ref="F4"))
    assert set(refs(search.find("tea", SearchScope("main", None)))) == {
        "F1",
        "F2",
        "F3",
    }
    assert refs(search.find("tea", SearchScope("desk", BILL))) == ["F4"]


def test_many_facts_at_once_all_find_their_place(
    app: App, search: MemorySearch
) -> None:
    keep(app, *(fact(f"F{number}", f"item {number}") for number in range(75)))
    assert set(refs(search.find("item", OURS, limit=100))) == {
        f"F{number}" for number in range(75)
    }


class Topics:
    """An embedder that knows two topics."""

    name = "topics"

    def embed(self, told: list[str]) -> list[list[float]]:
        drinks, places = ("tea", "beverage", "espresso"), ("leeds", "town")
        return [
            [
                float(any(word in text.lower() for word in words))
                for words in (drinks, places)
            ]
            for text in told
        ]


def test_with_an_embedder_what_is_near_in_meaning_is_found_within_the_callers_rows(
    app: App,
) -> None:
    search = MemorySearch(app.database, app.clock, embedder=Topics())
    keep(
        app,
        fact("F1", "loves an espresso"),
        fact("F2", "lives in Leeds"),
        fact("F3", "drinks tea", ANN),
    )
    assert embed_missing(app.database, Topics()) == 3
    assert embed_missing(app.database, Topics()) == 0
    assert refs(search.find("favourite beverage", OURS)) == ["F1"]
    with app.database.write() as connection:
        retire(connection, {"F1": START})
        remove_facts(connection, ["F2"])
    assert search.find("favourite beverage", OURS) == []
    assert refs(search.find("favourite beverage", SearchScope("main", None))) == ["F3"]


def test_an_embedder_serves_searches_of_all_callers_and_of_a_shared_memory(
    settings: Settings, clock: VirtualClock, open_app: OpenApp
) -> None:
    memory = settings.memory.model_copy(update={"scope": "shared"})
    app = open_app(settings.model_copy(update={"memory": memory}), clock)
    keep(
        app,
        fact("F1", "loves an espresso", "*"),
        fact("F2", "drinks tea", ANN),
        fact("F3", "tea is served at four", agent_id="other"),
    )
    embed_missing(app.database, Topics())
    search = MemorySearch(app.database, clock, embedder=Topics())
    where = make_party_scope(app.settings, "main", BILL)
    assert where is not None
    assert set(refs(search.find("favourite beverage", where))) == {"F1", "F2"}
    lines = FactRecall(app.settings, search, app.facts).find(
        "main", BILL, "verified", "favourite beverage"
    )
    assert any("espresso" in line for line in lines)


class Away(Topics):
    def embed(self, told: list[str]) -> list[list[float]]:
        raise ModelUnavailable("topics: is away")


def test_when_the_embedder_is_away_the_words_still_find(app: App) -> None:
    keep(app, fact("F1", "loves an espresso"))
    embed_missing(app.database, Topics())
    search = MemorySearch(app.database, app.clock, embedder=Away())
    assert refs(search.find("espresso", OURS)) == ["F1"]
    assert search.find("beverage", OURS) == []


class Wider(Topics):
    """The same name, but another model by now."""

    def embed(self, told: list[str]) -> list[list[float]]:
        return [[*vector, 1.0] for vector in super().embed(told)]


def test_vectors_of_another_dimension_than_the_querys_are_left_out(app: App) -> None:
    keep(app, fact("F1", "loves an espresso"))
    embed_missing(app.database, Topics())
    keep(app, fact("F2", "drinks tea"))
    embed_missing(app.database, Wider())
    search = MemorySearch(app.database, app.clock, embedder=Wider())
    assert refs(search.find("favourite beverage", OURS)) == ["F2"]
    assert refs(search.find("espresso", OURS))[0] == "F1"


def test_an_embedder_is_named_by_module_and_factory() -> None:
    # any factory will do
    assert load_embedder("fakes:VirtualClock", OpenAISettings()) is not None
    assert load_embedder("", OpenAISettings()) is None
    for path in ("nonsense", "no.such.module:Thing", "json:nothing"):
        with pytest.raises(ConfigError, match=r"memory\.embedder"):
            load_embedder(path, OpenAISettings())


SAID = st.text(alphabet=st.sampled_from("ab c'\"*-é东😀AND"), max_size=12)


@pytest.fixture
def both(
    tmp_path: Path, other_postgres: str, open_database: OpenDatabase
) -> list[Database]:
    from aftercall.db.upgrade import prepare_database

    lite = open_database(f"sqlite:///{tmp_path / 'both.db'}")
    prepare_database(lite)
    return [lite, open_database(other_postgres)]


def ask(
    database: Database, kept: list[tuple[str, str]], query: str, where: SearchScope
) -> set[str]:
    """What is found among these texts of these callers, in a store of their own."""
    with database.write() as connection:
        connection.execute(passages.delete())
        add(
            connection,
            [
                fact(f"F{number}", told, caller)
                for number, (caller, told) in enumerate(kept)
            ],
        )
    hits = MemorySearch(database, VirtualClock()).find(query, where, limit=1_000)
    assert all(hit.passage.caller == where.caller for hit in hits)
    return {str(hit.passage.ref) for hit in hits}


@given(
    st.lists(st.tuples(st.sampled_from([BILL, ANN]), SAID), max_size=6),
    st.one_of(SAID, st.text()),
)
@hypothesis_settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_any_text_is_a_query_both_databases_agree_and_no_caller_finds_anothers(
    both: list[Database], kept: list[tuple[str, str]], query: str
) -> None:
    lite, post = (ask(database, kept, query, OURS) for database in both)
    assert lite == post


def test_no_text_breaks_a_search(app: App, search: MemorySearch) -> None:
    keep(app, fact("F1", "don't follow-up"), fact("F2", "x"))
    operators = [
        "",
        '"',
        "'",
        "don't",
        "follow-up",
        "a AND",
        "*",
        "NEAR(",
        "col:x",
        "^x",
        "x:*",
        "\\",
        "😀",
        "\0",
        "%_",
        "\ud800",
    ]
    for query in [*operators, "x" * 100_000, "a b " * 25_000, '"x' * 50_000]:
        assert isinstance(search.find(query, OURS), list)


def test_full_text_holds_exactly_the_rows(
    tmp_path: Path, open_database: OpenDatabase
) -> None:
    from aftercall.db.upgrade import prepare_database

    database = open_database(f"sqlite:///{tmp_path / 'a.db'}")
    prepare_database(database)
    with database.write() as connection:
        add(connection, [fact("F1", "tea"), fact("F2", "coffee", around="beans")])
        retire(connection, {"F1": START})
        remove_facts(connection, ["F2"])
        connection.execute(
            text(
                "INSERT INTO passages_fts (passages_fts, rank) VALUES ('integrity-check', 1)"
            )
        )
