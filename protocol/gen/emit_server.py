# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""server: the driver table and its loader, the null driver, and layers over the table."""

from emit import args, header, source, wrap
from layout import leaves_of
from model import NUMBER_HANDLES, SpecError

CUDA = '"base/cuda_types.h"'


def driver_h(spec):
    out = ['struct obs_driver {']
    out += ['\t' + wrap(f'CUresult (*{c.name})({c.prototype()});').replace('\n', '\n\t') for c in spec.calls]
    out.append('};\n')
    out.append(f'#define OBS_DRIVER_CALLS {len(spec.calls)}')
    out.append('''
/* Names of the calls, in the order of the struct's members. */
extern const char *const obs_driver_names[OBS_DRIVER_CALLS];

/*
 * Fills in *ret with the functions that `sym` finds by their exported names. For a missing one it stores a function that returns
 * CUDA_ERROR_NOT_SUPPORTED. Returns the number of missing functions. *ret is valid as long as the library is loaded.
 */
int obs_driver_bind(struct obs_driver *ret, void *(*sym)(void *ctx, const char *name), void *ctx);
/* False: obs_driver_bind did not find the function. call: index in obs_driver_names. */
bool obs_driver_has(const struct obs_driver *drv, unsigned call);

/*
 * Fills in `wrapped` with functions that call before(), the function of the same name in `next`, and after(). If before() does not return
 * CUDA_SUCCESS, the driver is not called: after() gets that result, and it is returned. Each hook may be NULL. A process has one chain of
 * at most OBS_LAYER_MAX layers, each with its own `level` from 0. The caller keeps ownership of next and hooks.
 */
#define OBS_LAYER_MAX 3
struct obs_layer_hooks {
	CUresult (*before)(unsigned call);
	void (*after)(unsigned call, CUresult result);
};
void obs_layer_wrap(struct obs_driver *wrapped, unsigned level, const struct obs_driver *next, const struct obs_layer_hooks *hooks);

/*
 * Fills in `wrapped` with `next`, but the numbers of devices are the session's: they are translated with the two functions below, on the
 * way in and on the way out. A process has one such layer.
 */
void obs_devices_wrap(struct obs_driver *wrapped, const struct obs_driver *next);
/* Written by hand. From the session's number to the driver's. CUDA_ERROR_INVALID_DEVICE: not a device of the session. */
CUresult obs_device_to_driver(int *number);
/* From the driver's number to the session's. CU_DEVICE_INVALID: not a device of the session. */
int obs_device_to_session(int number);
/* Whether the numbers differ. */
bool obs_device_restricted(void);

/* A driver that does nothing, see obs_null.h. */
extern const struct obs_driver obs_null_driver;''')
    return header('OBS_DRIVER_H', 'Every CUDA call the server can make, as a table.', ['<stdbool.h>', '', CUDA],
                  '\n'.join(out)).replace('#include \n', '\n')


def driver_load_c(spec):
    out = ['const char *const obs_driver_names[OBS_DRIVER_CALLS] = {']
    out += [f'\t"{c.name}",' for c in spec.calls]
    out.append('''};

_Static_assert(sizeof(struct obs_driver) == OBS_DRIVER_CALLS * sizeof(void *), "a table of pointers");

/* Replaces every call that the library lacks. Called with arguments, which it ignores. */
static CUresult missing(void)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

int obs_driver_bind(struct obs_driver *ret, void *(*sym)(void *ctx, const char *name), void *ctx)
{
	int n_missing = 0;
	for (unsigned i = 0; i < OBS_DRIVER_CALLS; i++) {
		void *entry = sym(ctx, obs_driver_names[i]);
		if (!entry) {
			CUresult (*none)(void) = missing;
			memcpy(&entry, &none, sizeof(entry));
			n_missing++;
		}
		memcpy((char *)ret + i * sizeof(void *), &entry, sizeof(entry));
	}
	return n_missing;
}

bool obs_driver_has(const struct obs_driver *drv, unsigned call)
{
	CUresult (*none)(void) = missing;
	return call < OBS_DRIVER_CALLS && memcmp((const char *)drv + call * sizeof(void *), &none, sizeof(none)) != 0;
}''')
    return source('Binds the driver table to a library.', ['"protocol/obs_driver.h"', '', '<string.h>'],
                  '\n'.join(out)).replace('#include \n', '\n')


