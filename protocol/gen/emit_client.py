# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""client-shim: the calls as functions that write records (obc_call_*), and begin functions for filling a record in place."""

from emit import bound, header, rep_type, req_type, source, wrap


def op_params(call):
    """Parameters of obc_call_op_<name>: as in the specification, outputs as pointers named ret_."""
    decls = []
    for p in call.params:
        out = p.way == 'out'
        var = next((v for v in call.req.vars + call.rep.vars if v.name == p.name), None)
        if p.kind == 'cstr':
            decls.append(f'const char *{p.name}')
        elif var is not None:
            ctype = 'void' if p.kind == 'bytes' else var.ctype
            decls.append(f'{ctype} *ret_{p.name}' if out else f'const {ctype} *{p.name}')
            if out and not var.streamed:
                decls.append(f'uint32_t *ret_{p.name}_size')
        else:
            field = (call.rep if out else call.req).field(p.name)
            if field.count > 1:
                decls.append(f'{field.ctype} ret_{p.name}[{field.count}]' if out else f'const {field.ctype} {p.name}[{field.count}]')
            else:
                decls.append(f'{field.ctype} *ret_{p.name}' if out else f'{field.ctype} {p.name}')
    return ', '.join(decls) or 'void'


def needs_begin(call):
    return call.op and call.klass in ('async', 'bulk') and call.req.vars


def begin_prototype(call):
    numbers = []
    for var in call.req.vars:
        for name in var.expr.names:
            field = call.req.field(name)
            decl = f'{field.ctype} {name}'
            if decl not in numbers:
                numbers.append(decl)
    outs = [('char' if v.cstr else v.ctype if v.wire != 'u8' else 'void') + f' **ret_{v.name}' for v in call.req.vars]
    return f'{req_type(call)} *obc_begin_op_{call.name}(struct obc_slot *slot, {", ".join(numbers + outs)})'


def sum_c(call, access=lambda v: f'len_{v.name}'):
    parts = [f'sizeof({req_type(call)})'] if call.req.size else []
    parts += [f'obp_pad({access(v)}' + (f' * {v.width})' if v.width > 1 else ')') for v in call.req.vars]
    return ' + '.join(parts) or '0'


def var_numbers(spec, call, fail, access=lambda n: n):
    lines = []
    for v in call.req.vars:
        if v.cstr:
            continue
        lines += [f'\tuint64_t len_{v.name} = {v.expr.to_c(access)};', f'\tif (len_{v.name} > {bound(spec, v.bound)})', f'\t\t{fail}']
    return lines


def store_fields(call, value):
    lines = []
    for f in call.req.fields:
        if f.count > 1 or f.struct:
            lines.append(f'\tmemcpy(req->{f.name}, {value(f)}, sizeof(req->{f.name}));')
        else:
            lines.append(f'\treq->{f.name} = {value(f)};')
    if call.req.pad:
        lines.append('\tmemset(req->pad_, 0, sizeof(req->pad_));')
    return lines


def store_vars(call):
    """Copies the variable parts behind the fixed one and clears what pads them."""
    lines = ['\tuint8_t *at = (uint8_t *)body' + (f' + sizeof(*req);' if call.req.size else ';')]
    for i, v in enumerate(call.req.vars):
        size = f'len_{v.name}' + (f' * {v.width}' if v.width > 1 else '')
        lines.append(f'\tput_part(at, {v.name}, {size});')
        if i + 1 < len(call.req.vars):
            lines.append(f'\tat += obp_pad({size});')
    return lines


