"""Runs the steps of a sealed call: claim, run, record, redact.

The workflow, `calls rerun` and `rebuild` run every step through this class. A claimed step shows
as running. Its end and its writes to the database are one transaction. A step whose end is on
record is not claimed again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from aftercall import telemetry
from aftercall.durable import next_pause_s, to_step_error
from aftercall.errors import AftercallError, NotFound
from aftercall.faults import fault_point
from aftercall.journal.archive import Archive
from aftercall.journal.view import read_whole
from aftercall.log import get_logger
from aftercall.memory import passage_store as passages
from aftercall.memory.embedding import embed_missing
from aftercall.memory.visibility import mask_secrets, to_secrets
from aftercall.model.calls import Call
from aftercall.model.reading import Step, StepOutcome, skipped
from aftercall.postcall.steps import (
    FACTS,
    JUDGE,
    PAGES,
    PINS,
    STEPS,
    WAITING_STEPS,
    StepContext,
    skip_reason,
)
from aftercall.postcall.store import SUMMARY
from aftercall.workspace import calls_md, files

UNENDED = "started by hand and not finished; if that run is gone, run it again"

log = get_logger("postcall")


@dataclass(frozen=True)
class StepRunner:
    """Claims a step, runs it, records what it made.

    Workflow, batch and rerun all go through here.
    """

    context: StepContext
    archive: Archive
    _calls: dict[str, Call] = field(default_factory=dict, init=False, repr=False)

    def claim(
        self, call_id: str, names: Sequence[str], *, again: bool = False
    ) -> list[str]:
        """Mark steps as running and return them, without those that have ended.

        `again` claims ended steps too.
        """
        claimed = self.context.steps.claim(
            call_id, names, self.context.clock.now(), again=again
        )
        fault_point("postcall.after_claim")
        return claimed

    def run(self, call_id: str, name: str) -> None:
        """Run one step and record its end. Raises the step's error."""
        end = self.execute(call_id, name)
        if isinstance(end, AftercallError):
            raise end
        self.record(call_id, {name: end})

    def execute(self, call_id: str, name: str) -> StepOutcome | AftercallError:
        """Run one step, or skip it. Its end is still to be recorded."""
        began_s = self.context.clock.monotonic()
        end = self._execute(call_id, name)
        seconds = self.context.clock.monotonic() - began_s
        telemetry.record("step", seconds, call_id, step=name, state=_end_state(end))
        return end

    def _execute(self, call_id: str, name: str) -> StepOutcome | AftercallError:
        try:
            call = self.read(call_id)
            fault_point("postcall.before_step")
            reason = skip_reason(self.context, name, call)
            outcome = skipped(reason) if reason else STEPS[name](self.context, call)
            fault_point("postcall.after_step")
        except Exception as error:  # noqa: BLE001 - the edge of a step: its failure is recorded
            return to_step_error(error, call=call_id, step=name)
        return outcome

    def record(self, call_id: str, outcomes: Mapping[str, StepOutcome]) -> None:
        """Record the ends of steps in one transaction with what they write, then redact.

        Steps run at the same time and only the facts step finds secrets. So the call is redacted
        after every record, and the last one redacts everything.
        """
        self.context.steps.finish(call_id, outcomes, self.context.clock.now())
        for _ in outcomes:
            fault_point("postcall.after_finish")
        self.redact(call_id)
        if SUMMARY in outcomes:
            self._embed_summary(call_id)

    def record_ends(
        self,
        call_id: str,
        results: Mapping[str, StepOutcome | AftercallError],
        attempt: int,
    ) -> dict[str, float]:
        """Record how steps ended. Returns the pause of each step that is to be tried again.

        Raises only if that could not be recorded.
        """
        outcomes = {
            name: end for name, end in results.items() if isinstance(end, StepOutcome)
        }
        errors = {
            name: end
            for name, end in results.items()
            if isinstance(end, AftercallError)
        }
        try:
            self.record(call_id, outcomes)
        except Exception as cause:
            if len(outcomes) > 1:  # one by one, so that one step's error fails no other
                alone = [
                    self.record_ends(call_id, {name: results[name]}, attempt)
                    for name in results
                ]
                return {
                    name: pause_s
                    for pauses in alone
                    for name, pause_s in pauses.items()
                }
            ours = to_step_error(cause, call=call_id, step=", ".join(outcomes))
            if ours.retryable and not outcomes:
                # a repeated redaction has no step to record it
                raise
            errors |= dict.fromkeys(outcomes, ours)
        pauses: dict[str, float] = {}
        for name, error in errors.items():
            pause_s = self._put_off_or_fail(call_id, name, error, attempt)
            if pause_s is not None:
                pauses[name] = pause_s
        return pauses

    def run_by_hand(self, call_id: str, names: Sequence[str], unfinished: str) -> None:
        """Claim and run steps outside the workflow, and record each end.

        If the process dies, a step that no workflow will run shows `unfinished` as its reason.
        A step that the workflow will still run stays with it if its error is retryable.
        """
        scheduled = self.context.steps.claim_by_hand(
            call_id, names, self.context.clock.now(), unfinished
        )
        for name in names:
            try:
                self.run(call_id, name)
            except Exception as error:  # noqa: BLE001 - the edge of a step: its failure is recorded
                ours = to_step_error(error, call=call_id, step=name)
                if name in scheduled and ours.retryable:
                    self._put_off(call_id, name, str(ours))
                else:
                    self._fail(call_id, name, str(ours))
        self.forget(call_id)

    def read(self, call_id: str) -> Call:
        """The sealed call, with the party it belongs to as its caller. Kept until `forget`."""
        if call_id not in self._calls:
            row = self.context.calls.get(call_id)
            call = read_whole(self.archive, row)
            self._calls[call_id] = self.context.register.resolve_party(call)
        return self._calls[call_id]

    def redact(self, call_id: str) -> None:
        """Take confided words out of everything made from the call, after steps have ended."""
        words = self.context.confided_words(call_id)
        if words:
            redact_secrets(self.context, self.read(call_id), words)

    def forget(self, call_id: str) -> None:
        self._calls.pop(call_id, None)
        self.context.reader.forget(call_id)

    def list_late_steps(self, call_id: str, late: str = SUMMARY) -> list[str]:
        """Steps to run after a late one: those that waited for it, and the pins it names."""
        states = self.context.steps.states_of(call_id)
        return [
            name
            for name in self.list_steps_after(call_id, late)
            if name == PINS or states[name] not in ("done", "skipped")
        ]

    def list_steps_after(self, call_id: str, name: str) -> list[str]:
        """Steps to run again after a new summary, or after new facts."""
        followers = {SUMMARY: (*PAGES, PINS), FACTS: (JUDGE,)}
        states = self.context.steps.states_of(call_id)
        if states.get(name) not in ("done", "skipped"):
            return []
        return [other for other in followers.get(name, ()) if other in states]

    def _put_off_or_fail(
        self, call_id: str, name: str, error: AftercallError, attempt: int
    ) -> float | None:
        pause_s = (
            next_pause_s(attempt, error.retry_after_s) if error.retryable else None
        )
        if pause_s is None:
            log.warning("a step failed", call=call_id, step=name, error=error.code)
            self._fail(call_id, name, str(error))
        else:
            again_at = self.context.clock.now() + timedelta(seconds=pause_s)
            self._put_off(
                call_id, name, f"{error} (tried again at {again_at:%H:%M:%S} UTC)"
            )
        return pause_s

    def _put_off(self, call_id: str, name: str, reason: str) -> None:
        waiting, _ = WAITING_STEPS.get(name, ((), ""))
        self.context.steps.put_off(
            call_id, name, reason, self.context.clock.now(), waiting
        )
        fault_point("step.after_put_off")

    def _fail(self, call_id: str, name: str, reason: str) -> None:
        names, why = WAITING_STEPS.get(name, ((), ""))
        self.context.steps.fail(
            call_id, name, reason, self.context.clock.now(), dict.fromkeys(names, why)
        )

    def _embed_summary(self, call_id: str) -> None:
        if self.context.embedder is None:
            return
        try:
            embed_missing(self.context.database, self.context.embedder)
        except AftercallError as error:
            # the words still find it; the next call embeds it
            log.warning("the summary has no vector yet", call=call_id, error=error.code)


