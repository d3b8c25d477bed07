# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Tests `outboard run` with programs that a preloaded library would break, or that cannot load
one: built with AddressSanitizer, static, for musl, 32-bit. Each must run as it does without
`outboard run`, with a message if it gets no GPU.

    program_kinds.py OUTBOARD SERVER MUSL-GCC|- COMPILER...
"""
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + '/../lib')
from outboard_test import ENV, Server, check, finish  # noqa: E402

OUTBOARD, SERVER, MUSL, COMPILER = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
ASKS = '''
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
	int (*init)(unsigned) = cuda ? (int (*)(unsigned))dlsym(cuda, "cuInit") : NULL;
	int (*count)(int *) = cuda ? (int (*)(int *))dlsym(cuda, "cuDeviceGetCount") : NULL;
	int n = -1;
	if (!cuda)
		puts(dlerror());
	else if (init(0) == 0)
		count(&n);
	printf("devices %d\\n", n);
	if (argc > 1) {
		char *freed = malloc(8);
		free(freed);
		return freed[atoi(argv[1])];
	}
	return 5;
}
'''
PLAIN = '#include <stdio.h>\nint main(void) { puts("alive"); return 5; }\n'


def build(folder, name, text, *options, compiler=None):
    """Returns (program, ''), or (None, the reason) if it cannot be built."""
    source = folder / f'{name}.c'
    source.write_text(text)
    done = subprocess.run([*(compiler or COMPILER), '-g', '-o', folder / name, source, *options], capture_output=True, text=True, env={**os.environ, 'LC_ALL': 'C'})
    if done.returncode:
        return None, (done.stderr.strip().splitlines() or ['no reason'])[-1]
    return folder / name, ''


def run(how, *command, **env):
    return subprocess.run([OUTBOARD, 'run', *how, '--', *map(str, command)], capture_output=True, text=True, timeout=120, env={**ENV, **env})


def skipped(what, why):
    print(f'skip {what}: {why}')


def sanitized(folder, ways):
    program, why = build(folder, 'asan', ASKS, '-fsanitize=address', '-ldl')
    if not program or subprocess.run([program], capture_output=True, timeout=120, env=ENV).returncode != 5:
        return skipped('a program with the address sanitizer', why or 'it does not run here')
    for name, how in ways.items():
        for what, command in (('itself', [program]), ('started by a shell', ['sh', '-c', f'{program}; exit $?'])):
            done = run(how, *command)
            check(f'address sanitizer, {name}, {what}: runs and finds the device', done.returncode == 5 and 'devices 1' in done.stdout and 'ASan' not in done.stderr,
                  (done.returncode, done.stdout, done.stderr))
    done = run(ways['server'], program, 2)
    check('it still finds what it is for', done.returncode not in (0, 5) and 'heap-use-after-free' in done.stderr, done.stderr)
    done = run(ways['server'], 'sh', '-c', 'echo $ASAN_OPTIONS', ASAN_OPTIONS='verify_asan_link_order=1')
    check("what the user says about the sanitizer stays", done.stdout.strip() == 'verify_asan_link_order=1', done.stdout)
    done = run(ways['server'], 'sh', '-c', 'echo $LD_PRELOAD', LD_PRELOAD='libm.so.6')
    check("the user's preloads stay before ours", done.stdout.startswith('libm.so.6:'), done.stdout)
    return None


def without(folder, ways, name, program, why, words):
    """A program that gets no GPU: it must run normally, with a message."""
    if not program:
        return skipped(name, why)
    for way, how in ways.items():
        done = run(how, program)
        check(f'{name}, {way}: runs unharmed', done.returncode == 5 and done.stdout == 'alive\n', (done.returncode, done.stdout, done.stderr))
        check(f'{name}, {way}: is told why it gets no GPU', words in done.stderr and str(program) in done.stderr and done.stderr.count('\n') == 1, done.stderr)
    done = run(ways['server'], program.name, PATH=f'/nowhere:{program.parent}:{ENV["PATH"]}')
    check(f'{name}: found in PATH too', done.returncode == 5 and words in done.stderr, done.stderr)
    return None


def broken_files(folder, ways):
    """Files that look like programs and are none: only the error of execve may be reported."""
    head = struct.pack('<4sBBBBQHHIQQQIHHHHHH', b'\x7fELF', 2, 1, 1, 0, 0, 2, 62, 1, 0, 0xfffffffffffffff0, 0, 0, 64, 56, 0xffff, 0, 0, 0)
    for name, data in {'half a header': head[:40], 'headers beyond its end': head}.items():
        path = folder / 'broken'
        path.write_bytes(data)
        path.chmod(0o755)
        # The C library runs files that the kernel refuses in a shell, which may interpret a
        # header's bytes as redirections.
        done = subprocess.run([OUTBOARD, 'run', *ways['server'], '--', path], capture_output=True, text=True, timeout=120, env=ENV, cwd=folder)
        check(f'a file with {name}: an exit code and no crash', done.returncode in (126, 127), (done.returncode, done.stderr))


def main():
    with tempfile.TemporaryDirectory() as top, Server(SERVER, '--driver', 'null') as server:
        folder = pathlib.Path(top)
        ways = {'server': ['--server', server.url], 'direct': ['--direct']}
        sanitized(folder, ways)
        for name, options, words in (('static', ['-static'], 'linked statically'), ('static-pie', ['-static-pie'], 'linked statically'), ('narrow', ['-m32'], '32-bit')):
            without(folder, ways, name, *build(folder, name, PLAIN, *options), words)
        without(folder, ways, 'musl', *(build(folder, 'musl', PLAIN, compiler=[MUSL]) if MUSL != '-' else (None, 'no musl-gcc (Debian: musl-tools)')), 'musl C library')
        plain, why = build(folder, 'plain', PLAIN)
        done = run(ways['server'], plain)
        check('a plain program: nothing is said', done.returncode == 5 and done.stderr == '', (why, done.stderr))
        broken_files(folder, ways)
    finish()


main()