def op_function(spec, call):
    lines = [wrap(f'CUresult obc_call_op_{call.name}({op_params(call)})'), '{']
    var = (call.req.vars + call.rep.vars)[0] if call.klass == 'bulk' else None
    for v in call.req.vars:
        if v.cstr:
            lines += [f'\tsize_t len_{v.name} = strlen({v.name}) + 1;', f'\tif (len_{v.name} > {bound(spec, v.bound)})',
                      '\t\treturn CUDA_ERROR_INVALID_VALUE;']
    if var is None or var not in call.req.vars: # the log cuts bulk data into chunks
        lines += var_numbers(spec, call, 'return CUDA_ERROR_INVALID_VALUE;')
    for v in call.rep.vars:
        lines += [f'\tuint64_t len_{v.name} = {v.expr.to_c(lambda n: n)};', f'\tif (len_{v.name} > {bound(spec, v.bound)})',
                  '\t\treturn CUDA_ERROR_INVALID_VALUE;']
    value = lambda f: f'(uint32_t)len_{f.source.name}' if f.source.kind == 'cstr' else f.name
    if var is not None:
        lines += [f'\t{req_type(call)} head;', f'\t{req_type(call)} *req = &head;'] + store_fields(call, value)
        if var in call.req.vars:
            lines.append(f'\treturn obc_log_write({call.enum}, req, sizeof(*req), {var.name}, {var.expr.text});')
        else:
            lines.append(f'\treturn obc_log_read({call.enum}, req, sizeof(*req), ret_{var.name}, len_{var.name});')
        return '\n'.join(lines + ['}']) + '\n'
    lines += answer_buffer(call)
    lines += ['\tstruct obc_slot slot;', f'\tvoid *body = obc_log_begin(&slot, {call.enum}, (uint32_t)({sum_c(call)}));',
              '\tif (!body)', '\t\treturn obc_log_error();']
    if call.req.size:
        lines.append(f'\t{req_type(call)} *req = body;')
        lines += store_fields(call, value)
    if call.req.vars:
        lines += store_vars(call)
    lines += finish(call, lambda name: f'ret_{name}')
    return '\n'.join(lines + ['}']) + '\n'


def answer_buffer(call):
    """Made before the record is begun: between begin and commit nothing else happens."""
    if not call.rep.vars:
        return []
    total = ' + '.join(([f'sizeof({rep_type(call)})'] if call.rep.size else []) +
                       [f'obp_pad(len_{v.name}' + (f' * {v.width})' if v.width > 1 else ')') for v in call.rep.vars])
    return [f'\tuint32_t capacity = (uint32_t)({total});',
            '\tuint8_t *answer OB_CLEANUP(ob_freep) = malloc(capacity ? capacity : 1);',
            '\tif (!answer)', '\t\treturn CUDA_ERROR_OUT_OF_MEMORY;']


def finish(call, out, exact=False):
    if call.klass == 'async':
        return ['\treturn obc_log_commit(&slot);']
    if not call.rep.size and not call.rep.vars:
        return ['\treturn obc_log_call(&slot, NULL, 0, NULL);']
    if not call.rep.vars:
        lines = [f'\t{rep_type(call)} rep;', '\tuint32_t got = 0;',
                 '\tCUresult result = obc_log_call(&slot, &rep, sizeof(rep), &got);',
                 '\tif (got != sizeof(rep))', f'\t\treturn result ? result : bad_reply({call.enum});']
        if exact:
            lines += ['\tif (result)', '\t\treturn result;']
        return lines + load_fields(call, out, 'rep.') + ['\treturn result;']
    lines = ['\tuint32_t got = 0;', '\tCUresult result = obc_log_call(&slot, answer, capacity, &got);']
    if exact:
        lines += ['\tif (result)', '\t\treturn result;']
    fixed = f'sizeof({rep_type(call)})' if call.rep.size else '0'
    lines += [f'\tuint64_t from = {fixed};'] if call.rep.size else ['\tuint64_t from = 0;']
    if call.rep.size:
        lines += ['\tif (got < from)', f'\t\treturn result ? result : bad_reply({call.enum});',
                  f'\tconst {rep_type(call)} *rep = (const void *)answer;']
    for v in call.rep.vars:
        if exact:
            size = f'len_{v.name}' + (f' * {v.width}' if v.width > 1 else '')
            lines += [f'\tif (from + {size} > got)', f'\t\treturn bad_reply({call.enum});']
        else:
            size = f'rep->{v.name}_size'
            lines += [f'\tif ({size} > len_{v.name} || from + {size} > got)', f'\t\treturn result ? result : bad_reply({call.enum});']
        lines += [f'\tput({out(v.name)}, answer + from, {size});', f'\tfrom += obp_pad({size});']
        if not exact:
            lines.append(f'\t*{out(v.name)}_size = {size};')
    named = [f for f in call.rep.fields if f.source.kind != 'bytes' or f.source.array.isdigit()]
    return lines + load_fields(call, out, 'rep->', named) + ['\treturn result;']


