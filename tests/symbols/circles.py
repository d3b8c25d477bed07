# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""The check for circular dependencies of files (tools/dev/circles.py) reports each circle, and the
tree has none. The picture of the folders omits arrows that follow from other arrows."""
import os
import pathlib
import sys


def main() -> int:
    root = pathlib.Path(sys.argv[1])
    sys.path.insert(0, str(root / 'tools' / 'dev'))
    sys.dont_write_bytecode = True
    import circles
    bad = 0

    def check(what, condition):
        nonlocal bad
        if not condition:
            print(f'failed: {what}')
            bad += 1

    def found(files):
        return list(circles.problems(sorted(files), read=files.__getitem__))

    line = {'a/x.h': '', 'a/x.c': '#include "a/x.h"\n#include "a/y.h"', 'a/y.h': '#include "a/z.h"', 'a/z.h': '#include <a/x.h>'}
    check('a line is no circle', not found(line))
    two = {'a/x.h': '', 'a/x.c': '#include "a/x.h"\n\n#include "a/y.h"', 'a/y.h': '', 'a/y.c': '  #  include "a/x.h"'}
    got = found(two)
    check('two sources that use one another', len(got) == 1 and got[0][0] == 'a/x.c:3' and 'a/x a/y' in got[0][1] and 'a/y -> a/x (a/y.c:1)' in got[0][1])
    three = {'x.h': '#include "y.h"', 'y.h': '#include "z.cuh"', 'z.cuh': '', 'z.cu': '#include "x.h"', 'w.c': '#include "x.h"'}
    got = found(three)
    check('three, and who only uses them is not one of them', len(got) == 1 and ': x y z;' in got[0][1])
    beside = {'a/x.h': '#include "y.h"', 'a/y.h': '#include "x.h"', 'b/y.h': ''}
    check('an include beside the file', len(found(beside)) == 1)
    private = {'x.h': '', 'x_inside.h': '#include "x.h"', 'x.c': '#include "x_inside.h"', 'x_part.c': '#include "x_inside.h"'}
    check('a private header belongs to its object', not found(private))
    private['x_inside.h'] += '\n#include "y.h"'
    private['y.h'] = '#include "x.h"'
    check('its includes are those of its object', len(found(private)) == 1)
    apart = {'a.h': '#include "b.h"', 'b.h': '#include "a.h"', 'c.h': '#include "d.h"', 'd.h': '#include "c.h"'}
    check('two circles', len(found(apart)) == 2)
    rooms = {'a/x.h': '', 'a/y.h': '#include "b/y.h"', 'b/x.h': '#include "a/x.h"', 'b/y.h': ''}
    got = found(rooms)
    check('two folders', len(got) == 1 and 'a/ b/' in got[0][1])
    deep = {f'n{i}.h': f'#include "n{i + 1}.h"' for i in range(3000)} | {'n3000.h': '#include "n0.h"'}
    check('a long one', len(found(deep)) == 1)

    layers = {'a/x.h': '', 'b/x.h': '#include "a/x.h"', 'c/x.h': '#include "b/x.h"\n#include "a/x.h"', 'tests/x.c': '#include "c/x.h"'}
    drawn = circles.picture(sorted(layers), read=layers.__getitem__)
    lines = [line.split() for line in drawn.splitlines() if line.startswith(' ')]
    check('the picture', lines == [['2', 'c/', '─►', 'b/'], ['1', 'b/', '─►', 'a/'], ['0', 'a/']])

    os.chdir(root)
    paths = [str(path.relative_to('.')) for path in pathlib.Path('.').rglob('*')
             if path.suffix in circles.SUFFIXES and not any((parent / 'meson-info').exists() for parent in path.parents)]
    check('the tree has sources', len(paths) > 500)
    for where, what in circles.problems(sorted(paths)):
        print(f'{where}: {what}')
        bad += 1
    return 1 if bad else 0


sys.exit(main())
