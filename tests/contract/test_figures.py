"""Figures of the front page, on both databases."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from aftercall.app import App
from aftercall.model.reading import ReadingTrace, done
from aftercall.web.figures import Chart, FigureQuery, FigureStore, make_edges
from aftercall.web.page_store import PageStore
from fakes import START, make_call

ZONE = ZoneInfo("Europe/London")


def ring(
    app: App, days_ago: int, delays: tuple[int, ...] = (), agent: str = "main"
) -> str:
    call = make_call(
        [("agent", "Yes?")] * max(1, len(delays)),
        sid=f"{agent}-{days_ago}",
        agent_id=agent,
        started_at=START - timedelta(days=days_ago),
        ended_at=START - timedelta(days=days_ago) + timedelta(minutes=3),
    )
    turns = tuple(
        turn.model_copy(update={"delay_ms": ms})
        for turn, ms in zip(call.turns, delays or (None,), strict=True)
    )
    app.journal.ingest(call.model_copy(update={"turns": turns}))
    return call.id


def read(app: App, **query: object) -> dict[str, Chart]:
    figures = FigureStore(app.database, ZONE).read(FigureQuery(**query), START)  # type: ignore[arg-type]
    return {chart.title: chart for chart in figures.charts}


def test_calls_and_minutes_are_counted_by_day(app: App) -> None:
    for days_ago in (0, 2, 9):
        ring(app, days_ago)
    week = read(app, span="week")
    assert week["Calls"].series["calls"] == [0, 0, 0, 0, 1, 0, 1]
    assert week["Minutes"].total == "6"
    assert sum(read(app, span="month")["Calls"].series["calls"]) == 3  # type: ignore[arg-type]
    assert sum(read(app, span="day")["Calls"].series["calls"]) == 1  # type: ignore[arg-type]


def test_answer_delays_give_their_percentiles(app: App) -> None:
    ring(app, 0, (*[510] * 18, 1_990, 2_010))
    ring(app, 1)
    chart = read(app)["Answer latency"]
    assert chart.series["p50"][-2:] == [None, 500]
    assert chart.series["p95"][-1] == 2_000
    assert chart.total == "500 ms · p95 2 s"


def test_answers_of_a_few_milliseconds_are_not_shown_as_none(app: App) -> None:
    ring(app, 0, (28, 28, 4))
    assert read(app)["Answer latency"].total == "30 ms · p95 30 ms"


def test_one_agent_is_counted_alone_and_all_are_listed(app: App) -> None:
    ring(app, 0)
    ring(app, 0, agent="night")
    ring(app, 1, agent="night")
    assert read(app, agent="night")["Calls"].total == "2"
    agents = FigureStore(app.database, ZONE).read(FigureQuery(), START).agents
    assert [(one.agent_id, one.calls) for one in agents] == [("night", 2), ("main", 1)]


def test_a_request_counts_on_the_day_of_its_call(app: App) -> None:
    call_id = ring(app, 4)
    app.corrections.add_request(call_id, "Send the invoice", "Ann", turns=[1])
    assert read(app)["Requests"].series["held"] == [0, 0, 1, 0, 0, 0, 0]
    counts = PageStore(app.database).count_since(START - timedelta(days=2), ZONE)
    assert counts["followups"] == {}


def test_cost_is_what_the_readings_cost_by_model(app: App) -> None:
    call_id = ring(app, 0)
    trace = ReadingTrace("openai:small", cost=0.25)
    app.steps.finish(call_id, {"summary": done("Hello.", trace)}, START)
    app.steps.finish(call_id, {"index": done()}, START)
    assert read(app)["Cost by model"].series == {"openai:small": [0.0] * 6 + [0.25]}
    assert read(app, agent="main")["Cost by model"].total == "$0.25"
    assert read(app, agent="other")["Cost by model"].total == "nothing was paid for"


def test_an_erased_caller_leaves_no_delays(app: App) -> None:
    ring(app, 0, (500,))
    caller = make_call().caller
    assert caller is not None
    app.eraser.erase(caller)
    assert read(app)["Answer latency"].total == "no answers timed yet"


@pytest.mark.parametrize("span", ["week", "month"])
def test_days_stay_whole_when_clocks_change(span: str) -> None:
    now = datetime(2026, 3, 30, 12, tzinfo=UTC)  # London's summer began on the 29th
    edges = make_edges(span, now, ZONE)  # type: ignore[arg-type]
    assert {edge.astimezone(ZONE).hour for edge in edges} == {0}
    assert edges[-1] > now >= edges[-2]
