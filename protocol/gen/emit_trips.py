# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""The round trip of regular calls, for tests/wire/roundtrip.c: random arguments, a driver that checks
them and returns random outputs, and a caller that checks the outputs."""

from emit import wrap


def live_handles(spec):
    """Variables for the newest handle of each kind that calls create."""
    return [f'static {ctype} live_{kind};\n' for ctype, kind in spec.made().items()]


def maker(spec, kind):
    """Returns a call that creates a handle of this kind."""
    return next(c for c in spec.wire_calls() if not c.op and c.new and spec.handles[c.new.base] == kind)


def element(p):
    return 'uint8_t' if p.base == 'void' else p.base


def size_names(call):
    """Returns the names of the numbers that determine sizes of arrays."""
    return sorted({n for v in call.req.vars + call.rep.vars if not v.cstr for n in v.expr.names})


def wanted(call):
    """Returns access(name) -> C expression for a number in the expected arguments."""
    def access(name):
        f = call.req.field(name)
        return 'w->' + f.leaf.place(f.source, local=f.source.name)
    return access


def carriers(call, p):
    return call.req.of(p) + call.rep.of(p)


def elements(call, p, access):
    v = next(v for v in call.req.vars + call.rep.vars if v.source is p)
    return v.expr.to_c(access)


def call_want(spec, call):
    lines = ['static struct {']
    for p in call.params:
        if p.kind == 'cstr':
            lines.append(f'\tchar {p.name}[OBP_{p.array}];')
        elif p.array is not None:
            v = next(v for v in call.req.vars + call.rep.vars if v.source is p)
            lines.append(f'\t{element(p)} {p.name}[OBP_{v.bound} + 1];')
        elif p.way == 'addr':
            lines.append(f'\tvoid *{p.name};')
        else:
            lines.append(f'\t{p.base} {p.name};')
    if call.opts:
        lines.append('\tuint32_t given;')
    gave = f', gave_{call.name}' if call.rep.fields or call.rep.vars or call.new else ''
    return '\n'.join(lines + [f'}} want_{call.name}{gave};']) + '\n'


# ---- the driver ----

def expected(leaf, got, want):
    """A check that the driver received this leaf as the program passed it."""
    if leaf.kind:
        key = f'driver_of(OBS_KIND_{leaf.kind.upper()}, (uint64_t)(uintptr_t){want})'
        return f'\tCHECK((uint64_t)(uintptr_t){got} == {key});'
    if leaf.device:
        return f'\tCHECK({got} == {other_side(leaf, want)});'
    return f'\tSAME(&{got}, &{want}, sizeof({got}));'


def other_side(leaf, place):
    """Returns the C expression for the device number at `place` in the numbering of the other
    side."""
    flipped = f'(int)((uint32_t){place} ^ DEVICE_KEY)'
    if not leaf.when:
        return flipped
    return f'({place[:len(place) - len(leaf.path)]}{leaf.when[0]} == {leaf.when[1]} ? {flipped} : {place})'


def fake_in(call, p):
    w, fields = f'want_{call.name}.{p.name}', [f for f in call.req.of(p) if f.leaf]
    if p.kind == 'cstr':
        return [f'\tCHECK(!strcmp({p.name}, {w}));']
    if p.by_array:
        n = elements(call, p, driver_access(call))
        if not fields[0].leaf.path and not fields[0].leaf.converted:
            return [f'\tSAME({p.name}, {w}, {n} * sizeof({w}[0]));']
        lines = [f'\tfor (uint64_t i = 0; i < {n}; i++) {{']
        lines += ['\t' + expected(f.leaf, f.leaf.place(p, 'i'), f.leaf.place(p, local=w + '[i]')) for f in fields]
        return lines + ['\t}']
    if p.pointer and p.way in ('in', 'inout') or not p.stars or p.way == 'addr':
        return [expected(f.leaf, f'({f.leaf.place(p)})' if f.leaf.place(p)[0] == '*' else f.leaf.place(p), f.leaf.place(p, local=w)) for f in fields]
    return []


def driver_access(call):
    """Returns access(name) -> C expression for a number among the driver's arguments."""
    def access(name):
        f = call.req.field(name)
        return f.leaf.place(f.source)
    return access


