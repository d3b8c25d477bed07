# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Multi-scalar multiplication (MSM): sums of scalar times point in G1 of BLS12-381.

Points are arrays whose last axis is one point:

    uint8,  48   compressed, in the format of ZCash and the IETF
    uint8,  96   uncompressed: x, y, each big-endian
    uint64, 12   Montgomery form: x, y as six limbs each, the lowest first (blst, arkworks, gnark)

Scalars are integers, or arrays whose last axis is one scalar: uint8, 32 bytes (`byteorder`), or
uint64, 4 limbs in Montgomery form.
"""
from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, Unpack, get_args

import numpy as np
from numpy.typing import NDArray

from . import _abi
from ._arrays import Limbs, Octets, address, contiguous, given, numbers, octets, refuse
from ._calls import CallOptions, interruptible, run
from ._handles import Core, Handle
from ._library import call, lib
from ._words import index_in
from .context import Context, default_context

Points: TypeAlias = bytes | bytearray | memoryview | Octets | Limbs
Scalars: TypeAlias = Sequence[int] | bytes | bytearray | memoryview | Octets | Limbs
PointFormat = Literal['compressed', 'uncompressed', 'montgomery']
Trust = Literal['check', 'curve', 'subgroup']
Method = Literal['buckets', 'copies', 'multiples']
_SHAPES: tuple[tuple[type[Any], int], ...] = ((np.uint8, 48), (np.uint8, 96), (np.uint64, 12))


@dataclass(frozen=True)
class GpuPlan:
    """How a GPU would compute products; struct outboard_plan explains each field."""

    method: Method
    window: int
    copies: int
    measured: bool
    group: int
    bytes: int
    seconds: float


def _points(value: object) -> tuple[NDArray[Any], int]:
    """Points as an array of two axes, and their enum outboard_point_format."""
    array: NDArray[Any]
    if isinstance(value, (bytes, bytearray, memoryview)):
        # Bit 7 of the first byte is set in a compressed point.
        compressed = bool(memoryview(value).cast('B')[0] & 0x80) if memoryview(value).nbytes else True
        array = octets('points', value, 48 if compressed else 96, 'one point').reshape(-1, 48 if compressed else 96)
        return array, 0 if compressed else 1
    for number, (dtype, width) in enumerate(_SHAPES):
        if isinstance(value, np.ndarray) and value.dtype == dtype and value.ndim == 2 and value.shape[1] == width:
            return contiguous(value), number
    raise refuse(f'points is {given(value)}: bytes, or a uint8 array of shape (n, 48) or (n, 96), or a uint64 '
                 'array of shape (n, 12) is wanted')


class Bases(Handle):
    """Points that are checked and uploaded once and used in many products.

    trust: "check": each point is checked to be on the curve and in G1; "curve": the caller
    guarantees that all points are on the curve; "subgroup": the caller guarantees that all are in
    G1. With "subgroup" a point outside G1 gives a wrong result.
    table_bytes: memory, on each device, for tables that make products faster.
    """

    def __init__(self, points: Points, *, trust: Trust = 'check', table_bytes: int = 0,
                 context: Context | None = None) -> None:
        array, number = _points(points)
        raw = _abi.outboard_points(points=address(array), count=len(array), format=number,
                                   trust=index_in('trust', trust, get_args(Trust)), table_bytes=table_bytes)
        parent = (context or default_context())._core

        def work() -> Core:
            pointer, owner = _abi.outboard_bases(), parent.acquire()
            try:
                call(lib.outboard_bases_new, owner, ctypes.byref(raw), ctypes.byref(pointer))
                return Core('set of points', pointer, lib.outboard_bases_free, parent)
            finally:
                parent.release()

        self._own(interruptible(work, Core.close, array))

    def __len__(self) -> int:
        pointer = self._core.acquire()
        try:
            return int(lib.outboard_bases_count(pointer))
        finally:
            self._core.release()

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the points use on all devices together."""
        pointer = self._core.acquire()
        try:
            return int(lib.outboard_bases_bytes(pointer))
        finally:
            self._core.release()

    def msm(self, scalars: Scalars, *, offset: int = 0, byteorder: Literal['little', 'big'] = 'little',
            canonical: bool = False, result: PointFormat = 'compressed',
            **options: Unpack[CallOptions]) -> NDArray[Any]:
        """The sum of scalars[i] times points[offset + i], as one point.

        An array of scalars with one more axis, (batch, n, 32) or (batch, n, 4), gives one sum for
        each row. canonical: refuse scalars that are not below the order of the group.
        """
        array, number = numbers('scalars', scalars, byteorder)
        if array.ndim not in (2, 3):
            raise refuse(f'scalars is {given(array)}: one scalar for each point, or a batch of such lists, is wanted')
        form = index_in('result', result, get_args(PointFormat))
        dtype, width = _SHAPES[form]
        batch, count = (1, *array.shape[:1]) if array.ndim == 2 else array.shape[:2]
        sums: NDArray[Any] = np.zeros((batch, width), dtype)
        if offset < 0:
            raise refuse(f'offset is {offset}: 0 or more is wanted')
        raw = _abi.outboard_msm(scalars=address(array), offset=offset, count=count, batch=batch,
                                scalar_format=number, canonical=int(canonical), result_format=form,
                                result=address(sums))
        if batch:
            run(self._core, lib.outboard_msm_run, ctypes.byref(raw), keep=(array, sums, raw), options=options)
        return sums if array.ndim == 3 else sums[0]

    def plan(self, device: int, count: int | None = None, batch: int = 1) -> GpuPlan:
        """How GPU number `device` would compute `batch` products of the first `count` points."""
        raw, pointer = _abi.outboard_plan(), self._core.acquire()
        try:
            call(lib.outboard_msm_plan, pointer, device, len(self) if count is None else count, batch,
                 ctypes.byref(raw))
        finally:
            self._core.release()
        return GpuPlan(get_args(Method)[raw.method], raw.window, raw.copies, bool(raw.measured), raw.group,
                       raw.bytes, raw.seconds)


def msm(points: Points, scalars: Scalars, *, byteorder: Literal['little', 'big'] = 'little',
        canonical: bool = False, trust: Trust = 'check', result: PointFormat = 'compressed',
        context: Context | None = None, **options: Unpack[CallOptions]) -> NDArray[Any]:
    """The sum of scalars[i] times points[i]: `Bases` and one product."""
    with Bases(points, trust=trust, context=context) as bases:
        return bases.msm(scalars, byteorder=byteorder, canonical=canonical, result=result, **options)
