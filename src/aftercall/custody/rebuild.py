"""Memory from the archive alone: facts, passages, documents and summaries, call after call in the order they were sealed.

With the same reader the result is what it was. A model is asked only what it has not been asked before: answers are kept.
Follow-up work is not done again.
"""

from collections.abc import Callable
from dataclasses import dataclass

from aftercall.custody.store import adopt, clear_memory
from aftercall.db.connect import Database
from aftercall.errors import AftercallError
from aftercall.journal.chain import Link, parse_link
from aftercall.log import get_logger
from aftercall.postcall.office import Office

STEPS = ("summary", "facts", "index", "document", "pins")

log = get_logger("rebuild")


@dataclass(frozen=True)
class Rebuilt:
    calls: int
    adopted: int
    failed: tuple[str, ...]


@dataclass(frozen=True)
class Rebuilder:
    database: Database
    office: Office

    def rebuild(self, tell: Callable[[int, int], None] = lambda done, of: None) -> Rebuilt:
        """`tell` hears how far it is. One call's trouble never stops another's."""
        links = self._sealed()
        with self.database.write() as connection:
            clear_memory(connection)
        adopted, failed = 0, []
        for number, link in enumerate(links, 1):
            try:
                adopted += self._take(link)
            except AftercallError as error:
                failed.append(link.name)
                log.warning("a call could not be rebuilt", file=link.name, error=error.code)
            tell(number, len(links))
        return Rebuilt(len(links), adopted, tuple(failed))

    def _take(self, link: Link) -> bool:
        office = self.office
        call, _ = office.archive.read(link.name)
        with self.database.write() as connection:
            is_new = adopt(connection, call, link.name, link.sha256, office.desk.clock.now())
        office.begin(call.id, STEPS, again=True)
        faults = [error for name in STEPS if (error := self._do(call.id, name))]
        if faults:
            raise faults[0]
        return is_new

    def _do(self, call_id: str, name: str) -> AftercallError | None:
        """Without a summary the words of a call are found all the same; what failed can be run again by itself."""
        try:
            self.office.do(call_id, name)
        except AftercallError as error:
            self.office.give_up(call_id, name, str(error))
            return error
        return None

    def _sealed(self) -> list[Link]:
        """The calls' own files, without addenda and without those that were erased."""
        links = [parse_link(line) for line in self.office.archive.place.lines()]
        erased = {link.name for link in links if link.erased}
        return [link for link in links if link.name not in erased and ".addendum-" not in link.name]
