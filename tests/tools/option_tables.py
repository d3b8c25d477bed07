# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Completions and manual pages name every option and verb of the programs.

    option_tables.py MAKE_MANUAL PAGE PROGRAM...

bash runs its completions. zsh, fish, man and mandoc check their files where they are installed.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

MAKE_MANUAL, PAGE, *PROGRAMS = sys.argv[1:]
FAULTS = []
# words of a command line, of which the last is completed; words that must be offered; words that
# must not be offered
COMPLETED = [
    (['outboard', 'r'], {'run', 'rqa'}, {'check', 'token'}),
    (['outboard', 'run', '--p'], {'--policy', '--priority'}, {'--server'}),
    (['outboard', 'run', '--priority', ''], {'low', 'normal', 'high'}, {'--server'}),
    (['outboard', 'run', '--', 'r'], set(), {'run'}),
    (['outboard', 'token', ''], {'create', 'list', 'revoke'}, {'run'}),
    (['outboard', 'config', ''], {'check', 'show'}, {'run'}),
    (['outboard', 'server', ''], {'list', 'info', 'cordon', 'drain'}, {'run'}),
    (['outboard', 'bench', 'la'], {'launch', 'latency'}, {'startup'}),
    (['outboard-server', '--sandbox', ''], {'auto', 'strict', 'off'}, set()),
    (['outboard-server', '--tls-c'], {'--tls-cert', '--tls-client-ca'}, {'--tls-key'}),
]


def check(what, good, more=''):
    if not good:
        FAULTS.append(what)
        print(f'FAIL {what}: {more}')


def printed(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    check(' '.join(map(str, command)), done.returncode == 0 and not done.stderr, done.stderr)
    return done.stdout


def described(program):
    """Returns {command: its options} of a program."""
    commands = {}
    for line in printed(program, '--describe-options').splitlines():
        kind, name, *_ = line.split('\t')
        if kind == 'command':
            options = commands.setdefault(name, [])
        elif kind == 'option':
            options.append(name)
    return commands


def bash_completes(folder):
    for words, offered, absent in COMPLETED:
        script = ('source "$1"; COMP_WORDS=("${@:2}"); COMP_CWORD=$(($# - 2)); '
                  'f=$(complete -p "$2" | sed "s/.*-F \\([^ ]*\\).*/\\1/"); "$f"; printf "%s\\n" "${COMPREPLY[@]}"')
        got = set(printed('bash', '-c', script, 'bash', folder / f'{words[0]}.bash', *words).split())
        check(f'bash completes {" ".join(words)}', offered <= got and not got & absent, got)


def fish_completes(folder):
    for words, offered, absent in COMPLETED:
        line = ' '.join(words)
        script = f"source {folder}/{words[0]}.fish; complete -C '{line}'"
        done = subprocess.run(['fish', '--no-config', '-c', script], capture_output=True, text=True, timeout=60, check=False,
                              env={**os.environ, 'HOME': str(folder), 'XDG_CONFIG_HOME': str(folder)})
        got = {row.split('\t')[0] for row in done.stdout.splitlines()}
        check(f'fish completes {line}', offered <= got and not got & absent, got or done.stderr)


def zsh_completes(folder):
    """The script passes what may come next to _arguments, which chooses by the word's beginning."""
    for words, offered, absent in COMPLETED:
        script = '_arguments() { print -rl -- "$@" }; file=$1; shift; words=("$@"); CURRENT=$#; source $file'
        got = printed('zsh', '-f', '-c', script, 'zsh', folder / f'{words[0]}.zsh', *words)
        told = set(re.findall(r'^(--[\w-]+)\[', got, re.MULTILINE)) | {w for list_ in re.findall(r':\(([^)]*)\)$', got, re.MULTILINE) for w in list_.split()}
        told = {word for word in told if word.startswith(words[-1])}
        value = words[-2].startswith('--')  # _arguments offers the value of an option and nothing else
        check(f'zsh completes {" ".join(words)}', offered <= told and (value or not told & absent), got)


def lint(folder):
    """Checks the files with each installed checker. Returns the names of these checkers."""
    used = []
    for name, command, suffix in (('bash', ['bash', '-n'], 'bash'), ('zsh', ['zsh', '-n'], 'zsh'), ('fish', ['fish', '-n'], 'fish')):
        if shutil.which(name):
            used.append(name)
            for path in folder.glob(f'*.{suffix}'):
                printed(*command, path)
    for path in sorted(folder.glob('*.1')):
        if shutil.which('man'):
            done = subprocess.run(['man', '--warnings', '-l', path], capture_output=True, text=True, timeout=60, check=False)
            check(f'man reads {path.name}', done.returncode == 0 and not done.stderr, done.stderr)
        if shutil.which('mandoc'):
            done = subprocess.run(['mandoc', '-T', 'lint', path], capture_output=True, text=True, timeout=60, check=False)
            faults = [line for line in done.stdout.splitlines() if 'referenced manual not found' not in line]
            check(f'mandoc accepts {path.name}', not faults, '\n'.join(faults))
    return used + [name for name in ('man', 'mandoc') if shutil.which(name)]


def main():
    with tempfile.TemporaryDirectory() as top:
        folder = pathlib.Path(top)
        printed(MAKE_MANUAL, '--date-of', PAGE, '--out', folder, *PROGRAMS)
        pages = {path.name: path.read_text(encoding='utf-8') for path in folder.glob('*.1')}
        options = 0
        for program in PROGRAMS:
            name = pathlib.Path(program).name
            scripts = {shell: printed(program, '--describe-options', shell) for shell in ('bash', 'zsh', 'fish')}
            for shell, text in scripts.items():
                (folder / f'{name}.{shell}').write_text(text, encoding='utf-8')
            for command, listed in described(program).items():
                words = command.split()
                own = '-'.join(words[:2]) + '.1'
                # outboard-server(1) is the program of that name, not the verb
                if words[1:] and own in {pathlib.Path(other).name + '.1' for other in PROGRAMS}:
                    own = ''
                page = pages[own if own in pages else words[0] + '.1']
                check(f'the manual has {command}', len(words) == 1 or f'.Ss {command}'.replace('-', '\\-') in page or own in pages)
                for option in listed:
                    options += 1
                    check(f'the manual has {command} --{option}', re.search(rf'Fl \\-{re.escape(option.replace("-", chr(92) + "-"))}( |$)', page, re.MULTILINE))
                    check(f'bash has {command} --{option}', re.search(rf"'{re.escape(command)}'\) words=.*--{option} ", scripts['bash']))
                    check(f'zsh has {command} --{option}', f"'--{option}[" in scripts['zsh'].split(f"('{command}')\n")[-1].split(';;')[0])
                    check(f'fish has {command} --{option}', re.search(rf'= "{re.escape(command)}".* -l {option} ', scripts['fish']))
        bash_completes(folder)
        if shutil.which('fish'):
            fish_completes(folder)
        if shutil.which('zsh'):
            zsh_completes(folder)
        used = lint(folder)
    check('options were compared', options > 80, options)
    print(f'{options} options, checked by {", ".join(used)}; {len(FAULTS)} faults')
    return 1 if FAULTS else 0


sys.exit(main())
