"""Whom an erasure is about: the calls, parties and words that lead to them."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from aftercall.journal.archive import Archive
from aftercall.journal.store import CallRow
from aftercall.model.calls import Call
from aftercall.settings import Settings
from aftercall.workspace import files, user_md
from aftercall.workspace.paths import Workspace

MIN_NEEDLE_CHARS = 16


MAX_NEEDLE_CHARS = 60


@dataclass(frozen=True)
class ErasureSubject:
    number: str = field(repr=False)
    rows: tuple[CallRow, ...] = field(repr=False)

    @property
    def call_ids(self) -> tuple[str, ...]:
        return tuple(row.live.id for row in self.rows)

    @property
    def conversations(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.live.conversation for row in self.rows))

    def read_calls(self, archive: Archive) -> Iterator[Call]:
        """Their calls, late words included, as far as the files are still there."""
        names = set(archive.place.list_names())
        for row in self.rows:
            if row.archive_name in names:
                call, late = archive.read(str(row.archive_name))
                yield call.model_copy(update={"turns": (*call.turns, *late)})


def make_needles(subject: ErasureSubject, archive: Archive, settings: Settings) -> frozenset[bytes]:
    """Bytes that give the caller away wherever they lie: the number, the names, and what was said.

    What is short is left out: half the world says "Thanks, bye."
    """
    person = Workspace.from_settings(settings).find_person(subject.number)
    profile = user_md.parse(files.read(person.user)) if person else user_md.UserProfile()
    sure = [name for name in (profile.name, profile.call_name) if name and len(name) > 3]
    said = [
        turn.text.strip()
        for call in subject.read_calls(archive)
        for turn in call.turns
        if turn.speaker == "caller"
    ]
    long = [text[:MAX_NEEDLE_CHARS] for text in said if len(text) >= MIN_NEEDLE_CHARS]
    return frozenset(text.encode() for text in (subject.number.removeprefix("+"), *sure, *long))
