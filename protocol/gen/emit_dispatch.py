# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""server: maps each record to the function that executes it. Operations are written by hand; the
functions of regular calls are generated."""

from emit import body_start, header, in_req, rep_type, req_type, source, wrap
from model import STACK_MAX


def op_handler(call):
    params = ['struct obs_exec *x', 'const struct obp_record *rec']
    if call.req.size:
        params.append(f'const {req_type(call)} *req')
    params += [f'const {"char" if v.cstr else "void" if v.wire == "u8" else v.ctype} *{v.name}' for v in call.req.vars]
    return f'void obs_op_{call.name}({", ".join(params)})'


def dispatch_h(spec):
    kinds = ''.join(f'\tOBS_KIND_{k.upper()} = {i + 1},\n' for i, k in enumerate(spec.handles.values()))
    out = [f'''struct obs_exec;

/* Kinds of handles of regular calls. */
enum obs_kind {{
{kinds}\tOBS_KIND_END = {len(spec.handles) + 1}
}};

/*
 * Checks every bound of a record's body, then executes the record. `size` = record size - header. A body that violates a bound, or an
 * unknown opcode, is reported by obs_violation. The body is 8-byte aligned and valid until the call returns.
 */
void obs_dispatch(struct obs_exec *x, const struct obp_record *rec, const void *body, uint32_t size);

/* ---- written by hand in server/ ---- */

/* The client broke the protocol. Ends the session, now or after the return. why: a constant string. */
void obs_violation(struct obs_exec *x, const struct obp_record *rec, const char *why);
/* Looks up the driver's handle for the client's id. False: there is none, and that was reported. */
bool obs_handle_get(struct obs_exec *x, const struct obp_record *rec, enum obs_kind kind, uint64_t id, void **ret_handle);
/* Checks the client's id for a handle that a call will create. False: out of range or in use; obs_violation was called. */
bool obs_handle_vacant(struct obs_exec *x, const struct obp_record *rec, enum obs_kind kind, uint64_t id);
/* Whether one more handle may be created: CUDA_SUCCESS, or the error. */
CUresult obs_handle_room(struct obs_exec *x);
/* Assigns `handle` to the id. NULL: it could not be created, and the error was reported. */
void obs_handle_put(struct obs_exec *x, const struct obp_record *rec, enum obs_kind kind, uint64_t id, void *handle);
/* Looks up a handle that is about to be destroyed. False: there is none, and the reply was sent. The id is valid until obs_handle_gone. */
bool obs_handle_drop(struct obs_exec *x, const struct obp_record *rec, enum obs_kind kind, uint64_t id, void **ret_handle);
void obs_handle_gone(struct obs_exec *x, enum obs_kind kind, uint64_t id);
const struct obs_driver *obs_exec_driver(struct obs_exec *x);
/* Replies to rec. The body, `size` bytes, is copied. */
void obs_reply(struct obs_exec *x, const struct obp_record *rec, CUresult result, const void *body, uint32_t size);
/* Reports the result of a call without a reply. */
void obs_async_result(struct obs_exec *x, const struct obp_record *rec, CUresult result);

/*
 * The operations. req and the variable parts point into the body. The sizes are in req and do not exceed their maxima.
 * A string's last byte is its only NUL. An operation that has a reply calls obs_reply with its obp_<name>_rep.
 */''']
    out += [wrap(op_handler(c) + ';') for c in spec.wire_calls() if c.op]
    return header('OBS_DISPATCH_H', 'Executes records.',
                  ['<stdbool.h>', '<stdint.h>', '', '"protocol/obp_calls.h"', '"protocol/obs_driver.h"'],
                  '\n'.join(out)).replace('#include \n', '\n')


def run_op(call):
    names = ['x', 'rec'] + (['body'] if call.req.size else [])
    lines = [f'static void run_{call.name}(struct obs_exec *x, const struct obp_record *rec, const void *body)', '{']
    if call.req.vars:
        lines.append(f'\tconst {req_type(call)} *req = body;')
        lines.append('\tconst uint8_t *at = (const uint8_t *)body + sizeof(*req);')
        offset = 'at'
        for v in call.req.vars:
            cast = 'char' if v.cstr else 'void' if v.wire == 'u8' else v.ctype
            names.append(f'(const {cast} *)({offset})' if offset != 'at' or cast != 'void' else 'at')
            offset += f' + obp_pad({v.bytes(v.length(in_req))})'
        if len(call.req.vars) == 1 and not any('req' in n for n in names):
            lines[-2:] = [f'\tconst uint8_t *at = (const uint8_t *)body + sizeof({req_type(call)});']
    if not call.req.size:
        lines.append('\t(void)body;')
    lines.append(f'\tobs_op_{call.name}({", ".join(names)});')
    return '\n'.join(lines + ['}']) + '\n'


# ---- calls of the driver ----

def fixed_value(f):
    """Returns the C expression for a field of the request, in the driver's type."""
    leaf = f.leaf
    if leaf.kind:
        return f'({leaf.base})' + ('' if leaf.pointer_handle else '(uintptr_t)') + f'h_{f.name}'
    if leaf.address:
        return f'({f.source.ctype() if f.source.way == "addr" else leaf.base + " *"})(uintptr_t)req->{f.name}'
    return f'({leaf.base})req->{f.name}'