def load_fields(call, out, access, fields=None):
    lines = []
    for f in call.rep.fields if fields is None else fields:
        if f.count > 1 or f.struct:
            lines.append(f'\tmemcpy({out(f.name)}, {access}{f.name}, sizeof({access}{f.name}));')
        else:
            cast = '' if call.op else f'({f.source.base})'
            lines.append(f'\t*{out(f.name)} = {cast}{access}{f.name};')
    return lines


def begin_function(spec, call):
    lines = [wrap(begin_prototype(call)), '{'] + var_numbers(spec, call, 'return NULL;')
    for v in call.req.vars:
        if v.cstr:
            lines += [f'\tuint64_t len_{v.name} = {v.name}_size;', f'\tif (len_{v.name} > {bound(spec, v.bound)})', '\t\treturn NULL;']
    lines += [f'\tvoid *body = obc_log_begin(slot, {call.enum}, (uint32_t)({sum_c(call)}));', '\tif (!body)', '\t\treturn NULL;',
              f'\t{req_type(call)} *req = body;']
    if call.req.pad:
        lines.append('\tmemset(req->pad_, 0, sizeof(req->pad_));')
    names = {n for v in call.req.vars for n in v.expr.names}
    lines += [f'\treq->{f.name} = {f.name};' for f in call.req.fields if f.name in names]
    lines.append('\tuint8_t *at = (uint8_t *)body + sizeof(*req);')
    for i, v in enumerate(call.req.vars):
        size = f'len_{v.name}' + (f' * {v.width}' if v.width > 1 else '')
        lines += [f'\tpad(at, {size});', f'\t*ret_{v.name} = (void *)at;']
        if i + 1 < len(call.req.vars):
            lines.append(f'\tat += obp_pad({size});')
    return '\n'.join(lines + ['\treturn req;', '}']) + '\n'


# ---- regular CUDA calls ----

def call_function(spec, call):
    cached = call.klass == 'cached'
    lines = [wrap(f'CUresult obc_call_{call.name}({call.prototype()})'), '{']
    for p in call.params:
        if p.stars and p.way != 'addr' and p.array is None:
            lines += [f'\tif (!{p.name})', '\t\treturn CUDA_ERROR_INVALID_VALUE;']
    if 'noctx' not in call.words:
        lines += ['\tstruct obf_ctx *ctx;', '\tCUresult bad = obf_ctx_enter(&ctx);', '\tif (bad)', '\t\treturn bad;']
    lines += var_numbers(spec, call, 'return CUDA_ERROR_INVALID_VALUE;')
    for v in call.rep.vars:
        lines += [f'\tuint64_t len_{v.name} = {v.expr.to_c(lambda n: n)};', f'\tif (len_{v.name} > {bound(spec, v.bound)})',
                  '\t\treturn CUDA_ERROR_INVALID_VALUE;']
    for v in call.req.vars + call.rep.vars:
        lines += [f'\tif (len_{v.name} && !{v.name})', '\t\treturn CUDA_ERROR_INVALID_VALUE;']
    for f in call.req.fields:
        kind = spec.handles.get(f.source.base)
        if kind:
            lines += [f'\tuint64_t id_{f.name};', f'\tCUresult wrong_{f.name} = obc_wire_{kind}({f.name}, &id_{f.name});',
                      f'\tif (wrong_{f.name})', f'\t\treturn wrong_{f.name};']
        elif f.source.base == 'CUdevice':
            lines += [f'\tuint32_t number_{f.name};', f'\tCUresult wrong_{f.name} = obc_wire_device({f.name}, &number_{f.name});',
                      f'\tif (wrong_{f.name})', f'\t\treturn wrong_{f.name};']
    if cached:
        return '\n'.join(lines + cached_tail(spec, call) + ['}']) + '\n'
    lines += answer_buffer(call)
    lines += ['\tstruct obc_slot slot;', f'\tvoid *body = obc_log_begin(&slot, {call.enum}, (uint32_t)({sum_c(call)}));',
              '\tif (!body)', '\t\treturn obc_log_error();']
    if call.req.size:
        lines.append(f'\t{req_type(call)} *req = body;')
        lines += store_fields(call, lambda f: call_value(spec, f))
    if call.req.vars:
        lines += store_vars(call)
    lines += finish(call, lambda name: name, exact=True)
    return '\n'.join(lines + ['}']) + '\n'


