# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Runs calls of the C library so that Ctrl-C, a progress function and an event can end them.

Every long call is made with a ticket. The calling thread waits for it in short slices and runs
Python code between them: Python's signal handlers and the callbacks. No other thread is needed.
"""
from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any, TypedDict, TypeVar, get_args

from . import _abi
from ._handles import Core
from ._library import lib
from ._words import Strategy, index_in
from .errors import ArgumentError, Status, cancelled, from_c

SLICE = 0.1  # seconds between two checks for signals and events
PATIENCE = 0.5  # seconds to wait for the end of a cancelled call; after that another thread waits
CLOSING = 'the call was cancelled because its context or handle was closed'

T = TypeVar('T')

# The objects that running calls use, by the id() of the ticket. If an exception of a signal handler
# skips the end of run(), memory that the library still uses stays referenced here.
_held: dict[int, tuple[object, ...]] = {}


class CallOptions(TypedDict, total=False):
    """Keyword arguments of every call that may take long.

    timeout: seconds, after which the call ends with TimedOutError.
    progress: called with a number from 0 to 1 ten times a second, in the calling thread, and
    with 1 at the end. An exception that it raises cancels the call and is raised to the caller.
    cancel: an event; once it is set, by any thread, the call ends with CancelledError.
    strategy: how this call is divided among devices; None: the context's strategy.
    """

    timeout: float | None
    progress: Callable[[float], object] | None
    cancel: threading.Event | None
    strategy: Strategy | None


def run(core: Core, function: Callable[..., int], *arguments: Any, keep: object,
        options: CallOptions) -> None:
    """Calls `function(handle, *arguments, call, error)` and waits for its end.

    keep: the objects that the arguments point to; they stay referenced until the C library has
    ended the call.
    """
    ticket, error = _abi.outboard_ticket(), _abi.outboard_error()
    call = _abi.outboard_call(ticket=ctypes.pointer(ticket), timeout=_seconds(options.get('timeout')),
                              strategy=_strategy(options.get('strategy')))
    handle = core.acquire()
    _held[id(ticket)] = (ticket, keep, arguments)
    try:
        status = function(handle, *arguments, ctypes.byref(call), ctypes.byref(error))
        if status == _abi.OUTBOARD_OK:
            status = _wait(core, ticket, error, options)
        if status != _abi.OUTBOARD_OK:
            raise from_c(status, error, _attempts(ticket))
    except BaseException:
        if ticket:
            lib.outboard_cancel(ticket)
        raise
    finally:
        _release(ticket, core)
    progress = options.get('progress')
    if progress:
        progress(1.0)


def _seconds(timeout: float | None) -> float:
    if timeout is not None and not timeout > 0:
        raise ArgumentError(f'timeout is {timeout}: a number of seconds above 0, or None, is wanted', Status.ARGUMENT)
    return timeout or 0.0


def _strategy(word: Strategy | None) -> int:
    """The value of outboard_call.strategy: 0 is the context's strategy."""
    return 0 if word is None else 1 + index_in('strategy', word, get_args(Strategy))


def _wait(core: Core, ticket: _abi.outboard_ticket, error: _abi.outboard_error,
          options: CallOptions) -> int:
    """Waits in slices. Returns the status of the call."""
    progress, cancel, done = options.get('progress'), options.get('cancel'), ctypes.c_double()
    while True:
        if cancel is not None and cancel.is_set():
            raise cancelled('the call was cancelled by its event')
        if core.ends():
            raise cancelled(CLOSING)
        status: int = lib.outboard_wait(ticket, SLICE, ctypes.byref(error))
        if status != _abi.OUTBOARD_TIMEOUT:
            return status
        if lib.outboard_poll(ticket, None):  # the call has ended, not only the slice
            return int(lib.outboard_wait(ticket, -1.0, ctypes.byref(error)))
        if progress:
            lib.outboard_poll(ticket, ctypes.byref(done))
            progress(done.value)


def _attempts(ticket: _abi.outboard_ticket) -> tuple[str, ...]:
    """The error text of each failed attempt of a device."""
    texts: list[str] = []
    attempt = _abi.outboard_error()
    while ticket and lib.outboard_ticket_attempt(ticket, len(texts), ctypes.byref(attempt)) == _abi.OUTBOARD_OK:
        texts.append(attempt.text.decode('utf-8', 'replace'))
    return tuple(texts)


def _free(ticket: _abi.outboard_ticket, core: Core) -> None:
    """Waits for the end of the call and frees its ticket."""
    lib.outboard_ticket_free(ticket)
    del _held[id(ticket)]
    core.release()


def _release(ticket: _abi.outboard_ticket, core: Core) -> None:
    """Frees the ticket. If a cancelled call does not end soon, a new thread waits for it."""
    if not ticket or lib.outboard_wait(ticket, PATIENCE, None) != _abi.OUTBOARD_TIMEOUT or \
            lib.outboard_poll(ticket, None):
        _free(ticket, core)
    else:
        threading.Thread(target=_free, args=(ticket, core), daemon=True,
                         name='outboard: end of a cancelled call').start()


def interruptible(work: Callable[[], T], undo: Callable[[T], None], keep: object = None) -> T:
    """Runs a call that has no ticket.

    A call from the main thread runs in a thread of its own. After Ctrl-C that thread finishes it.
    undo: frees the result of a call that was interrupted. keep: the objects that the call uses.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    results: list[T] = []
    errors: list[BaseException] = []
    over, lock, left = threading.Event(), threading.Lock(), threading.Event()

    def body(_: object) -> None:
        try:
            results.append(work())
        except BaseException as error:  # raised again in the calling thread
            errors.append(error)
        with lock:
            over.set()
            if left.is_set() and results:
                undo(results[0])

    threading.Thread(target=body, args=(keep,), name='outboard: a call without a ticket', daemon=True).start()
    try:
        over.wait()
    except BaseException:
        with lock:
            left.set()
            if over.is_set() and results:
                undo(results[0])
        raise
    if errors:
        raise errors[0]
    return results[0]
