# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Words for the values of the C library's enums."""
from __future__ import annotations

from typing import Literal

from .errors import ArgumentError, Status

Strategy = Literal['auto', 'single', 'equal', 'proportional', 'dynamic']
"""How calls are divided among devices: see "Several devices" in compute/docs/SERVICE.md."""


def index_in(name: str, value: str, words: tuple[str, ...]) -> int:
    """The index of a word in `words`. An unknown word raises an error that names the argument."""
    if value not in words:
        raise ArgumentError(f'{name} is {value!r}: it must be one of {", ".join(words)}', Status.ARGUMENT)
    return words.index(value)
