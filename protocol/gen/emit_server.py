# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""server: the driver table and its loader, the null driver, a layer over the table, dispatch."""

from emit import args, bound, header, rep_type, req_type, source, wrap

CUDA = '"base/cuda_types.h"'


def driver_h(spec):
    out = ['struct obs_driver {']
    out += ['\t' + wrap(f'CUresult (*{c.name})({c.prototype()});').replace('\n', '\n\t') for c in spec.calls]
    out.append('};\n')
    out.append(f'#define OBS_DRIVER_CALLS {len(spec.calls)}')
    out.append('''
/* The calls' names, in the order of the struct. */
extern const char *const obs_driver_names[OBS_DRIVER_CALLS];

/*
 * Fills *ret with what `sym` finds by exported name. A name it does not find becomes a function that returns
 * CUDA_ERROR_NOT_SUPPORTED; the number of those is returned. *ret lives as long as the library.
 */
int obs_driver_bind(struct obs_driver *ret, void *(*sym)(void *ctx, const char *name), void *ctx);
/* False: the entry was not found by obs_driver_bind. `call` is the index in obs_driver_names. */
bool obs_driver_has(const struct obs_driver *drv, unsigned call);

/*
 * A layer: `wrapped` gets functions that call before(), the function of the same name in `next`, after(). before() may answer
 * for the driver: anything but CUDA_SUCCESS is returned at once, and after() is called with it. Each may be NULL.
 * There is one layer chain in a process: up to OBS_LAYER_MAX, each with its own `level` from 0; next and hooks stay the caller's.
 */
#define OBS_LAYER_MAX 3
struct obs_layer_hooks {
	CUresult (*before)(unsigned call);
	void (*after)(unsigned call, CUresult result);
};
void obs_layer_wrap(struct obs_driver *wrapped, unsigned level, const struct obs_driver *next, const struct obs_layer_hooks *hooks);

/* The driver that does nothing, see obs_null.h. */
extern const struct obs_driver obs_null_driver;''')
    return header('OBS_DRIVER_H', 'Every CUDA call the server can make, as a table.', ['<stdbool.h>', '', CUDA],
                  '\n'.join(out)).replace('#include \n', '\n')


