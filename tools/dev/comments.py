#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Finds comments that belong to no declaration or to another one.

1. Two comments in a row: the first belongs to a declaration that was moved away. A heading is written
   as "---- name ----" in a comment of its own, and may be followed by one paragraph.
2. In a header, a comment before a blank line or before the end of a block.
3. In a header, a comment that names an output, ret_..., which the declarations below it do not have.
4. A comment that begins with the name of a function, "name(): ...", above another function.

Called by check-style. Run directly, it checks the whole tree."""
import pathlib
import re
import subprocess
import sys

SUFFIXES = {'.c', '.h', '.cu', '.cuh'}
WHOLE = re.compile(r'^([ \t]*)(/\*(?:(?!\*/).)*\*/)[ \t]*$', re.M | re.S)
HEADING = re.compile(r'/\*\s*-{2,}.*-{2,}\s*\*/$', re.S)
MARKER = re.compile(r'/\* (?:clang-format (?:on|off)|NOLINTNEXTLINE\(.*|SPDX-License-Identifier: .*|Copyright .*|poll.*) ?\*/$', re.S)
BEGINS = re.compile(r'/\*\s*\**\s*(\w+)\(\)')
FUNCTION = re.compile(r'[^;{}#]*?\b(\w+)\([^;{}]*\)[^;{}]*[;{]')
OUTPUT = re.compile(r'\bret_\w+')


def problems(path: str, text: str):
    """Yields (line, message) for each."""
    header = path.endswith(('.h', '.cuh'))
    blocks = [match for match in WHOLE.finditer(text) if not MARKER.match(match.group(2))]
    first = next((match for match in blocks), None)
    heading_ends = -1
    for match in blocks:
        line, comment, indent = text.count('\n', 0, match.start()) + 1, match.group(2), match.group(1)
        below = text[match.end() + 1:]
        if HEADING.match(comment):
            heading_ends = match.end()
            continue
        paragraph = not text[heading_ends:match.start()].strip() and heading_ends >= 0
        follows = WHOLE.match(below)
        if follows and not MARKER.match(follows.group(2)) and not paragraph:
            yield line, 'two comments in a row: join them, or write a heading as /* ---- name ---- */'
        elif header and match is not first and not paragraph and not below.partition('\n')[0].strip() and not indent:
            yield line, 'a comment above nothing'
        elif header and indent and re.match(r'\s*\}', below):
            yield line, 'a comment above nothing'
        if indent or match is first:
            continue
        declarations = below.partition('\n\n')[0]
        for name in sorted(set(OUTPUT.findall(comment)) - set(OUTPUT.findall(declarations))) if header else ():
            yield line, f'{name} is not an output of what follows'
        begins, function = BEGINS.match(comment), FUNCTION.match(below)
        if begins and function and begins.group(1) != function.group(1) and begins.group(1) not in declarations:
            yield line, f'a comment about {begins.group(1)}() above {function.group(1)}()'


def main() -> int:
    bad = 0
    for name in subprocess.run(['git', 'ls-files'], stdout=subprocess.PIPE, check=True, text=True).stdout.split('\n'):
        if pathlib.Path(name).suffix in SUFFIXES:
            for number, what in problems(name, pathlib.Path(name).read_text(encoding='utf-8')):
                print(f'{name}:{number}: {what}')
                bad += 1
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
