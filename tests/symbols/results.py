# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""The check of error schemes (tools/dev/results.py) reports each disallowed form and accepts the
allowed ones, and reports nothing in the tree."""
import os
import pathlib
import sys


def main() -> int:
    root = pathlib.Path(sys.argv[1])
    sys.path.insert(0, str(root / 'tools' / 'dev'))
    sys.dont_write_bytecode = True
    import results
    bad = 0

    def check(what, condition):
        nonlocal bad
        if not condition:
            print(f'failed: {what}')
            bad += 1

    def found(text, path='server/common/x.h'):
        return [number for number, _ in results.problems(path, text)]

    allowed = ('void obs_x_close(struct obs_x *x);\n'
               'enum ob_err obs_x_open(const char *why, struct ob_cause *ret_cause);\n'
               'CUresult obs_x_call(struct obs_x *x);\n'
               'bool obs_x_is(const struct obs_x *x);\n'
               'struct obs_x *obs_x_new(void);\n'
               'uint32_t obs_x_count(const struct obs_x *x);\n'
               'const char *obs_mode_name(enum obs_mode mode);\n'
               '/* int obs_x_old(void), with char *ret_why, is gone */\n')
    check('the allowed forms', not found(allowed))
    check('a number as a status', found('\nint obs_x_open(void);\n') == [2])
    check('a signed size as a status', found('ssize_t obs_x_read(void);') == [1])
    check('an inline function', found('static inline int obs_x_open(void)\n{') == [1])
    check('a listed number', not found('int ob_fd_raise(int fd);', 'base/fd.h'))
    check('a text as the result', found('const char *obs_x_check(void);') == [1])
    check('another enum', found('enum obs_x_error obs_x_open(void);') == [1])
    check('an enum that is no error', not found('enum obs_x_kind obs_x_open(void);'))
    check('a text by pointer', found('bool obs_x_open(int a,\n\tconst char **ret_why);') == [2])
    check('a text by buffer', found('enum ob_err obs_x_open(char *ret_why, size_t size);') == [1])
    check('a text by buffer, in a source', found('static bool f(char *reason, size_t size)', 'server/common/x.c') == [1])
    check('a result of a source is its own matter', not found('static int f(void)', 'server/common/x.c'))
    check('other folders', not found('int obx_x_main(int argc, char **argv);', 'tools/x.h'))

    os.chdir(root)
    looked_at = 0
    for folder in results.FOLDERS:
        for path in sorted(pathlib.Path(folder).rglob('*.[ch]')):
            looked_at += 1
            for number, what in results.problems(str(path), path.read_text(encoding='utf-8')):
                print(f'{path}:{number}: {what}')
                bad += 1
    check('the folders have sources', looked_at > 200)
    return 1 if bad else 0


sys.exit(main())
