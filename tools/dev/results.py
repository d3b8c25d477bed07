#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Finds functions that report failures in a way that docs/adr/0024-errors.md does not allow.

In the folders below, a header's function returns void, bool, a pointer, a number, enum ob_err or
CUresult. Refused are: an int, unless the function is in INTS, which says what the int is; a string,
unless it names or describes a value; an enum for errors other than ob_err. The text of an error is
returned through a parameter `struct ob_cause *ret_cause`.

Called by check-style. Run directly, it checks the whole tree."""
import pathlib
import re
import subprocess
import sys

FOLDERS = ('base/', 'compression/', 'image/', 'protocol/', 'transport/', 'loadbalancer/', 'server/')
# Functions that may return int or ssize_t, with the meaning of the result. 'a system call': -1 with
# errno.
INTS = {
    'ob_fd_raise': 'a descriptor',
    'ob_clock_poll_ms': 'milliseconds for poll()',
    'ob_words_find': 'an index, or -1 for none',
    'ob_options_parse': 'an exit status, or -1 to go on', 'ob_command_run': 'an exit status',
    'ob_usage_error': 'an exit status', 'ob_word_unknown': 'an exit status',
    'obp_map_write': "a callback of msgpack's",
    'obp_packer_frame': 'a count',
    'obt_iov_advance': 'an index',
    'obt_shm_steal': 'a descriptor, or -1 for none',
    'obt_ring_write': 'a system call', 'obt_ring_read': 'a system call', 'obt_stream_wait': 'a system call',
    'obs_landlock_version': 'a version', 'obs_landlock_none': 'a system call', 'obs_landlock_new': 'a system call',
    'obs_handoff_pair': 'a system call', 'obs_handoff_send': 'a system call', 'obs_handoff_recv': 'a system call',
    'obs_member_pair': 'a system call', 'obs_member_recv': 'a system call', 'obs_member_run': 'an exit status',
    'obs_memory_device': 'an index, or -1 for none',
    'obs_driver_event_fd': 'a descriptor, or -1 for none', 'obs_imports_take': 'a descriptor, or -1 for none',
    'obs_retransmit_iov': 'a count',
    'obs_config_read': 'a count of errors, which it has printed',
    'obs_options_parse': 'an exit status', 'obs_super_run': 'an exit status', 'obs_admission_run': 'an exit status',
    'obs_worker_run': 'an exit status', 'obs_sensors_run': 'an exit status', 'obs_worker_probe': 'an exit status',
}
# Suffixes of functions that return a string which names or describes a value.
TEXTS = ('_name', '_text', '_what', '_brief')

COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.S)
FUNCTION = re.compile(r'^(?:static inline )?(int|ssize_t|const char \*|char \*|enum \w+)[ ]?\*?(\w+)\(', re.M)
ERRORS = re.compile(r'enum (?!ob_err\b)\w*_(?:err|error|errors|status|failure|reason|result)$')
CARRIER = re.compile(r'\bchar \*{1,2}\s?(?:ret_)?(?:why|reason|error|err|message|errbuf)\b(?=\s*[,)])')
# Inputs, such as `const char *why` of a function that prints it.
INPUT = re.compile(r'\bconst char \*(?!\*)\s?(?!ret_)\w+$')


def problems(path: str, text: str):
    """Yields (line, message) for each."""
    if not path.startswith(FOLDERS) or path.startswith('protocol/gen/'):
        return
    code = COMMENT.sub(lambda match: re.sub(r'[^\n]', ' ', match.group()), text)

    def line(at: int) -> int:
        return code.count('\n', 0, at) + 1

    if path.endswith('.h') and path != 'base/cuda_types.h':
        for match in FUNCTION.finditer(code):
            kind, name = match.groups()
            if kind in ('int', 'ssize_t') and name not in INTS:
                yield line(match.start()), f'{name} returns an int: return enum ob_err, or say in {pathlib.Path(__file__).name} which number it is'
            if 'char' in kind and not name.endswith(TEXTS):
                yield line(match.start()), f'{name} returns a text: return enum ob_err with struct ob_cause *ret_cause; a text of a value ends in {", ".join(TEXTS)}'
            if ERRORS.match(kind):
                yield line(match.start()), f'{name} returns {kind}: errors are enum ob_err'
    for match in CARRIER.finditer(code):
        if not INPUT.search(code[max(0, match.start() - 6):match.end()]):
            yield line(match.start()), 'the text of an error travels in struct ob_cause *ret_cause (base/cause.h)'


def main() -> int:
    bad = 0
    names = subprocess.run(['git', 'ls-files', *FOLDERS], stdout=subprocess.PIPE, check=True, text=True).stdout.split()
    for name in names:
        if name.endswith(('.c', '.h')):
            for number, what in problems(name, pathlib.Path(name).read_text(encoding='utf-8')):
                print(f'{name}:{number}: {what}')
                bad += 1
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
