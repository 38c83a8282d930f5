"""Which sinks are set up, and which of them a kind of request goes to."""

from collections.abc import Mapping

from aftercall.clock import Clock
from aftercall.errors import ConfigError
from aftercall.settings import Settings
from aftercall.work.sinks import Sink
from aftercall.work.sinks.command import AgentSink, McpSink
from aftercall.work.sinks.http import GitHubSink, WebhookSink
from aftercall.work.sinks.markdown import PeopleSink, TasksSink
from aftercall.work.sinks.message import EmailSink, MessageSink, make_carrier

NEEDED_SETTINGS = {
    "github": "GITHUB_TOKEN and github.repository",
    "webhook": "webhook.url",
    "email": "email.host, email.sender and email.to",
    "message": "a carrier's keys and the number to send from",
    "mcp": "mcp.tool and mcp.command or mcp.url",
    "agent": "agent.command",
}


def make_sinks(settings: Settings, clock: Clock) -> dict[str, Sink]:
    """The sinks whose settings are complete."""
    sinks: list[Sink] = [TasksSink(settings, clock), PeopleSink(settings, clock)]
    if settings.github.token and settings.github.repository:
        sinks.append(GitHubSink(settings.github, clock))
    if settings.webhook.url:
        sinks.append(WebhookSink(settings.webhook, clock))
    if settings.email.host and settings.email.sender and settings.email.to:
        sinks.append(EmailSink(settings.email, clock))
    if carrier := make_carrier(settings):
        sinks.append(MessageSink(carrier, settings.owner, clock))
    if settings.mcp.tool and (settings.mcp.command or settings.mcp.url):
        sinks.append(McpSink(settings.mcp))
    if settings.agent.command:
        sinks.append(AgentSink(settings.agent, settings.home))
    return {sink.name: sink for sink in sinks}


class SinkRouter:
    """Picks the sinks of a request by its kind."""

    def __init__(self, settings: Settings, sinks: Mapping[str, Sink]) -> None:
        self._sinks = sinks
        self._routes = settings.work.routes
        used = {f"routes.{kind}": names for kind, names in self._routes.items()}
        used |= {"notice": settings.work.notice, "reminders": settings.work.reminders}
        for setting, names in used.items():
            for name in split_names(names):
                if name not in sinks:
                    needed = NEEDED_SETTINGS[name]
                    raise ConfigError(
                        f"work.{setting}: {name} is not set up; it needs {needed}"
                    )

    def route(self, kind: str) -> tuple[str, ...]:
        return split_names(self._routes.get(kind, "")) or (self._default(kind),)

    def leaves_machine(self, names: tuple[str, ...]) -> bool:
        return any(self._sinks[name].leaves_machine for name in names)

    def _default(self, kind: str) -> str:
        if kind == "note":
            return "people"
        if kind == "issue" and "github" in self._sinks:
            return "github"
        return "agent" if kind != "reminder" and "agent" in self._sinks else "tasks"


def split_names(names: str) -> tuple[str, ...]:
    """`github+webhook` as the settings and the ledger write it."""
    return tuple(names.split("+")) if names else ()