def layer_c(spec):
    out = ['''static struct {
	const struct obs_driver *next;
	const struct obs_layer_hooks *hooks;
} levels[OBS_LAYER_MAX];

static inline CUresult before(unsigned level, unsigned call)
{
	return levels[level].hooks->before ? levels[level].hooks->before(call) : CUDA_SUCCESS;
}

static inline CUresult after(unsigned level, unsigned call, CUresult result)
{
	if (levels[level].hooks->after)
		levels[level].hooks->after(call, result);
	return result;
}
''']
    for level in range(3):
        for i, c in enumerate(spec.calls):
            out.append(wrap(f'static CUresult layer{level}_{c.name}({c.prototype()})'))
            out.append(f'{{\n\tCUresult result = before({level}, {i});\n'
                       f'\treturn after({level}, {i}, result ? result : levels[{level}].next->{c.name}({args(c)}));\n}}\n')
    out.append('static const struct obs_driver layers[OBS_LAYER_MAX] = {')
    for level in range(3):
        out.append('\t{\n' + '\n'.join(f'\t\tlayer{level}_{c.name},' for c in spec.calls) + '\n\t},')
    out.append('''};

void obs_layer_wrap(struct obs_driver *wrapped, unsigned level, const struct obs_driver *next, const struct obs_layer_hooks *hooks)
{
	levels[level].next = next;
	levels[level].hooks = hooks;
	*wrapped = layers[level];
}''')
    return source('A pass-through layer over the driver table.', ['"protocol/obs_driver.h"'], '\n'.join(out))


# ---- the layer that translates the numbers of devices ----

def device_leaves(spec, call, p):
    """Returns the leaves of a parameter that are numbers of devices; None if they are not known."""
    if p.base not in spec.types.structs:
        return [leaf for leaf in leaves_of(spec, call, p) or [] if leaf.device] if p.base == 'CUdevice' or p.device else []
    if p.base not in spec.structs:
        return []
    try:
        return [leaf for leaf in leaves_of(spec, call, p) or [] if leaf.device]
    except SpecError:
        return None


def device_lines(leaf, place, tab, function):
    """Statements that translate the member of `place` that is a device's number."""
    dot = f'.{leaf.path}' if leaf.path else ''
    condition = f'{place}.{leaf.when[0]} == {leaf.when[1]}' if leaf.when else None
    if function == 'obs_device_to_session':
        lines = [f'{place}{dot} = obs_device_to_session({place}{dot});']
    else:
        lines = [f'result = result ? result : obs_device_to_driver(&{place}{dot});']
    return [f'{tab}if ({condition})', f'{tab}\t{lines[0]}'] if condition else [tab + lines[0]]


def device_call(spec, call):
    """Returns the function of the layer for a call; None if it has no devices."""
    before, after, pass_on, found = [], [], [], False
    for p in call.params:
        leaves = device_leaves(spec, call, p)
        pass_on.append(p.name)
        if not leaves:
            continue
        found = True
        if p.stars == 0 and p.array is None:
            before += [line for leaf in leaves for line in device_lines(leaf, p.name, '\t', 'obs_device_to_driver')]
        elif p.way == 'out' and p.array is None:
            after += [line for leaf in leaves for line in device_lines(leaf, f'(*{p.name})', '\t\t', 'obs_device_to_session')]
        elif call.on_wire and p.array is not None and p.way == 'in':
            length, bound = (t.strip() for t in p.array.split('<='))
            before += [f'\t{p.base} own_{p.name}[OBP_{bound}];', f'\tif ({length} > OBP_{bound})', '\t\treturn CUDA_ERROR_INVALID_VALUE;',
                       f'\tfor (size_t i = 0; i < {length}; i++) {{', f'\t\town_{p.name}[i] = {p.name}[i];']
            before += [line for leaf in leaves for line in device_lines(leaf, f'own_{p.name}[i]', '\t\t', 'obs_device_to_driver')] + ['\t}']
            pass_on[-1] = f'own_{p.name}'
        elif call.on_wire and p.way == 'in':
            before += [f'\t{p.base} own_{p.name} = *{p.name};']
            before += [line for leaf in leaves for line in device_lines(leaf, f'own_{p.name}', '\t', 'obs_device_to_driver')]
            pass_on[-1] = f'&own_{p.name}'
        else:  # the server makes no such call
            before += ['\tif (obs_device_restricted())', '\t\tresult = CUDA_ERROR_NOT_SUPPORTED;']
    if not found:
        return None
    lines = [wrap(f'static CUresult devices_{call.name}({call.prototype()})'), '{', '\tCUresult result = CUDA_SUCCESS;'] + before
    lines += ['\tif (result == CUDA_SUCCESS)', f'\t\tresult = devices_next->{call.name}({", ".join(pass_on)});']
    if after:
        lines += ['\tif (result == CUDA_SUCCESS) {'] + after + ['\t}']
    return '\n'.join(lines + ['\treturn result;', '}\n'])


