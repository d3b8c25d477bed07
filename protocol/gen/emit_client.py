# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""client-shim: for each call a function that writes its record (obc_call_*), and for some a
function that begins a record to be filled in place."""

import emit_client_calls as regular
from emit import header, rep_type, req_type, source, wrap


def op_params(call):
    """Parameters of obc_call_op_<name>: those of the specification; outputs are pointers with the
    prefix ret_."""
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


def sum_c(call):
    parts = [f'sizeof({req_type(call)})'] if call.req.size else []
    parts += [f'obp_pad({v.bytes("len_" + v.name)})' for v in call.req.vars]
    return ' + '.join(parts) or '0'


def var_numbers(call, fail):
    lines = []
    for v in call.req.vars:
        if v.cstr:
            continue
        lines += [f'\tuint64_t len_{v.name} = {v.length(lambda n: n)};', f'\tif (len_{v.name} > {v.most})', f'\t\t{fail}']
    return lines


def store_fields(call, value):
    lines = []
    for f in call.req.fields:
        if f.is_array:
            lines.append(f'\tmemcpy(req->{f.name}, {value(f)}, sizeof(req->{f.name}));')
        else:
            lines.append(f'\treq->{f.name} = {value(f)};')
    if call.req.pad:
        lines.append('\tmemset(req->pad_, 0, sizeof(req->pad_));')
    return lines


def store_vars(call):
    """Copies the variable parts after the fixed part and clears their padding."""
    lines = ['\tuint8_t *at = (uint8_t *)body' + (f' + sizeof(*req);' if call.req.size else ';')]
    for i, v in enumerate(call.req.vars):
        size = v.bytes('len_' + v.name)
        lines.append(f'\tput_part(at, {v.name}, {size});')
        if i + 1 < len(call.req.vars):
            lines.append(f'\tat += obp_pad({size});')
    return lines


def op_function(call):
    lines = [wrap(f'CUresult obc_call_op_{call.name}({op_params(call)})'), '{']
    var = (call.req.vars + call.rep.vars)[0] if call.klass == 'bulk' else None
    for v in call.req.vars:
        if v.cstr:
            lines += [f'\tsize_t len_{v.name} = strlen({v.name}) + 1;', f'\tif (len_{v.name} > {v.most})',
                      '\t\treturn CUDA_ERROR_INVALID_VALUE;']
    if var is None or var not in call.req.vars: # the log cuts bulk data into chunks
        lines += var_numbers(call, 'return CUDA_ERROR_INVALID_VALUE;')
    for v in call.rep.vars:
        lines += [f'\tuint64_t len_{v.name} = {v.expr.to_c(lambda n: n)};', f'\tif (len_{v.name} > {v.most})',
                  '\t\treturn CUDA_ERROR_INVALID_VALUE;']
    value = lambda f: f'(uint32_t)len_{f.source.name}' if f.source.kind == 'cstr' else f.name
    if var is not None:
        lines += [f'\t{req_type(call)} head;', f'\t{req_type(call)} *req = &head;'] + store_fields(call, value)
        if var in call.req.vars:
            lines.append(f'\treturn obc_transfer_send({call.enum}, req, sizeof(*req), {var.name}, {var.expr.text});')
        else:
            lines.append(f'\treturn obc_log_read({call.enum}, req, sizeof(*req), ret_{var.name}, len_{var.name});')
        return '\n'.join(lines + ['}']) + '\n'
    lines += regular.answer_buffer(call)
    lines += ['\tstruct obc_slot slot;', f'\tvoid *body = obc_log_begin(&slot, {call.enum}, (uint32_t)({sum_c(call)}));',
              '\tif (!body)', '\t\treturn obc_log_error();']
    if call.req.size:
        lines.append(f'\t{req_type(call)} *req = body;')
        lines += store_fields(call, value)
    if call.req.vars:
        lines += store_vars(call)
    lines += finish(call, lambda name: f'ret_{name}')
    return '\n'.join(lines + ['}']) + '\n'


def finish(call, out):
    if call.klass == 'async':
        return ['\treturn obc_log_commit(&slot);']
    if not call.rep.size and not call.rep.vars:
        return ['\treturn obc_log_call(&slot, NULL, 0, NULL);']
    if not call.rep.vars:
        lines = [f'\t{rep_type(call)} rep;', '\tuint32_t got = 0;',
                 '\tCUresult result = obc_log_call(&slot, &rep, sizeof(rep), &got);',
                 '\tif (got != sizeof(rep))', f'\t\treturn result ? result : bad_reply({call.enum});']
        return lines + load_fields(call, out, 'rep.') + ['\treturn result;']
    lines = ['\tuint32_t got = 0;', '\tCUresult result = obc_log_call(&slot, answer, capacity, &got);']
    fixed = f'sizeof({rep_type(call)})' if call.rep.size else '0'
    lines += [f'\tuint64_t from = {fixed};'] if call.rep.size else ['\tuint64_t from = 0;']
    if call.rep.size:
        lines += ['\tif (got < from)', f'\t\treturn result ? result : bad_reply({call.enum});',
                  f'\tconst {rep_type(call)} *rep = (const void *)answer;']
    for v in call.rep.vars:
        size = f'rep->{v.name}_size'
        lines += [f'\tif ({size} > len_{v.name} || from + {size} > got)', f'\t\treturn result ? result : bad_reply({call.enum});',
                  f'\tput({out(v.name)}, answer + from, {size});', f'\tfrom += obp_pad({size});', f'\t*{out(v.name)}_size = {size};']
    named = [f for f in call.rep.fields if f.source.kind != 'bytes' or f.source.array.isdigit()]
    return lines + load_fields(call, out, 'rep->', named) + ['\treturn result;']


def load_fields(call, out, access, fields=None):
    lines = []
    for f in call.rep.fields if fields is None else fields:
        if f.is_array:
            lines.append(f'\tmemcpy({out(f.name)}, {access}{f.name}, sizeof({access}{f.name}));')
        else:
            lines.append(f'\t*{out(f.name)} = {access}{f.name};')
    return lines


def begin_function(call):
    lines = [wrap(begin_prototype(call)), '{'] + var_numbers(call, 'return NULL;')
    for v in call.req.vars:
        if v.cstr:
            lines += [f'\tuint64_t len_{v.name} = {v.name}_size;', f'\tif (len_{v.name} > {v.most})', '\t\treturn NULL;']
    lines += [f'\tvoid *body = obc_log_begin(slot, {call.enum}, (uint32_t)({sum_c(call)}));', '\tif (!body)', '\t\treturn NULL;',
              f'\t{req_type(call)} *req = body;']
    if call.req.pad:
        lines.append('\tmemset(req->pad_, 0, sizeof(req->pad_));')
    names = {n for v in call.req.vars for n in v.expr.names}
    lines += [f'\treq->{f.name} = {f.name};' for f in call.req.fields if f.name in names]
    lines.append('\tuint8_t *at = (uint8_t *)body + sizeof(*req);')
    for i, v in enumerate(call.req.vars):
        size = v.bytes('len_' + v.name)
        lines += [f'\tpad(at, {size});', f'\t*ret_{v.name} = (void *)at;']
        if i + 1 < len(call.req.vars):
            lines.append(f'\tat += obp_pad({size});')
    return '\n'.join(lines + ['\treturn req;', '}']) + '\n'


def calls_h(spec):
    out = ['struct obc_slot; /* client-shim/session/log.h */\n', '/* Returns the wire id of a handle. Written by hand, except for kinds of handles that generated calls create. */']
    out += [f'CUresult obc_wire_{kind}({ctype} handle, uint64_t *ret_id);' for ctype, kind in spec.handles.items()]
    out.append('/* Returns the number of a device on the wire. Written by hand. */')
    out.append('CUresult obc_wire_device(CUdevice device, uint32_t *ret_number);')
    out.append('/* The inverse. CU_DEVICE_INVALID: not visible to the program. Written by hand. */')
    out.append('CUdevice obc_program_device(int number);')
    out.append('\n/* Number of lines of opcodes.lock that the server knows. Set from the welcome, before the first call. */')
    out.append('extern uint32_t obc_lines_known_first;\n#define obc_lines_known OBC_HERE(obc_lines_known_first)')
    out.append('\n/* Operations. A size above its maximum: CUDA_ERROR_INVALID_VALUE. Outputs are written if the reply has them. */')
    for call in spec.wire_calls():
        if call.op:
            out.append(wrap(f'CUresult obc_call_op_{call.name}({op_params(call)});'))
    out.append('\n/*\n * The same without a copy. The function stores the sizes; the caller fills in all other fields and the parts, then calls\n * obc_log_commit.'
               ' NULL: a size is above its maximum, or the log failed (obc_log_error).\n */')
    out += [wrap(begin_prototype(c) + ';') for c in spec.wire_calls() if needs_begin(c)]
    out.append('\n/* Regular calls. */')
    out += [wrap(f'CUresult obc_call_{c.name}({c.prototype()});') for c in spec.wire_calls() if not c.op]
    return header('OBC_CALLS_H', 'The calls on the wire, seen from the client.', ['"base/cuda_types.h"', '"client-shim/session/server.h"', '"protocol/obp_calls.h"'],
                  '\n'.join(out))


def calls_c(spec):
    out = ['''static inline void put(void *dst, const void *src, size_t size)
{
	if (size)
		memcpy(dst, src, size);
}

/* Clears the padding of a part that the caller fills in. */
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

/* The log has checked that the fixed part is complete; the sizes of the variable parts do not match the reply. */
static CUresult bad_reply(uint16_t opcode)
{
	ob_log(OB_LOG_ERROR, "the server broke the protocol: the parts of its reply to %s do not fit the reply's size", obp_call_info(opcode)->name);
	obc_log_fail(OB_ERR_PROTOCOL);
	return ob_err_to_cuda(OB_ERR_PROTOCOL);
}
''']
    out.append('OBC_PER_SERVER uint32_t obc_lines_known_first = OBP_LINES;\n')
    if any(c.klass == 'cached' for c in spec.wire_calls()):
        out.append(regular.CACHE)
    out += regular.made_tables(spec)
    out += regular.member_asserts(spec)
    for call in spec.wire_calls():
        out.append(op_function(call) if call.op else regular.call_function(spec, call))
        if needs_begin(call):
            out.append(begin_function(call))
    return source('The calls on the wire, seen from the client.',
                  ['"protocol/obc_calls.h"', '', '<pthread.h>', '<stdlib.h>', '<string.h>', '', '"base/cleanup.h"', '"base/err.h"',
                   '"base/hash.h"', '"base/ids.h"', '"base/log.h"', '"client-shim/session/log.h"', '"client-shim/session/transfer.h"', '"front/front.h"'], '\n'.join(out)).replace('#include \n', '\n')
