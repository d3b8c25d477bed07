#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Generates code, tests and docs from protocol/spec/*.api. Uses only Python's standard library. Run by meson.

    gen.py --types base/cuda_types.h --format protocol/format.h --out DIR spec/*.api    write every output to DIR
    gen.py ... --lock protocol/spec/opcodes.lock                                        also generate checks for calls that older servers lack
    gen.py ... --only obp_calls.h                                                       write one output
    gen.py ... --list                                                                   print the names of the outputs
    gen.py ... --check-lock protocol/spec/opcodes.lock                                  fail if an opcode has changed its meaning
    gen.py ... --update-lock protocol/spec/opcodes.lock                                 append new calls
    gen.py ... --seeds DIR                                                              seeds for fuzzers: valid frames and bodies
"""

import argparse
import os
import re
import sys

sys.dont_write_bytecode = True
import emit_calls  # noqa: E402
import emit_client
import emit_dispatch
import emit_docs
import emit_server
import emit_stubs
import emit_tests
import spec as spec_module

OUTPUTS = {
    'obp_calls.h': emit_calls.calls_h,
    'obp_calls.c': emit_calls.calls_c,
    'obf_calls.h': emit_stubs.front_h,
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
    'obs_devices.c': emit_server.devices_c,
    'obs_null.h': emit_server.null_h,
    'obs_null.c': emit_server.null_c,
    'obs_dispatch.h': emit_dispatch.dispatch_h,
    'obs_dispatch.c': emit_dispatch.dispatch_c,
    'roundtrip.inc': emit_tests.roundtrip_c,
    'check_cuda_prototypes.c': emit_tests.check_cuda_prototypes_c,
    'calls.md': emit_docs.calls_md,
    'frames.txt': emit_docs.frames_txt,
    'calls.dict': emit_docs.dictionary,
    'check_cuda_layout.inc': lambda s: emit_tests.layout_inc(s.types.text),
}

# Maxima of the frame format that the specification may use.
FORMAT_CONSTS = ('CHUNK_MAX',)


def format_consts(text):
    for name in FORMAT_CONSTS:
        value = re.search(rf'#define OBP_{name}\s+\((\d+)u << (\d+)\)', text)
        if not value:
            sys.exit(f'gen.py: protocol/format.h has no OBP_{name} of the form (1u << 20)')
        yield name, int(value[1]) << int(value[2])


def write_if_changed(path, text):
    """Does not touch a file with equal content, so that its dependents are not rebuilt."""
    try:
        with open(path, encoding='utf-8') as f:
            if f.read() == text:
                return
    except OSError:
        pass
    with open(path, 'w', encoding='utf-8') as f:
        f.write(text)


def lock(spec, path, update):
    try:
        with open(path, encoding='utf-8') as f:
            text = f.read()
    except FileNotFoundError:
        text = emit_docs.LOCK_HEAD
    wrong, new = emit_docs.lock_compare(spec, text)
    for line in wrong:
        print(f'{os.path.relpath(path)}: {line}', file=sys.stderr)
    if new and not update:
        print(f'{os.path.relpath(path)}: {len(new)} calls are missing; append them with gen.py --update-lock', file=sys.stderr)
        return 1
    if new and not wrong:
        write_if_changed(path, text + '\n'.join(new) + '\n')
    return 1 if wrong else 0


def coverage(path):
    tested = {}
    if path:
        with open(path, encoding='utf-8') as f:
            for line in f:
                call, _, test = line.strip().partition(' ')
                if test and test not in tested.setdefault(call, []):
                    tested[call].append(test)
    return {call: ', '.join(tests) for call, tests in tested.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--types', required=True, help='base/cuda_types.h')
    parser.add_argument('--format', required=True, help='protocol/format.h')
    parser.add_argument('--out', default='.', help='folder to write to')
    parser.add_argument('--only', action='append', choices=OUTPUTS, metavar='NAME', help='write only this output')
    parser.add_argument('--lock', metavar='FILE', help='opcodes.lock: which calls are newer than servers may be')
    parser.add_argument('--check-lock', metavar='FILE')
    parser.add_argument('--update-lock', metavar='FILE')
    parser.add_argument('--seeds', metavar='DIR')
    parser.add_argument('--coverage', metavar='FILE', help='lines "call test": fills the column tested by of calls.md')
    parser.add_argument('--list', action='store_true', help='print the names of the outputs and stop')
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
    if options.check_lock or options.update_lock:
        return lock(spec, options.check_lock or options.update_lock, bool(options.update_lock))
    if options.lock:
        with open(options.lock, encoding='utf-8') as f:
            emit_docs.lock_number(spec, f.read())
    if options.seeds:
        os.makedirs(options.seeds, exist_ok=True)
        for name, data in emit_docs.seed_files(spec).items():
            with open(os.path.join(options.seeds, name), 'wb') as f:
                f.write(data)
        return 0
    os.makedirs(options.out, exist_ok=True)
    for name in options.only or OUTPUTS:
        text = emit_docs.calls_md(spec, coverage(options.coverage)) if name == 'calls.md' else OUTPUTS[name](spec)
        write_if_changed(os.path.join(options.out, name), text)
    return 0


if __name__ == '__main__':
    sys.exit(main())
