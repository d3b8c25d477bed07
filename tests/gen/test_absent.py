#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""The absent calls: each has a reason that says something, once, and there are not more than before.

    test_absent.py ROOT CALLS_MD
"""

import collections
import glob
import os
import re
import sys

root, calls_md = os.path.abspath(sys.argv[1]), sys.argv[2]
sys.path.insert(0, os.path.join(root, 'protocol', 'gen'))
sys.dont_write_bytecode = True
import spec as spec_module  # noqa: E402

ABSENT_MAX = 42  # lower it when a call is implemented
WORDS_MIN = 4     # of a reason


def main():
    with open(os.path.join(root, 'base', 'cuda_types.h'), encoding='utf-8') as f:
        types = f.read()
    files = sorted(glob.glob(os.path.join(root, 'protocol', 'spec', '*.api')))
    spec = spec_module.read([(p, os.path.relpath(p, root)) for p in files], types, [('CHUNK_MAX', 1 << 20)])
    with open(calls_md, encoding='utf-8') as f:
        text = f.read()
    bad = []
    names = collections.Counter(call.name for call in spec.exported())
    bad += [f'{name} stands in the specification {n} times' for name, n in names.items() if n > 1]
    bad += [f'{call.where}: {call.name}: "{call.reason}" is no reason' for call in spec.absent
            if len(call.reason.split()) < WORDS_MIN]
    if len(spec.absent) > ABSENT_MAX:
        bad.append(f'{len(spec.absent)} calls are absent, more than {ABSENT_MAX}')
    # The table at the top of calls.md accounts for each of them.
    rows = re.findall(r'^\| (\d+) \| (.+) \|$', text.split('## Operations')[0], re.M)
    want = collections.Counter(call.reason for call in spec.absent)
    if {reason: int(n) for n, reason in rows} != dict(want):
        bad.append(f'{calls_md}: its table of reasons is not that of the specification')
    print('\n'.join(bad) if bad else f'{len(spec.absent)} absent calls with {len(want)} reasons')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
