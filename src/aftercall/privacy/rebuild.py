"""Memory from the archive alone: facts, passages, documents and summaries, call after call in
the order they were sealed.

With the same reader the result is what it was. A model is asked only what it has not been asked
before: answers are kept. Follow-up work is not done again.
"""

from collections.abc import Callable
from dataclasses import dataclass

from aftercall.db.connect import Database
from aftercall.durable import to_step_error
from aftercall.errors import AftercallError
from aftercall.journal.archive import ChainLink, parse_link
from aftercall.log import get_logger
from aftercall.model.calls import Call
from aftercall.postcall.office import Office
from aftercall.privacy.store import clear_memory, insert_archived_call

UNFINISHED_REASON = (
    "begun by a rebuild and not ended; if none is under way, run `aftercall rebuild` again"
)
STEPS = ("summary", "facts", "index", "document", "pins")

log = get_logger("rebuild")


@dataclass(frozen=True)
class FailedStep:
    """A step that failed while everything else was made."""

    call_id: str
    step: str
    reason: str


@dataclass(frozen=True)
class RebuildResult:
    calls: int
    adopted: int
    failed: tuple[str, ...]
    """Files of which nothing could be made."""
    undone: tuple[FailedStep, ...] = ()


@dataclass(frozen=True)
class Rebuilder:
    database: Database
    office: Office

    def rebuild(
        self, on_progress: Callable[[int, int], None] = lambda done, of: None
    ) -> RebuildResult:
        """`tell` hears how far it is. One call's trouble never stops another's, nor one step's."""
        links = self._sealed()
        with self.database.write() as connection:
            clear_memory(connection)
        adopted = 0
        failed: list[str] = []
        undone: list[FailedStep] = []
        for number, link in enumerate(links, 1):
            try:
                call = self.office.archive.read(link.name)[0]
                adopted += self._adopt(call, link)
                undone += self._run_steps(call.id)
            except AftercallError as error:
                failed.append(link.name)
                log.warning("a call could not be rebuilt", file=link.name, error=error.code)
            on_progress(number, len(links))
        return RebuildResult(len(links), adopted, tuple(failed), tuple(undone))

    def _adopt(self, call: Call, link: ChainLink) -> bool:
        with self.database.write() as connection:
            return insert_archived_call(
                connection, call, link.name, link.sha256, self.office.desk.clock.now()
            )

    def _run_steps(self, call_id: str) -> list[FailedStep]:
        """Every step; what failed of them shows, here and with the call, and can be run again
        by itself.
        """
        is_remote = self.office.desk.remem is not None and self.office.desk.remote_id(call_id)
        names = (*STEPS, "remem") if is_remote else STEPS  # the copy there is to be the same page
        self.office.begin_by_hand(call_id, names, UNFINISHED_REASON)
        for name in names:
            try:
                self.office.do(call_id, name)
            except Exception as error:  # noqa: BLE001 - the edge of a step: without a summary the words are found all the same
                self.office.give_up(
                    call_id, name, str(to_step_error(error, call=call_id, step=name))
                )
        ended = self.office.steps.of_call(call_id)
        return [
            FailedStep(call_id, step.name, step.reason)
            for step in ended
            if step.name in names and step.state == "failed"
        ]

    def _sealed(self) -> list[ChainLink]:
        """The calls' own files, without addenda and without those that were erased."""
        links = [parse_link(line) for line in self.office.archive.place.read_chain()]
        erased = {link.name for link in links if link.erased}
        return [link for link in links if link.name not in erased and ".addendum-" not in link.name]