def devices_c(spec):
    made = [(c, text) for c in spec.calls if (text := device_call(spec, c))]
    out = ['static const struct obs_driver *devices_next;\n'] + [text for _, text in made]
    out += ['void obs_devices_wrap(struct obs_driver *wrapped, const struct obs_driver *next)', '{', '\tdevices_next = next;', '\t*wrapped = *next;']
    out += [f'\twrapped->{c.name} = devices_{c.name};' for c, _ in made] + ['}']
    return source("A layer that translates the numbers of devices.", ['"protocol/obs_driver.h"', '"protocol/obp_calls.h"'], '\n'.join(out))


# ---- the null driver ----

def null_h(spec):
    out = ['/*\n * Every call of the null driver returns success and does nothing: outputs are set to 0; the handles that it returns are unique\n * '
           'and never dereferenced. If the server defines a function obs_null_<call>, it replaces the generated one.\n */']
    out += [wrap(f'CUresult obs_null_{c.name}({c.prototype()});') for c in spec.calls]
    return header('OBS_NULL_H', 'A driver that does nothing.', ['"protocol/obs_driver.h"'], '\n'.join(out))


def null_answer(spec, p):
    if p.way not in ('out', 'inout') or p.way == 'inout':
        return None
    if p.array is not None:
        element = '1' if p.base == 'void' else f'sizeof(*{p.name})'
        if p.array.isdigit():
            return f'\tmemset({p.name}, 0, {element} * {p.array});'
        size = p.array.partition('<=')[0].strip()
        if size.startswith('*'):  # in: the size of the array; out: the number of elements, here 0
            counter = size.lstrip('* ')
            return f'\tif ({counter})\n\t\t*{counter} = 0;'
        return f'\tif ({p.name} && {size} > 0)\n\t\tmemset({p.name}, 0, {element} * (size_t)({size}));'
    if p.stars == 1 and p.base in spec.types.handles:
        return f'\t*{p.name} = ({p.base})unique();'
    if p.stars == 1 and p.base in NUMBER_HANDLES:
        return f'\t*{p.name} = ({p.base})(uintptr_t)unique();'
    return f'\tmemset({p.name}, 0, sizeof(*{p.name}));'


def null_c(spec):
    out = ['''/* Returns a value that is no valid address: a high bit is set. */
__attribute__((unused)) static void *unique(void)
{
	static _Atomic uintptr_t last;
	return (void *)(((uintptr_t)1 << 62) + (atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1) * 16);
}
''']
    for c in spec.calls:
        out.append(f'__typeof__(obs_null_{c.name}) obs_null_{c.name} __attribute__((weak));')
        out.append(wrap(f'static CUresult null_{c.name}({c.prototype()})') + '\n{')
        out.append(f'\tif (obs_null_{c.name})\n\t\treturn obs_null_{c.name}({args(c)});')
        for p in c.params:
            answer = null_answer(spec, p)
            if answer and p.array is None:
                out.append(f'\tif ({p.name})\n\t' + answer.replace('\n', '\n\t'))
            elif answer:
                out.append(answer)
        out.append('\treturn CUDA_SUCCESS;\n}\n')
    out.append('const struct obs_driver obs_null_driver = {\n' + '\n'.join(f'\tnull_{c.name},' for c in spec.calls) + '\n};')
    return source('A driver that does nothing.', ['"protocol/obs_null.h"', '', '<stdatomic.h>', '<stdint.h>', '<string.h>'],
                  '\n'.join(out)).replace('#include \n', '\n')
