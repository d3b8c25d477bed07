# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Writes X(call) for every call of the null driver but the named ones.

    exports.py OBS_NULL_H OUTPUT [CALL...]
"""
import pathlib
import re
import sys

header, output, *others = sys.argv[1:]
calls = re.findall(r'^CUresult obs_null_(\w+)\(', pathlib.Path(header).read_text(encoding='utf-8'), re.M)
pathlib.Path(output).write_text(''.join(f'X({call})\n' for call in calls if call not in others), encoding='utf-8')
