# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""The two libraries named libcuda.so.1: exported functions, the table for cuGetProcAddress, the
version script, and the prototypes of hand-written functions: obf_ (in both), obc_ (client library),
obd_ (software device)."""

import re

from emit import args, c_string, header, source, wrap

EXPORT = '__attribute__((visibility("default")))'
CUDA = '"base/cuda_types.h"'


def prototypes(calls, prefix):
    return '\n'.join(wrap(f'CUresult {prefix}{c.name}({c.impl_params()});') for c in calls)


def front_h(spec):
    calls = [c for c in spec.calls if c.in_front]
    body = ('/* The body of a call that is not implemented: logs the reason once, returns CUDA_ERROR_NOT_SUPPORTED. */\n'
            'CUresult obf_absent(const char *name, const char *reason);\n\n' + prototypes(calls, 'obf_'))
    return header('OBF_CALLS_H', 'The calls that front/ answers in both libraries.', [CUDA], body)


def local_h(spec, prefix):
    if prefix == 'obc_':
        calls = [c for c in spec.calls if c.klass == 'local' or c.wrapped]
        what = 'Hand-written calls in client-shim/.'
    else:
        calls = [c for c in spec.calls if not c.in_front]
        what = 'Hand-written calls in softdevice/; one without a definition is answered as absent.'
    return header(f'{prefix.upper()}LOCALS_H', what, [CUDA], prototypes(calls, prefix))


def target(call, prefix):
    """Returns (the function that a stub calls, whether it is hand-written and may be missing)."""
    if call.in_front:
        return 'obf_' + call.name, True
    if call.klass == 'server' and prefix == 'obc_':
        return None, False
    if prefix == 'obd_' or call.klass == 'local' or call.wrapped:
        return prefix + call.name, True
    return 'obc_call_' + call.name, False


COVERAGE = '''/*
 * Records which names were called: one byte each, set once. With OUTBOARD_COVERAGE=FILE the names are appended to FILE at the end of the
 * process, as lines "name program", for tools/dev/check-coverage.
 */
static _Atomic unsigned char hits[N_NAMES];

static inline void hit(unsigned name)
{
	if (!atomic_load_explicit(&hits[name], memory_order_relaxed))
		atomic_store_explicit(&hits[name], 1, memory_order_relaxed);
}

/* Runs after the destructor that ends the session. */
__attribute__((destructor(101))) static void write_hits(void)
{
	const char *path = secure_getenv("OUTBOARD_COVERAGE");
	int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644) : -1;
	if (fd < 0)
		return;
	for (unsigned i = 0; i < N_NAMES; i++)
		if (hits[i])
			dprintf(fd, "%s %s\\n", names[i], program_invocation_short_name);
OPCODES	close(fd);
}
'''

COVERAGE_OPCODES = '''	for (uint16_t opcode = 0; opcode < OBP_OPCODE_END; opcode++)
		if (obp_call_info(opcode) && obc_log_count(opcode))
			dprintf(fd, "%s %s\\n", obp_call_info(opcode)->name, program_invocation_short_name);
'''


def coverage(spec, prefix):
    names = [name for call in spec.exported() for name, _, _ in call.exports()]
    text = COVERAGE.replace('OPCODES', COVERAGE_OPCODES if prefix == 'obc_' else '')
    return (f'#define N_NAMES {len(names)}\n\nstatic const char *const names[N_NAMES] = {{\n'
            + ''.join(f'\t"{n}",\n' for n in names) + '};\n\n' + text), {n: i for i, n in enumerate(names)}


SIGNED = ('char', 'short', 'int', 'long', 'long long', 'CUdevice', 'CUresult')


def trace_kind(spec, base):
    if base in spec.types.handles or base in spec.types.functions or base == 'CUdeviceptr':
        return 'ADDRESS'
    return 'SIGNED' if base in SIGNED or base in spec.types.enums else 'UNSIGNED'


def trace_args(spec, call):
    """Returns the arguments for the trace line before the call."""
    rows = []
    for p in call.params:
        pointer = p.stars or p.array is not None
        if p.base == 'char' and p.const and p.stars == 1:
            kind = 'TEXT'
        elif pointer:
            kind = 'ADDRESS'
        elif p.base in spec.types.structs:
            continue
        else:
            kind = trace_kind(spec, p.base)
        value = f'(uintptr_t){p.name}' if pointer or p.base in spec.types.handles or p.base in spec.types.functions else f'(uint64_t){p.name}'
        rows.append(f'{{ "{p.name}", OBF_TRACE_{kind}, {value} }}')
    return rows


def trace_outs(spec, call):
    """Returns the outputs that are one number or handle each, for the trace line after the call."""
    rows = []
    for p in call.params:
        if p.way != 'out' or p.array is not None or p.stars != 1 or p.base in ('void', 'char', 'float', 'double') or p.base in spec.types.structs:
            continue
        cast = '(uintptr_t)' if p.base in spec.types.handles or p.base in spec.types.functions else '(uint64_t)'
        rows.append(f'{{ "{p.name}", OBF_TRACE_{trace_kind(spec, p.base)}, !result && {p.name} ? {cast}*{p.name} : 0 }}')
    return rows


def rows_c(rows):
    return ('(const struct obf_trace_arg[]){ ' + ', '.join(rows) + ' }' if rows else 'NULL') + f', {len(rows)}'


def traced(spec, out_name, call, expression):
    """Calls the software device with thread cancellation off, and writes trace lines if tracing is
    on."""
    return ['\tint cancel = obf_cancel_off();', '\tuint64_t traced = 0;', '\tif (ob_unlikely(obf_trace_on))',
            f'\t\ttraced = obf_trace_call("{out_name}", {rows_c(trace_args(spec, call))});',
            f'\tCUresult result = {expression};', '\tif (ob_unlikely(traced))',
            f'\t\tobf_trace_result(traced, "{out_name}", result, {rows_c(trace_outs(spec, call))});', '\tobf_cancel_back(cancel);', '\treturn result;']


def stub(spec, out_name, call, flavour, prefix, number):
    function, weak = target(call, prefix)
    # Marks the thread as inside a call (client-shim/session/inside.h), except in calls that call
    # back into the program.
    guarded = prefix == 'obc_' and not any(p.base == 'CUoccupancyB2DSize' for p in call.params)

    lines = [f'{EXPORT} ' + wrap(f'CUresult {out_name}({call.prototype()});'),
             wrap(f'CUresult {out_name}({call.prototype()})'), '{', f'\thit({number});']
    if function is None:
        lines += [f'\t(void){p.name};' for p in call.params]
        lines += [f'\treturn obf_absent("{out_name}", "device addresses are laid out by the server: use cuMemAlloc");', '}']
        return '\n'.join(lines) + '\n'
    if weak:
        lines += [f'\tif (!{function})', f'\t\treturn obf_absent("{out_name}", "not written yet");']
    if guarded:
        lines += ['\tif (!obc_inside_enter())', f'\t\treturn obc_inside_refuse("{out_name}");']
    if call.extra_stream:
        values = args(call, ['CU_STREAM_PER_THREAD' if flavour else 'CU_STREAM_LEGACY'])
    elif flavour and call.config:
        config = call.config.name
        lines += ['\tCUlaunchConfig copy;', f'\tif ({config} && !{config}->hStream) {{', f'\t\tcopy = *{config};',
                  '\t\tcopy.hStream = CU_STREAM_PER_THREAD;', f'\t\t{config} = &copy;', '\t}']
        values = args(call)
    elif flavour:
        values = ', '.join(f'{p.name} ? {p.name} : CU_STREAM_PER_THREAD' if p is call.stream else p.name for p in call.params)
    else:
        values = args(call)
    expression = f'{function}({values})'
    if prefix == 'obd_':
        lines += traced(spec, out_name, call, expression)
    else:
        lines.append(f'\treturn obc_inside_left({expression});' if guarded else f'\treturn {expression};')
    return '\n'.join(lines + ['}']) + '\n'


def absent_stub(name, reason, prefix, number):
    trace = [f'\tif (ob_unlikely(obf_trace_on))', f'\t\tobf_trace_call("{name}", NULL, 0);'] if prefix == 'obd_' else []
    return '\n'.join([f'{EXPORT} CUresult {name}(void);', f'CUresult {name}(void)', '{', f'\thit({number});', *trace,
                      f'\treturn obf_absent("{name}", {c_string(reason)});', '}', ''])


def stubs_c(spec, prefix):
    weak = [f'__typeof__({target(c, prefix)[0]}) {target(c, prefix)[0]} __attribute__((weak));'
            for c in spec.calls if target(c, prefix)[1]]
    out = ['/* Weak references: a library that lacks a function links, and a test names the function. Link front/ as a whole archive. */'] + weak + ['']
    text, numbers = coverage(spec, prefix)
    out.append(text)
    for call in spec.calls + spec.aliases:
        implementation = spec.by_name[call.target] if call.klass == 'alias' else call
        for name, _, flavour in call.exports():
            out.append(stub(spec, name, implementation, flavour, prefix, numbers[name]))
    for call in spec.absent:
        for name, _, _ in call.exports():
            out.append(absent_stub(name, call.reason, prefix, numbers[name]))
    includes = ['<errno.h>', '<fcntl.h>', '<stdatomic.h>', '<stdio.h>', '<stdlib.h>', '<unistd.h>', '', '"front/front.h"', '"protocol/obf_calls.h"', f'"protocol/{prefix}locals.h"']
    if prefix == 'obc_':
        includes += ['"protocol/obc_calls.h"', '"client-shim/session/inside.h"', '"client-shim/session/log.h"']
    else:
        includes += ['"front/cancel.h"', '"front/trace.h"']
    return source('Every name that libcuda.so.1 exports.', includes, '\n'.join(out)).replace('#include \n', '\n')


def base_name(name):
    return re.sub(r'_v\d+$', '', name)


def procs_c(spec, prefix):
    rows = []
    for call in spec.exported():
        for name, since, flavour in call.exports():
            rows.append((base_name(call.name), 1 if flavour else 0, since, name))
    rows.sort()
    out = [f'#define ENTRY(name) extern CUresult name(void) __attribute__((visibility("default")))']
    out += [f'ENTRY({name});' for name in sorted(r[3] for r in rows)]
    out.append(f'\nconst struct obf_proc {prefix}procs[] = {{')
    out += [f'\t{{ "{base}", (void *){name}, {since}, {flavour} }},' for base, flavour, since, name in rows]
    out.append('};')
    out.append(f'const size_t {prefix}n_procs = sizeof({prefix}procs) / sizeof({prefix}procs[0]);')
    return source('The entry points that cuGetProcAddress returns.', [f'"protocol/{prefix}procs.h"'], '\n'.join(out))


def procs_h(spec, prefix):
    return header(f'{prefix.upper()}PROCS_H', 'The entry points that cuGetProcAddress returns.',
                  ['"front/front.h"'], f'/* Sorted by name, then flavour, then since. */\n'
                  f'extern const struct obf_proc {prefix}procs[];\nextern const size_t {prefix}n_procs;')


def exports_map(spec):
    names = sorted(n for c in spec.exported() for n, _, _ in c.exports())
    return '{\nglobal:\n' + ''.join(f'\t{n};\n' for n in names) + 'local:\n\t*;\n};\n'