def redact_secrets(context: StepContext, call: Call, words: Sequence[str]) -> None:
    """Take confided words out of everything made from the call. The archive keeps every word."""
    secrets = to_secrets(words)

    def clean(text: str) -> str:
        return mask_secrets(text, secrets)

    with context.database.write() as connection:
        passages.redact_passages(connection, call.id, clean, words)
    context.steps.redact_results(call.id, clean)
    context.documents.redact(call.id, clean)
    context.extractor.store.redact_occurrences(call.id, clean)
    workspace = context.workspace(call)
    files.edit(
        workspace.calls,
        lambda text: calls_md.rewrite_summary(text, call.id, clean),
        keeps_history=False,
    )
    person = workspace.find_person(call.caller)
    if person is None:
        return
    greeting = files.read(person.greeting)
    if greeting is not None and clean(greeting) != greeting:
        files.remove(person.greeting)
    files.edit(
        person.user,
        lambda text: text and "".join(map(clean, text.splitlines(keepends=True))),
        keeps_history=False,
    )


def rerun(runner: StepRunner, call_id: str, name: str = "") -> list[Step]:
    """Run the step that is named, or those that failed, now. What they made before is replaced."""
    if name and name not in STEPS:
        raise NotFound(f"there is no step {name!r}; there are {', '.join(STEPS)}")
    row = runner.context.calls.get(call_id)
    if row.archive_name is None:
        gone = "has no words any more: they were past their time"
        reason = gone if row.state == "sealed" else "is still going on"
        raise NotFound(f"call {call_id} {reason}")
    states = runner.context.steps.states_of(call_id)
    wanted = (
        [name] if name else [step for step in STEPS if states.get(step) == "failed"]
    )
    for step in wanted:
        runner.run_by_hand(call_id, [step], UNENDED)
    for step in list(wanted):
        for later in runner.list_steps_after(call_id, step):
            if later not in wanted:
                runner.run_by_hand(call_id, [later], UNENDED)
    return runner.context.steps.of_call(call_id)


def _end_state(end: StepOutcome | AftercallError) -> str:
    if isinstance(end, StepOutcome):
        return end.state
    return "retried" if end.retryable else "failed"
