# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Generated tests: the round trip of every wire call, and the comparison with cuda.h."""

import re

import emit_trips
from emit import head, rep_type, req_type, wrap
from emit_docs import evaluate
from emit_dispatch import op_handler

# ---- round trip: client function -> record -> check -> dispatch -> handler -> reply -> client ----


def size_names(call):
    """Returns the names of the numbers that determine sizes of parts."""
    return sorted({n for v in call.req.vars + call.rep.vars for n in v.expr.names})


def op_handler_body(spec, call):
    n = call.name
    lines = ['\t(void)x;', f'\tsaw({call.enum});']
    for f in call.req.fields:
        if f.source.kind == 'cstr':
            continue
        lines.append(f'\tSAME(&req->{f.name}, &want_{n}.{f.name}, sizeof(req->{f.name}));')
    for i, v in enumerate(call.req.vars):
        size = f'strlen({v.name}) + 1' if v.cstr else f'{v.expr.to_c(lambda k: "req->" + k)} * {v.width}'
        lines.append(f'\tSAME({v.name}, part[{i}], {size});')
    if call.klass == 'async' or (call.klass == 'bulk' and call.req.vars):
        return lines + ['\tobs_async_result(x, rec, CUDA_SUCCESS);']
    streamed = [v for v in call.rep.vars if v.streamed]
    if streamed:
        size = streamed[0].expr.to_c(lambda k: 'req->' + k)
        return lines + [f'\tobs_reply(x, rec, CUDA_SUCCESS, random_fill(answer, {size}), (uint32_t)({size}));']
    if not call.rep.size:
        return lines + ['\tobs_reply(x, rec, CUDA_SUCCESS, NULL, 0);']
    lines += ['\tmemset(answer, 0, sizeof(answer));', f'\t{rep_type(call)} *rep = (void *)answer;', '\trandom_fill(rep, sizeof(*rep));']
    if call.rep.pad:
        lines.append('\tmemset(rep->pad_, 0, sizeof(rep->pad_));')
    lines += [f'\trep->{f.name} = ({f.ctype})(random64() % ({f.most} + 1));' for f in call.rep.fields if f.bound]
    lines.append('\tuint32_t size = sizeof(*rep);')
    for v in call.rep.vars:
        cap = v.expr.to_c(lambda k: 'req->' + k)
        lines += [f'\trep->{v.name}_size = (uint32_t)(random64() % ({cap} + 1));', f'\trandom_fill(answer + size, rep->{v.name}_size);',
                  f'\tsize += (uint32_t)obp_pad(rep->{v.name}_size);']
    return lines + ['\tobs_reply(x, rec, CUDA_SUCCESS, answer, size);']


