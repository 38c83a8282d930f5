"""Which addresses a recording is fetched from: the carrier's, at public addresses, whatever a
webhook says.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.carrier.media import MediaAddress, MediaHosts
from aftercall.errors import CarrierUnreachable, RecordingRefused

PUBLIC = "54.172.60.1"
TWILIO, TELNYX = "https://api.twilio.com", "https://api.telnyx.com"


def check(
    url: str,
    carrier: str = "twilio",
    api: str = TWILIO,
    leads_to: tuple[str, ...] = (PUBLIC,),
) -> MediaAddress:
    return MediaHosts(carrier, api, lambda host, port: list(leads_to)).check(url)


@pytest.mark.parametrize(
    ("carrier", "url"),
    [
        ("twilio", "https://api.twilio.com/2010-04-01/Accounts/AC1/Recordings/RE1.wav"),
        (
            "twilio",
            "https://api.dublin.ie1.twilio.com/2010-04-01/Accounts/AC1/Recordings/RE1",
        ),
        ("twilio", "https://media.twiliocdn.com/AC1/RE1"),
        (
            "telnyx",
            "https://s3.amazonaws.com/telephony-recorder-prod/acc/2026/x.wav?X-Amz-Expires=600",
        ),
        ("telnyx", "https://us-central-1.telnyxstorage.com/x.wav"),
        ("telnyx", "https://api.telnyx.com:443/v2/recordings/1"),
    ],
)
def test_the_carriers_own_hosts_are_asked_at_the_address_that_was_judged(
    carrier: str, url: str
) -> None:
    target = check(url, carrier, TWILIO if carrier == "twilio" else TELNYX)
    assert target.url.startswith(f"https://{PUBLIC}:443/")
    assert target.netloc == target.host


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example/RE1.wav",
        "https://api.twilio.com.evil.example/RE1.wav",
        "https://eviltwilio.com/RE1",
        "https://twilio.com.evil/RE1",
        "http://api.twilio.com/RE1.wav",
        "https://api.twilio.com:8443/RE1.wav",
        "https://user:pass@api.twilio.com/RE1.wav",
        "https://api.twilio.com@evil.example/RE1",
        "https://s3.amazonaws.com/telephony-recorder-prod/x.wav",
        "file:///etc/passwd",
        "ftp://api.twilio.com/x",
        "//api.twilio.com/x",
        "https://",
        "https://[::1/x",
        "https://api.twilio.com:99999/x",
        "",
    ],
)
def test_everything_else_is_refused(url: str) -> None:
    with pytest.raises(RecordingRefused):
        check(url)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.0.0.1", "192.168.1.1", "172.16.0.1", "169.254.169.254",
        "100.64.0.1", "0.0.0.0", "224.0.0.1",
        "::1", "fe80::1", "fd00::1", "::ffff:10.0.0.1", "64:ff9b:1::1", "64:ff9b::10.0.0.1",
        "2002:0a00:0001::1",
        "fec0::1", "::127.0.0.1", "::54.172.60.1", "192.0.0.8", "64:ff9b::192.0.0.8", "ff02::1",
    ],
)  # fmt: skip
def test_a_host_that_leads_into_a_network_of_ours_is_refused(address: str) -> None:
    for leads_to in ((address,), (PUBLIC, address)):
        with pytest.raises(RecordingRefused, match="not public"):
            check("https://api.twilio.com/RE1.wav", leads_to=leads_to)


def test_another_bucket_is_not_the_carriers() -> None:
    for path in (
        "/someone-else/x.wav",
        "/telephony-recorder-prod/../someone-else/x",
        "/telephony-recorder-prod/%2e%2e/x",
    ):
        with pytest.raises(RecordingRefused):
            check(f"https://s3.amazonaws.com{path}", "telnyx", TELNYX)


def test_loopback_is_allowed_only_as_the_configured_api_itself() -> None:
    lab = "http://127.0.0.1:8090"
    target = check(f"{lab}/2010-04-01/x.wav", api=lab, leads_to=("127.0.0.1",))
    assert (target.url, target.netloc, target.is_api) == (
        "http://127.0.0.1:8090/2010-04-01/x.wav",
        "127.0.0.1:8090",
        True,
    )
    for other in (
        "http://127.0.0.1:8091/x.wav",
        "http://localhost:8090/x",
        "http://127.0.0.1/x",
    ):
        with pytest.raises(RecordingRefused):
            check(other, api=lab, leads_to=("127.0.0.1",))
    with pytest.raises(RecordingRefused):
        check("https://10.0.0.5/x.wav", api="https://10.0.0.5", leads_to=("10.0.0.5",))


def test_a_name_that_cannot_be_looked_up_is_tried_again() -> None:
    with pytest.raises(CarrierUnreachable):
        check("https://api.twilio.com/x", leads_to=())


@given(
    st.text(max_size=80)
    | st.from_regex(r"https?://[a-z0-9.:@\[\]%-]{0,40}/.{0,20}", fullmatch=True)
)
def test_no_address_at_all_leads_anywhere_but_to_the_carrier(url: str) -> None:
    try:
        target = check(url)
    except RecordingRefused:
        return
    assert target.host == "media.twiliocdn.com" or target.host.endswith(".twilio.com")
