#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Compares a built libcuda.so.1 with the specification: it must export exactly the names there, and
define every hand-written call.

    check_library.py ROOT obc|obd LIBRARY

Stubs reference hand-written functions weakly, so without this test a missing one would be noticed
only when a program calls it.
"""

import glob
import os
import subprocess
import sys

root, prefix, library = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3]
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(root, 'protocol', 'gen'))
import spec as spec_module  # noqa: E402


def symbols(*flags):
    out = subprocess.run(['nm', '--defined-only', *flags, library], capture_output=True, text=True, check=True, timeout=60)
    return {line.split()[-1] for line in out.stdout.splitlines() if line.strip()}


def main():
    with open(os.path.join(root, 'base', 'cuda_types.h'), encoding='utf-8') as f:
        types = f.read()
    files = sorted(glob.glob(os.path.join(root, 'protocol', 'spec', '*.api')))
    spec = spec_module.read([(p, os.path.relpath(p)) for p in files], types, [('CHUNK_MAX', 1 << 20)])
    names = {name for call in spec.exported() for name, _, _ in call.exports()}
    exported = symbols('-D')
    failed = 0
    for what, wrong in (('not exported', names - exported), ('exported but not in the specification', exported - names)):
        for name in sorted(wrong):
            failed += 1
            print(f'{name}: {what}')
    defined = symbols()
    if not any(name.startswith('obf_') for name in defined):
        print('the library is stripped: only its exports were compared')
        return 77 if not failed else 1
    classes = ('local', 'front') if prefix == 'obc' else ('local', 'front', 'server')
    wanted = [c for c in spec.calls if c.klass in classes or c.in_front]
    for call in wanted:
        function = ('obf_' if call.in_front else prefix + '_') + call.name
        if function not in defined:
            failed += 1
            print(f'{function} is not written ({os.path.relpath(call.where[0])}:{call.where[1]})')
    print(f'{len(names)} names, {len(wanted)} hand-written calls, {failed} failures')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
