"""How passages are weighed against each other."""

from collections.abc import Sequence
from datetime import date

from aftercall.memory.ranking import (
    LENGTH_SHIFT,
    QUESTION,
    TIME,
    WEIGHTS,
    Day,
    QueryRanking,
    SearchQuery,
    compute_marks,
)
from aftercall.memory.words import to_terms
from aftercall.model.passages import PAGE_BITS, MatchSigns

TODAY = date(2026, 2, 13).toordinal()
SHORT, LONG = 8 << LENGTH_SHIFT, 400 << LENGTH_SHIFT
CALL, OTHER_CALL = 1 << PAGE_BITS, 3 << PAGE_BITS
TURN = MatchSigns(CALL + 1, TODAY, SHORT, "turn", "caller", "", 1)
FACT = TURN._replace(n=2 << PAGE_BITS, kind="fact", speaker="", category="technical")


def rank(
    postings: Sequence[dict[int, int]],
    signs: Sequence[MatchSigns],
    query: SearchQuery,
    terms: dict[int, str] | None = None,
) -> list[int]:
    ranking = QueryRanking(query, postings, TODAY)
    assert set(terms or ()) <= set(ranking.list_paired(each.n for each in signs))
    return [n for _, n in ranking.rank(signs, terms or {})]


def ask(terms: str, *, asks_when: bool = False, is_lookup: bool = False) -> SearchQuery:
    terms_asked = tuple(terms.split())
    return SearchQuery(terms_asked, asks_when=asks_when, is_lookup=is_lookup)


def score(query: SearchQuery, signs: MatchSigns) -> float:
    return QueryRanking(query, [{signs.n: signs.marks}], TODAY).score(signs)


def turn(n: int, marks: int = SHORT) -> MatchSigns:
    return TURN._replace(n=n, marks=marks)


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    common = {place << PAGE_BITS: SHORT for place in range(2, 102, 2)}
    rare = 102 << PAGE_BITS
    facts = [FACT._replace(n=n) for n in (*common, rare)]
    assert rank([common, {rare: SHORT}], facts, ask("tea oolong"))[0] == rare


def test_a_word_counts_most_for_its_turn_then_for_the_next_then_for_others() -> None:
    n = CALL + 100
    turns = [turn(n + step) for step in (-2, -1, 0, 1, 2)]
    assert rank([{n: SHORT}], turns, ask("tea")) == [n, n + 1, n - 1, n + 2, n - 2]
    assert n - 3 not in QueryRanking(ask("tea"), [{n: SHORT}], TODAY).pick_candidates(9)


def test_the_words_of_a_question_count_in_full_for_its_answer() -> None:
    asked, told = CALL + 10, OTHER_CALL + 10
    postings = [{asked: SHORT | QUESTION, told: SHORT}]
    answers = [turn(told + 1), turn(asked + 1)]
    assert rank(postings, answers, ask("tea"))[0] == asked + 1


def test_a_word_counts_less_in_a_long_passage() -> None:
    short, long = CALL + 10, OTHER_CALL + 10
    turns = [turn(long, marks=LONG), turn(short)]
    assert rank([{short: SHORT, long: LONG}], turns, ask("tea")) == [short, long]


def test_a_long_passage_takes_little_from_its_neighbours() -> None:
    first, second = CALL + 10, OTHER_CALL + 10
    beside = [turn(first + 1, marks=LONG), turn(second + 1)]
    postings = [{first: SHORT, second: SHORT}]
    assert rank(postings, beside, ask("tea")) == [second + 1, first + 1]


def test_words_side_by_side_count_more_than_words_apart() -> None:
    apart, together = CALL + 10, OTHER_CALL + 10
    held = {apart: SHORT, together: SHORT}
    terms = {apart: "door at the front", together: "the front door"}
    turns = [turn(apart), turn(together)]
    assert rank([held, held], turns, ask("front door"), terms) == [together, apart]


