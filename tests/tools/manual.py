# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""docs/man/outboard.7 lists every environment variable that the programs and libraries read, and
every optimisation switch, and nothing else.

    manual.py ROOT
"""
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1])
PAGE = ROOT / 'docs' / 'man' / 'outboard.7'
NOT_PRODUCT = {'tests', 'examples', 'docs', 'deploy'}
# names that helper functions read are found, too
QUOTED = re.compile(r'"((?:OUTBOARD|LD)_[A-Z0-9_]+|CUDA_(?!ERROR|SUCCESS)[A-Z0-9_]+)"')
READ = re.compile(r'\b(?:secure_)?getenv\("(\w+)"\)')


def sources():
    """Yields the source files of the product: C, and the generator, whose strings become C."""
    for folder in sorted(ROOT.iterdir()):
        if not folder.is_dir() or folder.name.startswith('.') or folder.name in NOT_PRODUCT or (folder / 'meson-info').is_dir():
            continue
        for path in sorted(folder.rglob('*')):
            if path.suffix in {'.c', '.h', '.cu', '.cuh'} or (path.suffix == '.py' and path.parent.name == 'gen'):
                yield path


def read_by_programs():
    """Returns {variable: the first file that reads it}."""
    found = {}
    for path in sources():
        text = path.read_text(encoding='utf-8')
        for name in READ.findall(text) + (QUOTED.findall(text) if path.suffix == '.c' else []):
            found.setdefault(name, path.relative_to(ROOT))
    return found


def section(text, heading):
    """Returns the lines of a section or subsection of the page."""
    lines = text.splitlines()
    begin = next((i for i, line in enumerate(lines) if re.fullmatch(rf'\.S[hs] {heading}', line)), None)
    if begin is None:
        return []
    kind = lines[begin][:3]
    ends = [i for i in range(begin + 1, len(lines)) if lines[i].startswith('.Sh ') or (kind == '.Ss' and lines[i].startswith('.Ss '))]
    return lines[begin + 1:ends[0] if ends else len(lines)]


def main():
    page = PAGE.read_text(encoding='utf-8')
    environment = section(page, 'ENVIRONMENT')
    listed = {name for line in environment if re.match(r'\.(It )?Ev ', line) for name in re.findall(r'\b[A-Z][A-Z0-9_]+\b', line)}
    read = read_by_programs()
    switches = set(re.findall(r'X\([A-Z0-9]+, "(\w+)",', (ROOT / 'base' / 'opt.h').read_text(encoding='utf-8')))
    explained = {match.group(1) for line in section(page, 'Optimisation switches') if (match := re.match(r'\.It Cm (\w+)', line))}
    faults = [f'{read[name]} reads {name}: describe it in the section ENVIRONMENT' for name in sorted(set(read) - listed)]
    faults += [f'no program reads {name}: remove it from the page' for name in sorted(listed - set(read))]
    faults += [f'base/opt.h has the switch {name}: describe it under "Optimisation switches"' for name in sorted(switches - explained)]
    faults += [f'there is no switch {name}: remove it from the page' for name in sorted(explained - switches)]
    if not read or not switches:
        faults.append('no variable or no switch was found in the sources: this test looks in the wrong place')
    if shutil.which('mandoc'):
        lint = subprocess.run(['mandoc', '-T', 'lint', PAGE], capture_output=True, text=True, check=False)
        faults += [line for line in lint.stdout.splitlines() if line and 'referenced manual not found' not in line]
    for fault in faults:
        print(f'FAIL {PAGE.relative_to(ROOT)}: {fault}')
    print(f'{len(read)} variables, {len(switches)} switches, {len(faults)} faults')
    return 1 if faults else 0


sys.exit(main())
