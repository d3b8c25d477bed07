# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""The client of Outboard: the command `outboard`, which runs CUDA programs on the GPUs of another
machine, and its libraries. The script `outboard` of the environment starts the command."""
import os
import pathlib
import sys

COMMAND = pathlib.Path(__file__).resolve().parent / 'bin' / 'outboard'
"""The path of the command. Its libraries lie in ../lib/outboard of its folder."""


def main() -> None:
    """Replaces this process by the command, with the arguments of this process."""
    try:
        os.execv(COMMAND, ['outboard', *sys.argv[1:]])
    except OSError as error:
        sys.exit(f'outboard: {COMMAND} cannot be started: {error.strerror}. Install the package again, '
                 'on a file system that allows programs to be executed')
