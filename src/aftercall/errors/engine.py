"""Errors of whoever speaks for the agent. The tree is drawn in errors/__init__.py."""

from aftercall.errors.root import AftercallError


class EngineLost(AftercallError):
    """The engine refused, broke, or gave no answer in time; the caller hears an apology and the call is kept."""

    code = "engine.lost"
    retryable = True
    http_status = 503


class EngineRefused(EngineLost):
    """The engine turned the key or the settings down; trying again is no use until they are put right."""

    code = "engine.refused"
    retryable = False
