"""Reads the settings: one TOML file, overridden by the environment, once at start.

What people change on the settings page is in `settings.toml` in the home: over the TOML file,
below the environment.

`[section] name` in the file is `AFTERCALL_<SECTION>_<NAME>` in the environment; settings of
providers keep the names their users know.
"""

import difflib
import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import SecretStr, ValidationError
from pydantic.fields import FieldInfo

from aftercall.errors import ConfigError, RefusedInput
from aftercall.settings import Settings, find_zone
from aftercall.settings.fields import Env, Section

ENV_PREFIX = "AFTERCALL_"
_HOST = re.compile(r"(https?://)(?:[^/@]*@)?([^/?#@]+)")
_HIDDEN_PAIRS = ("_EVENTS_WEBHOOKS", "_EVENTS_SECRETS")
COMMAND_SETTINGS = ("agent.command", "mcp.command")
# Not settings of the server: its agents read two of them, our tests the others.
OTHER_NAMES = ("AFTERCALL_URL", "AFTERCALL_SPOOL", "AFTERCALL_FAULT", "AFTERCALL_SOAK")
PAGE_FILE = "settings.toml"
PAGE_ORIGIN = "the settings page"
PAGE_SETTINGS = (
    "timezone",
    "reconnect_window_s",
    "receptionist.greeting",
    "work.policy",
    "work.daily_limit",
    "work.hold_days",
    "work.undo_s",
    "work.dry_run",
    "work.reminder_hour",
    "briefing.calls",
    "briefing.facts",
    "memory.pin_after",
    "memory.pin_stale_days",
    "bridge.silence_prompt_s",
    "bridge.silence_goodbye_s",
    "bridge.max_duration_s",
)
"""Those that the page may change: none opens a door, runs a command or deletes anything."""


@dataclass(frozen=True)
class SettingValue:
    """A setting, its value and where it came from."""

    key: str
    env: str
    value: Any
    origin: str
    description: str

    @property
    def shown(self) -> str:
        """The value for people. A secret is never shown, of an address only its host."""
        if isinstance(self.value, SecretStr):
            secret = self.value.get_secret_value()
            host = _HOST.match(secret) if self.key.endswith(".url") else None
            return f"{host[1]}{host[2]}/… (rest hidden)" if host else "(set, hidden)"
        if isinstance(self.value, dict) and self.env.endswith(_HIDDEN_PAIRS):
            return ", ".join(f"{name} (hidden)" for name in self.value)
        if isinstance(self.value, dict):
            return ", ".join(f"{name}={value}" for name, value in self.value.items())
        if isinstance(self.value, tuple | list):
            return ", ".join(map(str, self.value))
        if isinstance(self.value, bool):
            return str(self.value).lower()
        if isinstance(self.value, float):
            return f"{self.value:g}"
        if self.value is None:
            return ""
        return re.sub(r"(://[^:/@]*:)[^@]*@", r"\1***@", str(self.value))


@dataclass(frozen=True)
class LoadedConfig:
    settings: Settings
    values: tuple[SettingValue, ...]
    warnings: tuple[str, ...]
    file: Path | None = None


def load_config(
    file: Path | None = None, environ: Mapping[str, str] | None = None
) -> LoadedConfig:
    """Reads `file`, else ./aftercall.toml if it exists; the environment overrides both."""
    path = file or Path("aftercall.toml")
    is_read = bool(file) or path.is_file()
    text = _read_text(path) if is_read else ""
    environ = os.environ if environ is None else environ
    loaded = parse_config(text, path, environ)
    if changed := read_page_settings(loaded.settings.home):
        loaded = parse_config(text, path, environ, changed)
    named = [value.key for value in loaded.values if value.origin == str(path)]
    commands = [key for key in COMMAND_SETTINGS if key in named]
    warnings = loaded.warnings
    if commands and file is None:
        warnings = (_describe_commands(path, commands), *warnings)
    return replace(loaded, warnings=warnings, file=path if is_read else None)