def fake_out(call, p):
    gave = f'gave_{call.name}.{p.name}'
    if p.new:
        return [f'\t*{p.name} = ({p.base})(uintptr_t)random64();', f'\t{gave} = *{p.name};']
    if p.by_array:
        n = elements(call, p, driver_access(call))
        size = f'{n} * sizeof({gave}[0])'
        return [f'\trandom_fill({p.name}, {size});', f'\tmemcpy({gave}, {p.name}, {size});']
    counter = call.rep.field(p.name)
    if counter and counter.bound:
        return [f'\t*{p.name} = random64() % ({counter.most} + 1);', f'\t{gave} = *{p.name};']
    return [f'\trandom_fill({p.name}, sizeof(*{p.name}));', f'\t{gave} = *{p.name};']


def driver_fake(spec, call):
    lines = [wrap(f'static CUresult fake_{call.name}({call.prototype()})'), '{', f'\tsaw({call.enum});']
    # Check the arrays before the numbers that decide their sizes are overwritten.
    ordered = sorted(call.params, key=lambda p: p.way == 'inout')
    for p in ordered:
        work = (fake_in(call, p) if not p.new and p.way != 'out' else []) + (fake_out(call, p) if p.way in ('out', 'inout') else [])
        if p.opt:
            bit = f'(want_{call.name}.given >> {p.given} & 1)'
            work = [f'\tCHECK(!{p.name} == !{bit});'] + ([f'\tif ({p.name}) {{'] + ['\t' + line for line in work] + ['\t}'] if work else [])
        lines += work
    return '\n'.join(lines + ['\treturn fake_result;', '}']) + '\n'


# ---- the caller ----

def argument(call, p, w='w->'):
    if (p.by_array and p.way == 'out') or (p.pointer and p.way in ('out', 'inout')):
        text = f'out_{p.name}' if p.by_array else f'&out_{p.name}'
    else:
        text = f'&{w}{p.name}' if p.pointer else w + p.name
    return f'(w->given >> {p.given} & 1) ? {text} : NULL' if p.opt else text


def came_back(call, p, counts):
    """Checks that the program received the driver's outputs, and zeros in members that do not
    travel."""
    gave, out = f'gave_{call.name}.{p.name}', f'out_{p.name}'
    if p.new:
        return [f'\tCHECK((uint64_t)(uintptr_t){out} == put_id);', f'\tCHECK((uintptr_t)put_handle == (uintptr_t){gave});']
    carried = [c for c in call.rep.of(p)]
    if p.by_array:
        n = elements(call, p, counts)
        if not carried[0].leaf.path:
            return [f'\tSAME({out}, {gave}, {n} * sizeof({out}[0]));']
        return [f'\tfor (uint64_t i = 0; i < {n}; i++) {{'] + members(carried, p, gave + '[i]', out + '[i]', '\t\t') + ['\t}']
    if not carried[0].leaf.path:
        return [f'\tSAME(&{out}, &{gave}, sizeof({out}));']
    if p.way == 'inout':
        return [expected(f.leaf, f.leaf.place(p, local=out), f.leaf.place(p, local=gave)) for f in carried]
    return ['\t{'] + members(carried, p, gave, out, '\t\t') + ['\t}']


def members(carried, p, gave, out, tab):
    lines = [f'{tab}{p.base} whole;', f'{tab}memset(&whole, 0, sizeof(whole));']
    for f in carried:
        to, source = f.leaf.place(p, local='whole'), f.leaf.place(p, local=gave)
        lines.append(f'{tab}{to} = {other_side(f.leaf, source)};' if f.leaf.device else f'{tab}memcpy(&{to}, &{source}, sizeof({to}));')
    return lines + [f'{tab}SAME(&{out}, &whole, sizeof(whole));']


