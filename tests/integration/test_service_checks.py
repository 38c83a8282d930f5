"""`aftercall doctor` asks each service, and says what it saw and what to do."""

import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from aftercall.app import build
from aftercall.config import load_config
from aftercall.doctor import run_checks
from aftercall.lab.exchange import LabNumber
from aftercall.lab.server import Lab, make_exports
from aftercall.service_checks import check_services
from aftercall.settings import Settings
from loopback_server import lab_box
from mail_server import Postman
from s3_server import S3Server

PUBLIC = "https://calls.example.com"


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with lab_box() as box:
        yield box


def read(lab: Lab, *services: str, **settings: str) -> Settings:
    """The settings as the lab prints them for these services."""
    exports = make_exports(lab, "+15550101")
    environ = {
        name: value for service in services for name, value in exports[service].items()
    }
    return load_config(environ=environ | settings).settings


def see(settings: Settings) -> dict[str, str]:
    return {
        check.name: f"{check.state} {check.detail}"
        for check in check_services(settings)
    }


def test_without_keys_nothing_is_asked(lab: Lab) -> None:
    assert check_services(read(lab)) == []


def test_every_service_of_the_lab_takes_its_key(lab: Lab) -> None:
    services = (
        "Twilio",
        "Telnyx",
        "Deepgram",
        "OpenAI",
        "Anthropic",
        "Remem",
        "GitHub",
        "ElevenLabs",
        "Vapi",
        "Retell",
        "Bland",
    )
    seen = see(read(lab, *services, AFTERCALL_MODEL="anthropic:claude-sonnet-5-5"))
    assert {name for name, told in seen.items() if not told.startswith("ok")} == set()
    assert seen["twilio"] == "ok takes the keys; the account is active"
    assert seen["anthropic"] == "ok takes the key and knows claude-sonnet-5-5"
    assert seen["github"] == "ok takes the token and shows acme/site"
    assert seen["deepgram"] == "ok takes the key and opens a voice agent"


@pytest.mark.parametrize(
    ("service", "env"),
    [
        ("Twilio", "TWILIO_AUTH_TOKEN"),
        ("Telnyx", "TELNYX_API_KEY"),
        ("Deepgram", "DEEPGRAM_API_KEY"),
        ("OpenAI", "OPENAI_API_KEY"),
        ("Anthropic", "ANTHROPIC_API_KEY"),
        ("Remem", "REMEM_API_KEY"),
        ("GitHub", "GITHUB_TOKEN"),
        ("ElevenLabs", "ELEVENLABS_API_KEY"),
        ("Vapi", "VAPI_API_KEY"),
        ("Retell", "RETELL_API_KEY"),
        ("Bland", "BLAND_API_KEY"),
    ],
)
def test_a_wrong_key_is_named_with_the_setting_to_change(
    lab: Lab, service: str, env: str
) -> None:
    (check,) = check_services(read(lab, service, **{env: "wrong"}))
    assert (check.state, check.detail) == ("fail", "refuses the key (401)")
    assert env in check.advice


def test_the_addresses_to_set_at_a_platform_are_named(lab: Lab) -> None:
    found = check_services(read(lab, "Bland", AFTERCALL_PUBLIC_URL=PUBLIC))
    told = [check.detail for check in found if check.name == "bland webhook"]
    assert [detail.split()[1] for detail in told] == [
        f"{PUBLIC}/hosted/bland",
        f"{PUBLIC}/hosted/bland/start",
    ]


def test_a_platform_whose_webhooks_would_be_refused_is_reported(lab: Lab) -> None:
    settings = read(lab, "Vapi", VAPI_WEBHOOK_SECRET="")
    assert "refused" in see(settings)["vapi"]


def test_a_bucket_is_asked_with_its_key_and_one_that_is_not_there_fails(
    s3: S3Server,
) -> None:
    archive = s3.make_bucket()
    assert see(Settings(archive=archive))["object storage"].startswith("ok s3://")
    away = archive.model_copy(update={"url": "s3://nothing-here/aftercall"})
    assert see(Settings(archive=away))["object storage"].startswith("fail")


