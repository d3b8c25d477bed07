# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Every promise of docs/SECURITY.md names tests that exist: a test of this build, as `name` or
`name: case` with a case of that test, or a program of programs.list in parentheses.

    promises.py ROOT BUILD
"""
import json
import pathlib
import re
import sys

ROOT, BUILD = map(pathlib.Path, sys.argv[1:3])


def rows(text):
    """Returns the last cells of the tables whose last column is named test."""
    in_table = False
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip('|').split('|')] if line.startswith('|') else []
        if not cells:
            in_table = False
        elif cells[-1] == 'test':
            in_table = True
        elif in_table and not set(cells[-1]) <= {'-'}:
            yield cells[0], cells[-1]


def sources():
    """Returns for each test the text of its script, or of its program's sources."""
    built = {}
    for target in json.loads((BUILD / 'meson-info' / 'intro-targets.json').read_text()):
        files = [file for group in target['target_sources'] for file in group.get('sources', []) if file.startswith(str(ROOT.resolve() / 'tests'))]
        built.update({name: files for name in target['filename']})
    texts = {}
    for test in json.loads((BUILD / 'meson-info' / 'intro-tests.json').read_text()):
        files = [file for word in test['cmd'] for file in (built.get(word, []) if word in built else [word] if word.endswith('.py') else [])]
        texts[test['name']] = texts.get(test['name'], '') + ''.join(pathlib.Path(file).read_text() for file in files)
    return texts


def main():
    tests = sources()
    programs = {line.split('|')[0].strip() for line in (ROOT / 'tests/programs/programs.list').read_text().splitlines() if '|' in line}
    count = wrong = 0
    for promise, cell in rows((ROOT / 'docs/SECURITY.md').read_text()):
        count += 1
        names = re.findall(r'`([^`]+)`', re.sub(r'\([^)]*\)', '', cell))
        inside = [name for part in re.findall(r'\(([^)]*)\)', cell) for name in re.findall(r'`([^`]+)`', part)]
        faults = [] if names else ['it names no test']
        for name in names:
            test, _, case = name.partition(': ')
            if test not in tests:
                faults.append(f'there is no test {test}')
            elif case and not re.search(rf'\b{re.escape(case)}\b', tests[test]):
                faults.append(f'{test} has no case {case}')
        faults += [f'there is no program {name}' for name in inside if name not in programs]
        for fault in faults:
            wrong += 1
            print(f'FAIL {promise[:80]}: {fault}')
    print(f'{count} promises, {wrong} wrong')
    return 1 if wrong or not count else 0


sys.exit(main())
