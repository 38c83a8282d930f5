"""Asks each service that is set up whether it takes our key, and whether its calls come here.

It only reads: no call, no message and no issue comes of a check. `doctor.py` checks this machine.
"""

import shutil
import socket
import ssl
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from typing import Any
from urllib.parse import quote, urlsplit

import httpx2
from pydantic import SecretStr
from websockets.exceptions import InvalidHandshake, InvalidStatus
from websockets.sync.client import connect

from aftercall.clock import SystemClock
from aftercall.db.connect import Database
from aftercall.db.upgrade import current_revision, read_archive_claim
from aftercall.doctor import Check
from aftercall.errors import AftercallError
from aftercall.journal.recording_files import open_bucket
from aftercall.llm.model.client import XAI_URL, ModelChoice, choose_model
from aftercall.memory.documents import DEFAULT_URL
from aftercall.model.json_fields import Json
from aftercall.rest import Headers, describe_network_error
from aftercall.settings import Settings
from aftercall.settings.providers import (
    EmailSettings,
    GitHubSettings,
    make_key_headers,
)
from aftercall.work.sinks.message import EmailSink

MIN_CERTIFICATE_DAYS = 14
ASK_TIMEOUT_S = 8.0
PUBLIC_ADDRESS = "public address"
START_SERVER = "start `aftercall serve`, then the tunnel or the proxy in front of it"
OPENAI_URL = "https://api.openai.com/v1"
ANTHROPIC_URL = "https://api.anthropic.com"

# Whose webhook it is, what it is for, and its path.
WEBHOOKS = (
    ("twilio", "Twilio: a call comes in", "/twilio/voice"),
    ("twilio", "Twilio: call status changes", "/twilio/status"),
    ("twilio", "Twilio: a recording is ready", "/twilio/recording"),
    ("telnyx", "Telnyx: webhook of the application", "/telnyx/events"),
    ("elevenlabs", "ElevenLabs: post-call webhook", "/hosted/elevenlabs"),
    ("elevenlabs", "ElevenLabs: conversation initiation", "/hosted/elevenlabs/start"),
    ("vapi", "Vapi: server URL", "/hosted/vapi"),
    ("retell", "Retell: webhook URL", "/hosted/retell"),
    ("bland", "Bland: webhook", "/hosted/bland"),
    ("bland", "Bland: dynamic data", "/hosted/bland/start"),
)
# What `reconcile` asks of each platform, for one call at most.
PLATFORM_LISTS: dict[str, tuple[str, Json]] = {
    "elevenlabs": ("/v1/convai/conversations?page_size=1", {}),
    "vapi": ("/call?limit=1", {}),
    "retell": ("/v3/list-calls", {"json": {"limit": 1}}),
    "bland": ("/v1/calls?limit=1", {}),
}


def list_webhooks(settings: Settings, only: str | None = None) -> list[tuple[str, str]]:
    """What each webhook is for, and its address; none without a public address."""
    public = (settings.public_url or "").rstrip("/")
    return [
        (purpose, public + path)
        for service, purpose, path in WEBHOOKS
        if public and only in (None, service)
    ]


def check_services(settings: Settings) -> list[Check]:
    """Asks every service that is set up, all at the same time."""
    questions = list(_list_questions(settings))
    if not questions:
        return []
    with ThreadPoolExecutor(len(questions)) as pool:
        answers = pool.map(lambda question: _ask(*question), questions)
        return [check for checks in answers for check in checks]


Checks = Iterator[Check]
Question = tuple[str, str, Callable[[], Checks]]
"""Its name, the address that is asked, and the check."""


def _list_questions(settings: Settings) -> Iterator[Question]:
    """One question for each service that is set up."""
    if url := settings.public_url:
        yield PUBLIC_ADDRESS, url, partial(_check_public_address, url)
    twilio, telnyx = settings.twilio, settings.telnyx
    if twilio.account_sid and (key := twilio.auth_token):
        yield "twilio", twilio.api_url, partial(_check_twilio, settings, key)
    if key := telnyx.api_key:
        yield "telnyx", telnyx.api_url, partial(_check_telnyx, settings, key)
    if key := settings.deepgram.api_key:
        url = settings.deepgram.url
        yield "deepgram", url, partial(_check_deepgram, url, key)
    for name in PLATFORM_LISTS:
        platform = getattr(settings, name)
        if key := platform.api_key:
            yield name, platform.api_url, partial(_check_platform, settings, name, key)
    if url := settings.archive.url:
        yield "object storage", url, partial(_check_bucket, settings)
    yield from _list_model_questions(settings)
    yield from _list_sink_questions(settings)


