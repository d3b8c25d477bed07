# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""protocol: opcodes, structs of bodies, the table of calls for protocol/call.h."""

from emit import header, in_req, rep_type, req_type, source

FLAGS = {'noctx': 'OBP_CALL_NOCTX', 'blocks': 'OBP_CALL_BLOCKS'}


def body_struct(name, body, where):
    if not body.size:
        return ''
    lines = [f'struct {name} {{']
    lines += [f'\t{field.decl()};' for field in body.fields]
    if body.pad:
        lines.append(f'\tuint8_t pad_[{body.pad}]; /* 0 */')
    lines.append('};')
    lines.append(f'_Static_assert(sizeof(struct {name}) == {body.size}, "{where}");')
    for field in body.fields:
        lines.append(f'_Static_assert(offsetof(struct {name}, {field.name}) == {field.offset}, "{where}");')
    return '\n'.join(lines) + '\n'


def calls_h(spec):
    out = []
    for name, (value, comment) in spec.consts.items():
        if comment is None:
            continue  # defined in format.h
        suffix = 'u' if value < 1 << 32 else 'ull'
        text = f'0x{value:x}' if value > 0xffff else str(value)
        out.append(f'#define OBP_{name} {text}{suffix}' + (f' /* {comment} */' if comment else ''))
    out.append('\nenum obp_opcode {')
    out += [f'\t{c.enum} = 0x{c.opcode:04x},' for c in spec.wire_calls()]
    out.append('};')
    out.append(f'#define OBP_OPCODE_END 0x{max(spec.by_opcode) + 1:04x}\n')
    out.append(f'''/*
 * A server reports in its welcome how many lines of opcodes.lock it knows. Without that report it knows OBP_LINES_FIRST lines. An opcode
 * that it does not know ends the session.
 */
#define OBP_LINES {spec.lines}u
#define OBP_LINES_FIRST {spec.first_lines}u''')
    out += [f'#define OBP_LINE_{c.name} {c.line}u' for c in spec.wire_calls() if spec.newer(c)]
    out.append('')
    for call in spec.wire_calls():
        if call.doc:
            out.append(f'/* {call.doc} */')
        for kind, body in (('req', call.req), ('rep', call.rep)):
            text = body_struct(f'obp_{call.name}_{kind}', body, f'wire: {call.name}')
            if text:
                out.append(text)
    out.append('''/* enum obp_call_flags, indexed by opcode; 0: no such call. */
extern const uint8_t obp_opcode_flags[OBP_OPCODE_END];

static inline bool obp_op_noctx(uint16_t opcode)
{
	return opcode < OBP_OPCODE_END && obp_opcode_flags[opcode] & OBP_CALL_NOCTX;
}

static inline bool obp_op_blocks(uint16_t opcode)
{
	return opcode < OBP_OPCODE_END && obp_opcode_flags[opcode] & OBP_CALL_BLOCKS;
}

static inline bool obp_op_makes(uint16_t opcode)
{
	return opcode < OBP_OPCODE_END && obp_opcode_flags[opcode] & OBP_CALL_MAKES;
}

static inline bool obp_op_replies(uint16_t opcode)
{
	return opcode < OBP_OPCODE_END && obp_opcode_flags[opcode] & OBP_CALL_REPLIES;
}
''')
    return header('OBP_CALLS_H', 'Opcodes and bodies of the calls on the wire.',
                  ['<stdbool.h>', '<stddef.h>', '<stdint.h>', '', '"protocol/call.h"', '"protocol/format.h"'],
                  '\n'.join(out)).replace('#include \n', '\n')


def flags(call):
    words = [FLAGS[w] for w in sorted(call.words) if w in FLAGS]
    if call.klass in ('sync', 'cached') or call.rep.vars:
        words.append('OBP_CALL_REPLIES')
    if any(v.streamed for v in call.rep.vars):
        words.append('OBP_CALL_STREAMED')
    if call.new and call.klass == 'async':
        words.append('OBP_CALL_MAKES')
    return ' | '.join(words) or '0'


def fields(name, body):
    if not body.fields:
        return ''
    rows = []
    for f in body.fields:
        kind = 'BYTES' if f.opaque or (f.wire == 'u8' and f.count > 1) else f.wire.upper()
        rows.append(f'\t{{ "{f.name}", {f.offset}, {f.count}, OBP_{kind} }},')
    return f'static const struct obp_field {name}[] = {{\n' + '\n'.join(rows) + '\n};\n'


def variables(name, body):
    if not body.vars:
        return ''
    def row(v):
        kind = 'CSTR' if v.cstr else 'BYTES' if v.wire == 'u8' else v.wire.upper()
        return f'\t{{ "{v.name}", OBP_{kind}, {"true" if v.cstr and v.given is not None else "false"} }},'
    rows = [row(v) for v in body.vars]
    return f'static const struct obp_var {name}[] = {{\n' + '\n'.join(rows) + '\n};\n'


