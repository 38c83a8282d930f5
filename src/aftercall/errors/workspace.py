"""Errors of the markdown that people own. The tree is drawn in errors/__init__.py."""

from aftercall.errors.root import AftercallError


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
