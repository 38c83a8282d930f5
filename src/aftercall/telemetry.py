"""What a running process tells its operator: metrics for Prometheus, and one trace for each call.

The parts of a call report how long something took, once, with `record`; it becomes a metric and a
span of the call's trace. Labels and attributes are our own words: no number, no name, no speech.
A command that ends after its work reports nothing.

The ids of a trace and of its first span are made from the call's id, so that every process adds
to the same trace. OpenTelemetry is configured by its usual variables (`OTEL_…`).
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from aftercall.errors import error_code
from aftercall.log import get_logger

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

PREFIX = "aftercall_"
_MOMENTS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_WAITS = (0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0)
_WORK = (0.01, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0)
_CALLS = (15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
ROOT_SPAN = "call"

log = get_logger("telemetry")


@dataclass(frozen=True)
class MetricForm:
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    """Of a histogram of seconds; none for a counter or a gauge."""


TIMES = {
    "call": MetricForm(
        "Length of sealed calls, by how they ended.", ("source", "end_reason"), _CALLS
    ),
    "ring": MetricForm(
        "From the carrier's notice of a call to the agent's first words.", (), _WAITS
    ),
    "engine": MetricForm(
        "Connecting to the voice engine.", ("engine", "result"), _WAITS
    ),
    "answer": MetricForm(
        "From the caller's words to the agent's first sound.", (), _WAITS
    ),
    "turn": MetricForm(
        "From a turn or an event to its place on disk: the lag of the journal.",
        (),
        _MOMENTS,
    ),
    "seal": MetricForm("Sealing a call into the archive.", (), _MOMENTS),
    "step": MetricForm(
        "Steps after a call, by how they ended.", ("step", "state"), _WORK
    ),
    "sink": MetricForm("Deliveries to sinks, by result.", ("sink", "result"), _WORK),
    "model": MetricForm("Answers of models, by result.", ("model", "result"), _WORK),
}
COUNTERS = {
    "calls_started": MetricForm("Calls that began in this process.", ("source",)),
    "refused": MetricForm("Calls and requests beyond a limit.", ("limit",)),
    "model_tokens": MetricForm("Tokens of models.", ("model", "direction")),
    "model_cost_dollars": MetricForm(
        "Cost of models, as far as prices are known.", ("model",)
    ),
}
GAUGES = {
    "live_calls": MetricForm("Calls going on in this process."),
    "queue_depth": MetricForm("Work that waits, in all processes.", ("queue",)),
    "limit": MetricForm("Limits of this process (`[limits]`).", ("limit",)),
    "oldest_pending_seconds": MetricForm(
        "Age of the oldest call with unfinished work."
    ),
    "failed_calls": MetricForm("Calls of the last three days with a failed part."),
    "held_requests": MetricForm("Requests that wait for approval."),
    "unsent_notices": MetricForm("Notices and reminders that could not be sent."),
    "database_away": MetricForm("1 while calls are written to spill files."),
    "failing_jobs": MetricForm("Jobs of this process that fail at the moment."),
    "waiting_uploads": MetricForm("Sealed files that wait for the object store."),
    "info": MetricForm("1, with the version.", ("version",)),
}
Gauge = tuple[str, dict[str, str], float]
ReadGauges = Callable[[], list[Gauge]]

# Calls that are handed in may name any source and reason: those count as "other".
KNOWN_LABELS = {
    "source": "browser terminal twilio telnyx elevenlabs vapi retell bland",
    "end_reason": (
        "abandoned agent_hung_up busy caller_hung_up caller_silent cancelled completed "
        "engine_lost failed interrupted line_lost max_duration no_answer not_written "
        "server_stopped stream_refused"
    ),
}


class Metrics:
    """The process's counters and histograms; gauges are read when they are asked for."""

    def __init__(self) -> None:
        from prometheus_client import (  # noqa: PLC0415 - only servers and workers need it
            CollectorRegistry,
            Counter,
            Histogram,
            PlatformCollector,
            ProcessCollector,
            disable_created_metrics,
        )

        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        self.times = {
            name: Histogram(
                f"{PREFIX}{name}_seconds",
                form.help,
                form.labels,
                buckets=form.buckets,
                registry=registry,
            )
            for name, form in TIMES.items()
        }
        self.counters = {
            name: Counter(PREFIX + name, form.help, form.labels, registry=registry)
            for name, form in COUNTERS.items()
        }

    def render(self, read_gauges: ReadGauges) -> bytes:
        """All metrics as Prometheus text."""
        from prometheus_client import generate_latest  # noqa: PLC0415 - the same

        return generate_latest(MetricsReader(self, read_gauges))

    def listen(self, host: str, port: int, read_gauges: ReadGauges) -> None:
        """Serves them over HTTP, for a process that serves nothing else."""
        from prometheus_client import start_http_server  # noqa: PLC0415 - the same

        start_http_server(port, host, MetricsReader(self, read_gauges))


@dataclass(frozen=True)
class MetricsReader:
    """What prometheus_client reads as a registry: the counts, and the gauges as they are now."""

    metrics: Metrics
    read_gauges: ReadGauges

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import GaugeMetricFamily  # noqa: PLC0415 - the same

        yield from self.metrics.registry.collect()
        families = {
            name: GaugeMetricFamily(PREFIX + name, form.help, labels=form.labels)
            for name, form in GAUGES.items()
        }
        for name, labels, value in self.read_gauges():
            families[name].add_metric(list(labels.values()), value)
        yield from families.values()


