# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Loads the shared library of this package and declares its functions."""
from __future__ import annotations

import ctypes
import os
import pathlib
from typing import Any

from . import _abi
from .errors import from_c

NAME = 'liboutboard.so.0'


def _load() -> ctypes.CDLL:
    path = os.environ.get('OUTBOARD_COMPUTE_LIBRARY') or str(pathlib.Path(__file__).with_name(NAME))
    try:
        loaded = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f'outboard_compute cannot load its library: {error}. Install the wheel that '
                          '`ninja wheel` builds, or set OUTBOARD_COMPUTE_LIBRARY to the path of '
                          f'{NAME}') from error
    for name, (result, arguments) in _abi.FUNCTIONS.items():
        try:
            function = getattr(loaded, name)
        except AttributeError as error:
            raise ImportError(f'{path} has no function {name}: it is of another version than this '
                              'package') from error
        function.restype, function.argtypes = result, arguments
    return loaded


lib: Any = _load()
"""The functions of outboard.h. A call releases the GIL until the function returns."""


def version() -> str:
    """The version of the C library, for example "0.1.0"."""
    text: bytes = lib.outboard_version()
    return text.decode()


def call(function: Any, *arguments: Any) -> None:
    """Calls a function whose last parameter is an outboard_error; raises the error it reports."""
    error = _abi.outboard_error()
    status: int = function(*arguments, ctypes.byref(error))
    if status != _abi.OUTBOARD_OK:
        raise from_c(status, error)
