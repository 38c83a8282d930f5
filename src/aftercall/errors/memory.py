"""Errors of what is remembered. The tree is drawn in errors/__init__.py."""

from aftercall.errors.root import AftercallError


class SecretUnreadable(AftercallError):
    """A secret was sealed with another key; bring that key back to read it."""

    code = "secret.unreadable"


class RememError(AftercallError):
    """Remote document memory could not be used; our own copy stands."""

    code = "remem"
    http_status = 502


class RememUnavailable(RememError):
    """Remote document memory is away or busy; the document is sent again later."""

    code = "remem.unavailable"
    retryable = True
    http_status = 503

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class RememRefused(RememError):
    """Remote document memory does not take the document: check REMEM_API_KEY, REMEM_API_URL and the namespace."""

    code = "remem.refused"