def _list_sink_questions(settings: Settings) -> Iterator[Question]:
    """One question for each place that requests are delivered to."""
    github, email = settings.github, settings.email
    if (key := github.token) and github.repository:
        yield "github", github.api_url, partial(_check_github, github, key)
    if key := settings.remem.api_key:
        url = settings.remem.api_url or DEFAULT_URL
        yield "remem", url, partial(_check_remem, url, key)
    if email.host:
        yield "email", f"smtp://{email.host}:{email.port}", partial(_check_email, email)
    for name, secret in (("webhook", settings.webhook.url), ("mcp", settings.mcp.url)):
        if secret:
            url = secret.get_secret_value()
            yield name, url, partial(_check_address, name, url)
    for name, command in (
        ("mcp", settings.mcp.command),
        ("agent", settings.agent.command),
    ):
        if command:
            yield name, "", partial(_check_command, name, command[0])


def _ask(name: str, url: str, check: Callable[[], Checks]) -> list[Check]:
    """An answer that never came, or makes no sense, is a failed check."""
    where = _hide_path(url)
    advice = "check its address and the network"
    try:
        return list(check())
    except httpx2.InvalidURL:
        return [Check(name, "fail", f"{where} is no address", "correct it")]
    except (httpx2.HTTPError, OSError, InvalidHandshake) as error:
        if told := _describe_tls(error):
            return [Check(name, "fail", f"{where}: {told}", "renew it")]
        detail = f"no answer from {where} ({describe_network_error(error)})"
        if name == PUBLIC_ADDRESS:  # its server may not be started yet
            return [Check(name, "warn", detail, START_SERVER)]
        return [Check(name, "fail", detail, advice)]
    except (ValueError, KeyError, TypeError, AttributeError):
        advice = "check its address: another server may answer there"
        return [Check(name, "fail", f"the answer of {where} cannot be read", advice)]


def _hide_path(url: str) -> str:
    """Host and port alone: the rest of a webhook's address may be a key."""
    return urlsplit(url).netloc.rpartition("@")[2]


def _describe_tls(error: BaseException) -> str:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"the certificate is not valid ({cause.verify_message})"
        cause = cause.__cause__ or cause.__context__
    return ""


def _get(url: str, headers: Headers, **parts: Any) -> httpx2.Response:
    with httpx2.Client(timeout=ASK_TIMEOUT_S, trust_env=False) as http:
        method = "POST" if "json" in parts else "GET"
        return http.request(method, url, headers=headers, **parts)


def _refused(name: str, answer: httpx2.Response, key: str) -> Check | None:
    """None if the service took the key."""
    status = answer.status_code
    if answer.is_success:
        return None
    if status in (401, 403):
        detail = f"refuses the key ({status})"
        return Check(name, "fail", detail, f"set {key} to a valid one")
    if status == 429:
        detail = "takes the key, but its limit is reached (429)"
        return Check(name, "warn", detail, "wait, or raise the limit")
    if status >= 500:
        return Check(name, "warn", f"is out of order ({status})", "try again later")
    advice = f"check its address and {key}"
    return Check(name, "fail", f"answers {status}", advice)


def _check_public_address(url: str) -> Checks:
    """Through the tunnel or the proxy, as a carrier would come."""
    name = PUBLIC_ADDRESS
    answer = _get(f"{url.rstrip('/')}/healthz", {})
    if answer.is_success and "version" in answer.json():
        yield Check(name, "ok", f"{url} leads to Aftercall {answer.json()['version']}")
    else:
        detail = f"{url} answers {answer.status_code}, and is not Aftercall"
        yield Check(name, "warn", detail, START_SERVER)
    yield _check_certificate(url)


