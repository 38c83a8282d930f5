"""Which sinks are set up, and which of them a kind of request goes to."""

from collections.abc import Mapping
from typing import Protocol

from aftercall.clock import Clock
from aftercall.errors import ConfigError
from aftercall.model.followups import SinkReceipt, SinkWork
from aftercall.settings import Settings
from aftercall.work.sinks.command import AgentSink
from aftercall.work.sinks.email import EmailSink
from aftercall.work.sinks.github import GitHubSink
from aftercall.work.sinks.mcp import McpSink
from aftercall.work.sinks.message import MessageSink, make_carrier
from aftercall.work.sinks.people import PeopleSink
from aftercall.work.sinks.tasks import TasksSink
from aftercall.work.sinks.webhook import WebhookSink


class Sink(Protocol):
    """Takes one piece of work and makes one thing of it.

    The same key twice is the same thing: a sink that `can_repeat` finds what it made before and
    gives the receipt again, whether it was cut off before or after. One that cannot is never
    given the same key again once it may have acted.

    What was said on the phone is data: it is quoted and escaped, never executed, and decides no
    address and no path.

    Raises SinkUnavailable where trying again may help and SinkRefused where it will not; a sink
    that cannot repeat raises OutcomeUnknown where it may have acted. Errors name what to do and
    never hold what was said.
    """

    name: str
    leaves_machine: bool
    can_repeat: bool

    def describe_dry_run(self, work: SinkWork) -> str:
        """What `deliver` would do, in one line; does nothing."""
        ...

    def deliver(self, work: SinkWork) -> SinkReceipt: ...


_NEEDED = {
    "github": "GITHUB_TOKEN and github.repository",
    "webhook": "webhook.url",
    "email": "email.host, email.sender and email.to",
    "message": "a carrier's keys and the number to send from",
    "mcp": "mcp.tool and mcp.command or mcp.url",
    "agent": "agent.command",
}


def make_sinks(settings: Settings, clock: Clock) -> dict[str, Sink]:
    """Those that the settings give all they need."""
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
    def __init__(self, settings: Settings, sinks: Mapping[str, Sink]) -> None:
        self._sinks = sinks
        self._named = settings.work.routes
        for setting, names in {
            **{f"routes.{kind}": names for kind, names in self._named.items()},
            **_others(settings),
        }.items():
            for name in names.split("+") if names else ():
                if name not in sinks:
                    raise ConfigError(
                        f"work.{setting}: {name} is not set up; it needs {_NEEDED[name]}"
                    )

    def route(self, kind: str) -> tuple[str, ...]:
        if names := self._named.get(kind):
            return tuple(names.split("+"))
        return (self._usual(kind),)

    def leaves_machine(self, names: tuple[str, ...]) -> bool:
        return any(self._sinks[name].leaves_machine for name in names)

    def _usual(self, kind: str) -> str:
        if kind == "note":
            return "people"
        if kind == "issue" and "github" in self._sinks:
            return "github"
        return "agent" if kind != "reminder" and "agent" in self._sinks else "tasks"


def _others(settings: Settings) -> dict[str, str]:
    return {"notice": settings.work.notice, "reminders": settings.work.reminders}
