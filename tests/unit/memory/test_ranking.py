"""How passages are weighed against each other."""

from datetime import date

from aftercall.memory.query import Day, SearchQuery
from aftercall.memory.ranking import (
    QUESTION,
    TIME,
    WEIGHTS,
    compute_marks,
    score_passage,
    score_words,
)
from aftercall.memory.words import to_terms
from aftercall.model.passages import MatchSigns

TODAY = date(2026, 2, 13).toordinal()
TURN = MatchSigns(
    *(1, TODAY, 0, "turn", "caller", "", 1, 1),
    *("C1", None, "main", "+15550100", "shared", "2026-02-13T00:00:00.000Z", None, "x"),
)
FACT = TURN._replace(kind="fact", speaker="", category="technical")


def score(query: SearchQuery, signs: MatchSigns) -> float:
    return score_passage(query, 1.0, signs, TODAY)


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    common, rare = [place << 15 for place in range(2, 102, 2)], [102 << 15]
    scores = score_words([common, rare], 15)
    assert max(scores, key=scores.__getitem__) == rare[0]


def test_the_turn_after_a_word_counts_less_than_its_own_and_more_than_the_one_before() -> (
    None
):
    turn = (1 << 15) + 100
    scores = score_words([[turn]], 15)
    assert scores[turn] > scores[turn + 1] > scores[turn - 1] > scores[turn - 2]
    assert turn - 3 not in scores


def test_facts_have_no_neighbours() -> None:
    fact, turn = (2 << 15) + 5, (1 << 15) + 5
    assert set(score_words([[fact]], 15)) == {fact}
    assert {fact - 1, fact + 1}.isdisjoint(score_words([[fact, turn]], 15))


def test_a_call_that_is_about_the_matter_lifts_its_turns() -> None:
    scores = score_words(
        [[(1 << 15) + 5, (1 << 15) + 50, (1 << 15) + 90, (3 << 15) + 5]], 15
    )
    assert scores[(1 << 15) + 5] > scores[(3 << 15) + 5]


def test_no_more_than_a_pool_is_looked_at_closely() -> None:
    assert (
        len(score_words([[place * 8 for place in range(1, 1_000)]], 15))
        == WEIGHTS.pool_size
    )
    assert score_words([[], []], 15) == {}


def test_category_recency_and_frequency_each_count_for_facts() -> None:
    query = SearchQuery(("x",))
    assert score(query, FACT._replace(category="correction")) > score(query, FACT)
    assert score(query, FACT) > score(query, FACT._replace(day=TODAY - 400))
    assert score(query, FACT._replace(mentions=3)) > score(query, FACT)
    # a clock that was set back
    assert score(query, FACT._replace(day=TODAY + 400)) == score(query, FACT)


def test_what_was_said_does_not_age() -> None:
    assert score(SearchQuery(("x",)), TURN) == score(
        SearchQuery(("x",)), TURN._replace(day=TODAY - 4_000)
    )


def test_the_named_speaker_the_named_day_and_words_of_time_each_lift() -> None:
    plain = score(SearchQuery(("x",)), TURN)
    assert score(SearchQuery(("x",), speakers=frozenset({"caller"})), TURN) > plain
    assert score(SearchQuery(("x",), days=(Day(2026, 2, 13),)), TURN) > plain
    assert score(SearchQuery(("x",), asks_when=True), TURN._replace(marks=TIME)) > plain
    assert score(SearchQuery(("x",)), TURN._replace(marks=QUESTION)) < plain


def test_marks_tell_questions_and_time() -> None:
    told = ["Where is it? ", "I went yesterday.", "Last week?", "A cat."]
    assert [compute_marks(text, to_terms(text)) for text in told] == [
        QUESTION,
        TIME,
        QUESTION | TIME,
        0,
    ]
