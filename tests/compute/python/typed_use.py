# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Typed uses of the package. mypy --strict checks this file; it is never run."""
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

import outboard_compute
from outboard_compute import kzg, msm, ntt, rqa


def recurrence(context: outboard_compute.Context) -> float:
    x = np.zeros(100)
    found: rqa.Measures = rqa.analyse(x, m=2, eps=0.1, preset='julia', norm='l2', theiler=1, context=context,
                                      timeout=1.0, progress=print, cancel=threading.Event())
    table: rqa.Sweep = rqa.sweep([x], m=range(1, 4), eps=[0.1], modes=[rqa.Mode('a', (0,), 'max')])
    rqa.analyse(x, eps=0.1, nrom='l2')  # type: ignore[call-arg]
    rqa.analyse(x, eps=0.1, norm='l3')  # type: ignore[arg-type]
    return found.DET + len(table)


def cryptography(setup: kzg.Setup, points: NDArray[np.uint8]) -> bool:
    total: NDArray[Any] = msm.msm(points, [1, 2, 3], result='montgomery')
    moved = ntt.transform(ntt.encode([1, 2, 3, 4]), inverse=True, order='rn', coset=7, strategy='single')
    numbers: list[int] = ntt.decode(moved)
    cells, proofs = setup.cells(bytes(kzg.BLOB_BYTES))
    alone: NDArray[np.uint8] = setup.cells(bytes(kzg.BLOB_BYTES), proofs=False, timeout=3)
    msm.msm(points, [1], result='affine')  # type: ignore[arg-type]
    setup.cells([1, 2])  # type: ignore[call-overload]
    return setup.verify_cells(bytes(48), range(128), cells, proofs) and bool(len(numbers) + len(total) + len(alone))