def prepare(spec, call):
    """Statements that choose random valid arguments."""
    access = wanted(call)
    names = size_names(call)
    lines = []
    if names:
        sized = [v for v in call.req.vars + call.rep.vars if not v.cstr]
        conditions = ' || '.join(dict.fromkeys(f'{v.expr.to_c(access)} > OBP_{v.bound}' for v in sized))
        picks = ' '.join(f'{access(k)} = (__typeof__({access(k)}))(random64() % 6);' for k in names)
        lines += ['\tdo {', f'\t\t{picks}', f'\t}} while ({wrap(conditions)});']
        single = [v for v in sized if len(v.expr.tokens) == 1]
        for name in dict.fromkeys(v.expr.text for v in single):
            least = min((v for v in sized if name in v.expr.names), key=lambda v: spec.consts[v.bound][0])
            if all(len(v.expr.tokens) == 1 for v in sized if name in v.expr.names):
                lines += ['\tif (largest)', f'\t\t{access(name)} = OBP_{least.bound};']
    for p in call.params:
        if p.kind == 'cstr':
            lines.append(f'\trandom_text((uint8_t *)w->{p.name}, largest ? sizeof(w->{p.name}) : 1 + random64() % sizeof(w->{p.name}));')
        elif p.base in spec.made() and not p.new:
            kind = spec.handles[p.base]
            lines += [f'\tif (!live_{kind})', f'\t\ttrip_{maker(spec, kind).name}();']
            if p.by_array:
                lines += [f'\tfor (unsigned i = 0; i < sizeof(w->{p.name}) / sizeof(w->{p.name}[0]); i++)', f'\t\tw->{p.name}[i] = live_{kind};']
            else:
                lines.append(f'\tw->{p.name} = live_{kind};')
    for f in call.req.fields + call.req.vars:
        if f.leaf and f.leaf.path and f.leaf.kind and f.leaf.base in spec.made():
            kind = f.leaf.kind
            lines += [f'\tif (!live_{kind})', f'\t\ttrip_{maker(spec, kind).name}();']
            array = f.source.by_array
            lines += ([f'\tfor (unsigned i = 0; i < sizeof(w->{f.source.name}) / sizeof(w->{f.source.name}[0]); i++)'] if array else []) + [
                f'\t{"	" if array else ""}w->{f.source.name}{"[i]" if array else ""}.{f.leaf.path} = live_{kind};']
    if call.opts:
        lines.append(f'\tw->given = (uint32_t)(random64() & {(1 << len(call.opts)) - 1});')
    return lines


def refusals(call, args):
    """Checks that NULL is refused for each pointer that must not be NULL."""
    lines = []
    for i, p in enumerate(call.params):
        if p.opt or not (p.pointer or p.kind == 'cstr'):
            continue
        bad = ', '.join('NULL' if k == i else a for k, a in enumerate(args))
        lines.append('\t' + wrap(f'CHECK(obc_call_{call.name}({bad}) == CUDA_ERROR_INVALID_VALUE);'))
    return lines


def too_long(spec, call, args):
    """Checks that an array one element longer than its maximum is refused."""
    access = wanted(call)
    lines = []
    for v in call.req.vars + call.rep.vars:
        if v.cstr or len(v.expr.tokens) != 1 or not all(len(o.expr.tokens) == 1 for o in call.req.vars + call.rep.vars):
            continue
        f = call.req.field(v.expr.text)
        if f.source.way == 'inout':
            continue  # the call reads the caller's own variable, not this number
        given = f'\t\tw->given |= 1u << {v.given};' if v.given is not None else None
        lines += ['\tif (largest) {'] + ([given] if given else []) + [
            f'\t\t{access(v.expr.text)} = (__typeof__({access(v.expr.text)}))(OBP_{v.bound} + 1u);',
            '\t\t' + wrap(f'CHECK(obc_call_{call.name}({", ".join(args)}) == CUDA_ERROR_INVALID_VALUE);'), '\t}']
        break
    return lines


