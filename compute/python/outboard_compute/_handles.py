# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Lifetimes of the objects of the C library.

A `Core` holds the address of one C object. The object is freed once the `Core` is closed and no
call uses it. A parent is freed after its children, so a context may be closed while other threads
use its handles.
"""
from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from .errors import ArgumentError, Status


class Core:
    """One object of the C library and the number of its users. Any thread may use it."""

    def __init__(self, what: str, pointer: ctypes.c_void_p, free: Callable[[Any], None],
                 parent: Core | None = None) -> None:
        self.what = what
        self.parent = parent
        self.closed = False
        self._pointer = pointer
        self._free = free
        self._process = os.getpid()
        # Reentrant: the garbage collector may close another object while this thread holds it.
        self._lock = threading.RLock()
        self._users = 1  # the open handle itself
        if parent:
            parent.acquire()

    def acquire(self) -> Any:
        """Registers a user and returns the address. Each call needs a release()."""
        if os.getpid() != self._process:
            raise ArgumentError(f'the {self.what} was opened before fork(), in another process: open one '
                                'of its own in this process', Status.ARGUMENT)
        with self._lock:
            if self.closed:
                raise ArgumentError(f'the {self.what} is closed', Status.ARGUMENT)
            self._users += 1
        return self._pointer

    def release(self) -> None:
        """Ends the use that acquire() registered. The last user of a closed object frees it."""
        with self._lock:
            self._users -= 1
            last = self._users == 0
        if last and os.getpid() == self._process:
            self._free(self._pointer)
        if last and self.parent:
            self.parent.release()

    def close(self) -> None:
        """Refuses new users. Running calls that use the object are cancelled."""
        with self._lock:
            if self.closed:
                return
            self.closed = True
        self.release()

    def ends(self) -> bool:
        """True if the object or one of its parents was closed."""
        return self.closed or (self.parent is not None and self.parent.ends())


Self = TypeVar('Self', bound='Handle')


class Handle:
    """Base of the public classes: a context manager that owns a `Core`."""

    _core: Core

    def _own(self, core: Core) -> None:
        self._core = core
        # Not at exit of the process: the operating system frees everything then.
        weakref.finalize(self, core.close).atexit = False

    def close(self) -> None:
        """Closes the object and frees its resources. A second call does nothing."""
        self._core.close()

    @property
    def closed(self) -> bool:
        """True after close()."""
        return self._core.closed

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()
