# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Translates outboard.h into ctypes: constants, structs, opaque handles and prototypes.

    abi.py HEADER > _abi.py

The header is regular: no bit fields, no unions, no nested structs. The program exits with
an error at a declaration that it cannot translate, so that nothing is left out silently.
tests/compute/python/test_abi.py compares the result with the C compiler's view of the header.
"""
import pathlib
import re
import sys

HEAD = '''# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
# Made from outboard.h by abi.py. Do not edit.
import ctypes
from typing import Any

'''
NUMBERS = {
    'int': 'c_int', 'char': 'c_char', 'double': 'c_double', 'size_t': 'c_size_t',
    'uint8_t': 'c_uint8', 'int32_t': 'c_int32', 'uint32_t': 'c_uint32', 'uint64_t': 'c_uint64',
}
VALUES = {'UINT32_MAX': '0xffffffff', 'UINT64_MAX': '0xffffffffffffffff'}
DECLARATOR = re.compile(r'(?P<base>(?:struct )?\w+) (?P<stars>\**)(?P<name>\w+)(?:\[(?P<length>\d+)\])?')
CALLBACK = re.compile(r'(?P<result>\w+) ?\(\*(?P<name>\w+)\)\((?P<arguments>.*)\)')


class HeaderError(Exception):
    """A declaration that this program cannot translate."""


def plain(text: str) -> str:
    """The header without comments, preprocessor lines, const and line breaks."""
    text = re.sub(r'/\*.*?\*/', ' ', text, flags=re.S)
    text = re.sub(r'\\\n', ' ', text)
    text = re.sub(r'^#.*$', '', text, flags=re.M)
    text = re.sub(r'extern "C" \{|^\}\s*$', '', text, flags=re.M)
    return re.sub(r'\s+', ' ', re.sub(r'\bconst\b', ' ', text)).replace('* ', '*')


def constants(text: str) -> dict[str, str]:
    """Names and values of the macros that are numbers."""
    text = re.sub(r'/\*.*?\*/', ' ', text, flags=re.S)
    found = re.findall(r'^#define (OUTBOARD_\w+)[ \t]+(\w+)[ \t]*$', text, flags=re.M)
    return {name: VALUES.get(value, value.removesuffix('u')) for name, value in found}


def enums(text: str) -> dict[str, dict[str, str]]:
    """The values of each enum."""
    return {
        name: dict(re.split(' ?= ?', item.strip()) for item in body.split(',') if item.strip())
        for name, body in re.findall(r'\benum (\w+) \{(.*?)\};', text)
    }


def typed(base: str, stars: str) -> str:
    """The ctypes expression for a C type."""
    if base == 'void':
        kind, stars = 'ctypes.c_void_p', stars[1:]
    elif base == 'char' and stars:
        kind, stars = 'ctypes.c_char_p', stars[1:]
    elif base.startswith('struct '):
        kind = base.removeprefix('struct ')
    elif base in NUMBERS:
        kind = 'ctypes.' + NUMBERS[base]
    else:
        raise HeaderError(f'the type {base} is not known: add it to abi.py')
    for _ in stars:
        kind = f'ctypes.POINTER({kind})'
    return kind


def parts(text: str, separator: str) -> list[str]:
    """Splits at separators outside all parentheses."""
    depth, found = 0, ['']
    for letter in text:
        depth += (letter == '(') - (letter == ')')
        if letter == separator and depth == 0:
            found.append('')
        else:
            found[-1] += letter
    return [item.strip() for item in found if item.strip()]


def declared(text: str) -> tuple[str, str]:
    """The name and ctypes type of a parameter, or of the first name that a field declares."""
    call = CALLBACK.fullmatch(text)
    if call:
        arguments = [declared(item)[1] for item in parts(call['arguments'], ',')]
        return call['name'], 'ctypes.CFUNCTYPE(' + ', '.join(
            ['None' if call['result'] == 'void' else typed(call['result'], ''), *arguments]) + ')'
    one = DECLARATOR.fullmatch(text)
    if not one:
        raise HeaderError(f'abi.py cannot translate "{text}"')
    kind = typed(one['base'], one['stars']) if not (one['base'] == 'void' and not one['stars']) else ''
    return one['name'], f'{kind} * {one["length"]}' if one['length'] else kind


def fields(body: str) -> list[tuple[str, str]]:
    """The fields of a struct."""
    found = []
    for line in parts(body, ';'):
        first, *more = parts(line, ',')
        found.append(declared(first))
        base = re.match(r'(?:struct )?\w+ ', first)
        for other in more:
            assert base
            found.append(declared(base[0] + other))
    return found


def opaque(text: str) -> list[str]:
    """Names of the structs that the header declares but does not define."""
    return re.findall(r'\bstruct (\w+);', text)


def handle_pointers(kind: str, handles: list[str]) -> str:
    """Removes one level of pointers from handles: the class of an opaque struct is its address."""
    for name in handles:
        kind = kind.replace(f'ctypes.POINTER({name})', name)
    return kind


def functions(text: str) -> list[tuple[str, str, list[str]]]:
    """Name, result and types of the arguments of each function."""
    found = []
    for result, stars, name, arguments in re.findall(r'OUTBOARD_API (\w+) (\**)(\w+)\((.*?)\);', separated(text)):
        kinds = [] if arguments == 'void' else [declared(item)[1] for item in parts(arguments, ',')]
        found.append((name, 'None' if result == 'void' and not stars else typed(result, stars), kinds))
    if len(found) != text.count('OUTBOARD_API '):
        raise HeaderError(f'abi.py found {len(found)} of {text.count("OUTBOARD_API ")} functions')
    return found


def separated(text: str) -> str:
    return text.replace('OUTBOARD_API', '\nOUTBOARD_API')


def annotation(kind: str) -> str:
    """The type of a field for type checkers."""
    if kind in ('ctypes.c_double',):
        return 'float'
    if kind == 'ctypes.c_char_p':
        return 'bytes | None'
    if kind.startswith('ctypes.c_char *'):
        return 'bytes'
    return 'int' if re.fullmatch(r'ctypes\.c_u?int\d*', kind) else 'Any'


def translate(header: str) -> str:
    """The source text of _abi.py."""
    text = plain(header)
    handles = opaque(text)
    out = [HEAD]
    out += [f'{name} = {value}\n' for name, value in constants(header).items()]
    for values in enums(text).values():
        out += [f'{name} = {value}\n' for name, value in values.items()]
    out.append('ENUMS: dict[str, tuple[str, ...]] = {\n')
    out += [f'    {name!r}: {tuple(values)!r},\n' for name, values in enums(text).items()]
    out.append('}\n')
    for name in handles:
        out.append(f'\n\nclass {name}(ctypes.c_void_p):\n    """Address of a struct {name}."""\n')
    for name, body in re.findall(r'\bstruct (\w+) \{(.*?)\};', text):
        out.append(f'\n\nclass {name}(ctypes.Structure):\n')
        listed = [(field, handle_pointers(kind, handles)) for field, kind in fields(body)]
        out += [f'    {field}: {annotation(kind)}\n' for field, kind in listed]
        out.append('    _fields_ = [\n')
        out += [f"        ('{field}', {kind}),\n" for field, kind in listed]
        out.append('    ]\n')
    out.append('\n\nFUNCTIONS: dict[str, tuple[Any, list[Any]]] = {\n')
    for name, result, kinds in functions(text):
        listed_kinds = ', '.join(handle_pointers(kind, handles) for kind in kinds)
        out.append(f"    '{name}': ({handle_pointers(result, handles)}, [{listed_kinds}]),\n")
    out.append('}\n')
    return ''.join(out)


if __name__ == '__main__':
    try:
        sys.stdout.write(translate(pathlib.Path(sys.argv[1]).read_text(encoding='utf-8')))
    except HeaderError as error:
        sys.exit(f'{sys.argv[1]}: {error}')
