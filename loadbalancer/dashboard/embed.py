# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Files of the dashboard -> a C table (struct obl_asset of reply.h).

    embed.py FILE... OUTPUT
"""
import hashlib
import pathlib
import sys

TYPES = {'.html': 'text/html; charset=utf-8', '.css': 'text/css; charset=utf-8', '.js': 'text/javascript; charset=utf-8'}

out = ['/* Made by loadbalancer/dashboard/embed.py. */', '#include "loadbalancer/dashboard/reply.h"', '']
table = []
for number, name in enumerate(sys.argv[1:-1]):
    path = pathlib.Path(name)
    data = path.read_bytes()
    out.append(f'static const unsigned char asset_{number}[] = {{')
    out += ['\t' + ', '.join(str(b) for b in data[i:i + 24]) + ',' for i in range(0, len(data), 24)]
    out.append('};')
    url = '/' if path.name == 'index.html' else '/' + path.name
    tag = hashlib.sha256(data).hexdigest()[:16]
    table.append(f'\t{{ "{url}", "{TYPES[path.suffix]}", "\\"{tag}\\"", asset_{number}, sizeof asset_{number} }},')
out += ['const struct obl_asset obl_assets[] = {', *table, '\t{ 0, 0, 0, 0, 0 },', '};', '']
pathlib.Path(sys.argv[-1]).write_text('\n'.join(out))
