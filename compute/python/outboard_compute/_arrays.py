# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Converts arguments to C-contiguous numpy arrays.

An array that is C-contiguous and has the expected dtype is passed without a copy. An array of
another layout is copied. Another dtype is an error, because a silent conversion would change
numbers. The error text names the argument, what was given and what is expected.
"""
from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias, TypeGuard, get_args

import numpy as np
from numpy.typing import NDArray

from . import _abi
from ._words import index_in
from .errors import ArgumentError, Status

Octets: TypeAlias = NDArray[np.uint8]
Limbs: TypeAlias = NDArray[np.uint64]
Buffer: TypeAlias = bytes | bytearray | memoryview | Octets
"""Bytes, or a uint8 array whose last axis is one item."""
Format = Literal['little', 'big', 'montgomery']
"""How a 256-bit number is stored: see enum outboard_scalar_format."""
FORMATS = get_args(Format)
WIDTH = 32  # bytes of a scalar or field element
R = 0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001
"""The order of G1, which is the modulus of the scalar field."""


def refuse(text: str, item: int | None = None) -> ArgumentError:
    return ArgumentError(text, Status.ARGUMENT, item)


def given(value: object) -> str:
    """Describes a value for an error text."""
    if isinstance(value, np.ndarray):
        return f'a {value.dtype} array of shape {value.shape}'
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f'{memoryview(value).nbytes} bytes'
    return f'a {type(value).__name__}'


def contiguous(array: NDArray[Any]) -> NDArray[Any]:
    """The array itself if it is C-contiguous and aligned, else a copy."""
    return np.require(array, requirements=['C', 'A'])


def octets(name: str, value: object, width: int, what: str) -> Octets:
    """A uint8 array whose last axis has `width` bytes. Bytes become one item or a list of items."""
    wanted = f'bytes or a uint8 array whose last axis has {width} bytes ({what}) is wanted'
    if isinstance(value, (bytes, bytearray, memoryview)):
        flat = np.frombuffer(value, np.uint8)
        if flat.size == width:
            return flat
        if flat.size % width:
            raise refuse(f'{name} has {flat.size} bytes: a multiple of {width} ({what}) is wanted')
        return flat.reshape(-1, width)
    if not isinstance(value, np.ndarray) or value.dtype != np.uint8 or value.ndim < 1 or value.shape[-1] != width:
        raise refuse(f'{name} is {given(value)}: {wanted}')
    return contiguous(value)


def items(name: str, value: object, width: int, what: str) -> tuple[Octets, bool]:
    """Like octets(), but always of shape (n, width); and whether a single item was given."""
    array = octets(name, value, width, what)
    if array.ndim > 2:
        raise refuse(f'{name} is {given(array)}: one or two axes are wanted, items of {width} bytes')
    return array.reshape(-1, width), array.ndim == 1


def same_count(name: str, array: NDArray[Any], count: int, of: str) -> None:
    if len(array) != count:
        raise refuse(f'{name} has {len(array)} items, and there are {count} {of}: equal numbers are wanted')


def integers(name: str, values: Iterable[int], order: Literal['little', 'big'] = 'little') -> Octets:
    """Encodes integers from 0 to 2^256 - 1 as 32 bytes each."""
    packed = bytearray()
    for index, value in enumerate(values):
        try:
            packed += int(value).to_bytes(WIDTH, order)
        except OverflowError:
            raise refuse(f'{name}[{index}] is {value}: 0 to 2^256 - 1 are possible', index) from None
    return np.frombuffer(packed, np.uint8).reshape(-1, WIDTH)


def is_integers(value: object) -> TypeGuard[Sequence[int]]:
    return isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray, memoryview, str)) and \
        all(isinstance(item, (int, np.integer)) for item in value)


def numbers(name: str, value: object, byteorder: Literal['little', 'big']) -> tuple[NDArray[Any], int]:
    """256-bit numbers, as an array whose last axis is one number, and their scalar format."""
    index_in('byteorder', byteorder, ('little', 'big'))
    if is_integers(value):
        return integers(name, value, byteorder), FORMATS.index(byteorder)
    if isinstance(value, np.ndarray) and value.dtype == np.uint64 and value.ndim >= 1 and value.shape[-1] == 4:
        return contiguous(value), _abi.OUTBOARD_SCALAR_MONTGOMERY
    if isinstance(value, (bytes, bytearray, memoryview)) or (
            isinstance(value, np.ndarray) and value.dtype == np.uint8 and value.ndim >= 1 and value.shape[-1] == WIDTH):
        array = octets(name, value, WIDTH, 'one number')
        return (array[None] if array.ndim == 1 and not isinstance(value, np.ndarray) else array), \
            FORMATS.index(byteorder)
    raise refuse(f'{name} is {given(value)}: a list of integers, a uint8 array of shape (..., {WIDTH}) or, '
                 'for numbers in Montgomery form, a uint64 array of shape (..., 4) is wanted')


def writable(name: str, value: object, like: NDArray[Any]) -> NDArray[Any]:
    """Checks an array that results are written to."""
    if not isinstance(value, np.ndarray) or value.dtype != like.dtype or value.shape != like.shape or \
            not value.flags.c_contiguous or not value.flags.writeable or not value.flags.aligned:
        raise refuse(f'{name} is {given(value)}: a writable C-contiguous {like.dtype} array of shape '
                     f'{like.shape} is wanted')
    return value


def address(array: NDArray[Any]) -> ctypes.c_void_p:
    """The address of the data. The caller must keep the array alive."""
    return ctypes.c_void_p(array.ctypes.data)


def byte_pointer(array: Octets | None) -> Any:
    """The address of the data as a uint8_t pointer; NULL for None."""
    return None if array is None else ctypes.cast(address(array), ctypes.POINTER(ctypes.c_uint8))
