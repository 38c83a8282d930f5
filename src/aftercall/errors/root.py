"""What every error is, and those that any part may raise. The tree is drawn in errors/__init__.py."""

UNEXPECTED = "failed for a reason that Aftercall did not foresee (unexpected); the log names it"


class AftercallError(Exception):
    """Something went wrong that a person can act on."""

    code = "error"
    retryable = False
    exit_code = 1
    http_status = 500
    retry_after_s: float | None = None


class Unexpected(AftercallError):
    """An error that Aftercall did not foresee. The log names it."""

    code = "unexpected"


class ConfigError(AftercallError):
    """A setting is missing, unknown or has a value that cannot be used."""

    code = "config"
    exit_code = 2


class RefusedInput(AftercallError):
    """Data from outside does not fit its form; nothing of it was stored."""

    code = "input.refused"
    http_status = 422

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


class NotFound(AftercallError):
    """There is no such thing here."""

    code = "not_found"
    http_status = 404


def to_own_error(error: BaseException) -> AftercallError:
    """The error as people are shown it. The text of a foreign one may hold speech; its class means nothing to them."""
    if isinstance(error, AftercallError):
        return error
    return Unexpected(UNEXPECTED)


def tell_network_trouble(error: BaseException) -> str:
    """What happened on the way to another server, in a few plain words."""
    return "it took too long" if "Timeout" in type(error).__name__ else "the connection failed"
