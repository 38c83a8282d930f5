"""Who speaks, over which carrier, and the platforms that ran a call themselves."""

from typing import Annotated

from pydantic import Field, SecretStr

from aftercall.settings.section import Env, Section, Words


class ReceptionistSettings(Section):
    greeting: str = Field(
        default="Hello! I'm the assistant. What can I do for you?",
        min_length=1,
        max_length=200,
        description="what a caller hears whom nothing better is known for",
    )
    speech: bool = Field(default=False, description="speak and listen on this machine instead of through the carrier; needs `[speech]`")
    voice: str = Field(default="en-us", pattern=r"^[\w+-]{1,40}$", description="its own voice, as espeak-ng names it")


class DeepgramSettings(Section):
    api_key: Annotated[SecretStr | None, Env("DEEPGRAM_API_KEY")] = Field(default=None, description="key for the voice agent")
    url: str = Field(default="wss://agent.deepgram.com/v1/agent/converse", description="voice agent socket")
    listen_model: str = Field(default="nova-3", min_length=1, description="model that hears the caller")
    language: str = Field(default="en", min_length=2, description="language the caller speaks")
    think_provider: str = Field(default="open_ai", min_length=1, description="whose model thinks, as Deepgram names it")
    think_model: str = Field(default="gpt-4o-mini", min_length=1, description="model that thinks")
    voice: str = Field(default="aura-2-thalia-en", min_length=1, description="the agent's voice")


class BridgeSettings(Section):
    silence_prompt_s: float = Field(default=15, gt=0, le=3600, description="seconds of silence after which the caller is asked")
    silence_goodbye_s: float = Field(default=45, gt=0, le=3600, description="seconds of silence after which the agent says goodbye")
    max_duration_s: float = Field(default=3600, gt=0, le=86_400, description="longest call; the agent says goodbye")
    drain_s: float = Field(default=1.5, ge=0, le=30, description="seconds to wait for late words after hang-up; later ones are an addendum")


class TwilioSettings(Section):
    account_sid: Annotated[str | None, Env("TWILIO_ACCOUNT_SID")] = Field(default=None, description="account")
    auth_token: Annotated[SecretStr | None, Env("TWILIO_AUTH_TOKEN")] = Field(default=None, description="token; also checks signatures")
    phone_number: Annotated[str | None, Env("TWILIO_PHONE_NUMBER")] = Field(default=None, description="number for outgoing calls and SMS")
    api_url: str = Field(default="https://api.twilio.com", description="REST address")


class TelnyxSettings(Section):
    api_key: Annotated[SecretStr | None, Env("TELNYX_API_KEY")] = Field(default=None, description="key")
    public_key: Annotated[str | None, Env("TELNYX_PUBLIC_KEY")] = Field(default=None, description="key that checks webhook signatures")
    phone_number: Annotated[str | None, Env("TELNYX_PHONE_NUMBER")] = Field(default=None, description="number for SMS")
    api_url: str = Field(default="https://api.telnyx.com", description="REST address")
    voice: str = Field(default="AWS.Polly.Joanna-Neural", description="the voice that speaks for the receptionist, as Telnyx names it")
    language: str = Field(default="en-US", description="the language it speaks and hears")


class RecordingsSettings(Section):
    enabled: bool = Field(default=False, description="record calls at the carrier and keep the audio; the law may want callers told")
    max_bytes: int = Field(default=256 * 1024 * 1024, ge=1, description="larger recordings are not fetched")
    transcribe: bool = Field(default=False, description="have recordings transcribed by OpenAI, beside the transcript of the call")


class ElevenLabsSettings(Section):
    webhook_secret: Annotated[SecretStr | None, Env("ELEVENLABS_WEBHOOK_SECRET")] = Field(
        default=None, description="checks webhook signatures"
    )
    agents: Words = Field(default=(), description="ids of the agents whose calls are ours (all of the workspace's when empty)")


class VapiSettings(Section):
    webhook_secret: Annotated[SecretStr | None, Env("VAPI_WEBHOOK_SECRET")] = Field(default=None, description="checks webhooks")


class RetellSettings(Section):
    api_key: Annotated[SecretStr | None, Env("RETELL_API_KEY")] = Field(default=None, description="checks webhook signatures")


class BlandSettings(Section):
    webhook_secret: Annotated[SecretStr | None, Env("BLAND_WEBHOOK_SECRET")] = Field(default=None, description="checks webhook signatures")