def call_value(spec, f):
    p = f.source
    if f.struct:
        return p.name
    if p.way == 'addr':
        return f'(uint64_t)(uintptr_t){p.name}'
    if p.base in spec.handles:
        return f'id_{p.name}'
    if p.base == 'CUdevice':
        return f'({f.ctype})number_{p.name}'
    value = f'*{p.name}' if p.stars else p.name
    return f'({f.ctype}){value}'


def cached_tail(spec, call):
    """A cached call: the request's bytes are the key. One buffer holds the request, one the answer."""
    v = call.rep.vars[0]
    size = f'len_{v.name}' + (f' * {v.width}' if v.width > 1 else '')
    lines = [f'\tuint8_t key[CACHE_KEY];', f'\tuint64_t key_size = {sum_c(call)};',
             f'\tif (key_size > sizeof(key) || {size} > CACHE_ANSWER)', '\t\treturn CUDA_ERROR_INVALID_VALUE;',
             '\tmemset(key, 0, sizeof(key));'] + (['\tuint8_t *body = key;'] if call.req.vars else []) + [f'\t{req_type(call)} fixed;', f'\t{req_type(call)} *req = &fixed;']
    lines += store_fields(call, lambda f: call_value(spec, f))
    lines += ['\tmemcpy(key, req, sizeof(*req));'] + (store_vars(call) if call.req.vars else [])
    lines.append(f'\treturn cached_call({call.enum}, key, (uint32_t)key_size, {v.name}, (uint32_t)({size}));')
    return lines


CACHE = '''/* Answers that never change in a session: a small table, oldest entry replaced. */
#define CACHE_ENTRIES 16
#define CACHE_KEY 256
#define CACHE_ANSWER 128

static struct {
	pthread_mutex_t lock;
	unsigned next;
	struct {
		uint16_t opcode;
		uint32_t key_size, answer_size;
		uint8_t key[CACHE_KEY], answer[CACHE_ANSWER];
	} entries[CACHE_ENTRIES];
} cache = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool cache_find(uint16_t opcode, const void *key, uint32_t key_size, void *ret_answer, uint32_t answer_size)
{
	bool found = false;
	pthread_mutex_lock(&cache.lock);
	for (unsigned i = 0; i < CACHE_ENTRIES && !found; i++) {
		if (cache.entries[i].opcode != opcode || cache.entries[i].key_size != key_size ||
			cache.entries[i].answer_size != answer_size || memcmp(cache.entries[i].key, key, key_size))
			continue;
		memcpy(ret_answer, cache.entries[i].answer, answer_size);
		found = true;
	}
	pthread_mutex_unlock(&cache.lock);
	return found;
}

static CUresult cached_call(uint16_t opcode, const void *key, uint32_t key_size, void *ret_answer, uint32_t answer_size)
{
	if (cache_find(opcode, key, key_size, ret_answer, answer_size))
		return CUDA_SUCCESS;
	struct obc_slot slot;
	void *body = obc_log_begin(&slot, opcode, key_size);
	if (!body)
		return obc_log_error();
	memcpy(body, key, key_size);
	uint32_t got = 0;
	uint8_t answer[CACHE_ANSWER];
	CUresult result = obc_log_call(&slot, answer, answer_size, &got);
	if (result)
		return result;
	if (got != answer_size)
		return bad_reply(opcode);
	put(ret_answer, answer, answer_size);
	pthread_mutex_lock(&cache.lock);
	unsigned i = cache.next++ % CACHE_ENTRIES;
	cache.entries[i].opcode = opcode;
	cache.entries[i].key_size = key_size;
	cache.entries[i].answer_size = answer_size;
	memcpy(cache.entries[i].key, key, key_size);
	put(cache.entries[i].answer, answer, answer_size);
	pthread_mutex_unlock(&cache.lock);
	return CUDA_SUCCESS;
}
'''