def test_a_bucket_with_the_calls_of_another_database_is_reported(
    s3: S3Server, tmp_path: Path
) -> None:
    archive = s3.make_bucket()
    own = Settings(home=tmp_path / "own", archive=archive)
    build(own).close()
    assert see(own)["object storage"].startswith("ok s3://")
    other = Settings(home=tmp_path / "other", archive=archive)
    assert "holds the calls of another database" in see(other)["object storage"]


def test_an_unknown_model_is_told_apart_from_a_wrong_key(lab: Lab) -> None:
    settings = read(lab, "Anthropic", AFTERCALL_MODEL="anthropic:claude-0")
    assert see(settings) == {
        "anthropic": "fail takes the key, but knows no model claude-0"
    }
    server = read(lab, "OpenAI", AFTERCALL_MODEL="openai-compatible:llama")
    assert see(server)["model server"] == "warn answers, but does not list llama"


def test_a_number_whose_webhook_leads_elsewhere_is_reported(lab: Lab) -> None:
    settings = read(lab, "Twilio", AFTERCALL_PUBLIC_URL=lab.address)
    checks = {check.name: check for check in check_services(settings)}
    webhook = checks["twilio webhook"]
    assert webhook.state == "warn"
    assert webhook.advice == f"set its webhook to {lab.address}/twilio/voice"
    lab.exchange.numbers["+15550177"] = LabNumber(f"{lab.address}/twilio/voice", "")
    told = f"ok +15550177 leads to {lab.address}/twilio/voice"
    assert see(settings)["twilio webhook"] == told


def test_an_address_that_is_not_ours_is_reported(lab: Lab) -> None:
    checks = check_services(read(lab, AFTERCALL_PUBLIC_URL=lab.address))
    assert [(check.name, check.state) for check in checks] == [
        ("public address", "warn"),
        ("TLS", "ok"),
    ]
    assert "start `aftercall serve`" in checks[0].advice


def test_a_service_that_does_not_answer_fails_and_holds_up_no_other(lab: Lab) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{closed.getsockname()[1]}"
        seen = see(read(lab, "Twilio", "GitHub", AFTERCALL_TWILIO_API_URL=nowhere))
    assert (
        seen["twilio"] == f"fail no answer from {nowhere[7:]} (the connection failed)"
    )
    assert seen["github"].startswith("ok")


def test_a_server_of_another_kind_is_not_believed(lab: Lab) -> None:
    settings = read(lab, "OpenAI", AFTERCALL_MODEL="openai-compatible:llama")
    other = settings.openai.model_copy(update={"base_url": f"{lab.address}/health#"})
    seen = see(settings.model_copy(update={"openai": other}))
    assert (
        seen["model server"] == f"fail the answer of {lab.address[7:]} cannot be read"
    )


def test_sinks_are_reached_and_nothing_is_sent(lab: Lab) -> None:
    with Postman() as mail:
        seen = see(
            read(
                lab,
                AFTERCALL_EMAIL_HOST="127.0.0.1",
                AFTERCALL_EMAIL_PORT=str(mail.port),
                AFTERCALL_EMAIL_SECURITY="none",
                AFTERCALL_WEBHOOK_URL=f"{lab.address}/hook",
                AFTERCALL_AGENT_COMMAND="no-such-command --now",
            )
        )
        assert mail.letters == []
    assert seen == {
        "email": "ok 127.0.0.1 lets us in; nothing was sent",
        "webhook": "ok 127.0.0.1 can be reached; nothing was sent",
        "agent": "fail there is no no-such-command",
    }


def test_a_settings_file_that_others_can_read_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "aftercall.toml"
    file.write_text(f'home = "{tmp_path / "home"}"\n')
    for mode, state in ((0o644, "warn"), (0o600, "ok")):
        file.chmod(mode)
        loaded = load_config(file, {})
        (check,) = [one for one in run_checks(loaded) if one.name == "settings"]
        assert (stat.S_IMODE(file.stat().st_mode), check.state) == (mode, state)
