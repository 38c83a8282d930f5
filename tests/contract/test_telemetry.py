"""What an operator sees of a call: metrics, and one trace from the ring to the sinks."""

from collections.abc import Iterator

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)
from prometheus_client.parser import text_string_to_metric_families

from aftercall import telemetry
from aftercall.app import App
from aftercall.engine.voice import AgentAudio, AgentDone, CallerBegan, CallerSaid
from aftercall.errors import EngineRefused
from aftercall.postcall.runner import rerun
from aftercall.postcall.steps import STEPS
from aftercall.running import read_gauges
from fakes import FakeVoiceEngine, VirtualClock, make_call
from followup_work import RecordingSink, follow, with_sink
from voice_rig import SECOND, Rig
from webhook_receiver import Receiver

WORDS = "Could you open a bug about the marmalade?"


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """Where an operator's variables send traces to."""
    with Receiver() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
        telemetry.start()
        yield receiver
        telemetry.stop()


async def hold_call(app: App, clock: VirtualClock) -> str:
    """A streamed call with an answer, its steps, and its request delivered; its id."""
    rig = Rig(app, clock, FakeVoiceEngine())
    await rig.answer()
    await rig.greet()
    rig.engine.session.add_events(CallerBegan("t1"), CallerSaid("t1", WORDS))
    await rig.pass_time(0.7)
    rig.engine.session.add_events(AgentAudio("s1", SECOND), AgentDone("s1"))
    await rig.pass_time(0.5)
    rig.line.add_frames(rig.side.stop())
    call = await rig.sealed()
    for name in STEPS:
        rerun(app.step_runner, call.id, name)
    follow(with_sink(app, RecordingSink(), policy={"unknown": "do"}), call.conversation)
    return call.id


async def test_a_call_is_one_trace_from_the_ring_to_the_sinks(
    rigged: App, clock: VirtualClock, collector: Receiver
) -> None:
    call_id = await hold_call(rigged, clock)
    rigged.journal.ingest(make_call())  # another call, another trace
    telemetry.stop()
    spans = [
        span
        for posted in collector.posted
        for resource in ExportTraceServiceRequest.FromString(posted.body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    trace = telemetry.make_trace_id(call_id).to_bytes(16)
    ours = [span for span in spans if span.trace_id == trace]
    assert len({span.trace_id for span in spans}) == 2
    assert {span.name for span in ours} == set(telemetry.TIMES) - {"model"}
    (root,) = [span for span in ours if span.name == "call"]
    assert root.parent_span_id == b""
    children = [span.parent_span_id for span in ours if span is not root]
    assert set(children) == {root.span_id}
    assert len({span.span_id for span in ours}) == len(ours)
    steps = [span for span in ours if span.name == "step"]
    assert len(steps) == len(STEPS)
    sent = b"".join(posted.body for posted in collector.posted)
    assert b"marmalade" not in sent
    assert b"5550100" not in sent


async def test_metrics_count_what_a_call_did(rigged: App, clock: VirtualClock) -> None:
    registry = telemetry.start().registry

    def read(name: str, **labels: str) -> float:
        return registry.get_sample_value(f"aftercall_{name}", labels) or 0.0

    def read_all() -> list[float]:
        return [
            read("calls_started_total", source="twilio"),
            read("call_seconds_count", source="twilio", end_reason="caller_hung_up"),
            read("ring_seconds_count"),
            read("engine_seconds_count", engine="FakeVoiceEngine", result="ok"),
            read("answer_seconds_count"),
            read("step_seconds_count", step="summary", state="done"),
            read("sink_seconds_count", sink="github", result="ok"),
        ]

    before, waited = read_all(), read("answer_seconds_sum")
    await hold_call(rigged, clock)
    assert [now - then for now, then in zip(read_all(), before, strict=True)] == [1] * 7
    assert read("answer_seconds_sum") - waited == pytest.approx(0.7, abs=0.3)


async def test_a_failed_engine_is_counted_by_its_code(
    rigged: App, clock: VirtualClock
) -> None:
    registry = telemetry.start().registry
    labels = {"engine": "FakeVoiceEngine", "result": "engine.refused"}
    name = "aftercall_engine_seconds_count"
    before = registry.get_sample_value(name, labels) or 0.0
    rig = Rig(rigged, clock, FakeVoiceEngine(EngineRefused("no")))
    await rig.answer()
    await rig.pass_time(5)
    await rig.sealed()
    assert (registry.get_sample_value(name, labels) or 0.0) > before


def test_every_metric_is_explained_and_waiting_work_is_shown(rigged: App) -> None:
    rigged.journal.ingest(make_call())
    text = telemetry.start().render(lambda: read_gauges(rigged)).decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    ours = [name for name in families if name.startswith("aftercall_")]
    wanted = [*(f"{name}_seconds" for name in telemetry.TIMES), *telemetry.COUNTERS]
    assert sorted(ours) == sorted(
        f"aftercall_{name}" for name in (*wanted, *telemetry.GAUGES)
    )
    assert all(families[name].documentation for name in ours)
    depths = families["aftercall_queue_depth"].samples
    assert {one.labels["queue"]: one.value for one in depths}["calls"] == 1
    assert "process_resident_memory_bytes" in families


def test_labels_come_from_a_list_whoever_hands_calls_in(rigged: App) -> None:
    metrics = telemetry.start()
    handed_in = make_call(source="a_name_of_yours")
    rigged.journal.ingest(handed_in.model_copy(update={"end_reason": "any_word"}))
    text = metrics.render(lambda: read_gauges(rigged)).decode()
    assert 'aftercall_call_seconds_count{end_reason="other",source="other"}' in text
    assert "a_name_of_yours" not in text
    assert "any_word" not in text


@pytest.mark.parametrize(
    ("environ", "wants"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x"}, True),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_SDK_DISABLED": "true"},
            False,
        ),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_TRACES_EXPORTER": "none"},
            False,
        ),
    ],
)
def test_traces_are_sent_when_the_usual_variables_say_so(
    environ: dict[str, str], wants: bool
) -> None:
    assert telemetry.wants_traces(environ) is wants


def test_without_its_packages_a_trace_endpoint_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("aftercall.telemetry.find_spec", lambda _: None)
    assert not telemetry.wants_traces({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"})
    assert "aftercall[otel]" in "".join(capsys.readouterr())
