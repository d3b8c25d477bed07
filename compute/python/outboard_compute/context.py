# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""A context: a set of devices (CPUs, GPUs) that work together."""
from __future__ import annotations

import ctypes
import os
import threading
from dataclasses import dataclass
from typing import Literal, get_args

from . import _abi
from ._calls import interruptible
from ._handles import Core, Handle
from ._library import call, lib
from ._words import Strategy, index_in

Operation = Literal['msm', 'ntt', 'kzg', 'rqa']
NEVER = 0xffffffff  # options.retries: a piece of work that failed is not repeated


@dataclass(frozen=True)
class Device:
    """A device of a context and its statistics; struct outboard_device explains each field."""

    name: str
    what: str
    kind: Literal['cpu', 'gpu']
    units: int
    memory: int
    clock: float
    link: float
    score: float
    fallback_only: bool
    breaker: Literal['closed', 'open', 'half-open']
    load: float
    pieces: int
    items: int
    failures: int
    retries: int
    opened: int
    moved_in: int
    moved_out: int
    queued: int
    busy: float
    pool_used: int
    pool_kept: int
    pool_peak: int
    pool_requests: int
    pool_reused: int


def _device(raw: _abi.outboard_device) -> Device:
    kinds: tuple[Literal['cpu', 'gpu'], ...] = ('cpu', 'gpu')
    breakers: tuple[Literal['closed', 'open', 'half-open'], ...] = ('closed', 'open', 'half-open')
    return Device(
        raw.name.decode(), raw.what.decode(), kinds[raw.kind], raw.units, raw.memory, raw.clock, raw.link,
        raw.score, bool(raw.fallback_only), breakers[raw.breaker], raw.load, raw.pieces, raw.items,
        raw.failures, raw.retries, raw.opened, raw.moved_in, raw.moved_out, raw.queued, raw.busy,
        raw.pool_used, raw.pool_kept, raw.pool_peak, raw.pool_requests, raw.pool_reused)


class Context(Handle):
    """Opens devices. Any number of threads may use one context.

    devices: "auto" (all GPUs and the CPU), "cpu", "gpu", or a list such as "gpu:0,cpu:8".
    threads: threads of a CPU device for which `devices` gives no number; 0: one for each processor.
    fallback: use the CPU when all GPUs of a list without a CPU fail.
    profile: file of measured speeds; None: the one that `calibrate` wrote, "": none.
    driver: path of the CUDA driver library; None: libcuda.so.1.
    retries: how often a device repeats a piece of work that failed; None: 2.
    The other arguments, in seconds, bytes or numbers, are fields of struct outboard_options; 0
    selects the default.
    """

    def __init__(self, devices: str = 'auto', *, threads: int = 0, strategy: Strategy = 'auto',
                 share_at_most: int = 0, retries: int | None = None, backoff: float = 0.0,
                 backoff_most: float = 0.0, breaker_failures: int = 0, breaker_pause: float = 0.0,
                 fallback: bool = True, balance_horizon: float = 0.0,
                 profile: str | os.PathLike[str] | None = None,
                 driver: str | os.PathLike[str] | None = None, gpu_memory: int = 0) -> None:
        options = _abi.outboard_options(
            devices=devices.encode(), threads=threads,
            strategy=index_in('strategy', strategy, get_args(Strategy)), share_at_most=share_at_most,
            retries=0 if retries is None else retries or NEVER, backoff=backoff,
            backoff_most=backoff_most, breaker_failures=breaker_failures, breaker_pause=breaker_pause,
            no_fallback=int(not fallback), balance_horizon=balance_horizon,
            profile=None if profile is None else os.fsencode(profile),
            driver=None if driver is None else os.fsencode(driver), gpu_memory=gpu_memory)

        def work() -> _abi.outboard:
            pointer = _abi.outboard()
            call(lib.outboard_open, ctypes.byref(options), ctypes.byref(pointer))
            return pointer

        self._own(Core('context', interruptible(work, lib.outboard_close), lib.outboard_close))

    @property
    def devices(self) -> list[Device]:
        """The devices in the order of the list, with their current statistics."""
        pointer = self._core.acquire()
        try:
            found = []
            for index in range(lib.outboard_device_count(pointer)):
                raw = _abi.outboard_device()
                lib.outboard_device_get(pointer, index, ctypes.byref(raw))
                found.append(_device(raw))
            return found
        finally:
            self._core.release()

    def set_strategy(self, strategy: Strategy) -> None:
        """Sets the strategy of later calls."""
        number = index_in('strategy', strategy, get_args(Strategy))
        pointer = self._core.acquire()
        try:
            lib.outboard_set_strategy(pointer, number)
        finally:
            self._core.release()

    def calibrate(self, seconds: float = 10.0) -> None:
        """Measures all devices for at most `seconds` and uses the result from then on.

        The result is stored for later processes unless the context was opened with profile "".
        """
        core = self._core

        def work() -> None:
            pointer = core.acquire()
            try:
                call(lib.outboard_calibrate, pointer, seconds)
            finally:
                core.release()

        interruptible(work, lambda _: None)

    def threshold(self, device: int, operation: Operation) -> int | None:
        """The size from which a device is expected to be faster than the CPU; None: never."""
        number = index_in('operation', operation, get_args(Operation))
        pointer = self._core.acquire()
        try:
            size = int(lib.outboard_threshold(pointer, device, number))
        finally:
            self._core.release()
        return None if size == _abi.OUTBOARD_NO_ITEM else size


_default: list[tuple[int, Context]] = []
_default_lock = threading.Lock()


def default_context() -> Context:
    """The context of calls that do not name one: all devices, opened at the first use.

    After fork() the child opens its own. If the default context was closed, a new one is opened.
    """
    with _default_lock:
        if not _default or _default[0][0] != os.getpid() or _default[0][1].closed:
            _default[:] = [(os.getpid(), Context())]
        return _default[0][1]


os.register_at_fork(before=_default_lock.acquire, after_in_parent=_default_lock.release,
                    after_in_child=_default_lock.release)
