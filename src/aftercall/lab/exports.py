"""What an agent sets to talk to a box instead of the real ones, server by server: take what your agent uses."""

from aftercall.lab.server import ANTHROPIC_KEY, DEEPGRAM_KEY, GITHUB_TOKEN, OPENAI_KEY, REMEM_KEY, Lab


def exports_of(lab: Lab, number: str) -> dict[str, dict[str, str]]:
    """`number` is the agent's own."""
    address = lab.address
    return {
        "Twilio": {
            "TWILIO_ACCOUNT_SID": lab.exchange.office.account_sid,
            "TWILIO_AUTH_TOKEN": lab.exchange.auth_token,
            "TWILIO_PHONE_NUMBER": number,
            "AFTERCALL_TWILIO_API_URL": address,
        },
        "Telnyx": {
            "TELNYX_API_KEY": lab.telnyx.api_key,
            "TELNYX_PUBLIC_KEY": lab.telnyx.public_key,
            "TELNYX_PHONE_NUMBER": number,
            "AFTERCALL_TELNYX_API_URL": address,
        },
        "Deepgram": {"DEEPGRAM_API_KEY": DEEPGRAM_KEY, "AFTERCALL_DEEPGRAM_URL": f"ws{address.removeprefix('http')}{lab.deepgram.path}"},
        "OpenAI": {"OPENAI_API_KEY": OPENAI_KEY, "OPENAI_BASE_URL": f"{address}/v1"},
        "Anthropic": {"ANTHROPIC_API_KEY": ANTHROPIC_KEY, "ANTHROPIC_BASE_URL": address},
        "Remem": {"REMEM_API_KEY": REMEM_KEY, "REMEM_API_URL": address},
        "GitHub": {
            "GITHUB_TOKEN": GITHUB_TOKEN,
            "AFTERCALL_GITHUB_REPOSITORY": lab.github.repository,
            "AFTERCALL_GITHUB_API_URL": address,
        },
    }
