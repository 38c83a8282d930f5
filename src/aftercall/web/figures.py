"""Figures of the front page: calls, minutes, answer delays, requests, promises and cost.

Each comes from one query over an index that holds all it needs, so the price of a page grows with
the calls of its span, not with all calls. Times are cut into bins at local hours or days.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta, tzinfo
from typing import Any, Literal

from sqlalchemy import (
    Column,
    ColumnElement,
    Table,
    case,
    extract,
    func,
    literal,
    select,
)

from aftercall.clock import format_duration
from aftercall.db.connect import Database
from aftercall.db.conversations import answer_delays, asked_at
from aftercall.db.tables import calls, followups, steps

Span = Literal["day", "week", "month"]
SPANS: dict[Span, tuple[int, str]] = {
    "day": (24, "the last 24 hours"),
    "week": (7, "the last 7 days"),
    "month": (30, "the last 30 days"),
}
REQUESTS = {
    "done": "noted or done",
    "held": "held",
    "unclear": "held",
    "failed": "failed",
}
PROMISES = {"done": "kept", "open": "open", "unknown": "open", "broken": "broken"}
Series = dict[str, list[float]]
"""A value for each bin, by name."""


@dataclass(frozen=True)
class FigureQuery:
    """What the figures are about; an agent of None means all agents."""

    span: Span = "week"
    agent: str | None = None


@dataclass(frozen=True)
class Chart:
    """One figure over time: a headline, and a value for each bin of each series."""

    title: str
    total: str
    bins: tuple[str, ...]
    series: Mapping[str, Sequence[float | None]]
    is_line: bool = False
    unit: str = ""

    @property
    def has_values(self) -> bool:
        return any(value for values in self.series.values() for value in values)


@dataclass(frozen=True)
class AgentTotal:
    agent_id: str
    calls: int
    minutes: int


@dataclass(frozen=True)
class Figures:
    query: FigureQuery
    charts: tuple[Chart, ...]
    agents: tuple[AgentTotal, ...]
    """Of all agents with calls in the span, whatever agent the charts are about."""


def make_edges(span: Span, now: datetime, zone: tzinfo) -> list[datetime]:
    """Where the bins begin, and where the last one ends: after now."""
    count, _ = SPANS[span]
    local = now.astimezone(zone)
    if span == "day":
        end = now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
        return [end - timedelta(hours=count - number) for number in range(count + 1)]
    days = [
        local.date() + timedelta(days=1 - count + number) for number in range(count + 1)
    ]
    return [datetime.combine(day, time(), zone) for day in days]


class FigureStore:
    """Counts for the front page: each figure is one query that an index answers."""

    def __init__(self, database: Database, zone: tzinfo) -> None:
        self._database = database
        self._zone = zone

    def read(self, query: FigureQuery, now: datetime) -> Figures:
        """All figures of a span, for every agent or for one."""
        edges = make_edges(query.span, now, self._zone)
        labels = tuple(self._label(query.span, edge) for edge in edges[:-1])
        counted = self._read_calls(query.agent, edges)
        settled = self._read_followups(query.agent, edges)
        charts = (
            _make_chart("Calls", labels, {"calls": counted["calls"]}),
            _make_chart("Minutes", labels, {"minutes": counted["minutes"]}),
            self._read_delays(query.agent, edges, labels),
            _make_chart("Requests", labels, _pick(settled["request"], REQUESTS)),
            _make_chart("Promises", labels, _pick(settled["promise"], PROMISES)),
            self._read_cost(query.agent, edges, labels),
        )
        return Figures(query, charts, self._read_agents(edges))

    def _label(self, span: Span, edge: datetime) -> str:
        """What a step of the time axis is called."""
        local = edge.astimezone(self._zone)
        if span == "day":
            return f"{local:%H:%M}"
        return (
            f"{local:%a} {local.day}" if span == "week" else f"{local.day} {local:%b}"
        )

    def _read_calls(self, agent: str | None, edges: list[datetime]) -> Series:
        """Calls and minutes by step of the axis."""
        sums = (func.count(), func.sum(self._lasted_s()))
        found = {"calls": _zeros(edges), "minutes": _zeros(edges)}
        for place, count, seconds in self._group(
            calls.c.started_at, edges, agent, (), *sums, of=calls
        ):
            found["calls"][place] = count
            found["minutes"][place] = round(float(seconds or 0) / 60, 1)
        return found

    def _lasted_s(self) -> ColumnElement[Any]:
        begin = calls.c.started_at
        end = calls.c.ended_at
        if self._database.dialect == "postgresql":
            return extract("epoch", end) - extract("epoch", begin)
        return (func.julianday(end) - func.julianday(begin)) * 86_400

    def _read_followups(
        self, agent: str | None, edges: list[datetime]
    ) -> dict[str, Series]:
        """By kind and state, of what was asked or promised in the span."""
        found: dict[str, Series] = defaultdict(
            lambda: defaultdict(lambda: _zeros(edges))
        )
        keys = (followups.c.kind, followups.c.state)
        for kind, state, place, count in self._group(
            asked_at(), edges, agent, keys, func.count(), of=followups
        ):
            found[kind][state][place] += count
        return found

    def _read_delays(
        self, agent: str | None, edges: list[datetime], labels: tuple[str, ...]
    ) -> Chart:
        """How long callers waited for an answer, by step of the axis."""
        by_bin: dict[int, Counter[int]] = defaultdict(Counter)
        delays = answer_delays.c
        for ms, place, answers in self._group(
            delays.at,
            edges,
            agent,
            (delays.ms,),
            func.sum(delays.answers),
            of=answer_delays,
        ):
            by_bin[place][ms] += int(answers)
        series = {
            f"p{percent}": [
                _percentile_ms(by_bin[place], percent) for place in range(len(labels))
            ]
            for percent in (50, 95)
        }
        every = sum(by_bin.values(), Counter())
        total = "no answers timed yet"
        if every:
            half = _percentile_ms(every, 50) or 0
            most = _percentile_ms(every, 95) or 0
            total = (
                f"{format_duration(half / 1_000)} · p95 {format_duration(most / 1_000)}"
            )
        return Chart("Answer latency", total, labels, series, is_line=True, unit="ms")

    def _read_cost(
        self, agent: str | None, edges: list[datetime], labels: tuple[str, ...]
    ) -> Chart:
        """What the readings cost, by model."""
        series: Series = defaultdict(lambda: _zeros(edges))
        for reader, place, cost in self._group(
            steps.c.changed_at,
            edges,
            agent,
            (steps.c.reader,),
            func.sum(steps.c.cost),
            of=steps,
            only=steps.c.cost.is_not(None),
        ):
            series[reader or "unnamed"][place] = float(cost)
        total = sum(map(sum, series.values()))
        headline = f"${total:,.2f}" if series else "nothing was paid for"
        return Chart("Cost by model", headline, labels, series, unit="$")

    def _group(
        self,
        at: ColumnElement[Any],
        edges: list[datetime],
        agent: str | None,
        keys: Sequence[Column[Any]],
        *sums: ColumnElement[Any],
        of: Table,
        only: ColumnElement[bool] | None = None,
    ) -> Iterable[Any]:
        """Rows of the keys, the number of the bin, and the sums over both."""
        number = _bin_of(at, edges)
        query = select(*keys, number, *sums).group_by(*keys, number)
        query = query.where(at >= edges[0], at < edges[-1])
        if only is not None:
            query = query.where(only)
        if agent is not None and of is steps:  # a step's agent is its call's
            query = query.join(calls, calls.c.id == steps.c.call_id)
            query = query.where(calls.c.agent_id == agent)
        elif agent is not None:
            query = query.where(of.c.agent_id == agent)
        return self._database.fetch(query)

    def _read_agents(self, edges: list[datetime]) -> tuple[AgentTotal, ...]:
        """The agents that had calls in the span, for the choice above the charts."""
        at = calls.c.started_at
        query = (
            select(calls.c.agent_id, func.count(), func.sum(self._lasted_s()))
            .where(at >= edges[0], at < edges[-1])
            .group_by(calls.c.agent_id)
            .order_by(func.count().desc())
        )
        return tuple(
            AgentTotal(agent, count, round(float(seconds or 0) / 60))
            for agent, count, seconds in self._database.fetch(query)
        )


def _bin_of(at: ColumnElement[Any], edges: list[datetime]) -> ColumnElement[int]:
    """The number of the bin, found by halving; the caller has checked that it is in one."""

    def halve(first: int, last: int) -> ColumnElement[int]:
        """The step that a time falls into, found by halving the edges."""
        if first == last:
            return literal(first)
        middle = (first + last + 1) // 2
        return case(
            (at < edges[middle], halve(first, middle - 1)), else_=halve(middle, last)
        )

    return halve(0, len(edges) - 2).label("bin")


def _zeros(edges: list[datetime]) -> list[float]:
    return [0.0] * (len(edges) - 1)


def _pick(by_state: Series, names: Mapping[str, str]) -> Series:
    """The states that count, under the name they are shown by."""
    picked: Series = {}
    for state, name in names.items():
        values = by_state[state]
        known = picked.get(name, [0.0] * len(values))
        picked[name] = [a + b for a, b in zip(known, values, strict=True)]
    return picked


def _make_chart(title: str, bins: tuple[str, ...], series: Series) -> Chart:
    """Of things that are counted; the headline is their sum by name."""
    sums = {name: sum(values) for name, values in series.items()}
    told = [
        f"{count:.1f}" if 0 < count < 10 and count % 1 else f"{count:,.0f}"
        for count in sums.values()
    ]
    if len(sums) > 1:
        told = [f"{count} {name}" for count, name in zip(told, sums, strict=True)]
    total = " · ".join(told)
    return Chart(title, total, bins, series)


def _percentile_ms(delays: Counter[int], percent: int) -> int | None:
    """None without answers."""
    place = delays.total() * percent / 100
    for ms in sorted(delays):
        place -= delays[ms]
        if place <= 0:
            return ms
    return None