def op_trip(spec, call):
    n = call.name
    outs, args, after = [], [], []
    for p in call.params:
        var = next((v for v in call.req.vars + call.rep.vars if v.name == p.name), None)
        index = call.req.vars.index(var) if var in call.req.vars else None
        if p.way == 'in':
            if p.kind == 'cstr':
                args.append(f'(const char *)part[{index}]')
            elif var:
                args.append(f'({"const void" if p.kind == "bytes" else "const " + var.ctype} *)part[{index}]')
            else:
                args.append(f'w->{p.name}')
        elif var and var.streamed:
            args.append('result_bytes')
            after.append(f'\tSAME(result_bytes, answer, {var.expr.to_c(lambda k: "w->" + k)});')
        elif var:
            k = call.rep.vars.index(var)
            outs += [f'\tstatic uint8_t out_{p.name}[OBP_{var.bound} + 8];', f'\tuint32_t out_{p.name}_size = 0;']
            args += [f'out_{p.name}', f'&out_{p.name}_size']
            before = ' + '.join([f'sizeof({rep_type(call)})'] + [f'obp_pad(rep->{v.name}_size)' for v in call.rep.vars[:k]])
            after += [f'\tSAME(&out_{p.name}_size, &rep->{p.name}_size, 4);',
                      f'\tSAME(out_{p.name}, answer + {before}, out_{p.name}_size);']
        else:
            field = call.rep.field(p.name)
            outs.append(f'\t{field.ctype} out_{p.name}' + (f'[{field.count}]' if field.count > 1 else '') + ';')
            args.append(f'out_{p.name}' if field.count > 1 else f'&out_{p.name}')
            after.append(f'\tSAME(&out_{p.name}, &rep->{p.name}, sizeof(out_{p.name}));')
    lines = [f'static void trip_{n}(void)', '{']
    if call.req.size:
        lines += [f'\t{req_type(call)} *w = &want_{n};', '\trandom_fill(w, sizeof(*w));']
    lines += outs
    for f in call.req.fields:
        if f.bound and f.source.kind != 'cstr':
            lines.append(f'\tw->{f.name} = ({f.ctype})(random64() % (OBP_{f.bound} + UINT64_C(1)));')
    names = [k for k in size_names(call) if call.req.field(k).source.kind != 'cstr']
    for k in names:
        lines.append(f'\tw->{k} = ({call.req.field(k).ctype})(random64() % 6);')
    for i, v in enumerate(call.req.vars):
        lines.append(f'\trandom_text(part[{i}], largest ? OBP_{v.bound} : 1 + random64() % (OBP_{v.bound} < 40 ? OBP_{v.bound} : 40));'
                     if v.cstr else
                     f'\trandom_fill(part[{i}], {v.expr.to_c(lambda k: "w->" + k)} * {v.width});')
    for i, v in enumerate(call.req.vars):
        if not v.cstr and len(v.expr.tokens) == 1:
            lines += [f'\tif (largest && OBP_{v.bound} <= PART_BYTES / {v.width}) {{', f'\t\tw->{v.expr.text} = OBP_{v.bound};',
                      f'\t\trandom_fill(part[{i}], OBP_{v.bound} * {v.width}u);', '\t}']
    if call.rep.size:
        after.insert(0, f'\tconst {rep_type(call)} *rep = (const void *)answer;')
    lines += ['\t' + wrap(f'RIGHT(obc_call_op_{n}({", ".join(args)}));')] + after
    for i, v in enumerate(call.req.vars):
        if v.cstr:
            lines += ['\tif (largest) {', f'\t\trandom_text(part[{i}], OBP_{v.bound} + 1);',
                      '\t\t' + wrap(f'CHECK(obc_call_op_{n}({", ".join(args)}) == CUDA_ERROR_INVALID_VALUE);'), '\t}']
    return '\n'.join(lines + ['}']) + '\n'


def first_beyond(spec, v):
    """Returns values for the numbers of a size: 1, except for the first, which is the smallest that
    exceeds the maximum."""
    values = {n: 1 for n in v.expr.names}
    low, high = 0, 1 << 48
    while high - low > 1:
        middle = (low + high) // 2
        values[v.expr.names[0]] = middle
        low, high = (low, middle) if evaluate(v.expr, values) > spec.consts[v.bound][0] else (middle, high)
    values[v.expr.names[0]] = high
    return values


def past_size(spec, call, v, values):
    """Statements that check a body of the size that these numbers give, so that only the bound can
    refuse it."""
    lines = ['\tmemset(body, 0, sizeof(body));']
    lines += [f'\t(({req_type(call)} *)body)->{n} = ({call.req.field(n).ctype}){value}u' + ('ll;' if value >> 32 else ';')
              for n, value in values.items()]
    size = call.req.size
    if v.given is not None:
        lines.append(f'\t(({req_type(call)} *)body)->given = {1 << v.given};')
    for other in call.req.vars:
        known = dict({n: 0 for n in other.expr.names}, **values)
        if other.given in (None, v.given):
            size += (max(evaluate(other.expr, known), 0) * other.times * other.width + 7) // 8 * 8
    return lines + [f'\tREFUSES({call.enum}, body, UINT64_C({size}));']