def handles_c(call):
    """Statements that look up the driver's handles for the ids of the request."""
    lines = []
    for f in call.req.fields:
        if not f.leaf or not f.leaf.kind:
            continue
        kind = f'OBS_KIND_{f.leaf.kind.upper()}'
        if f.source.new:
            lines += [f'\tif (!obs_handle_vacant(x, rec, {kind}, req->{f.name}))', '\t\treturn;']
            continue
        get = 'obs_handle_drop' if f.source.drop else 'obs_handle_get'
        get = f'{get}(x, rec, {kind}, req->{f.name}, &h_{f.name})'
        if f.source.opt:
            lines += [f'\tvoid *h_{f.name} = NULL;', f'\tif ((req->given >> {f.source.given} & 1) && !{get})', '\t\treturn;']
        else:
            lines += [f'\tvoid *h_{f.name};', f'\tif (!{get})', '\t\treturn;']
    return lines


def parts_c(call):
    """Pointers to the variable parts of the request."""
    if not call.req.vars:
        return []
    lines = ['\tconst uint8_t *at = ' + body_start(call) + ';']
    for i, v in enumerate(call.req.vars):
        lines.append(f'\tconst uint8_t *part_{v.name} = at;')
        if i + 1 < len(call.req.vars):
            lines.append(f'\tat += obp_pad({v.bytes(v.length(in_req))});')
    return lines


def in_array(call, p):
    """An array that the driver reads: a pointer into the record, or a copy that is assembled from
    its parts."""
    parts = call.req.of(p)
    v = parts[0]
    if v.cstr:
        return [f'\tconst char *{p.name} = (const char *)part_{v.name};']
    if not v.leaf.path and not v.leaf.kind:
        return [f'\tconst {p.base} *{p.name} = (const void *)part_{v.name};']
    lines = [f'\t{p.base} {p.name}[OBP_{v.bound}];', f'\t_Static_assert(sizeof({p.name}) <= {STACK_MAX}, "lower OBP_{v.bound}");',
             f'\tmemset({p.name}, 0, sizeof({p.name}));']
    for v in parts:
        n = v.count(in_req)
        place = v.leaf.place(p, 'i')
        if v.leaf.kind:
            cast = f'({v.leaf.base})' + ('' if v.leaf.pointer_handle else '(uintptr_t)')
            lines += [f'\tfor (uint64_t i = 0; i < {n}; i++) {{', '\t\tvoid *one;',
                      f'\t\tif (!obs_handle_get(x, rec, OBS_KIND_{v.leaf.kind.upper()}, ((const uint64_t *)(const void *)part_{v.name})[i], &one))',
                      '\t\t\treturn;', f'\t\t{place} = {cast}one;', '\t}']
        else:
            lines.append('\t' + wrap(f'obp_scatter(&{p.name}->{v.leaf.path}, sizeof(*{p.name}), part_{v.name}, {v.width * v.times}, {n});'))
    return lines


def one_object(call, p):
    """The object for a parameter that points to one object."""
    fields = call.req.of(p) if not p.new and p.way in ('in', 'inout') else []
    if len(fields) == 1 and not fields[0].leaf.path and not fields[0].is_array:
        return [f'\t{p.base} {p.name} = {fixed_value(fields[0])};']
    lines = [f'\t{p.base} {p.name};', f'\tmemset(&{p.name}, 0, sizeof({p.name}));']
    for f in fields:
        place = f.leaf.place(p, local=p.name)
        if f.is_array:
            lines.append(f'\tmemcpy({"&" if f.opaque else ""}{place}, req->{f.name}, sizeof({place}));')
        else:
            lines.append(f'\t{place} = {fixed_value(f)};')
    return lines


def arguments_c(call):
    """Returns (declarations, arguments) of the driver's call."""
    lines, values = [], []
    for p in call.params:
        text = p.name
        if p.kind == 'cstr' or (p.by_array and p.way == 'in'):
            lines += in_array(call, p)
        elif p.by_array:
            v = call.rep.of(p)[0]
            lines += [f'\t{"uint8_t" if p.base == "void" else p.base} {p.name}[OBP_{v.bound}];',
                      f'\t_Static_assert(sizeof({p.name}) <= {STACK_MAX}, "lower OBP_{v.bound}");', f'\tmemset({p.name}, 0, sizeof({p.name}));']
        elif p.pointer:
            lines += one_object(call, p)
            text = '&' + p.name
        elif call.req.of(p) and (call.req.of(p)[0].leaf.path or call.req.of(p)[0].opaque):
            lines += one_object(call, p)  # a struct by value
        else:
            text = fixed_value(call.req.of(p)[0])
        if p.opt:
            text = f'(req->given >> {p.given} & 1) ? {text} : NULL'
        values.append(text)
    return lines, values


