"""Errors of the sealed files. The tree is drawn in errors/__init__.py."""

from aftercall.errors.root import AftercallError


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