_metrics: Metrics | None = None
_tracer: "CallTracer | None" = None


def start() -> Metrics:
    """From here on this process counts, and exports spans if it is told where to."""
    global _metrics, _tracer
    if _metrics is None:
        _metrics = Metrics()
    if _tracer is None and wants_traces(os.environ):
        _tracer = CallTracer.open()
    return _metrics


def stop() -> None:
    """Sends the last spans. Counts stay: they belong to the process."""
    global _tracer
    tracer, _tracer = _tracer, None
    if tracer is not None:
        tracer.close()


def record(name: str, seconds: float, call: str = "", **labels: str) -> None:
    """Something took so long and has just ended; of a call, it is a span of its trace."""
    labels = {name: _bound(name, value) for name, value in labels.items()}
    if _metrics is not None:
        metric = _metrics.times[name]
        (metric.labels(**labels) if labels else metric).observe(max(seconds, 0.0))
    if _tracer is not None and call:
        _tracer.add_span(name, seconds, call, labels)


def _bound(name: str, value: str) -> str:
    known = KNOWN_LABELS.get(name)
    return value if known is None or value in known.split() else "other"


def count(name: str, amount: float = 1.0, **labels: str) -> None:
    if _metrics is not None:
        labels = {name: _bound(name, value) for name, value in labels.items()}
        _metrics.counters[name].labels(**labels).inc(amount)


@contextmanager
def timed(name: str, call: str = "", **labels: str) -> Iterator[None]:
    """Records how long the block takes; `result` is ok, or the code of its error."""
    began = time.perf_counter()
    result = "ok"
    try:
        yield
    except BaseException as error:
        result = error_code(error)
        raise
    finally:
        if "result" in TIMES[name].labels:
            labels["result"] = result
        record(name, time.perf_counter() - began, call, **labels)


def wants_traces(environ: Mapping[str, str]) -> bool:
    """Whether the usual variables name a place for traces. Warns if the packages are missing."""
    names = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    is_off = environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
    if is_off or environ.get("OTEL_TRACES_EXPORTER", "otlp") != "otlp":
        return False
    if not any(environ.get(name) for name in names):
        return False
    if find_spec("opentelemetry") and find_spec("opentelemetry.sdk"):
        return True
    log.warning("an endpoint for traces is set; install aftercall[otel] to send them")
    return False


_root_of: ContextVar[str | None] = ContextVar("root_of", default=None)


@dataclass(frozen=True)
class CallTracer:
    """Adds spans to the traces of calls, after the fact."""

    provider: "TracerProvider"

    @classmethod
    def open(cls) -> "CallTracer":
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415
            OTLPSpanExporter,
        )
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - an extra
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - an extra
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
        from opentelemetry.sdk.trace.id_generator import RandomIdGenerator  # noqa: PLC0415

        class CallIds(RandomIdGenerator):
            def generate_trace_id(self) -> int:
                call = _root_of.get()
                return make_trace_id(call) if call else super().generate_trace_id()

            def generate_span_id(self) -> int:
                call = _root_of.get()
                return make_root_id(call) if call else super().generate_span_id()

        name = os.environ.get("OTEL_SERVICE_NAME", "aftercall")
        provider = TracerProvider(
            resource=Resource.create({"service.name": name}), id_generator=CallIds()
        )
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        return cls(provider)

    def add_span(
        self, name: str, seconds: float, call: str, attributes: Mapping[str, str]
    ) -> None:
        from opentelemetry import context as contexts  # noqa: PLC0415 - an extra

        ended = time.time_ns()
        parent = contexts.Context()
        if name != ROOT_SPAN:
            parent = self._parent(call)
        token = _root_of.set(call if name == ROOT_SPAN else None)
        try:
            span = self.provider.get_tracer("aftercall").start_span(
                name,
                parent,
                attributes={"aftercall.call": call, **attributes},
                start_time=ended - int(seconds * 1e9),
            )
        finally:
            _root_of.reset(token)
        span.end(ended)

    def _parent(self, call: str) -> Any:
        """The root span, which another process may send, sampled as that one decides."""
        from opentelemetry import trace  # noqa: PLC0415 - an extra
        from opentelemetry.sdk.trace.sampling import Decision  # noqa: PLC0415 - an extra

        trace_id = make_trace_id(call)
        sampled = self.provider.sampler.should_sample(None, trace_id, ROOT_SPAN)
        flags = trace.TraceFlags(int(sampled.decision is Decision.RECORD_AND_SAMPLE))
        context = trace.SpanContext(
            trace_id, make_root_id(call), is_remote=True, trace_flags=flags
        )
        return trace.set_span_in_context(trace.NonRecordingSpan(context))

    def close(self) -> None:
        self.provider.shutdown()


def make_trace_id(call: str) -> int:
    return int.from_bytes(sha256(call.encode()).digest()[:16])


def make_root_id(call: str) -> int:
    return int.from_bytes(sha256(call.encode()).digest()[16:24])
