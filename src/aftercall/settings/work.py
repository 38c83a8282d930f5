"""What is done after a call, how far callers are trusted with it, and where it goes."""

import re
import shlex
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr

from aftercall.settings.section import Env, Section, Words, parse_pairs


def _split_command(value: Any) -> Any:
    return shlex.split(value) if isinstance(value, str) else value


_TRUSTS = ("verified", "known", "unknown")


_KINDS = ("issue", "task", "reminder", "note", "message", "booking", "other")


SINKS = ("tasks", "people", "github", "webhook", "email", "message", "mcp", "agent")


def _check_policy(policy: dict[str, str]) -> dict[str, str]:
    for name in policy:
        trust, dot, kind = name.partition(".")
        if trust not in _TRUSTS or (dot and kind not in _KINDS):
            raise ValueError(f"{name!r} is not TRUST or TRUST.KIND ({', '.join(_TRUSTS)}; {', '.join(_KINDS)})")
    return policy


def _check_sinks(names: str) -> str:
    for name in re.split(r"\s*\+\s*", names) if names else ():
        if name not in SINKS:
            raise ValueError(f"{name!r} is not one of {', '.join(SINKS)}")
    return names.replace(" ", "")


def _check_routes(routes: dict[str, str]) -> dict[str, str]:
    for kind in routes:
        if kind not in _KINDS:
            raise ValueError(f"{kind!r} is not one of {', '.join(_KINDS)}")
    return {kind: _check_sinks(names) for kind, names in routes.items()}


Command = Annotated[tuple[str, ...], BeforeValidator(_split_command)]


SinkNames = Annotated[str, AfterValidator(_check_sinks)]


Policy = Annotated[dict[str, Literal["do", "hold", "refuse"]], BeforeValidator(parse_pairs), AfterValidator(_check_policy)]


Routes = Annotated[dict[str, str], BeforeValidator(parse_pairs), AfterValidator(_check_routes)]


class WorkSettings(Section):
    enabled: bool = Field(default=True, description="whether what was asked for is done once the reconnect window has passed")
    dry_run: bool = Field(default=False, description="everything is held, with what would have been done")
    trusted: Words = Field(default=(), description="numbers that count as known, and as verified when the carrier vouches for them")
    passcode: SecretStr | None = Field(default=None, min_length=4, description="spoken words or digits that make a caller verified")
    passcode_tries: int = Field(default=3, ge=1, le=10, description="wrong passcodes in a day before a caller's no longer count")
    policy: Policy = Field(default={}, description="`do`, `hold` or `refuse` by `TRUST.KIND` or `TRUST`, e.g. `unknown.issue=do`")
    routes: Routes = Field(
        default={}, description="which sinks a kind goes to, e.g. `issue=github+webhook`; by what is configured if unset"
    )
    daily_limit: int = Field(default=20, ge=0, description="requests of one caller in a day; more are held")
    hold_days: int = Field(default=30, ge=1, description="how long something waits for approval before it expires")
    notice: SinkNames = Field(default="", description="the sink that tells the owner of each conversation")
    reminders: SinkNames = Field(default="", description="the sink that reminds of what is due")
    reminder_hour: int = Field(default=9, ge=0, le=23, description="the hour of the day at which something due that day is reminded of")


class GitHubSettings(Section):
    token: Annotated[SecretStr | None, Env("GITHUB_TOKEN")] = Field(default=None, description="token that may open issues")
    repository: str | None = Field(default=None, pattern=r"^[\w.-]+/[\w.-]+$", description="where issues are opened, `owner/name`")
    api_url: str = Field(default="https://api.github.com", description="REST address")
    labels: Words = Field(default=(), description="labels of the issues opened")


class WebhookSettings(Section):
    url: str | None = Field(default=None, pattern=r"^https?://\S+$", description="where follow-ups are posted")
    secret: SecretStr | None = Field(default=None, description="signs them (Standard Webhooks, `whsec_…`)")


class EmailSettings(Section):
    host: str | None = Field(default=None, description="SMTP server")
    port: int = Field(default=587, ge=1, le=65535, description="SMTP port")
    security: Literal["starttls", "tls", "none"] = Field(default="starttls", description="how the connection is protected")
    username: str | None = Field(default=None, description="SMTP user")
    password: SecretStr | None = Field(default=None, description="SMTP password")
    sender: str | None = Field(default=None, description="the From address")
    to: str | None = Field(default=None, description="the owner's address; nothing is sent to one that was only spoken")


class MessageSettings(Section):
    carrier: Literal["twilio", "telnyx"] | None = Field(default=None, description="who sends text messages; by the keys present if unset")
    sender: str | None = Field(default=None, description="the number they come from; `twilio.phone_number` if unset")


class McpSettings(Section):
    command: Command = Field(default=(), description="a Model Context Protocol server to start")
    url: str | None = Field(default=None, pattern=r"^https?://\S+$", description="one that is running")
    tool: str | None = Field(default=None, description="its tool that takes requests")
    timeout_s: float = Field(default=60, gt=0, le=3600, description="how long one use of the tool may take")


class AgentSettings(Section):
    command: Command = Field(default=(), description="a command that does requests: JSON on standard input, results as JSON lines")
    per: Literal["conversation", "request"] = Field(
        default="conversation",
        description="what it is run for: once for all requests of a conversation, or for each request",
    )
    timeout_s: float = Field(default=600, gt=0, le=86_400, description="how long it may run")
    folder: Path | None = Field(default=None, description="where it runs; a folder of its own in the home if unset")
    environment: Words = Field(default=(), description="names of the environment variables it is given; no others but PATH, HOME and LANG")
