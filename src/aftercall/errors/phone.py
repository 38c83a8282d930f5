"""Errors of carriers: their sockets, their addresses, their recordings. The tree is drawn in errors/__init__.py."""

from aftercall.errors.root import AftercallError


class CarrierError(AftercallError):
    """A carrier refused a command or a request; its status and code say why."""

    code = "carrier.refused"
    http_status = 502


class CarrierUnreachable(CarrierError):
    """No usable answer from a carrier's REST address; tried again."""

    code = "carrier.unreachable"
    retryable = True
    http_status = 503


class CallOver(CarrierError):
    """The call has ended at the carrier; there is nothing left to steer."""

    code = "carrier.call_over"


class RecordingError(AftercallError):
    """A recording could not be fetched, kept or transcribed; the call itself is not touched."""

    code = "recording"


class RecordingNotYet(RecordingError):
    """The carrier does not have the recording yet; asked again for a while, then taken as absent."""

    code = "recording.not_yet"
    retryable = True


class RecordingExpired(RecordingError):
    """The address of a recording has run out, or the credentials are wrong; Telnyx gives a new address on request."""

    code = "recording.expired"


class TranscriberUnreachable(RecordingError):
    """No usable answer from the transcriber; tried again."""

    code = "recording.transcriber"
    retryable = True


class RecordingRefused(RecordingError):
    """A recording that is not fetched: its address is not the carrier's, or it is larger than the limit."""

    code = "recording.refused"


class WireError(AftercallError):
    """A command could not be put on a carrier's media socket."""

    code = "wire"


class StreamNotOpen(WireError):
    """The stream has not started, was refused or is over; there is nobody to send to."""

    code = "wire.not_open"


class AudioTooLong(WireError):
    """More audio in one command than a carrier takes in one frame; cut it into pieces."""

    code = "wire.too_long"
