"""The exceptions of warmgraph: one class for each code of the C interface (`wg_status`). The class of an error shows how to react."""
from __future__ import annotations

__all__ = [
    "Error", "InvalidArgument", "NotRecordable", "CompileFailed", "MissForbidden", "Corrupt", "Stale", "NotFound", "IoFailed",
    "NoSpace", "PermissionDenied", "DriverFailed", "OutOfMemory", "Unsupported", "VerificationFailed", "Internal",
    "PartlyLaunched", "Untrusted",
]


class Error(Exception):
    """The base class. `code` is the C interface's number, `name` its name; If a newer library returns a code that is unknown here, they are
    0 and "unknown"."""

    code: int = 0
    name: str = "unknown"
    is_counted = False  # whether the library has counted this error as a refusal


class InvalidArgument(Error, ValueError):
    """The call is wrong and must be fixed: a name, shape, option or handle."""

    code, name = 1, "invalid_argument"


class NotRecordable(Error):
    """The function did something that a graph cannot hold."""

    code, name = 2, "not_recordable"


class CompileFailed(Error):
    """The kernel's source must be fixed. The text contains the compiler's log."""

    code, name = 3, "compile_failed"


class MissForbidden(Error):
    """Policy require_hit finds no entry: record first. Or policy no_compile needs a program that is not compiled yet."""

    code, name = 4, "miss_forbidden"


class Corrupt(Error):
    """Stored bytes are damaged or hostile."""

    code, name = 5, "corrupt"


class Stale(Error):
    """The entry was stored for other facts (version, device, key)."""

    code, name = 6, "stale"


class NotFound(Error, LookupError):
    """The named thing does not exist."""

    code, name = 7, "not_found"


class IoFailed(Error):
    """An operation on the cache folder failed."""

    code, name = 8, "io_failed"


class NoSpace(Error):
    """The disk is full."""

    code, name = 9, "no_space"


class PermissionDenied(Error):
    """The cache folder belongs to another user, or is not writable."""

    code, name = 10, "permission_denied"


class DriverFailed(Error):
    """The accelerator's driver refused a call. The message contains the driver's text."""

    code, name = 11, "driver_failed"


class OutOfMemory(Error, MemoryError):
    """Device or host memory ran out."""

    code, name = 12, "out_of_memory"


class Unsupported(Error):
    """This backend, device or version of the library does not support the operation."""

    code, name = 13, "unsupported"


class VerificationFailed(Error):
    """The restored graph did not reproduce the function."""

    code, name = 14, "verification_failed"


class Internal(Error):
    """A defect of warmgraph: please report it."""

    code, name = 15, "internal"


class PartlyLaunched(Error):
    """The driver failed in the middle of a launch: state may be half updated."""

    code, name = 16, "partly_launched"


class Untrusted(Error):
    """An entry has no accepted signature."""

    code, name = 17, "untrusted"


_BY_CODE: dict[int, type[Error]] = {one.code: one for one in Error.__subclasses__()}


def text_of(error: Exception) -> str:
    """The text of an error for a message. For an exception of another library, the text begins with the name of its class."""
    return str(error) if isinstance(error, Error) else f"{type(error).__name__}: {error}"


def of_status(status: int, text: str) -> Error:
    """The exception for a `wg_status` that is not wg_ok."""
    error = _BY_CODE.get(status, Error)(text)
    if type(error) is Error:
        error.code = status
    return error
