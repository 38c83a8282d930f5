"""Every error Aftercall raises on purpose.

AftercallError
├── Unexpected             not foreseen; the log names it
├── ConfigError            the settings cannot be used             exit 2
├── RefusedInput           data from outside does not fit          exit 1, HTTP 422
├── NotFound               no such call, fact, file                exit 1, HTTP 404
├── JournalError           the record of a live call
│   ├── JournalGap         a number was skipped
│   ├── JournalConflict    a number was used twice for different words
│   ├── CallNotLive        the call is not open (any more)
│   ├── CallErased         the call was erased and stays away       exit 1, HTTP 410
│   └── JournalClosed      the journal was shut down
├── SecretUnreadable       a secret was sealed with another key
├── EngineLost             whoever speaks for the agent is gone
│   └── EngineRefused      will not speak with this key or these settings
├── ModelError             the model that reads calls
│   ├── ModelUnavailable   away, busy or late; tried again
│   ├── ModelRefused       key, name or request not taken
│   ├── ModelDeclined      it will not answer for these words
│   ├── ModelCutOff        the answer is longer than it may be
│   └── ModelOffForm       the answer has not the form asked for
├── RememError             remote document memory
│   ├── RememUnavailable   away, busy or late; tried again
│   └── RememRefused       key, namespace or document not taken
├── ArchiveError           the sealed files
│   ├── StorageFull        no room; goes on when there is
│   └── ChainBroken        the chain file cannot be read
├── WorkspaceError         the markdown that people own
│   ├── WorkspaceReadOnly  may not be changed or read
│   ├── WorkspaceMissing   the folder is not there and cannot be made
│   ├── WorkspaceFull      no room; goes on when there is
│   ├── WorkspaceBusy      another program will not let go of the file
│   └── FileTooLarge       more than a page that a person keeps
├── CarrierError           a carrier's REST address refused
│   ├── CarrierUnreachable   no answer; tried again
│   └── CallOver           the call has already ended
├── RecordingError         the audio of a call
│   ├── RecordingNotYet    the carrier does not have it yet; asked again
│   ├── RecordingExpired   its address has run out
│   ├── RecordingRefused   not the carrier's, or too large
│   └── TranscriberUnreachable  no usable transcript; tried again
├── WireError              a carrier's media socket
│   ├── StreamNotOpen      nothing can be sent now
│   └── AudioTooLong       more than one frame carries
├── SinkError              follow-up work could not be handed over
│   ├── SinkUnavailable    not now; tried again
│   ├── SinkRefused        never as it is; shows as failed
│   └── OutcomeUnknown     it may have been done; not repeated by itself
├── NotWaiting             a follow-up that cannot be approved or rejected
├── TesterError            a test call
│   ├── ScenarioRefused    a scenario does not fit its form        exit 2
│   ├── DialRefused        the number is not on the allow-list     exit 2
│   ├── BudgetSpent        the spending limit is reached
│   └── LineFailed         the agent could not be reached
└── DatabaseError          the database
    ├── DatabaseNewer      made by a newer Aftercall               exit 2
    ├── DatabaseOfAnotherHome  its calls are in another home       exit 2
    ├── DatabaseOutdated   needs `aftercall db upgrade`            exit 2
    └── DatabaseUnreachable  no connection; goes on when there is
        └── DatabaseDamaged  the file is not whole

Each has a stable `code`, and `retryable` is decided here, where the error is born.
"""

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


def to_aftercall_error(error: BaseException) -> AftercallError:
    """The error as people are shown it.

    The text of a foreign one may hold speech; its class means nothing to them.
    """
    if isinstance(error, AftercallError):
        return error
    return Unexpected(UNEXPECTED)


def describe_network_error(error: BaseException) -> str:
    """What happened on the way to another server, in a few plain words."""
    return "it took too long" if "Timeout" in type(error).__name__ else "the connection failed"


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
    """Remote document memory does not take the document: check REMEM_API_KEY, REMEM_API_URL and
    the namespace.
    """

    code = "remem.refused"


class EngineLost(AftercallError):
    """The engine refused, broke, or gave no answer in time; the caller hears an apology and the
    call is kept.
    """

    code = "engine.lost"
    retryable = True
    http_status = 503


class EngineRefused(EngineLost):
    """The engine turned the key or the settings down; trying again is no use until they are put
    right.
    """

    code = "engine.refused"
    retryable = False


class ModelError(AftercallError):
    """The model that reads calls gave nothing that can be used."""

    code = "model"
    http_status = 502


class ModelUnavailable(ModelError):
    """The model is away, overloaded, limits us or takes too long; tried again when it asks for
    that.
    """

    code = "model.unavailable"
    retryable = True
    http_status = 503

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ModelRefused(ModelError):
    """The model's server does not take the request: check key, account, model name and address."""

    code = "model.refused"


class ModelDeclined(ModelError):
    """The model will not answer for what was said in this call; read it with another model, or
    by rules.
    """

    code = "model.declined"


