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

from aftercall.errors.archive import ArchiveError, ChainBroken, StorageFull
from aftercall.errors.database import (
    DatabaseDamaged,
    DatabaseError,
    DatabaseNewer,
    DatabaseOfAnotherHome,
    DatabaseOutdated,
    DatabaseUnreachable,
)
from aftercall.errors.engine import EngineLost, EngineRefused
from aftercall.errors.journal import CallErased, CallNotLive, JournalClosed, JournalConflict, JournalError, JournalGap
from aftercall.errors.llm import ModelCutOff, ModelDeclined, ModelError, ModelOffForm, ModelRefused, ModelUnavailable
from aftercall.errors.memory import RememError, RememRefused, RememUnavailable, SecretUnreadable
from aftercall.errors.phone import (
    AudioTooLong,
    CallOver,
    CarrierError,
    CarrierUnreachable,
    RecordingError,
    RecordingExpired,
    RecordingNotYet,
    RecordingRefused,
    StreamNotOpen,
    TranscriberUnreachable,
    WireError,
)
from aftercall.errors.root import (
    AftercallError,
    ConfigError,
    NotFound,
    RefusedInput,
    Unexpected,
    tell_network_trouble,
    to_own_error,
)
from aftercall.errors.tester import BudgetSpent, DialRefused, LineFailed, ScenarioRefused, TesterError
from aftercall.errors.work import NotWaiting, OutcomeUnknown, SinkError, SinkRefused, SinkUnavailable
from aftercall.errors.workspace import FileTooLarge, WorkspaceBusy, WorkspaceError, WorkspaceFull, WorkspaceMissing, WorkspaceReadOnly

__all__ = [
    "AftercallError",
    "ArchiveError",
    "AudioTooLong",
    "BudgetSpent",
    "CallErased",
    "CallNotLive",
    "CallOver",
    "CarrierError",
    "CarrierUnreachable",
    "ChainBroken",
    "ConfigError",
    "DatabaseDamaged",
    "DatabaseError",
    "DatabaseNewer",
    "DatabaseOfAnotherHome",
    "DatabaseOutdated",
    "DatabaseUnreachable",
    "DialRefused",
    "EngineLost",
    "EngineRefused",
    "FileTooLarge",
    "JournalClosed",
    "JournalConflict",
    "JournalError",
    "JournalGap",
    "LineFailed",
    "ModelCutOff",
    "ModelDeclined",
    "ModelError",
    "ModelOffForm",
    "ModelRefused",
    "ModelUnavailable",
    "NotFound",
    "NotWaiting",
    "OutcomeUnknown",
    "RecordingError",
    "RecordingExpired",
    "RecordingNotYet",
    "RecordingRefused",
    "RefusedInput",
    "RememError",
    "RememRefused",
    "RememUnavailable",
    "ScenarioRefused",
    "SecretUnreadable",
    "SinkError",
    "SinkRefused",
    "SinkUnavailable",
    "StorageFull",
    "StreamNotOpen",
    "TesterError",
    "TranscriberUnreachable",
    "Unexpected",
    "WireError",
    "WorkspaceBusy",
    "WorkspaceError",
    "WorkspaceFull",
    "WorkspaceMissing",
    "WorkspaceReadOnly",
    "tell_network_trouble",
    "to_own_error",
]