def op_past(spec, call):
    """One above each maximum: the server's check must refuse it, and the client too if it checks
    that size."""
    lines = []
    for f in call.req.fields:
        if f.most and (f.source.kind != 'cstr' or not f.bound):
            lines += ['\tmemset(body, 0, sizeof(body));',
                      f'\t(({req_type(call)} *)body)->{f.name} = ({f.ctype})({f.most} + UINT64_C(1));',
                      f'\tREFUSES({call.enum}, body, sizeof({req_type(call)}));']
    for v in call.req.vars + call.rep.vars:
        if v.cstr:
            continue
        lines += past_size(spec, call, v, first_beyond(spec, v))
        if '-' in v.expr.tokens:
            lines += past_size(spec, call, v, {n: 0 for n in v.expr.names})  # a negative size
    return lines


def roundtrip_c(spec):
    out = emit_trips.live_handles(spec)
    wire = spec.wire_calls()
    for call in wire:
        if call.op:
            if call.req.size:
                out.append(f'static {req_type(call)} want_{call.name};\n')
            out.append(wrap(op_handler(call)) + '\n{\n' + '\n'.join(op_handler_body(spec, call)) + '\n}\n')
            out.append(op_trip(spec, call))
        else:
            out += emit_trips.call_parts(spec, call)
    out.append('static void past_the_maxima(void)\n{\n\tstatic _Alignas(8) uint8_t body[1024];')
    for call in wire:
        out += op_past(spec, call)
    out.append('}\n')
    out.append('static const struct trip trips[] = {\n' + '\n'.join(f'\t{{ {c.enum}, trip_{c.name} }},' for c in wire) + '\n};\n')
    fakes = '\n'.join(f'\tfake_driver.{c.name} = fake_{c.name};' for c in wire if not c.op)
    out.append(f'static void set_up(void)\n{{\n{fakes}\n}}')
    return head('Included by tests/wire/roundtrip.c.') + '\n' + '\n'.join(out) + '\n'


# ---- comparison with cuda.h ----

def check_cuda_prototypes_c(spec):
    out = ['#define __CUDA_API_VERSION_INTERNAL /* the plain names are the old versions, as libcuda exports them */',
           '#include <cuda.h>', '#include <cudaProfiler.h>', '',
           '#define SAME(name, ...) \\',
           '\t_Static_assert(__builtin_types_compatible_p(__typeof__(name), CUresult(__VA_ARGS__)), #name " differs from cuda.h")', '']
    for c in spec.calls:
        out.append(wrap(f'SAME({c.name}, {c.prototype()});'))
    for alias in spec.aliases:
        target = spec.by_name[alias.target]
        out.append(wrap(f'SAME({alias.name}, {target.prototype()});'))
    for c in spec.calls + spec.aliases:
        for name, _, flavour in c.exports():
            if flavour:
                out.append(f'_Static_assert(__builtin_types_compatible_p(__typeof__({name}), __typeof__({c.name})), "{name}");')
    return head('Every prototype of the specification against cuda.h.') + '\n'.join(out) + '\n'


def layout_rows(types_text):
    """Returns (name, C expression) for every enumerator, struct size and member offset in
    base/cuda_types.h."""
    text = re.sub(r'/\*.*?\*/', '', types_text, flags=re.S)
    rows = []
    for body in re.findall(r'typedef enum \w+ \{(.*?)\}', text, re.S):
        rows += [(name, f'(long long){name}') for name in re.findall(r'^\s*(\w+)\s*=', body, re.M)]
    for kind, name, body in re.findall(r'^typedef (struct|union) (\w+) \{\n(.*?)^\} \2;', text, re.S | re.M):
        rows.append((f'sizeof({name})', f'(long long)sizeof({name})'))
        depth = 0
        for line in body.split('\n'):
            if depth == 0 and kind == 'struct':
                member = re.search(r'(\w+)(\[[^;]*\])?;$', line)
                if member and '{' not in line:
                    rows.append((f'{name}.{member[1]}', f'(long long)offsetof({name}, {member[1]})'))
            depth += line.count('{') - line.count('}')
    return rows


def layout_inc(types_text):
    rows = layout_rows(types_text)
    assert len(rows) > 500, 'base/cuda_types.h was not understood'
    return head('Rows for tests/gen/check_cuda_h.c.') + '\n'.join(f'ROW("{n}", {e})' for n, e in rows) + '\n'
