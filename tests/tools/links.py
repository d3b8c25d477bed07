# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Links between Markdown pages lead to files and headings that exist, source files that a page
names in `code` exist in the tree or in the build, and each page of docs/ is in its index.

    links.py ROOT BUILD
"""
import os
import pathlib
import re
import sys

ROOT, BUILD = map(pathlib.Path, sys.argv[1:3])
LINK = re.compile(r'(?<!!)\[[^\]]*\]\(([^)\s]+)\)')
NAMED = re.compile(r'`([\w.-]+(?:/[\w.-]+)+\.(?:c|h|cu|cuh|S|py|api|md|lock|list|json|toml|ini|service))`')
FENCE = re.compile(r'^```.*?^```', re.M | re.S)


def pages():
    for folder, below, files in os.walk(ROOT):
        here = pathlib.Path(folder)
        below[:] = [d for d in below if not d.startswith('.') and not (here / d / 'meson-info').is_dir()]
        yield from (here / name for name in files if name.endswith('.md'))


def anchors(page):
    """Returns the anchors of headings as common hosts of Markdown make them: lower case, hyphens
    for blanks, no punctuation. A repeated anchor gets a number."""
    seen, names = {}, set()
    for heading in re.findall(r'^#+ (.*)$', FENCE.sub('', page.read_text(encoding='utf-8')), re.M):
        name = re.sub(r'[^\w\- ]', '', re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', heading).lower()).replace(' ', '-')
        names.add(f'{name}-{seen[name]}' if name in seen else name)
        seen[name] = seen.get(name, 0) + 1
    return names


def faults(page):
    text = FENCE.sub('', page.read_text(encoding='utf-8'))
    for target in LINK.findall(re.sub(r'`[^`\n]*`', '', text)):
        path, _, anchor = target.partition('#')
        if re.match(r'[a-z]+:', target):
            continue
        to = (page.parent / path).resolve() if path else page.resolve()
        if not to.exists():
            yield f'the link {target}: there is no such file'
        elif anchor and to.suffix == '.md' and anchor not in anchors(to):
            yield f'the link {target}: there is no such heading'
    for name in NAMED.findall(text):
        built = BUILD / name.removeprefix('build/')
        if not (ROOT / name).exists() and not (page.parent / name).exists() and not built.exists():
            yield f'`{name}`: there is no such file'


def not_indexed():
    """Returns the pages of docs/ that neither docs/README.md nor docs/adr/README.md links to."""
    indexes = [ROOT / 'docs' / 'README.md', ROOT / 'docs' / 'adr' / 'README.md']
    linked = {(index.parent / target.partition('#')[0]).resolve() for index in indexes for target in LINK.findall(index.read_text(encoding='utf-8'))}
    return [page for page in sorted((ROOT / 'docs').rglob('*.md')) if page not in indexes and page.resolve() not in linked]


def main():
    count = wrong = 0
    for page in not_indexed():
        wrong += 1
        print(f'FAIL {page.relative_to(ROOT)}: link it from {"docs/adr/README.md" if page.parent.name == "adr" else "docs/README.md"}')
    for page in sorted(pages()):
        count += 1
        for fault in faults(page):
            wrong += 1
            print(f'FAIL {page.relative_to(ROOT)}: {fault}')
    print(f'{count} pages, {wrong} faults')
    return 1 if wrong or count < 10 else 0


sys.exit(main())