def test_a_common_word_gives_nothing_to_the_turns_beside_it() -> None:
    common = {CALL + 10 * place: SHORT for place in range(1, 400)}
    rare = OTHER_CALL + 10
    ranking = QueryRanking(ask("tea oolong"), [common, {rare: SHORT}], TODAY)
    picked = set(ranking.pick_candidates(2_000))
    assert rare + 1 in picked
    assert CALL + 11 not in picked


def test_facts_have_no_neighbours() -> None:
    ranking = QueryRanking(ask("tea"), [{FACT.n: SHORT}], TODAY)
    assert list(ranking.pick_candidates(9)) == [FACT.n]


def test_a_call_that_is_about_the_matter_lifts_its_turns() -> None:
    often = [CALL + place for place in (5, 50, 90)]
    held = dict.fromkeys([*often, OTHER_CALL + 5], SHORT)
    turns = [turn(OTHER_CALL + 5), turn(CALL + 5)]
    assert rank([held], turns, ask("tea")) == [CALL + 5, OTHER_CALL + 5]


def test_no_more_than_a_pool_is_looked_at_closely() -> None:
    held = {place * 8: SHORT for place in range(1, 1_000)}
    ranking = QueryRanking(ask("tea"), [held], TODAY)
    assert len(list(ranking.pick_candidates(10))) == WEIGHTS.pool_size
    assert not list(QueryRanking(ask("a b"), [{}, {}], TODAY).pick_candidates(10))


def test_a_look_up_shows_what_holds_the_word_before_its_neighbours() -> None:
    held, near = turn(CALL + 10, marks=LONG | QUESTION), turn(CALL + 11)
    for is_lookup, first in ((True, held.n), (False, near.n)):
        query = ask("tea", is_lookup=is_lookup)
        assert rank([{held.n: held.marks}], [near, held], query)[0] == first


def test_meaning_counts_more_where_the_words_are_not_found() -> None:
    near = turn(OTHER_CALL + 10)

    def gain(postings: Sequence[dict[int, int]]) -> float:
        query, nearest = ask("tea oolong"), {near.n: 0.5}
        fused = QueryRanking(query, postings, TODAY, nearest=nearest).score(near)
        return fused - QueryRanking(query, postings, TODAY).score(near)

    held = {CALL + 10: SHORT}
    assert gain([{}, {}]) > gain([held, {}]) > gain([held, held]) > 0


def test_category_recency_and_frequency_each_count_for_facts() -> None:
    query = ask("x")
    assert score(query, FACT._replace(category="correction")) > score(query, FACT)
    assert score(query, FACT) > score(query, FACT._replace(day=TODAY - 400))
    assert score(query, FACT._replace(mentions=3)) > score(query, FACT)
    # a clock that was set back
    assert score(query, FACT._replace(day=TODAY + 400)) == score(query, FACT)


def test_what_was_said_does_not_age() -> None:
    old = TURN._replace(day=TODAY - 4_000)
    assert score(ask("x"), TURN) == score(ask("x"), old)


def test_the_named_speaker_the_named_day_and_words_of_time_each_lift() -> None:
    plain = score(ask("x"), TURN)
    assert score(SearchQuery(("x",), speakers=frozenset({"caller"})), TURN) > plain
    assert score(SearchQuery(("x",), days=(Day(2026, 2, 13),)), TURN) > plain
    assert score(ask("x", asks_when=True), TURN._replace(marks=SHORT | TIME)) > plain
    assert score(ask("x"), TURN._replace(marks=SHORT | QUESTION)) < plain


def test_marks_tell_questions_time_and_length() -> None:
    told = {"Where is it? ": QUESTION, "I went yesterday.": TIME, "Cats. Dogs.": 0}
    for text, bits in told.items():
        length = len(text.split())
        assert compute_marks(text, to_terms(text)) == bits | length << LENGTH_SHIFT
