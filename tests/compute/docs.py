# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Checks the pages of the compute library: they name only functions that outboard.h declares, no
internal ones, and the files and links that they name exist.

    docs.py ROOT
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
INTERNAL = re.compile(r'\bob[kvx]_[a-z]\w*')
FILE = re.compile(r'`((?:base|compute|docs|examples|tests|tools)/[\w./-]+\.\w+)`')


def faults(page, declared):
    text = page.read_text()
    yield from (f'{name} is internal: name the function of outboard.h or the command' for name in sorted(set(INTERNAL.findall(text))))
    for name in sorted(set(re.findall(r'\boutboard_\w*[a-z]\b(?!\*)', text)) - declared):
        yield f'{name} is not in outboard.h'
    yield from (f'{name} does not exist' for name in sorted(set(FILE.findall(text))) if not (ROOT / name).exists())
    for link in re.findall(r'\]\(([^)#:]+)(?:#[^)]*)?\)', text):
        if not (page.parent / link).exists():
            yield f'the link {link} leads nowhere'


def main():
    declared = set(re.findall(r'\boutboard_\w+', (ROOT / 'compute/engine/outboard.h').read_text())) | {'outboard_compute'}  # the Python module
    pages = [ROOT / 'compute/README.md', *sorted((ROOT / 'compute/docs').glob('*.md'))]
    wrong = [f'FAIL {page.relative_to(ROOT)}: {fault}' for page in pages for fault in faults(page, declared)]
    print(*wrong, f'{len(pages)} pages, {len(wrong)} faults', sep='\n')
    return bool(wrong) or len(pages) < 5


sys.exit(main())
