#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Follows "Add a call in five minutes" of docs/HACKING.md in a copy of the tree: adds its lines to
the specification and its functions to the code, and runs its commands. Checks that the generated
files have what the section promises, compile, and pass the round trip.

    test_recipe.py ROOT [COMPILER WORD...]
"""

import glob
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(sys.argv[1])
COMPILER = sys.argv[2:] or ['cc']
SECTION = 'Add a call in five minutes'
FLAGS = ['-std=gnu11', '-D_GNU_SOURCE', '-DOB_VERSION="test"', '-Wall', '-Wextra', '-Werror', '-Wmissing-prototypes', '-Wno-unused-function']
WAITS_S = 120


def base_sources(tree):
    """All of base/ but the part that needs libinih."""
    return [file for file in sorted(glob.glob(os.path.join(tree, 'base', '*.c'))) if not file.endswith('config_file.c')]


def fail(message):
    sys.exit(f'docs/HACKING.md, "{SECTION}": {message}')


def section():
    with open(os.path.join(ROOT, 'docs', 'HACKING.md'), encoding='utf-8') as f:
        found = re.search(rf'^## {SECTION}$(.*?)^## ', f.read(), re.M | re.S)
    if not found:
        sys.exit(f'docs/HACKING.md has no section "{SECTION}"')
    return found[1]


def blocks(text):
    """Returns the code blocks: [(language, file named after the language, content)]."""
    found = re.findall(r'^```(\w*) ?(\S*)\n(.*?)^```$', text, re.M | re.S)
    if not {'api', 'c', 'sh'} <= {language for language, _, _ in found}:
        fail('it has no block of the specification, of C or of commands')
    return found


def promised(text):
    """Returns [(generated file, text that it must contain)] from the section's table."""
    rows = re.findall(r'^\| `(\w+\.\w+)` \| `([^`]+)` \|', text, re.M)
    if len(rows) < 5:
        fail('its table of what is made of a line was not found')
    return rows


def run(command, cwd):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=WAITS_S)
    if done.returncode:
        fail(f'{shlex.join(command)}\n{done.stdout}{done.stderr}')


def copy_tree(tree):
    for folder in ('protocol', 'base'):
        shutil.copytree(os.path.join(ROOT, folder), os.path.join(tree, folder), ignore=shutil.ignore_patterns('__pycache__'))


def write_blocks(tree, found):
    """Appends each block to the file that it names. C files are new. Returns the C files."""
    sources = []
    for language, path, content in found:
        if language == 'sh':
            continue
        if not path:
            fail(f'a block of {language} does not say which file it belongs to')
        target = os.path.join(tree, path)
        if language == 'api' and not os.path.exists(target):
            fail(f'there is no {path}')
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, 'a', encoding='utf-8') as f:
            f.write('\n' + content)
        if language == 'c':
            sources.append(target)
    return sources


def run_commands(tree, out, found):
    for language, _, content in found:
        for line in content.replace('\\\n', ' ').splitlines() if language == 'sh' else ():
            words = shlex.split(line)
            if words[0] != 'protocol/gen/gen.py':
                continue
            words = [out if w == '/tmp/made' else w for w in words]
            words = [w for word in words for w in (sorted(glob.glob(word, root_dir=tree)) if '*' in word else [word])]
            run([sys.executable] + words, tree)


def opcodes(path):
    with open(path, encoding='utf-8') as f:
        return [line for line in f if line.startswith('0x')]


def check_lock(tree, found):
    """Checks that opcodes.lock has its old lines, then one for each opcode of the section."""
    before = opcodes(os.path.join(ROOT, 'protocol', 'spec', 'opcodes.lock'))
    after = opcodes(os.path.join(tree, 'protocol', 'spec', 'opcodes.lock'))
    new = sum(len(re.findall(r'^0x', content, re.M)) for language, _, content in found if language == 'api')
    if after[:len(before)] != before or len(after) != len(before) + new:
        fail(f'its command made {len(after) - len(before)} new lines of opcodes.lock, not {new}, or changed old ones')


def check_promises(out, text):
    for name, words in promised(text):
        with open(os.path.join(out, name), encoding='utf-8') as f:
            if words not in f.read():
                fail(f'{name} has no "{words}"')


def main():
    text = section()
    found = blocks(text)
    with tempfile.TemporaryDirectory() as folder:
        tree, out = os.path.join(folder, 'tree'), os.path.join(folder, 'made', 'protocol')
        os.makedirs(out)
        copy_tree(tree)
        sources = write_blocks(tree, found)
        run_commands(tree, out, found)
        check_lock(tree, found)
        check_promises(out, text)
        include = ['-I', os.path.dirname(out), '-I', tree, '-I', ROOT]
        made = [os.path.join(out, name) for name in ('obp_calls.c', 'obc_calls.c', 'obs_dispatch.c')]
        others = [os.path.join(out, name) for name in ('obc_stubs.c', 'obd_stubs.c', 'obs_null.c', 'obs_driver_load.c', 'obs_layer.c')]
        for path in sources + others:
            run(COMPILER + FLAGS + include + ['-fsyntax-only', path], tree)
        roundtrip = os.path.join(folder, 'roundtrip')
        run(COMPILER + FLAGS + include + ['-o', roundtrip, os.path.join(ROOT, 'tests', 'wire', 'roundtrip.c'), os.path.join(tree, 'protocol', 'call.c'),
                                            os.path.join(ROOT, 'client-shim', 'session', 'server.c')]
            + made + base_sources(tree) + ['-lpthread'], tree)
        run([roundtrip], tree)
    print(f'{len(found)} blocks, {len(promised(text))} promises')
    return 0


if __name__ == '__main__':
    sys.exit(main())