class ModelCutOff(ModelError):
    """The answer was longer than `reading.max_tokens` allows; allow more and run the step again."""

    code = "model.cut_off"


class ModelOffForm(ModelError):
    """The answer had not the form asked for, and putting it right failed too; use a more able
    model.
    """

    code = "model.off_form"


class ArchiveError(AftercallError):
    """A sealed file could not be written or read."""

    code = "archive"


class StorageFull(ArchiveError):
    """The disk is full; what is written stays as it is, and writing goes on when there is room."""

    code = "storage.full"
    retryable = True
    http_status = 507


class ChainBroken(ArchiveError):
    """The chain file of the archive is damaged; `aftercall verify` names the place."""

    code = "archive.chain"


class WorkspaceError(AftercallError):
    """A file of the workspace could not be read or changed; it stays as it was."""

    code = "workspace"


class WorkspaceReadOnly(WorkspaceError):
    """The workspace or a file in it may not be changed; give this user the right to write there."""

    code = "workspace.read_only"


class WorkspaceMissing(WorkspaceError):
    """The workspace folder is not there and cannot be made; check the `workspace` setting."""

    code = "workspace.missing"


class WorkspaceFull(WorkspaceError):
    """The disk of the workspace is full; files stay as they are, and writing goes on when there
    is room.
    """

    code = "workspace.full"
    retryable = True
    http_status = 507


class WorkspaceBusy(WorkspaceError):
    """Another program holds or keeps changing a file of the workspace; tried again later."""

    code = "workspace.busy"
    retryable = True
    http_status = 503


class FileTooLarge(WorkspaceError):
    """A file of the workspace is larger than any page that a person keeps; it is neither read
    nor changed.
    """

    code = "workspace.too_large"


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
    """The carrier does not have the recording yet; asked again for a while, then taken as
    absent.
    """

    code = "recording.not_yet"
    retryable = True


class RecordingExpired(RecordingError):
    """The address of a recording has run out, or the credentials are wrong; Telnyx gives a new
    address on request.
    """

    code = "recording.expired"


class TranscriberUnreachable(RecordingError):
    """No usable answer from the transcriber; tried again."""

    code = "recording.transcriber"
    retryable = True


class RecordingRefused(RecordingError):
    """A recording that is not fetched: its address is not the carrier's, or it is larger than
    the limit.
    """

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


class SinkError(AftercallError):
    """Follow-up work could not be handed to its sink."""

    code = "sink"


class SinkUnavailable(SinkError):
    """A sink did not answer or asked to wait; tried again, and what it may have done already is
    not done twice.
    """

    code = "sink.unavailable"
    retryable = True


class SinkRefused(SinkError):
    """A sink will not take this as it is: check its settings, or what was asked for."""

    code = "sink.refused"


class OutcomeUnknown(SinkError):
    """A sink that cannot tell was cut off while it worked; look for yourself, then `aftercall
    followups retry`.
    """

    code = "sink.unknown"


class NotWaiting(AftercallError):
    """A follow-up is in a state in which this cannot be done to it."""

    code = "followup.not_waiting"
    http_status = 409


class TesterError(AftercallError):
    """A test call could not be made or judged as asked."""

    code = "tester"


class ScenarioRefused(TesterError):
    """A scenario does not fit its form; the file and the line are named."""

    code = "tester.scenario"
    exit_code = 2
    http_status = 422

    def __init__(self, source: str, line: int, field: str, reason: str) -> None:
        super().__init__(f"{source}:{line}: {field}: {reason}")
        self.source = source
        self.line = line
        self.field = field
        self.reason = reason

    def as_json(self) -> dict[str, str | int]:
        return {"file": self.source, "line": self.line, "field": self.field, "reason": self.reason}


class DialRefused(TesterError):
    """The number may not be dialled: it is not on the tester's allow-list."""

    code = "tester.dial"
    exit_code = 2


class BudgetSpent(TesterError):
    """The tester's spending limit would be passed; no further call is made."""

    code = "tester.budget"


class LineFailed(TesterError):
    """The agent under test could not be reached, or the line to it broke."""

    code = "tester.line"
    retryable = True


class DatabaseError(AftercallError):
    """The database refused or could not be used."""

    code = "database"
    http_status = 503


class DatabaseNewer(DatabaseError):
    """The database was made by a newer Aftercall; install that version or use another database."""

    code = "database.newer"
    exit_code = 2


class DatabaseOutdated(DatabaseError):
    """The database is older than this Aftercall; run `aftercall db upgrade`."""

    code = "database.outdated"
    exit_code = 2


class DatabaseOfAnotherHome(DatabaseError):
    """The database belongs to another home, whose archive holds its calls; use that home or
    another database.
    """

    code = "database.home"
    exit_code = 2


class DatabaseUnreachable(DatabaseError):
    """No connection to the database; tried again when it is back."""

    code = "database.unreachable"
    retryable = True


class DatabaseDamaged(DatabaseUnreachable):
    """The database file is damaged; stop Aftercall and put it back from a backup, or `aftercall
    rebuild` a new one.
    """

    code = "database.damaged"
