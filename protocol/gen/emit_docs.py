# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""docs/calls.md, opcodes.lock, and one valid frame of every wire call (fuzz seeds, stored
frames)."""

import re
import struct

from emit_stubs import base_name

# As in protocol/format.h. With other values the frame decoder would reject the seeds.
MAGIC, VERSION, FRAME_CALLS = 0x4452424f, 1, 1


# ---- docs/calls.md ----

def parameters(call):
    if call.op:
        def show(p):
            size = f'[{p.array}]' if p.array is not None else ''
            return ('out ' if p.way == 'out' else '') + f'{p.base} {p.name}{size}' + (f' <= {p.bound}' if p.bound else '')
        return ', '.join(show(p) for p in call.params)
    return ', '.join(p.decl() for p in call.params)


def calls_md(spec, coverage=None):
    tested = coverage or {}
    out = ['# Calls', '', 'Generated from `protocol/spec`; see `protocol/spec/README.md` for the classes.', '']
    calls = spec.calls
    count = lambda klass: sum(1 for c in calls if c.klass == klass)
    exported = sum(len(c.exports()) for c in spec.exported())
    out += [f'{exported} names are exported. {len(calls) - count("server")} calls are answered ('
            + ', '.join(f'{count(k)} {k}' for k in ('front', 'local', 'sync', 'async', 'cached') if count(k))
            + f'), {count("server")} serve the server alone, {len(spec.aliases)} are older names of the same call,'
            f' {len(spec.absent)} are absent.', '']
    if spec.absent:
        implemented = len(calls) - count('server') + len(spec.aliases)
        reasons = {}
        for c in spec.absent:
            reasons.setdefault(c.reason, []).append(c)
        out += [f'{implemented} of {implemented + len(spec.absent)} CUDA calls are implemented. The others are absent by reason:', '',
                '| calls | reason |', '|---|---|']
        out += [f'| {len(c)} | {reason} |' for reason, c in sorted(reasons.items(), key=lambda item: (-len(item[1]), item[0]))]
        out += ['']
    written = sum(1 for c in calls if c.on_wire and (c.wrapped or c.in_front))
    out += [f'{len(spec.one_line())} calls are one line end to end: their way over the wire, from the program\'s call to the driver\'s, is'
            ' generated from that line and nothing else is written for it.'
            + (f' For {written} more the wire form is generated too, and a hand-written function of the client (`wrapped`) or of the'
               ' front end (`front`) calls it.' if written else ''), '']
    out += ['## Operations of the wire', '', '| opcode | class | operation | meaning | tested by |', '|---|---|---|---|---|']
    for c in spec.wire_calls():
        words = ' '.join([c.klass] + sorted(c.words))
        out.append(f'| 0x{c.opcode:04x} | {words} | `{c.name}({parameters(c)})` | {c.doc} | {tested.get(c.name, "")} |')
    out += ['', '## CUDA calls', '', '| call | class | since | twin | tested by |', '|---|---|---|---|---|']
    for c in sorted(calls, key=lambda c: c.name):
        out.append(f'| `{c.name}` | {" ".join([c.klass] + sorted(c.words & {"wrapped", "front"}))} | {c.since} | {c.twin or ""} | {tested.get(c.name, "")} |')
    for c in sorted(spec.aliases, key=lambda c: c.name):
        out.append(f'| `{c.name}` | as `{c.target}` | {c.since} | {c.twin or ""} | |')
    out += ['', '## Absent calls', '', 'They return `CUDA_ERROR_NOT_SUPPORTED`; the reason is logged once.', '',
            '| call | since | reason |', '|---|---|---|']
    out += [f'| `{c.name}` | {c.since} | {c.reason} |' for c in sorted(spec.absent, key=lambda c: c.name)]
    return '\n'.join(out) + '\n'


# ---- opcodes.lock ----

def body_lock(body):
    parts = [f'{f.name}:{f.wire}' + (f'[{f.count}]' if f.count > 1 else '') + f'@{f.offset}' for f in body.fields]
    parts += [f'{v.name}:{"cstr" if v.cstr else v.wire}[{v.expr.text} <= {v.bound}]' for v in body.vars]
    return f'({" ".join(parts)})'


def lock_lines(spec):
    return {c.opcode: f'0x{c.opcode:04x} {c.klass} {c.name} {body_lock(c.req)} -> {body_lock(c.rep)}' for c in spec.wire_calls()}


LOCK_HEAD = '''# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
# The meaning of each opcode of protocol version 1. A line is never changed or removed: if a call is
# dropped, its line gets the word "retired" after the opcode's class. To append new calls:
# gen.py --update-lock protocol/spec/opcodes.lock
# A server's welcome contains the number of lines that it implements. The first servers do not send
# this number. They implement so many:
# first 62
'''


def on_wire(line):
    """What both sides must agree on: `cached` is `sync` that the client does not repeat."""
    opcode, klass, rest = line.split(' ', 2)
    return opcode, 'sync' if klass == 'cached' else klass, rest


def lock_compare(spec, text):
    """Returns ([errors], [lines to append])."""
    locked, wrong = {}, []
    for number, line in enumerate(text.split('\n'), 1):
        if not line or line.startswith('#'):
            continue
        opcode = int(line.split()[0], 16)
        if opcode in locked:
            wrong.append(f'line {number}: opcode 0x{opcode:04x} stands here twice')
        locked[opcode] = (number, line)
    now = lock_lines(spec)
    for opcode, (number, line) in locked.items():
        retired = line.split()[2] == 'retired'
        if retired and opcode in now:
            wrong.append(f'line {number}: opcode 0x{opcode:04x} is retired and must not come back')
        elif not retired and opcode not in now:
            wrong.append(f'line {number}: opcode 0x{opcode:04x} is gone from the specification: retire it instead')
        elif not retired and on_wire(now[opcode]) != on_wire(line):
            wrong.append(f'line {number}: opcode 0x{opcode:04x} changed its meaning: give the new form a new opcode\n'
                         f'  was {line}\n  is  {now[opcode]}')
    return wrong, [line for opcode, line in now.items() if opcode not in locked]


def lock_number(spec, text):
    """Sets each call's line number in the lock, and the number of lines that every server knows."""
    lines = [int(line.split()[0], 16) for line in text.split('\n') if line.startswith('0x')]
    numbers = {opcode: i for i, opcode in enumerate(lines, 1)}
    new = [opcode for opcode in sorted(spec.by_opcode) if opcode not in numbers]
    numbers.update({opcode: len(lines) + i for i, opcode in enumerate(new, 1)})
    for opcode, call in spec.by_opcode.items():
        call.line = numbers[opcode]
    first = re.search(r'^# first (\d+)$', text, re.M)
    spec.lines, spec.first_lines = len(numbers), int(first[1]) if first else len(numbers)