def call_trip(spec, call):
    n = call.name
    lines = [f'static void trip_{n}(void)', '{', f'\t__typeof__(want_{n}) *w = &want_{n};', '\trandom_fill(w, sizeof(*w));'] + prepare(spec, call)
    if call.klass == 'cached':
        lines += [f'\t{wanted(call)(k)} += !{wanted(call)(k)};' for k in size_names(call)]
    args, outs, after, before = [], [], [], []
    for p in call.params:
        args.append(argument(call, p))
        if p.way not in ('out', 'inout') or (p.array is None and not p.stars):
            continue
        if p.by_array:
            v = call.rep.of(p)[0]
            outs.append(f'\tstatic {element(p)} out_{p.name}[OBP_{v.bound} + 1], kept_{p.name}[OBP_{v.bound} + 1];')
            before.append(f'\tmemcpy(kept_{p.name}, out_{p.name}, sizeof(out_{p.name}));')
        else:
            outs.append(f'\t{p.base} out_{p.name}, kept_{p.name};')
            outs.append(f'\tout_{p.name} = w->{p.name};' if p.way == 'inout' else f'\tmemset(&out_{p.name}, 0x55, sizeof(out_{p.name}));')
            before.append(f'\tmemcpy(&kept_{p.name}, &out_{p.name}, sizeof(out_{p.name}));')
        back = came_back(call, p, wanted(call))
        after += [f'\tif (w->given >> {p.given} & 1) {{'] + ['\t' + line for line in back] + ['\t}'] if p.opt else back
    kept = [f'\tSAME({"" if p.by_array else "&"}out_{p.name}, {"" if p.by_array else "&"}kept_{p.name}, sizeof(out_{p.name}));'
            for p in call.params if p.way in ('out', 'inout') and (p.array is not None or p.stars)]
    asked = f'obc_call_{n}({", ".join(args)})'
    ask = '\t' + wrap(f'RIGHT({asked});')
    lines += outs
    if call.klass == 'cached':
        # Repeated arguments are answered from the cache.
        p = next(p for p in call.params if p.way == 'out')
        place, count = (f'out_{p.name}', f'{elements(call, p, wanted(call))} * sizeof(out_{p.name}[0])') if p.by_array else (
            f'&out_{p.name}', f'sizeof(out_{p.name})')
        lines += ['\tunsigned arrivals = n_arrived;', ask, '\tif (n_arrived != arrivals) {'] + ['\t' + line for line in after]
        lines += ['\t}', '\tarrivals = n_arrived;'] + before + [ask, '\tCHECK(n_arrived == arrivals);',
                  f'\tSAME({"" if p.by_array else "&"}kept_{p.name}, {place}, {count});']
    else:
        if kept:  # a call that fails writes nothing
            lines += before + ['\tfake_result = CUDA_ERROR_OUT_OF_MEMORY;']
            lines += ['\tput_id = 0;'] if call.new else []
            lines += ['\t' + wrap(f'CHECK({asked} == CUDA_ERROR_OUT_OF_MEMORY);'), '\tfake_result = CUDA_SUCCESS;'] if call.klass != 'async' else [
                '\t' + wrap(f'CHECK({asked} == CUDA_ERROR_OUT_OF_MEMORY && put_id && !put_handle);'), '\tfake_result = CUDA_SUCCESS;']
            lines += kept
            lines += ['\tCHECK(!put_id);'] if call.new and call.klass != 'async' else []
        lines += [ask] + after
    if spec.newer(call):
        lines += [f'\tobc_lines_known = OBP_LINE_{n} - 1; /* an older server */', '\t' + wrap(f'CHECK({asked} == CUDA_ERROR_NOT_SUPPORTED);'),
                  '\tobc_lines_known = OBP_LINES;']
    lines += refusals(call, args) + too_long(spec, call, args)
    if call.new:
        lines.append(f'\tlive_{spec.handles[call.new.base]} = out_{call.new.name};')
    if call.drop:
        kind = spec.handles[call.drop.base]
        if call.drop.base in spec.made():
            lines += [f'\tCHECK(gone_id == (uint64_t)(uintptr_t)w->{call.drop.name});', f'\tlive_{kind} = 0;',
                      '\t' + wrap(f'CHECK({asked} == {spec.errors[call.drop.base]});')]
    return '\n'.join(lines + ['}']) + '\n'


def call_parts(spec, call):
    parts = [call_want(spec, call), driver_fake(spec, call)]
    kinds = {f.leaf.kind for f in call.req.fields + call.req.vars if f.leaf and f.leaf.kind and not f.source.new}
    for kind in sorted(kinds & set(spec.made().values())):
        if maker(spec, kind).opcode > call.opcode:
            parts.append(f'static void trip_{maker(spec, kind).name}(void);')
    return parts + [call_trip(spec, call)]
