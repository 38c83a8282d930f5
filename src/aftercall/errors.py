"""Every error Aftercall raises on purpose.

AftercallError
├── ConfigError            the settings cannot be used             exit 2
├── RefusedInput           data from outside does not fit          exit 1, HTTP 422
├── NotFound               no such call, fact, file                exit 1, HTTP 404
├── JournalError           the record of a live call
│   ├── JournalGap         a number was skipped
│   ├── JournalConflict    a number was used twice for different words
│   ├── CallNotLive        the call is not open (any more)
│   └── JournalClosed      the journal was shut down
├── EngineLost             whoever speaks for the agent is gone
│   └── EngineRefused      will not speak with this key or these settings
├── ArchiveError           the sealed files
│   ├── StorageFull        no room; goes on when there is
│   └── ChainBroken        the chain file cannot be read
├── WorkspaceError         the markdown that people own
│   ├── WorkspaceReadOnly  may not be changed or read
│   ├── WorkspaceMissing   the folder is not there and cannot be made
│   ├── WorkspaceFull      no room; goes on when there is
│   ├── WorkspaceBusy      another program will not let go of the file
│   └── FileTooLarge       more than a page that a person keeps
├── WireError              a carrier's media socket
│   ├── StreamNotOpen      nothing can be sent now
│   └── AudioTooLong       more than one frame carries
└── DatabaseError          the database
    ├── DatabaseNewer      made by a newer Aftercall               exit 2
    ├── DatabaseOutdated   needs `aftercall db upgrade`            exit 2
    └── DatabaseUnreachable  no connection; goes on when there is

Each has a stable `code`, and `retryable` is decided here, where the error is born.
"""


class AftercallError(Exception):
    """Something went wrong that a person can act on."""

    code = "error"
    retryable = False
    exit_code = 1
    http_status = 500


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


class JournalClosed(JournalError):
    """The journal has been shut down; nothing can be written to it any more."""

    code = "journal.closed"


class EngineLost(AftercallError):
    """The engine refused, broke, or gave no answer in time; the caller hears an apology and the call is kept."""

    code = "engine.lost"
    retryable = True
    http_status = 503


class EngineRefused(EngineLost):
    """The engine turned the key or the settings down; trying again is no use until they are put right."""

    code = "engine.refused"
    retryable = False


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
    """The disk of the workspace is full; files stay as they are, and writing goes on when there is room."""

    code = "workspace.full"
    retryable = True
    http_status = 507


class WorkspaceBusy(WorkspaceError):
    """Another program holds or keeps changing a file of the workspace; tried again later."""

    code = "workspace.busy"
    retryable = True
    http_status = 503


class FileTooLarge(WorkspaceError):
    """A file of the workspace is larger than any page that a person keeps; it is neither read nor changed."""

    code = "workspace.too_large"


class WireError(AftercallError):
    """A command could not be put on a carrier's media socket."""

    code = "wire"


class StreamNotOpen(WireError):
    """The stream has not started, was refused or is over; there is nobody to send to."""

    code = "wire.not_open"


class AudioTooLong(WireError):
    """More audio in one command than a carrier takes in one frame; cut it into pieces."""

    code = "wire.too_long"


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


class DatabaseUnreachable(DatabaseError):
    """No connection to the database; tried again when it is back."""

    code = "database.unreachable"
    retryable = True