def _check_certificate(url: str) -> Check:
    """How long the certificate of the public address lasts."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme != "https":
        if host in ("127.0.0.1", "localhost", "::1"):
            return Check("TLS", "ok", "not needed on this machine")
        advice = "put a proxy or a tunnel with https in front of the server"
        return Check("TLS", "warn", f"{url} is not encrypted", advice)
    context = ssl.create_default_context()
    with (
        socket.create_connection((host, parts.port or 443), ASK_TIMEOUT_S) as opened,
        context.wrap_socket(opened, server_hostname=host) as wrapped,
    ):
        certificate = wrapped.getpeercert() or {}
    ends = datetime.fromtimestamp(
        ssl.cert_time_to_seconds(str(certificate["notAfter"])), UTC
    )
    days = (ends - datetime.now(UTC)).days
    detail = f"the certificate of {host} is valid until {ends:%Y-%m-%d}"
    if days < MIN_CERTIFICATE_DAYS:
        return Check("TLS", "warn", detail, "renew it")
    return Check("TLS", "ok", detail)


def _check_twilio(settings: Settings, token: SecretStr) -> Checks:
    """The account answers, the number is ours, and its webhook leads here."""
    sid = settings.twilio.account_sid or ""
    account = f"{settings.twilio.api_url.rstrip('/')}/2010-04-01/Accounts/{sid}"
    auth = (sid, token.get_secret_value())
    answer = _get(f"{account}.json", {}, auth=auth)
    keys = "TWILIO_ACCOUNT_SID and TWILIO_AUTH_TOKEN"
    if refused := _refused("twilio", answer, keys):
        yield refused
        return
    yield Check(
        "twilio", "ok", f"takes the keys; the account is {answer.json()['status']}"
    )
    found = _get(f"{account}/IncomingPhoneNumbers.json?PageSize=100", {}, auth=auth)
    if found.is_success and settings.public_url:
        numbers = {
            number["voice_url"]: number["phone_number"]
            for number in found.json()["incoming_phone_numbers"]
        }
        yield _check_webhook("twilio", numbers, settings.public_url, "/twilio/voice")


def _check_telnyx(settings: Settings, key: SecretStr) -> Checks:
    """The key is accepted, and the webhook of the application leads here."""
    telnyx = settings.telnyx
    url = f"{telnyx.api_url.rstrip('/')}/v2/call_control_applications?page[size]=100"
    answer = _get(url, _bearer(key))
    if refused := _refused("telnyx", answer, "TELNYX_API_KEY"):
        yield refused
        return
    yield Check("telnyx", "ok", "takes the key")
    if telnyx.public_key is None:
        advice = "set TELNYX_PUBLIC_KEY, from its portal under Keys & Credentials"
        yield Check("telnyx", "fail", "webhooks cannot be checked", advice)
    if settings.public_url:
        applications = {
            application["webhook_event_url"]: application["application_name"]
            for application in answer.json()["data"]
        }
        yield _check_webhook(
            "telnyx", applications, settings.public_url, "/telnyx/events"
        )


def _check_platform(settings: Settings, name: str, key: SecretStr) -> Checks:
    """The key is accepted. Where its webhooks lead, only the platform's own pages show."""
    platform = getattr(settings, name)
    path, body = PLATFORM_LISTS[name]
    headers = make_key_headers(name, key)
    answer = _get(platform.api_url.rstrip("/") + path, headers, **body)
    env = name.upper()
    yield _refused(name, answer, f"{env}_API_KEY") or Check(name, "ok", "takes the key")
    if (
        name != "retell" and platform.webhook_secret is None
    ):  # Retell signs with its key
        detail = "webhooks cannot be checked, and are refused"
        yield Check(name, "warn", detail, f"set {env}_WEBHOOK_SECRET")
    for purpose, address in list_webhooks(settings, name):
        yield Check(f"{name} webhook", "ok", f"set {address} there ({purpose})")


def _check_bucket(settings: Settings) -> Checks:
    """The bucket can be read with the key and is ours; nothing is written."""
    name, archive = "object storage", settings.archive
    try:
        if bucket := open_bucket(archive):
            bucket.check_access()
            bucket.check_owner(_find_database_id(settings))
    except AftercallError as error:
        yield Check(
            name, "fail", str(error), "check archive.url and the AWS_ variables"
        )
    else:
        yield Check(name, "ok", f"{archive.url} can be read; nothing was written")


def _find_database_id(settings: Settings) -> str:
    """Empty for a database without tables, which owns nothing."""
    with (
        closing(Database(settings.database_url)) as database,
        database.read() as connection,
    ):
        if current_revision(connection) is None:
            return ""
        return (read_archive_claim(connection) or {}).get("database", "")


def _check_webhook(name: str, found: dict[str, str], public: str, path: str) -> Check:
    wanted = public.rstrip("/") + path
    if wanted in found:
        return Check(f"{name} webhook", "ok", f"{found[wanted]} leads to {wanted}")
    detail = f"nothing at {name.title()} leads to this server"
    return Check(f"{name} webhook", "warn", detail, f"set its webhook to {wanted}")


def _check_deepgram(url: str, key: SecretStr) -> Checks:
    """Opens the socket of a call and closes it before anything is said."""
    headers = {"Authorization": f"Token {key.get_secret_value()}"}
    try:
        with connect(
            url, additional_headers=headers, open_timeout=ASK_TIMEOUT_S, proxy=None
        ):
            yield Check("deepgram", "ok", "takes the key and opens a voice agent")
    except InvalidStatus as error:
        status = error.response.status_code
        advice = "set DEEPGRAM_API_KEY to a key that may use the voice agent"
        yield Check("deepgram", "fail", f"refuses the key ({status})", advice)


