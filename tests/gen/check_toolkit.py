#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Compares the specification with an installed toolkit: every name of the link stub, and the CUDA
version of every ABI in cudaTypedefs.h.

    check_toolkit.py ROOT TOOLKIT       exit code 77: TOOLKIT has no CUDA toolkit of version 13.0
"""

import glob
import os
import re
import subprocess
import sys

root, toolkit = os.path.abspath(sys.argv[1]), sys.argv[2]
sys.path.insert(0, os.path.join(root, 'protocol', 'gen'))
sys.dont_write_bytecode = True
import spec as spec_module  # noqa: E402


def stub_names():
    for folder in ('lib64/stubs', 'lib/stubs', 'targets/x86_64-linux/lib/stubs'):
        path = os.path.join(toolkit, folder, 'libcuda.so')
        if os.path.exists(path):
            out = subprocess.run(['nm', '-D', '--defined-only', path], capture_output=True, text=True, check=True, timeout=60)
            return {line.split()[-1] for line in out.stdout.splitlines() if line.split()[-1].startswith('cu')}
    return None


def versions():
    """Returns {(base name, flavour): sorted versions}."""
    found = {}
    for name in ('cudaTypedefs.h', 'cudaProfilerTypedefs.h'):
        with open(os.path.join(toolkit, 'include', name), encoding='utf-8') as f:
            for base, version, flavour in re.findall(r'\*\s*PFN_(cu\w+?)_v(\d+)(_ptsz|_ptds)?\s*\)', f.read()):
                found.setdefault((base, flavour.strip('_')), set()).add(int(version))
    return {key: sorted(value) for key, value in found.items()}


def toolkit_version():
    with open(os.path.join(toolkit, 'include', 'cuda.h'), encoding='utf-8') as f:
        return int(re.search(r'#define CUDA_VERSION (\d+)', f.read())[1])


def main():
    if not os.path.exists(os.path.join(toolkit, 'include', 'cudaTypedefs.h')):
        print(f'no CUDA toolkit at {toolkit}')
        return 77
    if toolkit_version() != 13000:
        print(f'the specification is that of CUDA 13.0, the toolkit is {toolkit_version()}')
        return 77
    with open(os.path.join(root, 'base', 'cuda_types.h'), encoding='utf-8') as f:
        types = f.read()
    files = sorted(glob.glob(os.path.join(root, 'protocol', 'spec', '*.api')))
    spec = spec_module.read([(p, os.path.relpath(p)) for p in files], types, [('CHUNK_MAX', 1 << 20)])
    failed = 0
    ours, names = {}, set()
    for call in spec.exported():
        for name, since, flavour in call.exports():
            names.add(name)
            base = re.sub(r'_v\d+$', '', call.name)
            ours.setdefault((base, flavour or ''), []).append((call.name, since))
    stub = stub_names()
    if stub is not None and stub != names:
        failed += 1
        print('only in the stub:', sorted(stub - names), 'only in the specification:', sorted(names - stub))
    theirs = versions()
    for key, calls in sorted(ours.items()):
        # the n-th lowest version belongs to the n-th suffix: name, name_v2, name_v3
        got = [since for _, since in sorted(calls)]
        want = theirs.get(key, [0] * len(got))
        if got != want:
            failed += 1
            print(f'{key[0]} {key[1]}: the specification says {got}, cudaTypedefs.h {want}')
    print(f'{len(names)} names, {len(ours)} families, {failed} differences')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