def calls_h(spec):
    out = ['struct obc_slot; /* client-shim/log.h */\n', '/* Written by hand: the wire id of a handle that a regular call names. */']
    out += [f'CUresult obc_wire_{kind}({ctype} handle, uint64_t *ret_id);' for ctype, kind in spec.handles.items()]
    out.append('/* Written by hand: the number on the wire of a device that a regular call names. */')
    out.append('CUresult obc_wire_device(CUdevice device, uint32_t *ret_number);')
    out.append('\n/* Operations. Sizes beyond their maximum: CUDA_ERROR_INVALID_VALUE. Outputs are written when the reply carries them. */')
    for call in spec.wire_calls():
        if call.op:
            out.append(wrap(f'CUresult obc_call_op_{call.name}({op_params(call)});'))
    out.append('\n/*\n * The same, to be filled in place: the sizes are stored, every other field must be, then the parts, then obc_log_commit.'
               '\n * NULL: a size is beyond its maximum, or the log refuses (obc_log_error).\n */')
    out += [wrap(begin_prototype(c) + ';') for c in spec.wire_calls() if needs_begin(c)]
    out.append('\n/* Regular calls. */')
    out += [wrap(f'CUresult obc_call_{c.name}({c.prototype()});') for c in spec.wire_calls() if not c.op]
    return header('OBC_CALLS_H', 'The calls on the wire, seen from the client.', ['"base/cuda_types.h"', '"protocol/obp_calls.h"'],
                  '\n'.join(out))


def calls_c(spec):
    out = ['''static inline void put(void *dst, const void *src, size_t size)
{
	if (size)
		memcpy(dst, src, size);
}

/* Clears what pads a part that the caller fills. */
static inline void pad(uint8_t *at, size_t size)
{
	if (size & 7)
		memset(at + size, 0, 8 - (size & 7));
}

static inline void put_part(uint8_t *at, const void *src, size_t size)
{
	put(at, src, size);
	pad(at, size);
}

/* The log takes only answers whose fixed part is whole; here the parts behind it say more than came. */
static CUresult bad_reply(uint16_t opcode)
{
	ob_log(OB_LOG_ERROR, "the server broke the protocol: the parts of its reply to %s do not fit the reply's size", obp_call_info(opcode)->name);
	obc_log_fail(OB_ERR_PROTOCOL);
	return ob_err_to_cuda(OB_ERR_PROTOCOL);
}
''']
    if any(c.klass == 'cached' for c in spec.wire_calls()):
        out.append(CACHE)
    for call in spec.wire_calls():
        out.append(op_function(spec, call) if call.op else call_function(spec, call))
        if needs_begin(call):
            out.append(begin_function(spec, call))
    return source('The calls on the wire, seen from the client.',
                  ['"protocol/obc_calls.h"', '', '<pthread.h>', '<stdlib.h>', '<string.h>', '', '"base/cleanup.h"', '"base/err.h"',
                   '"base/log.h"', '"client-shim/log.h"', '"front/front.h"'], '\n'.join(out)).replace('#include \n', '\n')