def parse_config(
    text: str,
    path: Path,
    environ: Mapping[str, str],
    changed: Mapping[str, str] | None = None,
) -> LoadedConfig:
    """The settings in the text of a file. `path` is named in errors; nothing is read there.

    `changed` is what people changed on the settings page.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: is not valid TOML ({error})") from None
    _refuse_unknown(data, path)
    origins: dict[str, str] = {}
    for key, env, _ in list_settings():
        if _get(data, key) is not None:
            origins[key] = str(path)
        if changed and key in changed:
            _set(data, key, changed[key])
            origins[key] = PAGE_ORIGIN
        if environ.get(env, "") != "":
            _set(data, key, environ[env])
            origins[key] = env
    settings = _validate(data, origins)
    warnings = tuple(_warnings(settings, environ))
    return LoadedConfig(settings, describe_settings(settings, origins), warnings)


def read_page_settings(home: Path) -> dict[str, str]:
    """What was changed on the settings page, as it was typed."""
    path = home / PAGE_FILE
    if not path.is_file():
        return {}
    try:
        data = tomllib.loads(_read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: is not valid TOML ({error})") from None
    return {key: str(data[key]) for key in PAGE_SETTINGS if key in data}


def change_page_settings(settings: Settings, key: str, typed: str) -> str:
    """The text of PAGE_FILE with one setting changed, or left out if nothing is typed."""
    if key not in PAGE_SETTINGS:
        raise RefusedInput("key", "is not a setting that the page changes")
    changed = read_page_settings(settings.home) | {key: typed.strip()}
    kept = {name: value for name, value in changed.items() if value}
    data = settings.model_dump()
    for name, value in kept.items():
        _set(data, name, value)
    try:
        _validate(data, {})
    except ConfigError as error:
        raise RefusedInput("value", str(error).removeprefix("settings: ")) from None
    if key == "timezone" and typed.strip() and find_zone(typed.strip()) is None:
        raise RefusedInput("value", f"{typed.strip()} is not a known time zone")
    lines = [f"{json.dumps(name)} = {json.dumps(text)}" for name, text in kept.items()]
    return "".join(f"{line}\n" for line in lines)


def _validate(data: dict[str, Any], origins: Mapping[str, str]) -> Settings:
    try:
        return Settings.model_validate(data)
    except ValidationError as error:
        raise _to_config_error(error, origins) from None


def describe_settings(
    settings: Settings, origins: Mapping[str, str]
) -> tuple[SettingValue, ...]:
    values = []
    for key, env, field in list_settings():
        origin = origins.get(key, "default")
        values.append(
            SettingValue(key, env, _get(settings, key), origin, field.description or "")
        )
    return tuple(values)


def list_settings() -> Iterator[tuple[str, str, FieldInfo]]:
    """Key (`section.name`), environment name and field of every setting."""
    for name, field in Settings.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            for inner, inner_field in field.annotation.model_fields.items():
                yield (
                    f"{name}.{inner}",
                    _env_name(f"{name}.{inner}", inner_field),
                    inner_field,
                )
        else:
            yield name, _env_name(name, field), field


def _env_name(key: str, field: FieldInfo) -> str:
    named = [item.name for item in field.metadata if isinstance(item, Env)]
    return named[0] if named else ENV_PREFIX + key.replace(".", "_").upper()


def _read_text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: is not valid UTF-8") from None


def _refuse_unknown(data: dict[str, Any], path: Path) -> None:
    """Names the nearest setting that exists."""
    known = [key for key, _, _ in list_settings()]
    sections = {key.partition(".")[0] for key in known if "." in key}
    for name, value in data.items():
        if name in sections and not isinstance(value, dict):
            raise ConfigError(
                f"{path}: {name} is a section; write [{name}] and its settings below it"
            )
        keys = [f"{name}.{inner}" for inner in value] if name in sections else [name]
        for key in keys:
            if key not in known:
                raise ConfigError(
                    f"{path}: unknown setting {key!r}{_nearest(key, known)}"
                )


def _nearest(key: str, known: list[str]) -> str:
    close = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    return (
        f"; did you mean {close[0]!r}?" if close else "; `aftercall config` lists all"
    )


def _to_config_error(error: ValidationError, origins: Mapping[str, str]) -> ConfigError:
    first = error.errors(include_url=False, include_input=False)[0]
    key = ".".join(str(part) for part in first["loc"][:2])
    message = first["msg"].removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    return ConfigError(f"{origins.get(key, 'settings')}: {key} {message}")


def _describe_commands(path: Path, keys: list[str]) -> str:
    """The file may have come with a folder that somebody else made."""
    return (
        f"{path.absolute()}: found in the current folder, and it names commands to run "
        f"({', '.join(keys)}); if you did not write it, remove it; --config says which file to use"
    )


def _warnings(settings: Settings, environ: Mapping[str, str]) -> Iterator[str]:
    if find_zone(settings.timezone) is None:
        yield f"timezone: {settings.timezone!r} is not a known zone; UTC is used"
    known = [env for _, env, _ in list_settings()]
    for name in sorted(environ):
        if name.startswith(ENV_PREFIX) and name not in (*known, *OTHER_NAMES):
            yield f"{name}: no such setting{_nearest(name, known)}"


def _get(data: Any, key: str) -> Any:
    for part in key.split("."):
        data = data.get(part) if isinstance(data, dict) else getattr(data, part)
        if data is None:
            return None
    return data


def _set(data: dict[str, Any], key: str, value: str) -> None:
    *sections, name = key.split(".")
    for section in sections:
        data = data.setdefault(section, {})
    data[name] = value
