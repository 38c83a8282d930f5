"""What every page works with."""

from dataclasses import dataclass

from aftercall.app import App
from aftercall.config import LoadedConfig
from aftercall.journal.store import CallRow
from aftercall.model.people import join_party, split_party
from aftercall.model.steps import Step
from aftercall.web.live import LiveFeed
from aftercall.web.page_store import PageStore
from aftercall.web.view import TemplateRenderer
from aftercall.workspace import files, user_md
from aftercall.workspace.paths import Workspace

WITHHELD = "withheld number"
WHO = "the pages"


@dataclass(frozen=True)
class PageContext:
    app: App
    view: TemplateRenderer
    store: PageStore
    feed: LiveFeed
    loaded: LoadedConfig | None = None

    def find_name(self, caller: str | None) -> str | None:
        """What the caller likes to be called, as far as their page tells."""
        person = Workspace.from_settings(self.app.settings).find_person(caller) if caller else None
        profile = user_md.parse(files.read(person.user)) if person else user_md.UserProfile()
        return profile.call_name or profile.name

    def find_other_speakers(self, number: str) -> list[tuple[str, str]]:
        """Who else speaks from this phone: each as a party, and by name."""
        parties = [
            join_party(number, person)
            for person in Workspace.from_settings(self.app.settings).list_other_persons(number)
        ]
        return [(party, self.find_name(party) or split_party(party)[1]) for party in parties]

    def make_listings(self, rows: list[CallRow]) -> list["CallListing"]:
        """Calls as a list shows them: who, when, what it was about, and how far the work is."""
        steps = self.store.list_steps([row.live.id for row in rows])
        names = {party: self.find_name(party) for party in {row.party for row in rows}}
        return [CallListing(row, names[row.party], tuple(steps[row.live.id])) for row in rows]


@dataclass(frozen=True)
class CallListing:
    row: CallRow
    name: str | None
    steps: tuple[Step, ...]

    @property
    def title(self) -> str:
        return self.name or self.row.live.caller or WITHHELD

    @property
    def summary(self) -> str:
        done = [
            step.result for step in self.steps if step.name == "summary" and step.state == "done"
        ]
        return done[0] or "" if done else ""

    @property
    def status(self) -> str:
        """One word for the state, which is also its colour."""
        states = {step.state for step in self.steps}
        if self.row.state == "live":
            return "live"
        if "failed" in states:
            return "failed"
        if self.row.state != "sealed" or not states or states & {"waiting", "running"}:
            return "working"
        return "done"
