"""Errors of the record of a live call. The tree is drawn in errors/__init__.py."""

from aftercall.errors.root import AftercallError


class JournalError(AftercallError):
    """The record of a live call could not be kept as asked."""

    code = "journal"


class JournalGap(JournalError):
    """An entry would leave a hole in a call's numbering; the missing one must come first."""

    code = "journal.gap"


class JournalConflict(JournalError):
    """Two different entries claim the same number in the same call."""

    code = "journal.conflict"


class CallNotLive(JournalError):
    """The call is not open in this journal; late words belong into an addendum."""

    code = "journal.not_live"


class CallErased(JournalError):
    """The call was erased at somebody's wish; nothing brings it back, a late webhook included."""

    code = "journal.erased"
    http_status = 410


class JournalClosed(JournalError):
    """The journal has been shut down; nothing can be written to it any more."""

    code = "journal.closed"
