"""What turned out to be told in confidence is taken out of everything that was made of the
call; the archive keeps every word.

Only the facts of a call tell what a model took for a secret, and the steps go on at the same
time: so each step, when it has ended, looks whether the call has secrets by now. Whichever
comes last hides them.
"""

from collections.abc import Callable

from aftercall.db.connect import Database
from aftercall.memory import passage_store as passages
from aftercall.memory.visibility import mask_secrets, to_secrets
from aftercall.model.calls import Call
from aftercall.postcall.steps import Desk
from aftercall.postcall.store import StepStore
from aftercall.workspace import calls_md, files


def redact_secrets(desk: Desk, steps: StepStore, call: Call) -> None:
    words = desk.confided(call.id)
    if not words:
        return
    confidences = to_secrets(words)

    def clean(text: str) -> str:
        return mask_secrets(text, confidences)

    _hush_rows(desk.database, call.id, clean, words)
    steps.hush(call.id, clean)
    desk.documents.redact(call.id, clean)
    if desk.extractor is not None:
        desk.extractor.store.redact_occurrences(call.id, clean)
    _hush_pages(desk, call, clean)


def _hush_rows(
    database: Database, call_id: str, clean: Callable[[str], str], words: list[str]
) -> None:
    with database.write() as connection:
        passages.redact_passages(connection, call_id, clean, words)


def _hush_pages(desk: Desk, call: Call, clean: Callable[[str], str]) -> None:
    """A greeting that would tell it is not said at all."""
    workspace = desk.workspace(call)
    files.edit(workspace.calls, lambda text: calls_md.rewrite_summary(text, call.id, clean))
    person = workspace.find_person(call.caller)
    if person is None:
        return
    left = files.read(person.greeting)
    if left is not None and clean(left) != left:
        person.greeting.unlink(missing_ok=True)
    files.edit(
        person.user, lambda text: text and "".join(map(clean, text.splitlines(keepends=True)))
    )