# ---- frames ----

PACK = {'u8': 'B', 'u16': 'H', 'u32': 'I', 'u64': 'Q', 'i32': 'i', 'i64': 'q', 'f32': 'f', 'f64': 'd'}


def evaluate(expr, values):
    return eval(expr.text, {'__builtins__': {}}, values)  # pylint: disable=eval-used  (names, numbers, + - * only)


def sample_body(spec, call):
    """Returns a body with small numbers that satisfies every bound."""
    sizes = {n for v in call.req.vars + call.rep.vars for n in v.expr.names}
    values = {}
    for i, f in enumerate(call.req.fields):
        values[f.name] = (3 if f.name in sizes else 0x10 + i) if not f.is_array else None
        if f.bound:
            values[f.name] = min(values[f.name], spec.consts[f.bound][0])
        if f.limit is not None:
            values[f.name] = f.limit
        if f.source.kind == 'cstr':
            values[f.name] = 7
    body = b''
    for f in call.req.fields:
        if values[f.name] is None:
            body += struct.pack(f'<{f.count}{PACK[f.wire]}', *range(1, f.count + 1))
        else:
            body += struct.pack('<' + PACK[f.wire], values[f.name])
    body += bytes(call.req.pad)
    for v in call.req.vars:
        data = b'kernel\0' if v.cstr else bytes(range(evaluate(v.expr, values) * v.times * v.width))
        body += data + bytes(-len(data) % 8)
    return body


def sample_frame(spec, call):
    body = sample_body(spec, call)
    record = struct.pack('<IHH', 8 + len(body), call.opcode, 0) + body
    return struct.pack('<IBBHIIQQQII', MAGIC, VERSION, FRAME_CALLS, 0, len(record), 1, 1, 0, 0, len(record), 0) + record


def seed_files(spec):
    """Returns {file name: bytes}: <call>.frame in the form of the wire, <call>.call in the form of
    tests/fuzz/fuzz_frame.c."""
    files = {}
    for call in spec.wire_calls():
        files[call.name + '.frame'] = sample_frame(spec, call)
        files[call.name + '.call'] = struct.pack('<H', call.opcode) + sample_body(spec, call)
    return files


def frames_txt(spec):
    """One line per call: name, frame in hexadecimal."""
    return ''.join(f'{c.name} {sample_frame(spec, c).hex()}\n' for c in spec.wire_calls())


def dictionary(spec):
    """Dictionary for libFuzzer and AFL: values that random bytes are unlikely to have."""
    def quoted(data):
        return '"' + ''.join(f'\\x{b:02x}' for b in data) + '"'
    out = ['# Opcodes, frame magic and names for fuzzers.', f'magic={quoted(struct.pack("<I", MAGIC))}']
    out += [f'{c.name}={quoted(struct.pack("<H", c.opcode))}' for c in spec.wire_calls()]
    out += [f'base_{i}={quoted(n.encode())}' for i, n in enumerate(sorted({base_name(c.name) for c in spec.exported()})[:64])]
    return '\n'.join(out) + '\n'
