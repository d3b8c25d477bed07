# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Recurrence quantification, MSM, NTT and KZG on all CPUs and GPUs of a machine.

The modules are `rqa`, `msm`, `ntt` and `kzg`. Calls take and return numpy arrays, release the GIL,
and can be interrupted by Ctrl-C. Number types, errors and devices are described in
compute/docs/PYTHON.md of the Outboard repository.
"""
from . import kzg, msm, ntt, rqa
from ._library import version
from ._words import Strategy
from .context import Context, Device, default_context
from .errors import ArgumentError, CancelledError, FileError, OutboardError, Status, TimedOutError

__version__ = version()
__all__ = ['ArgumentError', 'CancelledError', 'Context', 'Device', 'FileError', 'OutboardError', 'Status',
           'Strategy', 'TimedOutError', 'default_context', 'kzg', 'msm', 'ntt', 'rqa', 'version']