def answer_c(call):
    """Statements that send the reply."""
    if not call.rep.size and not call.rep.vars:
        return ['\tobs_reply(x, rec, result, NULL, 0);']
    if not call.rep.vars:
        return [f'\t{rep_type(call)} rep;', '\tmemset(&rep, 0, sizeof(rep));'] + reply_fields(call, 'rep.') + [
            '\tobs_reply(x, rec, result, &rep, result ? 0 : sizeof(rep));']
    v = call.rep.vars[0]
    if not call.rep.size and len(call.rep.vars) == 1 and not v.leaf.path:
        return [f'\tobs_reply(x, rec, result, {v.name}, result ? 0 : (uint32_t)({v.bytes(v.length(in_req))}));']
    most = ' + '.join(([f'sizeof({rep_type(call)})'] if call.rep.size else []) + [f'({v.bytes(v.most)} + 7u) / 8u * 8u' for v in call.rep.vars])
    lines = [f'\t_Alignas(8) uint8_t answer[{most}];', '\tmemset(answer, 0, sizeof(answer));', '\tuint64_t used = 0;']
    if call.rep.size:
        lines[-1:] = [f'\t{rep_type(call)} *rep = (void *)answer;'] + reply_fields(call, 'rep->') + ['\tuint64_t used = sizeof(*rep);']
    lone = not call.rep.size and len(call.rep.vars) == 1
    for v in call.rep.vars:
        length = v.length(in_req)
        if v.leaf.path:
            lines.append('\t' + wrap(f'obp_gather(answer + used, &{v.source.name}->{v.leaf.path}, sizeof(*{v.source.name}), {v.width * v.times}, '
                                     f'{v.count(in_req)});'))
        else:
            lines.append(f'\tmemcpy(answer + used, {v.name}, {v.bytes(length)});')
        lines.append(f'\tused += {v.bytes(length)};' if lone else f'\tused += obp_pad({v.bytes(length)});')
    return lines + ['\tobs_reply(x, rec, result, answer, result ? 0 : (uint32_t)used);']


def reply_fields(call, access):
    lines = []
    for f in call.rep.fields:
        place = f.leaf.place(f.source, local=f.source.name)
        if f.is_array:
            lines.append(f'\tmemcpy({access}{f.name}, {"&" if f.opaque else ""}{place}, sizeof({access}{f.name}));')
        else:
            lines.append(f'\t{access}{f.name} = ({f.ctype}){"(uintptr_t)" if f.leaf.address else ""}{place};')
    return lines


def driver_call(call, values):
    """The driver's call, with the entry of the handle that it creates or destroys."""
    text = f'obs_exec_driver(x)->{call.name}({", ".join(values)})'
    made = call.new or call.drop
    if not made:
        return ['\t' + wrap(f'CUresult result = {text};')]
    kind = f'OBS_KIND_{call.req.of(made)[0].leaf.kind.upper()}'
    if call.drop:
        lines = ['\t' + wrap(f'CUresult result = {text};')]
        end = f'obs_handle_gone(x, {kind}, req->{made.name});'
        return lines + ([f'\t{end}'] if call.klass == 'async' else ['\tif (!result)', f'\t\t{end}'])
    lines = ['\tCUresult result = obs_handle_room(x);', '\tif (!result)', '\t\t' + wrap(f'result = {text};')]
    handle = f'(void *)(uintptr_t){made.name}'
    if call.klass == 'async':
        return lines + [f'\tobs_handle_put(x, rec, {kind}, req->{made.name}, result ? NULL : {handle});']
    return lines + ['\tif (!result)', f'\t\tobs_handle_put(x, rec, {kind}, req->{made.name}, {handle});']


def run_call(call):
    lines = [f'static void run_{call.name}(struct obs_exec *x, const struct obp_record *rec, const void *body)', '{']
    if call.req.size:
        lines.append(f'\tconst {req_type(call)} *req = body;')
    elif not call.req.vars:
        lines.append('\t(void)body;')
    declarations, values = arguments_c(call)
    lines += handles_c(call) + parts_c(call) + declarations + driver_call(call, values)
    for f in call.rep.fields:
        if f.bound:  # the driver may return more elements than fit into the reply
            lines += [f'\tif (!result && {f.source.name} > {f.most})', '\t\tresult = CUDA_ERROR_NOT_SUPPORTED;']
    lines += ['\tobs_async_result(x, rec, result);'] if call.klass == 'async' else answer_c(call)
    return '\n'.join(lines + ['}']) + '\n'


def dispatch_c(spec):
    out = []
    for call in spec.wire_calls():
        out.append(run_op(call) if call.op else run_call(call))
    out.append('static const struct {\n\tvoid (*run)(struct obs_exec *x, const struct obp_record *rec, const void *body);\n'
               '\tuint32_t exact; /* size of a body that needs no other check; UINT32_MAX: obp_check_req checks it */\n'
               '} table[OBP_OPCODE_END] = {')
    for call in spec.wire_calls():
        simple = not call.req.vars and not call.rep.vars and not any(f.most for f in call.req.fields)
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
    return source('Executes records.', ['"protocol/obs_dispatch.h"', '', '<string.h>'],
                  '\n'.join(out)).replace('#include \n', '\n')
