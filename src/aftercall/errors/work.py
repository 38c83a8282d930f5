"""Errors of follow-up work. The tree is drawn in errors/__init__.py."""

from aftercall.errors.root import AftercallError


class SinkError(AftercallError):
    """Follow-up work could not be handed to its sink."""

    code = "sink"


class SinkUnavailable(SinkError):
    """A sink did not answer or asked to wait; tried again, and what it may have done already is not done twice."""

    code = "sink.unavailable"
    retryable = True


class SinkRefused(SinkError):
    """A sink will not take this as it is: check its settings, or what was asked for."""

    code = "sink.refused"


class OutcomeUnknown(SinkError):
    """A sink that cannot tell was cut off while it worked; look for yourself, then `aftercall followups retry`."""

    code = "sink.unknown"


class NotWaiting(AftercallError):
    """A follow-up is in a state in which this cannot be done to it."""

    code = "followup.not_waiting"
    http_status = 409
