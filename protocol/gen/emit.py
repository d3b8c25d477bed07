# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Shared by all generated files: the head, line breaks of declarations, small C fragments."""

HEAD_C = '''/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Generated from protocol/spec by protocol/gen: do not edit. {what} */
'''


def head(what):
    return HEAD_C.format(what=what)


def header(guard, what, includes, body):
    lines = [head(what) + f'#ifndef {guard}\n#define {guard}\n']
    lines += [f'#include {name}' for name in includes]
    return '\n'.join(lines) + '\n\n' + body.strip('\n') + '\n\n#endif\n'


def source(what, includes, body):
    return head(what) + '\n'.join(f'#include {name}' for name in includes) + '\n\n' + body.strip('\n') + '\n'


def wrap(text, width=116):
    """Breaks a long declaration into lines after commas."""
    if len(text.expandtabs(8)) <= width:
        return text
    lines, line = [], ''
    for piece in text.split(', '):
        if line and len((line + ', ' + piece).expandtabs(8)) > width:
            lines.append(line + ',')
            line = '\t' + piece
        else:
            line = line + ', ' + piece if line else piece
    return '\n'.join(lines + [line])


def c_string(text):
    return '"' + text.replace('\\', '\\\\').replace('"', '\\"') + '"'


def args(call, extra=()):
    return ', '.join([p.name for p in call.params] + list(extra))


def req_type(call):
    return f'struct obp_{call.name}_req'


def rep_type(call):
    return f'struct obp_{call.name}_rep'


def in_req(name):
    """Returns the C expression for a number in the request's body."""
    return 'req->' + name


def body_start(call):
    """Returns the C expression for the start of the variable parts of `body`."""
    return '(const uint8_t *)body' + (' + sizeof(*req)' if call.req.size else '')
