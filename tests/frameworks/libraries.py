#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""NVIDIA's libraries of several versions in a dry run, in the program's process and over tcp: a
handle is made, used and destroyed (library_calls.py). Each call must succeed, unless the log names
a call that Outboard refused, with the same lines in both ways; and no library may ask for a private
function that is not known.

    libraries.py OUTBOARD SERVER [FOLDER...] [--devices N] [--only LIBRARY] [--skip LIBRARY] [--table]

A folder holds one version of each library: the lib64 of a toolkit (the default), or what
"pip install --no-deps --target FOLDER" of the packages in libraries.list makes. --devices: NCCL uses
so many. --table prints the results as Markdown. Exit code 77: there is no library."""
import argparse
import os
import pathlib
import re
import subprocess
import sys

sys.path.append(sys.path[0] + '/../lib')
from outboard_test import Server, bad, check, skip  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
LIBRARIES = 'cudart', 'cublas', 'cudnn', 'cufft', 'curand', 'cusparse', 'cusolver', 'npp', 'nvjpeg', 'nccl', 'nccl-vmm'
SKIPPED = 77
# What a library asks for and does without: see front/export_tables.c and docs/NVML.md.
UNKNOWN = re.compile(r'private table .*is not implemented|no private table has the id (?!f8cff951|2c8e0ad8|da9151d3)\w+')
REFUSED = re.compile(r'outboard\S*: (?:warn|error): (\w+) is not supported')


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('outboard')
    parser.add_argument('server')
    parser.add_argument('folders', nargs='*', type=pathlib.Path)
    parser.add_argument('--devices', type=int, default=1)
    parser.add_argument('--only', default='')
    parser.add_argument('--skip', default='none')
    parser.add_argument('--table', action='store_true')
    a = parser.parse_args()
    a.folders = a.folders or [path for path in [pathlib.Path('/usr/local/cuda/lib64')] if path.is_dir()]
    return a


def version(folder, library):
    """The version of the package, of a folder that pip made."""
    package = {'cudart': 'cuda_runtime', 'nccl-vmm': 'nccl'}.get(library, library)
    for path in folder.glob(f'nvidia_{package}*.dist-info'):
        return path.name.removesuffix('.dist-info').split('-')[1]
    return 'toolkit'


def run(a, where, folder, library):
    """Returns (exit code, lines of the program, log)."""
    words = [library, str(folder)] + ([str(a.devices)] if library.startswith('nccl') else [])
    env = {k: v for k, v in os.environ.items() if not k.startswith('OUTBOARD_')}
    env.update(OUTBOARD_LOG='debug', OUTBOARD_TIMEOUT='60', OUTBOARD_SOFT_DEVICES=str(a.devices))
    done = subprocess.run([a.outboard, 'run', *where, '--', sys.executable, str(HERE / 'library_calls.py'), *words], capture_output=True, text=True,
                          timeout=300, env=env, check=False)
    return done.returncode, done.stdout, done.stderr


def cell(code, out, refused):
    """What a table says of a run."""
    wrong = [line for line in out.splitlines() if re.search(r' -?[1-9]\d*$', line) and not line.startswith('image')]
    text = 'ok' if code == 0 else '; '.join(wrong) or f'exit {code}'
    return text + (f' (refused: {", ".join(sorted(refused))})' if refused else '')


def look(a, url, folder, library):
    """Runs a library both ways. Returns the cell of the table, None without the library."""
    code, out, log = run(a, ['--direct', '--driver', 'dryrun'], folder, library)
    if code == SKIPPED:
        return None
    name = f'{library} {version(folder, library)}'
    there = run(a, ['--server', url], folder, library)
    both = log + there[2]
    refused = set(REFUSED.findall(both))
    if code == 1 and refused:
        print(f'     {name}: Outboard refused {", ".join(sorted(refused))}')
    else:
        check(f'{name}: each call succeeds', code == 0, out[-800:] + log[-400:])
    check(f'{name}: the same over tcp', there[:2] == (code, out), there[1][-800:] + there[2][-400:])
    check(f'{name}: no unknown private function', not UNKNOWN.search(both), UNKNOWN.findall(both) and [line for line in both.splitlines() if UNKNOWN.search(line)])
    return f'{version(folder, library)}: {cell(code, out, refused)}'


def main():
    a = arguments()
    if not any(any(folder.rglob('libcudart.so.*')) for folder in a.folders):
        skip('there are none of NVIDIA\'s libraries: install the CUDA toolkit')
    rows = {library: [] for library in LIBRARIES if a.only in library and library != a.skip}
    with Server(a.server, '--driver', 'dryrun', env={'OUTBOARD_SOFT_DEVICES': str(a.devices)}) as server:
        for folder in a.folders:
            for library, cells in rows.items():
                cells.append(look(a, server.url, folder, library))
    if a.table:
        print('| library | ' + ' | '.join(folder.name for folder in a.folders) + ' |\n|---' + '|---' * len(a.folders) + '|')
        for library, cells in rows.items():
            print(f'| {library} | ' + ' | '.join(each or '' for each in cells) + ' |')
    print(f'{len(bad)} wrong')
    sys.exit(bool(bad))


main()