def sizes(call):
    bounded = [f for f in call.req.fields if f.most]
    streamed = [v for v in call.rep.vars if v.streamed]
    others = [v for v in call.rep.vars if not v.streamed]
    if not (bounded or call.req.vars or call.rep.vars):
        return ''
    lines = [f'static bool sizes_{call.name}(const void *body, uint64_t *ret_bytes)', '{',
             f'\tconst {req_type(call)} *req = body;']
    if not call.req.vars:
        lines.append('\t(void)ret_bytes;')
    for f in bounded:
        lines += [f'\tif (req->{f.name} > {f.most})', '\t\treturn false;']
    for v in streamed + others:
        lines += [f'\tif ({v.length(in_req)} > {v.most})', '\t\treturn false;']
    for i, v in enumerate(call.req.vars):
        lines += [f'\tuint64_t len_{v.name} = {v.length(in_req)};',
                  f'\tif (len_{v.name} > {v.most})', '\t\treturn false;']
        if v.cstr and v.given is not None:
            lines += [f'\tif (!len_{v.name} && (req->given >> {v.given} & 1))', '\t\treturn false;']
        lines += [f'\tret_bytes[{i}] = {v.bytes("len_" + v.name)};']
    return '\n'.join(lines + ['\treturn true;', '}']) + '\n'


def rep_bounds(call):
    bounded = [f for f in call.rep.fields if f.bound]
    if not bounded:
        return ''
    tests = ' && '.join(f'rep->{f.name} <= {f.most}' for f in bounded)
    return '\n'.join([f'static bool rep_bounds_{call.name}(const void *body)', '{', f'\tconst {rep_type(call)} *rep = body;',
                      f'\treturn {tests};', '}']) + '\n'


def calls_c(spec):
    out, rows = [], []
    for call in spec.wire_calls():
        n = call.name
        parts = [fields(f'req_{n}', call.req), fields(f'rep_{n}', call.rep), variables(f'req_vars_{n}', call.req),
                 variables(f'rep_vars_{n}', call.rep), sizes(call), rep_bounds(call)]
        out += [p for p in parts if p]
        ref = lambda part, name: name if part else 'NULL'
        rows.append(
            f'\t{{\n\t\t.name = "{n}", .opcode = {call.enum}, .klass = OBP_CLASS_{call.klass.upper()},\n'
            f'\t\t.flags = {flags(call)},\n'
            f'\t\t.req_size = {call.req.size}, .rep_size = {call.rep.size},\n'
            f'\t\t.n_req = {len(call.req.fields)}, .n_rep = {len(call.rep.fields)},'
            f' .n_req_vars = {len(call.req.vars)}, .n_rep_vars = {len(call.rep.vars)},\n'
            f'\t\t.req = {ref(parts[0], "req_" + n)}, .rep = {ref(parts[1], "rep_" + n)},\n'
            f'\t\t.req_vars = {ref(parts[2], "req_vars_" + n)}, .rep_vars = {ref(parts[3], "rep_vars_" + n)},\n'
            f'\t\t.sizes = {ref(parts[4], "sizes_" + n)}, .rep_bounds = {ref(parts[5], "rep_bounds_" + n)},\n\t}},')
    out.append('static const struct obp_call_info calls[] = {\n' + '\n'.join(rows) + '\n};\n')
    out.append('/* index into calls + 1; 0: no such opcode */\nstatic const uint8_t rows[OBP_OPCODE_END] = {\n' + '\n'.join(
        f'\t[{c.enum}] = {i + 1},' for i, c in enumerate(spec.wire_calls())) + '\n};\n')
    assert len(rows) < 256
    out.append('const uint8_t obp_opcode_flags[OBP_OPCODE_END] = {\n' + '\n'.join(
        f'\t[{c.enum}] = {flags(c)},' for c in spec.wire_calls() if flags(c) != '0') + '\n};\n')
    out.append('''const struct obp_call_info *obp_call_info(uint16_t opcode)
{
	return opcode < OBP_OPCODE_END && rows[opcode] ? &calls[rows[opcode] - 1] : NULL;
}

const struct obp_call_info *obp_call_find(const char *name)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (!strcmp(calls[i].name, name))
			return &calls[i];
	return NULL;
}
''')
    biggest = max(len(c.req.vars) for c in spec.wire_calls())
    out.append(f'_Static_assert({biggest} <= OBP_VAR_MAX, "raise OBP_VAR_MAX");')
    return source('The table behind protocol/call.h.', ['"protocol/obp_calls.h"', '', '<string.h>'],
                  '\n'.join(out)).replace('#include \n', '\n')
