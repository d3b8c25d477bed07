#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Writes everything that follows from protocol/spec/*.api. Python standard library only; run by meson.

    gen.py --types base/cuda_types.h --format protocol/format.h --out DIR spec/*.api    write every output to DIR
    gen.py ... --only obp_calls.h                                                       write one
    gen.py ... --list                                                                   name the outputs
"""

import argparse
import os
import re
import sys

import emit_calls
import emit_client
import emit_server
import emit_stubs
import spec as spec_module

OUTPUTS = {
    'obp_calls.h': emit_calls.calls_h,
    'obp_calls.c': emit_calls.calls_c,
    'obf_calls.h': emit_stubs.face_h,
    'obc_calls.h': emit_client.calls_h,
    'obc_calls.c': emit_client.calls_c,
    'obc_locals.h': lambda s: emit_stubs.local_h(s, 'obc_'),
    'obc_stubs.c': lambda s: emit_stubs.stubs_c(s, 'obc_'),
    'obc_procs.h': lambda s: emit_stubs.procs_h(s, 'obc_'),
    'obc_procs.c': lambda s: emit_stubs.procs_c(s, 'obc_'),
    'obd_locals.h': lambda s: emit_stubs.local_h(s, 'obd_'),
    'obd_stubs.c': lambda s: emit_stubs.stubs_c(s, 'obd_'),
    'obd_procs.h': lambda s: emit_stubs.procs_h(s, 'obd_'),
    'obd_procs.c': lambda s: emit_stubs.procs_c(s, 'obd_'),
    'exports.map': emit_stubs.exports_map,
    'obs_driver.h': emit_server.driver_h,
    'obs_driver_load.c': emit_server.driver_load_c,
    'obs_layer.c': emit_server.layer_c,
    'obs_null.h': emit_server.null_h,
    'obs_null.c': emit_server.null_c,
    'obs_dispatch.h': emit_server.dispatch_h,
    'obs_dispatch.c': emit_server.dispatch_c,
}

# Maxima that the frame format has and the specification may name.
FORMAT_CONSTS = ('CHUNK_MAX',)


def format_consts(text):
    for name in FORMAT_CONSTS:
        value = re.search(rf'#define OBP_{name} \((\d+)u << (\d+)\)', text)
        if not value:
            sys.exit(f'gen.py: protocol/format.h has no OBP_{name} of the form (1u << 20)')
        yield name, int(value[1]) << int(value[2])


def write_if_changed(path, text):
    """Leaves an equal file alone, so that what depends on it is not built again."""
    try:
        with open(path, encoding='utf-8') as f:
            if f.read() == text:
                return
    except OSError:
        pass
    with open(path, 'w', encoding='utf-8') as f:
        f.write(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--types', required=True, help='base/cuda_types.h')
    parser.add_argument('--format', required=True, help='protocol/format.h')
    parser.add_argument('--out', default='.', help='folder to write to')
    parser.add_argument('--only', action='append', choices=OUTPUTS, metavar='NAME', help='write only this output')
    parser.add_argument('--list', action='store_true', help='name the outputs and stop')
    parser.add_argument('spec', nargs='*')
    options = parser.parse_args()
    if options.list:
        print('\n'.join(OUTPUTS))
        return 0
    with open(options.types, encoding='utf-8') as f:
        types = f.read()
    with open(options.format, encoding='utf-8') as f:
        consts = list(format_consts(f.read()))
    try:
        spec = spec_module.read([(p, os.path.relpath(p)) for p in sorted(options.spec)], types, consts)
    except spec_module.SpecError as error:
        print(error, file=sys.stderr)
        return 1
    for name in options.only or OUTPUTS:
        write_if_changed(os.path.join(options.out, name), OUTPUTS[name](spec))
    return 0


if __name__ == '__main__':
    sys.exit(main())