def _list_model_questions(settings: Settings) -> Iterator[Question]:
    """Each provider with a key, and the models that are used of it."""
    try:
        choice = choose_model(settings)
    except AftercallError:
        choice = None  # `run_checks` reports it
    openai, anthropic, xai = settings.openai, settings.anthropic, settings.xai
    speaks = settings.voice_engine == "openai"
    realtime = (openai.realtime_model,) if speaks else ()
    if choice and choice.provider == "openai-compatible":
        url = f"{(choice.base_url or OPENAI_URL).rstrip('/')}/models"
        yield "model server", url, partial(_check_model_server, url, choice)
    elif openai.api_key:
        url = f"{(openai.base_url or OPENAI_URL).rstrip('/')}/models"
        headers = _bearer(openai.api_key)
        names = _models_of(choice, "openai") + realtime
        yield "openai", url, partial(_check_models, "openai", url, headers, names)
    if anthropic.api_key:
        url = f"{(anthropic.base_url or ANTHROPIC_URL).rstrip('/')}/v1/models"
        headers = {
            "x-api-key": anthropic.api_key.get_secret_value(),
            "anthropic-version": "2023-06-01",
        }
        names = _models_of(choice, "anthropic")
        yield "anthropic", url, partial(_check_models, "anthropic", url, headers, names)
    if xai.api_key:
        url = f"{(xai.base_url or XAI_URL).rstrip('/')}/models"
        headers = _bearer(xai.api_key)
        names = _models_of(choice, "xai")
        yield "xai", url, partial(_check_models, "xai", url, headers, names)


def _models_of(choice: ModelChoice | None, provider: str) -> tuple[str, ...]:
    return (choice.model,) if choice and choice.provider == provider else ()


def _check_models(
    name: str, url: str, headers: Headers, models: tuple[str, ...]
) -> Checks:
    """The provider knows the model; nothing is generated."""
    for model in models or ("",):
        answer = _get(f"{url}/{quote(model, safe='')}" if model else url, headers)
        if model and answer.status_code == 404:
            detail = f"takes the key, but knows no model {model}"
            yield Check(name, "fail", detail, "choose another model in the settings")
        elif refused := _refused(name, answer, f"{name.upper()}_API_KEY"):
            yield refused
            return
        else:
            knows = f" and knows {model}" if model else ""
            yield Check(name, "ok", f"takes the key{knows}")


def _check_model_server(url: str, choice: ModelChoice) -> Checks:
    """Whether it answers, and has the model."""
    answer = _get(url, _bearer(choice.api_key))
    if refused := _refused("model server", answer, "OPENAI_API_KEY"):
        yield refused
    elif choice.model in [model["id"] for model in answer.json()["data"]]:
        yield Check("model server", "ok", f"answers and has {choice.model}")
    else:
        detail = f"answers, but does not list {choice.model}"
        advice = "load the model, or choose another with AFTERCALL_MODEL"
        yield Check("model server", "warn", detail, advice)


def _check_github(github: GitHubSettings, token: SecretStr) -> Checks:
    """The token may write issues in the repository."""
    url = f"{github.api_url.rstrip('/')}/repos/{github.repository}"
    headers = _bearer(token) | {"User-Agent": "aftercall"}
    answer = _get(f"{url}/issues?per_page=1", headers)
    if answer.status_code == 404:
        detail = f"takes the token, but shows no {github.repository}"
        advice = "give the token access to issues of that repository"
        yield Check("github", "fail", detail, advice)
    else:
        yield _refused("github", answer, "GITHUB_TOKEN") or Check(
            "github", "ok", f"takes the token and shows {github.repository}"
        )


def _check_remem(url: str, key: SecretStr) -> Checks:
    query = {"query": "aftercall", "max_results": 1}
    answer = _get(f"{url.rstrip('/')}/v1/query", _bearer(key), json=query)
    yield _refused("remem", answer, "REMEM_API_KEY") or Check(
        "remem", "ok", "takes the key"
    )


def _check_email(email: EmailSettings) -> Checks:
    """The mail server takes the login; no mail is sent."""
    try:
        EmailSink(email, SystemClock()).check()
    except AftercallError as error:
        yield Check("email", "fail", str(error).removeprefix("email: "))
    else:
        yield Check("email", "ok", f"{email.host} lets us in; nothing was sent")


def _check_address(name: str, url: str) -> Checks:
    """Opens a connection and sends nothing: a request might do something."""
    parts = urlsplit(url)
    host, is_https = parts.hostname or "", parts.scheme == "https"
    port = parts.port or (443 if is_https else 80)
    with socket.create_connection((host, port), ASK_TIMEOUT_S) as opened:
        if is_https:
            ssl.create_default_context().wrap_socket(
                opened, server_hostname=host
            ).close()
    yield Check(name, "ok", f"{host} can be reached; nothing was sent")


def _check_command(name: str, command: str) -> Checks:
    """The command exists and may be run; it is not run."""
    if shutil.which(command):
        yield Check(name, "ok", f"{command} is there")
    else:
        advice = f"install it, or correct {name}.command"
        yield Check(name, "fail", f"there is no {command}", advice)


def _bearer(key: SecretStr) -> dict[str, str]:
    return {"Authorization": f"Bearer {key.get_secret_value()}"}
