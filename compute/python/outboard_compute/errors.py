# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Exceptions, with the status and the text of the C library."""
from __future__ import annotations

import enum

from . import _abi


class Status(enum.IntEnum):
    """Why a call failed: enum outboard_status of outboard.h."""

    OK = _abi.OUTBOARD_OK
    ARGUMENT = _abi.OUTBOARD_ARGUMENT
    LIMIT = _abi.OUTBOARD_LIMIT
    NO_MEMORY = _abi.OUTBOARD_NO_MEMORY
    DEVICE = _abi.OUTBOARD_DEVICE
    NO_DEVICE = _abi.OUTBOARD_NO_DEVICE
    TIMEOUT = _abi.OUTBOARD_TIMEOUT
    CANCELLED = _abi.OUTBOARD_CANCELLED
    UNSUPPORTED = _abi.OUTBOARD_UNSUPPORTED
    IO = _abi.OUTBOARD_IO
    INTERNAL = _abi.OUTBOARD_INTERNAL


class OutboardError(Exception):
    """A call of the C library failed.

    ``status`` is the library's code and ``text`` its message: the item at fault, what is wrong with
    it, what to do. ``item`` is the index of the first item at fault (point, scalar, element, blob,
    series), ``device`` the index of the device; each is None if it does not apply. ``attempts``
    has the error text of each failed attempt of a device.
    """

    def __init__(self, text: str, status: Status, item: int | None = None, device: int | None = None,
                 attempts: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.text = text
        self.status = status
        self.item = item
        self.device = device
        self.attempts = attempts

    def __str__(self) -> str:
        return self.text

    def __reduce__(self) -> tuple[type[OutboardError], tuple[object, ...]]:
        return type(self), (self.text, self.status, self.item, self.device, self.attempts)


class ArgumentError(OutboardError, ValueError):
    """An argument or an item of the data is wrong, or a limit is exceeded."""


class CancelledError(OutboardError):
    """The call was cancelled."""


class TimedOutError(OutboardError, TimeoutError):
    """The call did not finish within its timeout."""


class FileError(OutboardError, OSError):
    """A file cannot be read or written."""


_CLASSES: dict[Status, type[OutboardError]] = {
    Status.ARGUMENT: ArgumentError,
    Status.LIMIT: ArgumentError,
    Status.CANCELLED: CancelledError,
    Status.TIMEOUT: TimedOutError,
    Status.IO: FileError,
}


def from_c(status: int, error: _abi.outboard_error, attempts: tuple[str, ...] = ()) -> OutboardError:
    """The exception for a status other than OUTBOARD_OK and the struct that the call filled."""
    known = Status(status) if status in Status.__members__.values() else Status.INTERNAL
    item = None if error.item == _abi.OUTBOARD_NO_ITEM else error.item
    device = None if error.device == _abi.OUTBOARD_ANY_DEVICE else error.device
    text = error.text.decode('utf-8', 'replace')
    return _CLASSES.get(known, OutboardError)(text, known, item, device, attempts)


def cancelled(why: str) -> CancelledError:
    """The exception for a call that this package cancelled."""
    return CancelledError(why, Status.CANCELLED)
