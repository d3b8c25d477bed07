#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Tests the generator: its output for a small specification, its messages for bad ones, and the
opcode lock.

    test_generator.py ROOT golden [--update] | messages | lock
"""

import contextlib
import difflib
import io
import os
import sys
import tempfile

ROOT = os.path.abspath(sys.argv[1])
HERE = os.path.join(ROOT, 'tests', 'gen')
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, 'protocol', 'gen'))
import gen  # noqa: E402

GEN = ['gen.py', '--types', os.path.join(ROOT, 'base', 'cuda_types.h'),
       '--format', os.path.join(ROOT, 'protocol', 'format.h')]
GOLDEN = ['obp_calls.h', 'obp_calls.c', 'obc_calls.h', 'obc_calls.c', 'obc_stubs.c', 'obd_stubs.c', 'obc_procs.c', 'obd_locals.h', 'obf_calls.h',
          'obs_dispatch.h', 'obs_dispatch.c', 'obs_driver.h', 'obs_devices.c', 'obs_null.c', 'exports.map', 'calls.md', 'frames.txt']

# (text that follows "group g 0x01;" from line 2 on, line of the message, the message)
BAD = [
    ('0x01 op async a(u64 v);\n0x01 op async b(u64 v);', 3, 'opcode 0x0101 of b belongs to a'),
    ('0x01 op async a(u64 v);\n0x02 op async a(u64 v);', 3, 'a was already given in bad.api:2'),
    ('0x00 op async a(u64 v);', 2, 'opcode byte 0x00 is out of range: 0x01 to 0xff'),
    ('0x100 op async a(u64 v);', 2, 'opcode byte 0x100 is out of range: 0x01 to 0xff'),
    ('group h 0x01;', 2, 'group 0x01 of h belongs to g'),
    ('group h 0x20;', 2, 'a group number 0x20 is out of range: 1 to 31'),
    ('0x01 op async a(u7 v);', 2, "a: 'u7' is no wire type: u8, u16, u32, u64, i32, i64, f32, f64, bytes, cstr"),
    ('0x01 op async a(u64 v, u32 v);', 2, "a has two parameters named 'v'"),
    ('0x01 op async a(u64 v, out u64 y);', 2, 'a is async and has no reply: it cannot have an out parameter'),
    ('0x01 op slow a(u64 v);', 2, "an operation is sync, async, bulk, not 'slow'"),
    ('0x01 op async a(bytes v);', 2, "a: 'v' needs a size in brackets"),
    ('0x01 op async a(u32 n, bytes v[n]);', 2, "a: 'v[n]' needs a maximum: [n <= SOME_MAX]"),
    ('0x01 op async a(u32 n, bytes v[n <= M]);', 2, "the maximum 'M' is unknown: declare it with const"),
    ('const M 8;\n0x01 op async a(u32 n, bytes v[m <= M]);', 3, "a: the size of 'v' names 'm', which is no number of this call"),
    ('const M 8;\n0x01 op async a(u32 n, bytes v[n / 2 <= M]);', 3, "'n / 2' is not a size: names and numbers joined by + - *"),
    ('const M 8;\n0x01 op async a(u32 n, bytes v[n + <= M]);', 3, "'n +' is not a size: names and numbers joined by + - *"),
    ('const M 8;\n0x01 op bulk a(u32 n, bytes v[n <= M]);', 3,
     'a is bulk: its first two numbers must be u64, the place and the size of the data, which the log moves on from chunk to chunk'),
    ('0x01 op bulk a(u64 v);', 2, 'a is bulk: exactly one parameter must be bytes of variable length'),
    ('0x01 op async a(u8 v[300]);', 2, 'a: v has 300 elements; 2 to 256 are possible'),
    ('0x01 op async A(u64 v);', 2, "'A': names of operations are in small letters"),
    ('0x01 op async a(u64 v) often;', 2, "the word 'often' is not known here"),
    ('0x01 op async a(u64 v)', 2, 'the file ends in the middle of a declaration'),
    ('const M 8;\nconst M 9;', 3, 'the constant M was already given'),
    ('const M nine;', 2, "a value was expected instead of 'nine'"),
    ('\n\nlocal 2000 cuFoo(CUnothing v);', 4, "cuFoo: base/cuda_types.h has no type 'CUnothing': add it there, as in cuda.h"),
    ('local 2000 cuFoo(int);', 2, 'cuFoo: a parameter needs a type and a name'),
    ('local 2000 foo(int v);', 2, "'foo' is no name of a driver call: those begin with cu and a capital"),
    ('local 2000 cuFoo_ptsz(int v);', 2, "'cuFoo_ptsz': twins are not written out, put ptsz or ptds behind the call"),
    ('local cuFoo(int v);', 2, "the CUDA version was expected instead of 'cuFoo'"),
    ('local 2000 cuFoo(int v) ptsz;', 2, 'cuFoo has a ptsz twin but no stream'),
    ('local 2000 cuFoo(CUstream s) ptds;', 2, 'cuFoo takes a stream: its twin is ptsz'),
    ('sync 2000 cuFoo(int v);', 2, 'a call of class sync goes over the wire and needs an opcode in front'),
    ('0x01 local 2000 cuFoo(int v);', 2, "a call of class 'local' does not go over the wire: remove the opcode"),
    ('0x01 sync 2000 cuFoo(void *v);', 2, "cuFoo: 'void *v' cannot go over the wire: mark it addr, in, out or inout,"
                                          ' give it a size, or make the call local'),
    ('0x01 sync 2000 cuFoo(CUevent e);', 2, 'cuFoo: the handle CUevent has no kind: declare it with handle'),
    ('0x01 sync 2000 cuFoo(out CUtensorMap *m);', 2, 'cuFoo: the struct CUtensorMap has no wire form: declare it with struct'),
    ('handle CUthing thing;', 2, 'base/cuda_types.h has no handle CUthing: add it there, as in cuda.h'),
    ('struct CUthing 8;', 2, 'base/cuda_types.h has no struct CUthing: add it there, as in cuda.h'),
    ('alias 2000 cuFoo = cuBar;', 2, 'cuFoo is an alias of cuBar, which is no call'),
    ('absent cuFoo;', 2, 'an absent block begins with its reason in quotes'),
    ('front 2000 cuFoo(int v);\nabsent "why not" {\n\t2000 cuFoo;\n}', 4, 'cuFoo was already given in bad.api:2'),
    ('local 2000 cuFoo(CUstream s) ptsz;\nlocal 2000 cuFo(int v) often;', 3, "the word 'often' is not known here"),
    ('0x01 op async a(u64 rec);', 2, "a: generated code uses the name 'rec' itself: choose another"),
    ('0x01 sync 2000 cuFoo(int ctx);', 2, "cuFoo: generated code uses the name 'ctx' itself: choose another"),
    ('0x01 cached 2000 cuFoo(out int *w);', 2, 'cuFoo is cached: it must take numbers, and give back numbers or one array'),
    ('const M 8;\n0x01 cached 2000 cuFoo(int n, out int v[n <= M], out int *w);', 3,
     'cuFoo is cached: it must take numbers, and give back numbers or one array'),
    ('0x01 cached 2000 cuFoo(int n, opt out int *w);', 2, 'cuFoo is cached: its pointers cannot be NULL'),
    ('0x01 cached 2000 cuFoo(int n, out CUdevice *w);', 2, 'cuFoo is cached: it cannot make, end or give back handles or devices'),
    ('const M 100;\n0x01 cached 2000 cuFoo(int n, out int v[n <= M]);', 3,
     'cuFoo is cached: its answers may have 400 bytes, 128 are possible: lower the maxima, or make it sync'),
    ('const M 100000;\n0x01 sync 2000 cuFoo(int n, in const int v[n <= M]);', 3,
     'cuFoo: its arrays may have 400000 bytes together, 65536 are possible: lower the maxima, or use a bulk operation'),
    # structs
    ('struct CUmemLocation { int nothing', 2, 'the file ends in the middle of a declaration'),
    ('struct CUmemLocation { }', 2, 'CUmemLocation: a struct without members does not travel'),
    ('struct CUmemLocation {\n\tid;\n}', 3, 'CUmemLocation: a member needs a type and a name, an addr also a *'),
    ('struct CUmemLocation {\n\taddr void id;\n}', 3, 'CUmemLocation: a member needs a type and a name, an addr also a *'),
    ('struct CUmemLocation {\n\tCUnothing id;\n}', 3, "CUmemLocation: base/cuda_types.h has no type 'CUnothing': add it there, as in cuda.h"),
    ('struct CUmemLocation {\n\tint id;\n\tint id;\n}', 4, "CUmemLocation has two members named 'id'"),
    ('struct CUmemLocation {\n\tdevice size_t id;\n}', 3, "CUmemLocation: 'id' is marked device but is no int"),
    ('struct CUmemLocation {\n\tdevice int id when type == CU_MEM_LOCATION_TYPE_DEVICE;\n}', 3,
     "CUmemLocation: 'when' names a member above it, and stands behind a device"),
    ('struct CUmemLocation {\n\tint id[1];\n}', 3, 'a number of elements 1 is out of range: 2 to 256'),
    ('struct CUmemLocation 8;\nstruct CUmemLocation 8;', 3, 'the struct CUmemLocation was already given'),
    ('struct CUmemAccessDesc {\n\tCUmemLocation location;\n}', 3,
     'CUmemAccessDesc: the struct CUmemLocation has no wire form: declare it with struct'),
    ('struct CUlaunchConfig {\n\tCUstream hStream;\n}', 3, 'CUlaunchConfig: the handle CUstream has no kind: declare it with handle'),
    ('struct CUmemLocation {\n\tCUmemLocation id;\n}', 3, 'CUmemLocation: the struct CUmemLocation contains itself'),
    ('0x01 sync 2000 cuFoo(CUmemLocation v);', 2, 'cuFoo: the struct CUmemLocation has no wire form: declare it with struct'),
    ('const M 8;\nstruct CUtensorMap 128;\n0x01 sync 2000 cuFoo(int n, in const CUtensorMap v[n <= M]);', 4,
     'cuFoo: an array of CUtensorMap cannot go over the wire'),
    ('const M 8;\nstruct CUgraphEdgeData { unsigned char reserved[5]; }\n0x01 sync 2000 cuFoo(int n, in const CUgraphEdgeData v[n - 1 <= M]);', 4,
     "cuFoo: 'v': an array inside a struct makes 'n - 1' unclear: give the number of elements as one name or a product"),
    # arrays, strings, pointers that may be NULL
    ('const M 8;\n0x01 sync 2000 cuFoo(int n, in const void v[n]);', 3, "cuFoo: 'v[n]' needs a maximum: [n <= SOME_MAX]"),
    ('const M 8;\n0x01 sync 2000 cuFoo(int n, inout int v[n <= M]);', 3, 'cuFoo: an array of int cannot go over the wire'),
    ('const M 8;\n0x01 sync 2000 cuFoo(opt in const int *n, in const int v[n <= M]);', 3,
     "cuFoo: the size of 'v' names 'n', which may be NULL or has another value on the server"),
    ('const M 8;\n0x01 sync 2000 cuFoo(int n, out int v[*n <= M]);', 3,
     "cuFoo: 'v[*n]' is an out array, and n an inout pointer to the number of its elements"),
    ('const M 8;\n0x01 sync 2000 cuFoo(inout int *n, in const int v[*n <= M]);', 3,
     "cuFoo: 'v[*n]' is an out array, and n an inout pointer to the number of its elements"),
    ('0x01 sync 2000 cuFoo(opt int n);', 2, "cuFoo: 'n' is marked opt but is no pointer"),
    ('0x01 sync 2000 cuFoo(cstr const char *s);', 2, "cuFoo: 's' is a cstr and needs its maximum in brackets"),
    ('0x01 sync 2000 cuFoo(cstr const char s[M]);', 2, "the maximum 'M' is unknown: declare it with const"),
    ('const M 8;\n0x01 sync 2000 cuFoo(cstr const int s[M]);', 3, "cuFoo: 's': a cstr is a const char that the call reads"),
    ('0x01 sync 2000 cuFoo(device float d);', 2, "cuFoo: 'd' is marked device but is no int"),
    ('0x01 sync 2000 cuFoo(int given);', 2, "cuFoo: generated code uses the name 'given' itself: choose another"),
    ('local 2000 cuFoo(int n) wrapped;', 2, "the word 'wrapped' is not known here"),
    ('local 2000 cuFoo(int n) front;', 2, "the word 'front' is not known here"),
    ('0x01 sync 2000 cuFoo(int n) wrapped front;', 2, "'front': cuFoo already has a hand-written function"),
    # handles
    ('handle CUstream stream else CUDA_ERROR_NOTHING;', 2, 'base/cuda_types.h has no error CUDA_ERROR_NOTHING'),
    ('handle CUstream stream;\n0x01 sync 2000 cuFoo(out CUstream *s);', 3,
     "cuFoo: 's': a handle cannot come back: mark it new, or make the call local"),
    ('const M 8;\nhandle CUstream stream;\n0x01 sync 2000 cuFoo(int n, out CUstream s[n <= M]);', 4,
     "cuFoo: 's': handles cannot come back in an array: make the call local"),
    ('handle CUgraph graph;\n0x01 sync 2000 cuFoo(new CUgraph *g);', 3,
     "cuFoo: 'new' is for handles that belong to no context: mark the call noctx"),
    ('handle CUgraph graph;\n0x01 sync 2000 cuFoo(new CUgraph g) noctx;', 3, "cuFoo: 'new' stands before a pointer to one handle"),
    ('handle CUgraph graph;\n0x01 sync 2000 cuFoo(drop int g) noctx;', 3, "cuFoo: 'drop' stands before one handle"),
    ('handle CUgraph graph;\n0x01 sync 2000 cuFoo(new CUgraph *g, drop CUgraph h) noctx;', 3,
     'cuFoo: a call makes or ends one handle, not 2'),
    ('nonsense;', 2, "'nonsense' begins no declaration: group, const, handle, struct, absent, alias, an opcode or one of"
                     ' front, local, server'),
]


def run(arguments, cwd):
    """Returns (status, stderr) of gen.py. Runs it in this process, because a new interpreter for
    each case takes long."""
    before, sys.argv = os.getcwd(), GEN + arguments
    os.chdir(cwd)
    try:
        with contextlib.redirect_stderr(io.StringIO()) as stderr, contextlib.redirect_stdout(io.StringIO()):
            try:
                status = gen.main()
            except SystemExit as stop:
                status = stop.code
        return status, stderr.getvalue()
    finally:
        os.chdir(before)


def test_golden(update):
    golden = os.path.join(HERE, 'golden')
    failed = 0
    with tempfile.TemporaryDirectory() as out:
        only = [word for name in GOLDEN for word in ('--only', name)]
        status, stderr = run(only + ['--lock', os.path.join(HERE, 'small.lock'), '--out', out, os.path.join(HERE, 'small.api')], ROOT)
        if status:
            sys.exit(stderr)
        for name in GOLDEN:
            with open(os.path.join(out, name), encoding='utf-8') as f:
                got = f.read()
            path = os.path.join(golden, name + '.golden')
            if update:
                os.makedirs(golden, exist_ok=True)
                with open(path, 'w', encoding='utf-8') as f:
                    f.write(got)
                continue
            with open(path, encoding='utf-8') as f:
                want = f.read()
            if got != want:
                failed += 1
                sys.stdout.writelines(difflib.unified_diff(want.splitlines(True), got.splitlines(True), path, name))
    if failed:
        print(f'{failed} outputs differ. If that is what you meant: tests/gen/test_generator.py . golden --update')
    return failed


def test_messages():
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for text, line, message in BAD:
            with open(os.path.join(folder, 'bad.api'), 'w', encoding='utf-8') as f:
                f.write('group g 0x01;\n' + text + '\n')
            status, stderr = run(['--only', 'obp_calls.h', '--out', folder, 'bad.api'], folder)
            want = f'bad.api:{line}: {message}\n'
            if status != 1 or stderr != want:
                failed += 1
                print(f'for   {text!r}\nwant  {want}got   {stderr}')
    print(f'{len(BAD)} bad specifications, {failed} failures')
    return failed


def test_lock():
    specs = sorted(os.path.join(ROOT, 'protocol', 'spec', f) for f in os.listdir(os.path.join(ROOT, 'protocol', 'spec'))
                   if f.endswith('.api'))
    lock = os.path.join(ROOT, 'protocol', 'spec', 'opcodes.lock')
    failed = 0

    def expect(name, arguments, code, words=''):
        nonlocal failed
        status, stderr = run(arguments, ROOT)
        if status != code or words not in stderr:
            failed += 1
            print(f'{name}: status {status}\n{stderr}')

    expect('the lock of this tree', ['--check-lock', lock] + specs, 0)
    with open(lock, encoding='utf-8') as f:
        text = f.read()
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, 'opcodes.lock')

        def with_lock(changed):
            with open(copy, 'w', encoding='utf-8') as f:
                f.write(changed)
            return ['--check-lock', copy] + specs

        expect('a changed field', with_lock(text.replace('mem_alloc (addr:u64@0', 'mem_alloc (address:u64@0')), 1, 'changed its meaning')
        expect('a changed class', with_lock(text.replace('0x0601 async', '0x0601 sync')), 1, 'changed its meaning')
        expect('a call whose reply the client keeps', with_lock(text.replace('0x0a01 sync', '0x0a01 cached')), 0)
        expect('a call that is gone', with_lock(text + '0x01ff async gone () -> ()\n'), 1, 'is gone from the specification')
        expect('a retired call', with_lock(text + '0x01ff async retired gone () -> ()\n'), 0)
        expect('a retired call that came back', with_lock(text.replace('0x0102 sync ping', '0x0102 sync retired ping')), 1,
               'must not come back')
        missing = ''.join(line for line in text.splitlines(True) if not line.startswith('0x0102'))
        expect('a new call', with_lock(missing), 1, '1 calls are missing')
        expect('appending it', ['--update-lock', copy] + specs, 0)
        expect('after appending', ['--check-lock', copy] + specs, 0)
    return failed


if __name__ == '__main__':
    tests = {'golden': lambda: test_golden('--update' in sys.argv), 'messages': test_messages, 'lock': test_lock}
    sys.exit(1 if tests[sys.argv[2]]() else 0)
