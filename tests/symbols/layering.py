# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Each folder's library defines only symbols of its own prefix and refers only to folders below it."""
import re
import subprocess
import sys

PREFIX = {'base': 'ob', 'compression': 'obz', 'image': 'obi', 'protocol': 'obp', 'front': 'obf', 'transport': 'obt', 'loadbalancer': 'obl', 'compute': 'obk', 'compute/engine': 'obv'}
MAY_USE = {
    'base': {'ob'},
    'compute': {'ob', 'obk'},
    'compute/engine': {'ob', 'obk', 'obv'},
    'compression': {'ob', 'obz'},
    'image': {'ob', 'obz', 'obi'},
    'front': {'ob', 'obz', 'obi', 'obf'},
    'protocol': {'ob', 'obz', 'obp'},
    'transport': {'ob', 'obz', 'obp', 'obt'},
    'loadbalancer': {'ob', 'obz', 'obp', 'obt', 'obl'},
}


def main() -> int:
    bad = looked = 0
    for argument in sys.argv[1:]:
        name, path = argument.split('=', 1)
        folder = name if name in PREFIX else name.split('/')[0]
        out = subprocess.run(['nm', '-g', path], capture_output=True, text=True, check=True).stdout
        for line in out.splitlines():
            parts = line.split()
            if len(parts) < 2 or len(parts[-2]) != 1:
                continue
            kind, name = parts[-2], parts[-1]
            ours = re.match(r'(ob[a-z]?)_', name)
            looked += 1
            if kind == 'U':
                if ours and ours.group(1) not in MAY_USE[folder]:
                    print(f'{folder}: refers to {name}, which lies above it')
                    bad += 1
            elif not ours or ours.group(1) != PREFIX[folder]:
                if folder == 'compute/engine' and name.startswith('outboard_'):  # the public interface
                    continue
                if not name.startswith('__'):  # symbols of sanitizers
                    print(f'{folder}: defines {name}, which lacks the prefix {PREFIX[folder]}_')
                    bad += 1
    print(f'{looked} symbols, {bad} out of place')
    return 1 if bad or not looked else 0


sys.exit(main())
