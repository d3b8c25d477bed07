# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Compares the binding with outboard.h as the C compiler reads it: values, struct layouts and
prototypes. Also checks that the package calls every function."""
import ctypes
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from outboard_compute import _abi

SOURCE, CC = pathlib.Path(os.environ['OUTBOARD_SOURCE']), os.environ['OUTBOARD_CC']
HEADER = SOURCE / 'compute/engine/outboard.h'
# const is not part of a ctypes type, so the header is read without it.
PREAMBLE = f'''#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#define const
#include "{HEADER}"
'''
# Functions that the package does not call, and what it uses instead.
REPLACED = {
    'outboard_msm_once': 'Bases and a product, which can be cancelled',
    'outboard_ntt_once': 'Plan and a transform, which can be cancelled',
    'outboard_status_name': 'Status.name',
    'outboard_ticket_fd': 'a call in a thread of the program',
}
SCALARS = {ctypes.c_int: 'int', ctypes.c_char: 'char', ctypes.c_double: 'double', ctypes.c_uint8: 'uint8_t',
           ctypes.c_uint32: 'uint32_t', ctypes.c_uint64: 'uint64_t', ctypes.c_void_p: 'void *',
           ctypes.c_char_p: 'char *', None: 'void'}
HANDLES = [kind for kind in vars(_abi).values() if isinstance(kind, type) and issubclass(kind, ctypes.c_void_p)
           and kind is not ctypes.c_void_p]
STRUCTS = [kind for kind in vars(_abi).values() if isinstance(kind, type) and issubclass(kind, ctypes.Structure)
           and kind is not ctypes.Structure]


def c_type(kind, name=''):
    """A declaration of `name` with the type that ctypes passes."""
    if kind in HANDLES:
        return f'struct {kind.__name__} *{name}'
    if kind in STRUCTS:
        return f'struct {kind.__name__} {name}'
    if kind in SCALARS:
        return f'{SCALARS[kind]} {name}'
    if hasattr(kind, '_length_'):
        return c_type(kind._type_, f'{name}[{kind._length_}]')
    if hasattr(kind, '_restype_'):
        return c_type(kind._restype_, f'(*{name})({arguments(kind._argtypes_)})')
    return c_type(kind._type_, f'*{name}')


def arguments(kinds):
    return ', '.join(c_type(kind) for kind in kinds) or 'void'


def compiled(text, *options):
    """Compiles a program. Returns the exit code, and what the program prints; with compiler options
    the program is not run, and the compiler's messages are returned."""
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / 'program'
        done = subprocess.run([*CC.split(), '-std=gnu11', '-Werror', '-Wall', '-xc', '-', '-o', program, *options],
                              input=PREAMBLE + text, text=True, capture_output=True, check=False)
        if done.returncode or options:
            return done.returncode, done.stderr
        return 0, subprocess.run([program], text=True, capture_output=True, check=True).stdout


class Header(unittest.TestCase):
    def prints(self, lines):
        """The numbers that a C program prints for the given expressions."""
        calls = ''.join(f'\tprintf("%llu\\n", (unsigned long long)({line}));\n' for line in lines)
        code, said = compiled('int main(void)\n{\n' + calls + '\treturn 0;\n}\n')
        self.assertEqual(code, 0, said)
        return [int(line) for line in said.split()]

    def test_values(self):
        names = [name for name, value in vars(_abi).items() if name.startswith('OUTBOARD_') and isinstance(value, int)]
        self.assertGreater(len(names), 50)
        self.assertEqual(dict(zip(names, self.prints(names))), {name: getattr(_abi, name) for name in names})
        text = re.sub(r'/\*.*?\*/', '', HEADER.read_text(encoding='utf-8'), flags=re.S)
        named = set(re.findall(r'\bOUTBOARD_[A-Z_0-9]+\b', text))
        self.assertEqual(named - set(names), {'OUTBOARD_API', 'OUTBOARD_H', 'OUTBOARD_ON'})

    def test_layouts(self):
        wanted, lines = [], []
        for kind in STRUCTS:
            lines.append(f'sizeof(struct {kind.__name__})')
            wanted.append(ctypes.sizeof(kind))
            for name, *_ in kind._fields_:
                lines += [f'offsetof(struct {kind.__name__}, {name})', f'sizeof(((struct {kind.__name__} *)0)->{name})']
                wanted += [getattr(kind, name).offset, getattr(kind, name).size]
        self.assertGreater(len(STRUCTS), 10)
        self.assertEqual(list(zip(lines, self.prints(lines))), list(zip(lines, wanted)))
        # A missing field would change an offset or the size above. This finds missing structs.
        defined = re.findall(r'\bstruct (\w+) \{', re.sub(r'/\*.*?\*/', '', HEADER.read_text(encoding='utf-8'), flags=re.S))
        self.assertEqual({kind.__name__ for kind in STRUCTS}, set(defined))

    def declarations(self):
        """C code that is valid only if fields and functions have the types of the binding."""
        yield from (f'extern {c_type(result, f"{name}({arguments(kinds)})")};'
                    for name, (result, kinds) in _abi.FUNCTIONS.items())
        for kind in STRUCTS:
            for name, field in kind._fields_:
                yield (f'extern {c_type(field, f"{kind.__name__}_{name}")};\n'
                       f'_Static_assert(__builtin_types_compatible_p(__typeof__({kind.__name__}_{name}), '
                       f'__typeof__(((struct {kind.__name__} *)0)->{name})), "{kind.__name__}.{name}");')

    def test_types_of_functions_and_fields(self):
        code, said = compiled('\n'.join(self.declarations()), '-fsyntax-only')
        self.assertEqual(code, 0, said)
        declared = set(re.findall(r'\b(outboard_\w+)\(', re.sub(r'/\*.*?\*/', '', HEADER.read_text(encoding='utf-8'), flags=re.S)))
        self.assertEqual(set(_abi.FUNCTIONS), declared)

    def test_a_wrong_type_is_noticed(self):
        good = list(self.declarations())
        changes = (('uint64_t', 'uint32_t'), ('struct outboard_call *', 'struct outboard_call **'), ('double', 'float'),
                   ('char *', 'uint8_t *'))
        for old, new in changes:
            wrong = [line.replace(old, new, 1) for line in good if old in line]
            self.assertTrue(wrong)
            for line in wrong[:10]:
                with self.subTest(line=line):
                    self.assertNotEqual(compiled(line, '-fsyntax-only')[0], 0)

    def test_the_package_calls_every_function(self):
        package = pathlib.Path(_abi.__file__).parent
        text = ''.join(path.read_text(encoding='utf-8') for path in package.glob('*.py') if path.name != '_abi.py')
        self.assertEqual(set(_abi.FUNCTIONS) - set(re.findall(r'\blib\.(outboard_\w+)', text)), set(REPLACED))

    def test_a_header_that_cannot_be_translated_is_refused(self):
        translator = SOURCE / 'compute/python/abi.py'
        for line in ('OUTBOARD_API int outboard_foo(unsigned long x);', 'OUTBOARD_API int outboard_foo(struct outboard x[2][2]);',
                     'OUTBOARD_API struct outboard *outboard_foo(void);'):
            with self.subTest(line=line), tempfile.NamedTemporaryFile('w', suffix='.h') as file:
                file.write(line + '\n')
                file.flush()
                done = subprocess.run([sys.executable, translator, file.name], capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stderr, 'abi.py')


if __name__ == '__main__':
    unittest.main()
