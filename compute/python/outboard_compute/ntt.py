# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Number-theoretic transforms (NTT) over the scalar field of BLS12-381.

X_k is the sum of x_j (g w^k)^j with w = 7^((r - 1) / n). Data are arrays whose last axis is one
element: uint64, 4 limbs in Montgomery form (the fastest), or uint8, 32 bytes. The axis before it is
one transform, whose length n is a power of two; further axes are a batch.
"""
from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any, Literal, TypeAlias, Unpack, get_args

import numpy as np
from numpy.typing import NDArray

from . import _abi
from ._arrays import FORMATS, R, WIDTH, Format, Limbs, Octets, address, contiguous, given, integers, refuse, writable
from ._calls import CallOptions, interruptible, run
from ._handles import Core, Handle
from ._library import call, lib
from ._words import index_in
from .context import Context, default_context

Elements: TypeAlias = Octets | Limbs
Order = Literal['nn', 'nr', 'rn', 'rr']
"""Order of input and output: n natural, r bit-reversed."""
_RADIX = 1 << 256


def encode(values: Iterable[int], format: Format = 'montgomery') -> NDArray[Any]:
    """Integers, reduced modulo r, as an array of elements of shape (n, 4) or (n, 32)."""
    reduced = [value % R for value in values]
    if format == 'montgomery':
        return integers('values', (value * _RADIX % R for value in reduced)).view('<u8').astype(np.uint64, copy=False)
    index_in('format', format, FORMATS)
    return integers('values', reduced, format)


def decode(elements: Elements, byteorder: Literal['little', 'big'] = 'little') -> list[int]:
    """The integers of an array of elements of shape (n, 4), in Montgomery form, or (n, 32)."""
    array, format = _elements('elements', elements, byteorder)
    if format == 'montgomery':
        factor = pow(_RADIX, -1, R)
        return [int.from_bytes(item.tobytes(), 'little') * factor % R for item in array.reshape(-1, 4)]
    return [int.from_bytes(item.tobytes(), format) for item in array.reshape(-1, WIDTH)]


def _elements(name: str, value: object, byteorder: Literal['little', 'big']) -> tuple[NDArray[Any], Format]:
    index_in('byteorder', byteorder, ('little', 'big'))
    if isinstance(value, np.ndarray) and value.ndim >= 2:
        if value.dtype == np.uint64 and value.shape[-1] == 4:
            return contiguous(value), 'montgomery'
        if value.dtype == np.uint8 and value.shape[-1] == WIDTH:
            return contiguous(value), byteorder
    raise refuse(f'{name} is {given(value)}: a uint64 array of shape (..., n, 4), elements in Montgomery form, or a '
                 f'uint8 array of shape (..., n, {WIDTH}) is wanted')


class Plan(Handle):
    """Transforms of 2^log_n elements, prepared for many calls.

    order: "nn", "nr", "rn" or "rr", of input and output. format: how elements are stored.
    coset: the shift g, an integer; None: 1.
    """

    def __init__(self, log_n: int, *, inverse: bool = False, order: Order = 'nn', format: Format = 'montgomery',
                 coset: int | None = None, context: Context | None = None) -> None:
        if not 0 <= log_n <= _abi.OUTBOARD_MAX_LOG_N:
            raise refuse(f'log_n is {log_n}: 0 to {_abi.OUTBOARD_MAX_LOG_N} are possible')
        number = index_in('format', format, FORMATS)
        shift = None if coset is None else encode([coset], format)
        raw = _abi.outboard_ntt_shape(log_n=log_n, inverse=int(inverse), format=number,
                                      order=index_in('order', order, get_args(Order)),
                                      coset=None if shift is None else address(shift))
        parent = (context or default_context())._core

        def work() -> Core:
            pointer, owner = _abi.outboard_ntt(), parent.acquire()
            try:
                call(lib.outboard_ntt_new, owner, ctypes.byref(raw), ctypes.byref(pointer))
                return Core('plan', pointer, lib.outboard_ntt_free, parent)
            finally:
                parent.release()

        self._own(interruptible(work, Core.close, shift))
        self.format: Format = format
        self.shape = (1 << log_n, 4 if format == 'montgomery' else WIDTH)

    def run(self, data: Elements, *, out: Elements | None = None, **options: Unpack[CallOptions]) -> NDArray[Any]:
        """The transforms of `data`, in a new array or in `out`, which may be `data` itself.

        Elements must be below r. After an error or Ctrl-C `out` may be partly transformed.
        """
        array, format = _elements('data', data, 'little' if self.format == 'montgomery' else self.format)
        if array.shape[-2:] != self.shape or format != self.format:
            raise refuse(f'data is {given(array)}: the plan is for elements in the format {self.format} and shape '
                         f'(..., {self.shape[0]}, {self.shape[1]})')
        if out is None:
            result = array.copy()
        else:
            result = writable('out', out, array)
            np.copyto(result, array)
        batch = result.size // (self.shape[0] * self.shape[1])
        run(self._core, lib.outboard_ntt_run, address(result), batch, _abi.OUTBOARD_HOST, keep=result, options=options)
        return result


def transform(data: Elements, *, inverse: bool = False, order: Order = 'nn',
              byteorder: Literal['little', 'big'] = 'little', coset: int | None = None, out: Elements | None = None,
              context: Context | None = None, **options: Unpack[CallOptions]) -> NDArray[Any]:
    """The transforms of `data`: a `Plan` and one call."""
    array, format = _elements('data', data, byteorder)
    n = array.shape[-2]
    if n < 1 or n & (n - 1):
        raise refuse(f'data is {given(array)}: the axis before the last must be a power of two')
    with Plan(n.bit_length() - 1, inverse=inverse, order=order, format=format, coset=coset, context=context) as plan:
        return plan.run(array, out=out, **options)
