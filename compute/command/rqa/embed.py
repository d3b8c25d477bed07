# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Files of the page -> a C table.

    embed.py FILE... OUTPUT
"""
import pathlib
import sys

TYPES = {'.html': 'text/html; charset=utf-8', '.css': 'text/css; charset=utf-8', '.js': 'text/javascript; charset=utf-8'}

out = ['/* Made by compute/command/rqa/embed.py. */', '#include "compute/command/rqa/stream.h"', '']
table = []
for number, name in enumerate(sys.argv[1:-1]):
    path = pathlib.Path(name)
    data = path.read_bytes()
    out.append(f'static const unsigned char asset_{number}[] = {{')
    out += ['\t' + ', '.join(str(b) for b in data[i:i + 24]) + ',' for i in range(0, len(data), 24)]
    out.append('};')
    url = '/' if path.name == 'index.html' else '/' + path.name
    table.append(f'\t{{ "{url}", "{TYPES[path.suffix]}", asset_{number}, sizeof asset_{number} }},')
out += ['const struct obx_asset obx_assets[] = {', *table, '\t{ 0, 0, 0, 0 },', '};', '']
pathlib.Path(sys.argv[-1]).write_text('\n'.join(out))
