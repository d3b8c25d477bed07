# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""KZG commitments and proofs for blobs (EIP-4844) and cells (EIP-7594).

Functions take bytes or uint8 arrays and return uint8 arrays. One item (a blob of 131,072 bytes)
gives one result; an array of items of shape (n, 131072) gives n results. Results are the same as
those of c-kzg-4844, with two exceptions that compute/docs/KZG.md names.
"""
from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from . import _abi
from ._arrays import WIDTH, Buffer, Octets, byte_pointer, given, integers, items, octets, refuse, same_count
from ._calls import CallOptions, interruptible, run
from ._handles import Core, Handle
from ._library import call, lib
from .context import Context, default_context

BLOB_BYTES = _abi.OUTBOARD_BLOB_BYTES
CELL_BYTES = _abi.OUTBOARD_CELL_BYTES
CELLS = _abi.OUTBOARD_CELLS
POINT_BYTES = _abi.OUTBOARD_COMMITMENT_BYTES
Element: TypeAlias = int | Buffer
"""An element of the scalar field: an integer, or 32 big-endian bytes."""
Indices: TypeAlias = Sequence[int] | NDArray[np.integer[Any]]


def _element(name: str, value: Element) -> Octets:
    if isinstance(value, int):
        return integers(name, [value], 'big').reshape(WIDTH)
    array = octets(name, value, WIDTH, 'one element')
    if array.ndim != 1:
        raise refuse(f'{name} is {given(array)}: one element of {WIDTH} bytes is wanted')
    return array


def _point(name: str, value: Buffer) -> Octets:
    array = octets(name, value, POINT_BYTES, 'one point')
    if array.ndim != 1:
        raise refuse(f'{name} is {given(array)}: one point of {POINT_BYTES} bytes is wanted')
    return array


def _indices(value: Indices) -> NDArray[np.uint64]:
    array = np.asarray(value)
    if array.ndim != 1 or (array.size and array.dtype.kind not in 'iu') or (array.size and array.min() < 0):
        raise refuse(f'indices is {given(array)}: a list of whole numbers from 0 to {CELLS - 1} is wanted')
    return np.ascontiguousarray(array, np.uint64)


def _index_pointer(array: NDArray[np.uint64]) -> Any:
    return ctypes.cast(array.ctypes.data, ctypes.POINTER(ctypes.c_uint64))


class Setup(Handle):
    """A trusted setup in the text format of c-kzg-4844, from a file or as bytes.

    It is loaded once, and any number of threads may use it. cell_window: bits of the window of
    the table for cell proofs; table_bytes: memory, on each device, for tables that make
    commitments and proofs faster.
    """

    def __init__(self, source: str | os.PathLike[str] | bytes, *, cell_window: int = 0, table_bytes: int = 0,
                 context: Context | None = None) -> None:
        raw = _abi.outboard_kzg_options(cell_window=cell_window, table_bytes=table_bytes)
        parent = (context or default_context())._core
        arguments = (source, len(source)) if isinstance(source, bytes) else (os.fsencode(source),)
        load = lib.outboard_kzg_load if isinstance(source, bytes) else lib.outboard_kzg_load_file

        def work() -> Core:
            pointer, owner = _abi.outboard_kzg(), parent.acquire()
            try:
                call(load, owner, *arguments, ctypes.byref(raw), ctypes.byref(pointer))
                return Core('setup', pointer, lib.outboard_kzg_free, parent)
            finally:
                parent.release()

        self._own(interruptible(work, Core.close))

    def _run(self, function: Callable[..., int], *arguments: Any, keep: object, options: CallOptions) -> None:
        run(self._core, function, *arguments, keep=keep, options=options)

    def commit(self, blobs: Buffer, **options: Unpack[CallOptions]) -> Octets:
        """The commitment of each blob."""
        data, single = items('blobs', blobs, BLOB_BYTES, 'one blob')
        found = np.zeros((len(data), POINT_BYTES), np.uint8)
        self._run(lib.outboard_kzg_commit, byte_pointer(data), len(data), byte_pointer(found), keep=(data, found),
                  options=options)
        return found[0] if single else found

    def prove(self, blob: Buffer, z: Element, **options: Unpack[CallOptions]) -> tuple[Octets, Octets]:
        """The proof that the polynomial of the blob has the value y at z, and y."""
        data, _ = items('blob', blob, BLOB_BYTES, 'one blob')
        if len(data) != 1:
            raise refuse(f'blob is {given(blob)}: one blob of {BLOB_BYTES} bytes is wanted')
        at, proof, y = _element('z', z), np.zeros(POINT_BYTES, np.uint8), np.zeros(WIDTH, np.uint8)
        self._run(lib.outboard_kzg_prove, byte_pointer(data), byte_pointer(at), byte_pointer(proof), byte_pointer(y),
                  keep=(data, at, proof, y), options=options)
        return proof, y

    def prove_blobs(self, blobs: Buffer, commitments: Buffer, **options: Unpack[CallOptions]) -> Octets:
        """The proof of each blob. The commitments are not checked against the blobs."""
        data, single = items('blobs', blobs, BLOB_BYTES, 'one blob')
        points, _ = items('commitments', commitments, POINT_BYTES, 'one commitment')
        same_count('commitments', points, len(data), 'blobs')
        found = np.zeros((len(data), POINT_BYTES), np.uint8)
        self._run(lib.outboard_kzg_prove_blobs, byte_pointer(data), byte_pointer(points), len(data), byte_pointer(found),
                  keep=(data, points, found), options=options)
        return found[0] if single else found

    def verify(self, commitment: Buffer, z: Element, y: Element, proof: Buffer,
               **options: Unpack[CallOptions]) -> bool:
        """True if the proof shows that the committed polynomial has the value y at z."""
        kept = (_point('commitment', commitment), _element('z', z), _element('y', y), _point('proof', proof))
        return self._verdict(lib.outboard_kzg_verify, *map(byte_pointer, kept), keep=kept, options=options)

    def verify_blobs(self, blobs: Buffer, commitments: Buffer, proofs: Buffer,
                     **options: Unpack[CallOptions]) -> bool:
        """True if all blobs, commitments and proofs belong together."""
        data, _ = items('blobs', blobs, BLOB_BYTES, 'one blob')
        points, _ = items('commitments', commitments, POINT_BYTES, 'one commitment')
        shown, _ = items('proofs', proofs, POINT_BYTES, 'one proof')
        same_count('commitments', points, len(data), 'blobs')
        same_count('proofs', shown, len(data), 'blobs')
        return self._verdict(lib.outboard_kzg_verify_blobs, *map(byte_pointer, (data, points, shown)), len(data),
                             keep=(data, points, shown), options=options)

    def _verdict(self, function: Callable[..., int], *arguments: Any, keep: object, options: CallOptions) -> bool:
        valid = ctypes.c_int()
        # Not byref(): after Ctrl-C a call that still runs in another thread may write here later.
        self._run(function, *arguments, ctypes.pointer(valid), keep=(keep, valid), options=options)
        return bool(valid.value)

    @overload
    def cells(self, blobs: Buffer, *, proofs: Literal[True] = True,
              **options: Unpack[CallOptions]) -> tuple[Octets, Octets]: ...

    @overload
    def cells(self, blobs: Buffer, *, proofs: Literal[False], **options: Unpack[CallOptions]) -> Octets: ...

    def cells(self, blobs: Buffer, *, proofs: bool = True,
              **options: Unpack[CallOptions]) -> tuple[Octets, Octets] | Octets:
        """The 128 cells of each blob, of shape (..., 128, 2048), and their proofs, (..., 128, 48)."""
        data, single = items('blobs', blobs, BLOB_BYTES, 'one blob')
        found = np.zeros((len(data), CELLS, CELL_BYTES), np.uint8)
        shown = np.zeros((len(data), CELLS, POINT_BYTES), np.uint8) if proofs else None
        self._run(lib.outboard_kzg_cells, byte_pointer(data), len(data), byte_pointer(found), byte_pointer(shown),
                  keep=(data, found, shown), options=options)
        return _both(found, shown, single)

    @overload
    def recover(self, indices: Indices, cells: Buffer, *, proofs: Literal[True] = True,
                **options: Unpack[CallOptions]) -> tuple[Octets, Octets]: ...

    @overload
    def recover(self, indices: Indices, cells: Buffer, *, proofs: Literal[False],
                **options: Unpack[CallOptions]) -> Octets: ...

    def recover(self, indices: Indices, cells: Buffer, *, proofs: bool = True,
                **options: Unpack[CallOptions]) -> tuple[Octets, Octets] | Octets:
        """All cells of a blob, and their proofs, from 64 or more of its cells, in ascending order.

        With exactly 64 cells a damaged cell cannot be detected: call verify_cells first.
        """
        which, (data, _) = _indices(indices), items('cells', cells, CELL_BYTES, 'one cell')
        same_count('indices', which, len(data), 'cells')
        found = np.zeros((1, CELLS, CELL_BYTES), np.uint8)
        shown = np.zeros((1, CELLS, POINT_BYTES), np.uint8) if proofs else None
        self._run(lib.outboard_kzg_recover, _index_pointer(which), byte_pointer(data), len(data), byte_pointer(found),
                  byte_pointer(shown), keep=(which, data, found, shown), options=options)
        return _both(found, shown, True)

    def verify_cells(self, commitments: Buffer, indices: Indices, cells: Buffer, proofs: Buffer,
                     **options: Unpack[CallOptions]) -> bool:
        """True if each cell i is cell indices[i] of the blob with commitments[i].

        A single commitment of 48 bytes is used for all cells.
        """
        which, (data, _) = _indices(indices), items('cells', cells, CELL_BYTES, 'one cell')
        points, single = items('commitments', commitments, POINT_BYTES, 'one commitment')
        shown, _ = items('proofs', proofs, POINT_BYTES, 'one proof')
        if single:
            points = np.repeat(points, len(data), axis=0)
        for name, array in (('indices', which), ('commitments', points), ('proofs', shown)):
            same_count(name, array, len(data), 'cells')
        return self._verdict(lib.outboard_kzg_verify_cells, byte_pointer(points), _index_pointer(which),
                             byte_pointer(data), byte_pointer(shown), len(data), keep=(points, which, data, shown),
                             options=options)


def _both(cells: Octets, proofs: Octets | None, single: bool) -> tuple[Octets, Octets] | Octets:
    first = cells[0] if single else cells
    return first if proofs is None else (first, proofs[0] if single else proofs)
