"""Every error Aftercall raises on purpose; docs/reference/errors.md is made from this file."""

UNEXPECTED = "failed for a reason that was not foreseen (unexpected); the log names it"


class AftercallError(Exception):
    """Something went wrong that a person can act on."""

    code = "error"
    retryable = False
    exit_code = 1
    http_status = 500

    def __init__(self, message: str = "", retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


def to_aftercall_error(error: BaseException) -> AftercallError:
    """The error as people see it. The text of a foreign error may hold speech."""
    return error if isinstance(error, AftercallError) else Unexpected(UNEXPECTED)


def error_code(error: BaseException) -> str:
    """The error as logs name it: our code, or the class of a foreign error."""
    return error.code if isinstance(error, AftercallError) else type(error).__name__


class Unexpected(AftercallError):
    """An error that Aftercall did not foresee; the log names it."""

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
    """There is no such call, fact, file or follow-up."""

    code = "not_found"
    http_status = 404


class JournalError(AftercallError):
    """The record of a live call could not be written."""

    code = "journal"
    http_status = 409


class JournalGap(JournalError):
    """An entry skips a number of its call; the missing entry must come first."""

    code = "journal.gap"


class JournalConflict(JournalError):
    """Two different entries have the same number in the same call."""

    code = "journal.conflict"


class CallNotLive(JournalError):
    """The call is not open in this journal; late words go into an addendum."""

    code = "journal.not_live"


class CallTaken(JournalError):
    """Another sender has a call with this source and sid; use a sid of your own."""

    code = "live.taken"


class CallElsewhere(JournalError):
    """The call is live in another process of this server; try again, or reach that one."""

    code = "live.elsewhere"
    retryable = True


class CallErased(JournalError):
    """The call was erased; nothing brings it back, not even a late webhook."""

    code = "journal.erased"
    http_status = 410


class JournalClosed(JournalError):
    """The journal is closed and takes no more entries."""

    code = "journal.closed"


class SecretUnreadable(AftercallError):
    """A secret was encrypted with another key; restore that key to read it."""

    code = "secret.unreadable"


class FileUnreadable(AftercallError):
    """An encrypted file was changed or encrypted with another key; restore that file or key."""

    code = "file.unreadable"


class TooLate(AftercallError):
    """Something that a live call waits for broke or took too long; the call goes on without."""

    code = "call.too_late"
    retryable = True
    http_status = 503


class Overloaded(AftercallError):
    """A limit of this process is reached (`[limits]`, `database.connections`); try later."""

    code = "overload"
    retryable = True
    http_status = 503


class EngineLost(AftercallError):
    """The voice engine failed or was late; the caller hears an apology, the call is kept."""

    code = "engine.lost"
    retryable = True
    http_status = 503


class EngineRefused(EngineLost):
    """The voice engine refuses the key or the settings; correct them."""

    code = "engine.refused"
    retryable = False


class ModelError(AftercallError):
    """The model that reads calls gave no usable answer."""

    code = "model"
    http_status = 502


class ModelUnavailable(ModelError):
    """The model is away, busy, rate-limited or slow; tried again when it allows."""

    code = "model.unavailable"
    retryable = True
    http_status = 503


class ModelRefused(ModelError):
    """The model's server refuses: check key, account, model name and address."""

    code = "model.refused"


class ModelDeclined(ModelError):
    """The model declines to answer for this call; use another model, or rules."""

    code = "model.declined"


class ModelCutOff(ModelError):
    """The answer hit `reading.max_tokens`; raise it and run the step again."""

    code = "model.cut_off"


class ModelOffForm(ModelError):
    """The answer did not have the requested form, twice; use a more able model."""

    code = "model.off_form"


class ArchiveError(AftercallError):
    """A sealed file could not be written or read."""

    code = "archive"


class StorageFull(ArchiveError):
    """The disk is full; words wait in memory, up to 4 MB, until there is room."""

    code = "storage.full"
    retryable = True
    http_status = 507


class ObjectStoreUnreachable(ArchiveError):
    """The object store did not answer; sealed calls wait in the database until it does."""

    code = "archive.unreachable"
    retryable = True
    http_status = 503


class ChainBroken(ArchiveError):
    """The chain file of the archive is damaged; `aftercall verify` names the place."""

    code = "archive.chain"


class BackupFailed(AftercallError):
    """A backup could not be written or restored; what was there is unchanged."""

    code = "backup"


class BackupRefused(BackupFailed):
    """The file is no whole backup, or there is something where it should go."""

    code = "backup.refused"
    exit_code = 2


class WorkspaceError(AftercallError):
    """A file of the workspace could not be read or changed; it stays as it was."""

    code = "workspace"


class WorkspaceReadOnly(WorkspaceError):
    """The workspace or a file in it is read-only; give this user write access."""

    code = "workspace.read_only"


class WorkspaceMissing(WorkspaceError):
    """The workspace folder cannot be created; check the `workspace` setting."""

    code = "workspace.missing"


class WorkspaceFull(WorkspaceError):
    """The disk of the workspace is full; writing continues when there is room."""

    code = "workspace.full"
    retryable = True
    http_status = 507


class WorkspaceBusy(WorkspaceError):
    """Another program locks or keeps changing a workspace file; tried again later."""

    code = "workspace.busy"
    retryable = True
    http_status = 503


class FileTooLarge(WorkspaceError):
    """A workspace file is too large for a page; it is neither read nor changed."""

    code = "workspace.too_large"


class RestError(AftercallError):
    """Another service refused a request to its API; its status and code say why."""

    code = "service.refused"
    http_status = 502


class RestUnreachable(RestError):
    """No usable answer from another service's API; tried again."""

    code = "service.unreachable"
    retryable = True
    http_status = 503


class CarrierError(RestError):
    """A carrier refused a command or a request; its status and code say why."""

    code = "carrier.refused"


class CarrierUnreachable(CarrierError):
    """No usable answer from a carrier's REST address; tried again."""

    code = "carrier.unreachable"
    retryable = True
    http_status = 503


class CallOver(CarrierError):
    """The call has already ended at the carrier."""

    code = "carrier.call_over"


class RememUnavailable(RestUnreachable):
    """Remote document memory is away or busy; the document is sent again later."""

    code = "remem.unavailable"


class RememRefused(RestError):
    """Remote memory refuses it: check REMEM_API_KEY, REMEM_API_URL and the namespace."""

    code = "remem.refused"


class RecordingError(AftercallError):
    """A recording could not be fetched, stored or transcribed; the call is unaffected."""

    code = "recording"


class RecordingNotYet(RecordingError):
    """The carrier does not have the recording yet; asked again, then taken as absent."""

    code = "recording.not_yet"
    retryable = True


class RecordingExpired(RecordingError):
    """The recording's address has expired, or the credentials are wrong."""

    code = "recording.expired"


class TranscriberUnreachable(RecordingError):
    """No usable answer from the transcriber; tried again."""

    code = "recording.transcriber"
    retryable = True


class RecordingRefused(RecordingError):
    """The recording's address is not the carrier's, or the file is too large."""

    code = "recording.refused"


class StreamNotOpen(AftercallError):
    """The media stream has not started, was refused or is over."""

    code = "wire.not_open"


class AudioTooLong(AftercallError):
    """More audio in one command than a carrier takes in one frame; split it."""

    code = "wire.too_long"


class SinkError(AftercallError):
    """Follow-up work could not be delivered to its sink."""

    code = "sink"


class SinkUnavailable(SinkError):
    """A sink did not answer or asked to wait; tried again, never done twice."""

    code = "sink.unavailable"
    retryable = True


class SinkRefused(SinkError):
    """A sink refuses the work: check its settings, or what was asked for."""

    code = "sink.refused"


class OutcomeUnknown(SinkError):
    """A sink was cut off while it worked; check, then `aftercall followups retry`."""

    code = "sink.unknown"


class NotWaiting(AftercallError):
    """The follow-up is in a state that does not allow this."""

    code = "followup.not_waiting"
    http_status = 409


class TesterError(AftercallError):
    """A test call could not be made or scored."""

    code = "tester"


class ScenarioRefused(TesterError):
    """A scenario does not fit its form; the message names the file and the line."""

    code = "tester.scenario"
    exit_code = 2
    http_status = 422

    def __init__(self, source: str, line: int, field: str, reason: str) -> None:
        super().__init__(f"{source}:{line}: {field}: {reason}")
        self.source, self.line = source, line
        self.field, self.reason = field, reason


class UnknownTestName(NotFound):
    """The command names a scenario, an agent or a fault that does not exist."""

    code = "tester.name"
    exit_code = 2


class DialRefused(TesterError):
    """The number may not be dialled: it is not on the tester's allow-list."""

    code = "tester.dial"
    exit_code = 2


class BudgetSpent(TesterError):
    """The tester's spending limit would be exceeded; no further call is made."""

    code = "tester.budget"


class LineFailed(TesterError):
    """The agent under test could not be reached, or the line to it broke."""

    code = "tester.line"
    retryable = True


class AgentBroke(LineFailed):
    """The agent under test failed: an exception, an HTTP error, an answer that is not valid."""

    code = "tester.agent"
    retryable = False


class AgentRefused(LineFailed):
    """The address is not an agent's, or it wants credentials: the test is set up wrong."""

    code = "tester.address"
    retryable = False


class DatabaseError(AftercallError):
    """The database refused or could not be used."""

    code = "database"
    http_status = 503


class DatabaseNewer(DatabaseError):
    """A newer Aftercall made the database; install that version or use another one."""

    code = "database.newer"
    exit_code = 2


class DatabaseOutdated(DatabaseError):
    """The database is older than this Aftercall; run `aftercall db upgrade`."""

    code = "database.outdated"
    exit_code = 2


class DatabaseOfAnotherHome(DatabaseError):
    """The database belongs to another home; use that home or another database."""

    code = "database.home"
    exit_code = 2


class DatabaseUnreachable(DatabaseError):
    """No connection to the database; tried again when it is back."""

    code = "database.unreachable"
    retryable = True


class DatabaseDamaged(DatabaseUnreachable):
    """The database file is damaged; restore a backup, or `aftercall rebuild` a new one."""

    code = "database.damaged"
