# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""The check of comments (tools/dev/comments.py) reports each kind of misplaced comment and accepts
the usual forms."""
import pathlib
import sys

TOP = '/* A licence. */\n#include "x.h"\n\n'


def main() -> int:
    sys.path.insert(0, str(pathlib.Path(sys.argv[1]) / 'tools' / 'dev'))
    sys.dont_write_bytecode = True
    import comments
    bad = 0

    def check(what, want, text, path='a/x.h'):
        nonlocal bad
        got = [number for number, _ in comments.problems(path, TOP + text)]
        if got != [line + TOP.count('\n') for line in want]:
            print(f'failed: {what}: lines {got}')
            bad += 1

    check('a comment and its declaration', [], '/* Opens it. */\nint f(void);\n')
    check('two comments in a row', [1], '/* Closes it. */\n/* Opens it. */\nint f(void);\n')
    check('the same in a source', [1], '/* Closes it. */\n/* Opens it. */\nint f(void)\n{\n}\n', 'a/x.c')
    check('the same inside a structure', [2], 'struct x {\n\t/* gone */\n\t/*\n\t * here\n\t */\n\tint a;\n};\n')
    check('a heading', [], '/* ---- opening ---- */\n/* Opens it. */\nint f(void);\n')
    check('a heading with a paragraph', [], '/* ---- opening ---- */\n\n/* All of these block. */\n\nint f(void);\n')
    check('a marker for a tool', [], '/* The types. */\n/* clang-format off */\nenum x { A };\n/* clang-format on */\n\nint f(void);\n')
    check('above nothing', [1], '/* Closes it. */\n\nint f(void);\n')
    check('above nothing, in a source, may be a note', [], '/* About all of it. */\n\nint f;\n', 'a/x.c')
    check('at the end of a structure', [3], 'struct x {\n\tint a;\n\t/* gone */\n};\n')
    check('an output that is none', [1], '/* ret_size: bytes. */\nint f(int *ret_n);\n')
    check('an output of the second function', [], '/* ret_size: bytes. */\nint f(void);\nint g(int *ret_size);\n\nint h;\n')
    check('another function', [1], '/* close_it(): waits. */\nint open_it(void);\n')
    check('its own function', [], '/* open_it(): waits. */\nint open_it(void);\n')
    return 1 if bad else 0


sys.exit(main())
