# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Shared by the tests of frameworks. Each case prints lines that must be the same natively and over
the wire. A case that fails prints its error as a line.

Exit status: 0 every case ran, 1 some failed, 77 the package or the device is missing, with the
reason on stderr.
"""
import hashlib
import importlib
import sys

failed = []


def skip(why):
    print(f'skipped: {why}', file=sys.stderr)
    sys.exit(77)


def module(name):
    try:
        return importlib.import_module(name)
    except Exception as problem:  # noqa: BLE001: any reason is reported
        skip(f'{name} cannot be imported: {type(problem).__name__}: {problem}')


def array(name, values):
    """Prints a line for an array in host memory: type, shape, sum, and a digest of its bytes."""
    digest = hashlib.sha256(values.tobytes()).hexdigest()[:16]
    print(f'{name}: {values.dtype}{list(values.shape)} sum {float(values.astype("float64").sum()):.9g} {digest}', flush=True)


def case(function):
    """A decorator that runs the function at once as a case of the same name."""
    try:
        function()
    except Exception as problem:  # noqa: BLE001: the other cases must still run
        failed.append(function.__name__)
        print(f'{function.__name__}: {type(problem).__name__}: {str(problem).splitlines()[0] if str(problem) else ""}', flush=True)
    return function


def finish():
    print(f'{len(failed)} failed {" ".join(failed)}', flush=True)
    sys.exit(bool(failed))