def driver_load_c(spec):
    out = ['const char *const obs_driver_names[OBS_DRIVER_CALLS] = {']
    out += [f'\t"{c.name}",' for c in spec.calls]
    out.append('''};

_Static_assert(sizeof(struct obs_driver) == OBS_DRIVER_CALLS * sizeof(void *), "a table of pointers");

/* Stands in for every call that the library lacks: it looks at no argument. */
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


# ---- the null driver ----

def null_h(spec):
    out = ['/*\n * The null driver answers every call with success and does nothing: outputs become 0, handles that are given out are unique '
           'and never\n * dereferenced. A function obs_null_<call>, where the server defines one, takes the place of the generated answer.\n */']
    out += [wrap(f'CUresult obs_null_{c.name}({c.prototype()});') for c in spec.calls]
    return header('OBS_NULL_H', 'The driver that does nothing.', ['"protocol/obs_driver.h"'], '\n'.join(out))


def null_answer(spec, p):
    if p.way not in ('out', 'inout') or p.way == 'inout':
        return None
    if p.array is not None:
        if p.array.isdigit():
            return f'\tmemset({p.name}, 0, sizeof(*{p.name}) * {p.array});'
        size = p.array.partition('<=')[0].strip()
        return f'\tif ({p.name} && {size} > 0)\n\t\tmemset({p.name}, 0, sizeof(*{p.name}) * (size_t)({size}));'
    if p.stars == 1 and p.base in spec.types.handles:
        return f'\t*{p.name} = ({p.base})unique();'
    if p.stars == 1 and p.base == 'CUmemGenericAllocationHandle':
        return f'\t*{p.name} = (CUmemGenericAllocationHandle)(uintptr_t)unique();'
    return f'\tmemset({p.name}, 0, sizeof(*{p.name}));'


def null_c(spec):
    out = ['''/* Never an address: high bits set. */
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
    return source('The driver that does nothing.', ['"protocol/obs_null.h"', '', '<stdatomic.h>', '<stdint.h>', '<string.h>'],
                  '\n'.join(out)).replace('#include \n', '\n')


# ---- dispatch ----

def op_handler(call):
    params = ['struct obs_exec *x', 'const struct obp_record *rec']
    if call.req.size:
        params.append(f'const {req_type(call)} *req')
    params += [f'const {"char" if v.cstr else "void" if v.wire == "u8" else v.ctype} *{v.name}' for v in call.req.vars]
    return f'void obs_op_{call.name}({", ".join(params)})'


def dispatch_h(spec):
    kinds = ''.join(f'\tOBS_KIND_{k.upper()} = {i + 1},\n' for i, k in enumerate(spec.handles.values()))
    out = [f'''struct obs_exec;

/* What regular calls name by handle. */
enum obs_kind {{
{kinds}}};

/*
 * Executes one record: checks every bound of the body, then runs it. `size` = record size - header. A body that breaks a bound,
 * or an unknown opcode, ends in obs_violation. The body is 8-aligned and stays until the call returns.
 */
void obs_dispatch(struct obs_exec *x, const struct obp_record *rec, const void *body, uint32_t size);

/* ---- written by hand in server/ ---- */

/* The client broke the protocol: `why` is a constant. Ends the session, now or after return. */
void obs_violation(struct obs_exec *x, const struct obp_record *rec, const char *why);
/* The driver's handle behind the client's id. False: no such handle, and the session was told (obs_violation). */
bool obs_handle_get(struct obs_exec *x, const struct obp_record *rec, enum obs_kind kind, uint64_t id, void **ret_handle);
const struct obs_driver *obs_exec_driver(struct obs_exec *x);
/* The reply to rec: exact body bytes, copied. */
void obs_reply(struct obs_exec *x, const struct obp_record *rec, CUresult result, const void *body, uint32_t size);
/* What became of a call without a reply. */
void obs_async_result(struct obs_exec *x, const struct obp_record *rec, CUresult result);

/*
 * The operations. req and the variable parts point into the body; sizes are in req and were checked against their maxima.
 * A string's last byte is its only NUL. The ones with replies call obs_reply with their obp_<name>_rep.
 */''']
    out += [wrap(op_handler(c) + ';') for c in spec.wire_calls() if c.op]
    return header('OBS_DISPATCH_H', 'From a record to the function that executes it.',
                  ['<stdbool.h>', '<stdint.h>', '', '"protocol/obp_calls.h"', '"protocol/obs_driver.h"'],
                  '\n'.join(out)).replace('#include \n', '\n')


def run_op(spec, call):
    names = ['x', 'rec'] + (['body'] if call.req.size else [])
    lines = [f'static void run_{call.name}(struct obs_exec *x, const struct obp_record *rec, const void *body)', '{']
    if call.req.vars:
        lines.append(f'\tconst {req_type(call)} *req = body;')
        lines.append('\tconst uint8_t *at = (const uint8_t *)body + sizeof(*req);')
        offset = 'at'
        for v in call.req.vars:
            cast = 'char' if v.cstr else 'void' if v.wire == 'u8' else v.ctype
            names.append(f'(const {cast} *)({offset})' if offset != 'at' or cast != 'void' else 'at')
            size = v.expr.to_c(lambda n: 'req->' + n)
            offset += f' + obp_pad({size}' + (f' * {v.width})' if v.width > 1 else ')')
        if len(call.req.vars) == 1 and not any('req' in n for n in names):
            lines[-2:] = [f'\tconst uint8_t *at = (const uint8_t *)body + sizeof({req_type(call)});']
    if not call.req.size:
        lines.append('\t(void)body;')
    lines.append(f'\tobs_op_{call.name}({", ".join(names)});')
    return '\n'.join(lines + ['}']) + '\n'


def run_call(spec, call):
    lines = [f'static void run_{call.name}(struct obs_exec *x, const struct obp_record *rec, const void *body)', '{']
    if call.req.size:
        lines.append(f'\tconst {req_type(call)} *req = body;')
    elif not call.req.vars:
        lines.append('\t(void)body;')
    values = {}
    for f in call.req.fields:
        kind = spec.handles.get(f.source.base)
        if kind:
            lines += [f'\tvoid *h_{f.name};', f'\tif (!obs_handle_get(x, rec, OBS_KIND_{kind.upper()}, req->{f.name}, &h_{f.name}))',
                      '\t\treturn;']
            values[f.name] = f'({f.source.base})h_{f.name}'
        elif f.source.way == 'addr':
            values[f.name] = f'({f.source.ctype()})(uintptr_t)req->{f.name}'
        elif f.source.stars == 0:
            values[f.name] = f'({f.source.base})req->{f.name}'
    if call.req.vars:
        lines.append('\tconst uint8_t *at = (const uint8_t *)body' + (' + sizeof(*req);' if call.req.size else ';'))
        for i, v in enumerate(call.req.vars):
            lines.append(f'\tconst {v.source.base} *{v.name} = (const void *)at;')
            if i + 1 < len(call.req.vars):
                size = v.expr.to_c(lambda n: 'req->' + n)
                lines.append(f'\tat += obp_pad({size}' + (f' * {v.width});' if v.width > 1 else ');'))
            values[v.name] = v.name
    for p in call.params:
        if p.stars and p.array is None and p.way in ('in', 'out', 'inout'):
            source_field = call.req.field(p.name)
            if source_field and source_field.struct:
                lines += [f'\t{p.base} {p.name};', f'\tmemcpy(&{p.name}, req->{p.name}, sizeof({p.name}));']
            elif source_field:
                lines.append(f'\t{p.base} {p.name} = ({p.base})req->{p.name};')
            else:
                lines += [f'\t{p.base} {p.name};', f'\tmemset(&{p.name}, 0, sizeof({p.name}));']
            values[p.name] = '&' + p.name
    for v in call.rep.vars:
        lines += [f'\t{v.source.base} {v.name}[OBP_{v.bound}];', f'\tmemset({v.name}, 0, sizeof({v.name}));']
        values[v.name] = v.name
    lines.append('\t' + wrap(f'CUresult result = obs_exec_driver(x)->{call.name}({", ".join(values[p.name] for p in call.params)});'))
    if call.klass == 'async':
        lines.append('\tobs_async_result(x, rec, result);')
    elif call.rep.vars:
        v = call.rep.vars[0]
        size = v.expr.to_c(lambda n: 'req->' + n) + (f' * {v.width}' if v.width > 1 else '')
        lines.append(f'\tobs_reply(x, rec, result, {v.name}, (uint32_t)({size}));')
    elif call.rep.size:
        lines += [f'\t{rep_type(call)} rep;', '\tmemset(&rep, 0, sizeof(rep));']
        for f in call.rep.fields:
            if f.struct or f.count > 1:
                lines.append(f'\tmemcpy(rep.{f.name}, &{f.name}, sizeof(rep.{f.name}));')
            else:
                lines.append(f'\trep.{f.name} = ({f.ctype}){f.name};')
        lines.append('\tobs_reply(x, rec, result, &rep, sizeof(rep));')
    else:
        lines.append('\tobs_reply(x, rec, result, NULL, 0);')
    return '\n'.join(lines + ['}']) + '\n'


def dispatch_c(spec):
    out = []
    for call in spec.wire_calls():
        out.append(run_op(spec, call) if call.op else run_call(spec, call))
    out.append('static const struct {\n\tvoid (*run)(struct obs_exec *x, const struct obp_record *rec, const void *body);\n'
               '\tuint32_t exact; /* bytes of a body that needs no further look; UINT32_MAX: obp_check_req */\n'
               '} table[OBP_OPCODE_END] = {')
    for call in spec.wire_calls():
        simple = not call.req.vars and not call.rep.vars and not any(f.bound for f in call.req.fields)
        out.append(f'\t[{call.enum}] = {{ run_{call.name}, {call.req.size if simple else "UINT32_MAX"} }},')
    out.append('''};

void obs_dispatch(struct obs_exec *x, const struct obp_record *rec, const void *body, uint32_t size)
{
	uint16_t opcode = rec->opcode;
	if (opcode >= OBP_OPCODE_END || !table[opcode].run) {
		obs_violation(x, rec, "unknown opcode");
		return;
	}
	if (size != table[opcode].exact && !(table[opcode].exact == UINT32_MAX && obp_check_req(opcode, body, size))) {
		obs_violation(x, rec, "a call's body is out of bounds");
		return;
	}
	table[opcode].run(x, rec, body);
}''')
    return source('From a record to the function that executes it.', ['"protocol/obs_dispatch.h"', '', '<string.h>'],
                  '\n'.join(out)).replace('#include \n', '\n')
