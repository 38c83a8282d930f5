"""Errors of the database. The tree is drawn in errors/__init__.py."""

from aftercall.errors.root import AftercallError


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
    """The database belongs to another home, whose archive holds its calls; use that home or another database."""

    code = "database.home"
    exit_code = 2


class DatabaseUnreachable(DatabaseError):
    """No connection to the database; tried again when it is back."""

    code = "database.unreachable"
    retryable = True


class DatabaseDamaged(DatabaseUnreachable):
    """The database file is damaged; stop Aftercall and put it back from a backup, or `aftercall rebuild` a new one."""

    code = "database.damaged"
