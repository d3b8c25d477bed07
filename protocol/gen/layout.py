# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Lays out the bodies of request and reply from the parameters of a call or an operation."""

from model import CACHE_ANSWER, CACHE_KEY, Expr, FIXED_MAX, Field, Leaf, SCALARS, STACK_MAX, SpecError, Var


def finish(spec):
    """Completes the specification after all files have been read."""
    for alias in spec.aliases:
        target = spec.by_name.get(alias.target)
        if not target or target.klass in ('alias', 'absent') or target.op:
            raise SpecError(alias.where, f'{alias.name} is an alias of {alias.target}, which is no call')
        alias.params = target.params
        if alias.twin and alias.twin != target.twin:
            raise SpecError(alias.where, f'{alias.name} has a {alias.twin} twin, {target.name} has not')
    for struct in spec.structs.values():
        struct_leaves(spec, struct.where, struct.name, struct.name, ())
    for call in spec.calls + spec.ops:
        if call.on_wire:
            (lay_out_op if call.op else lay_out_call)(spec, call)
    exported = {}
    for call in spec.exported():
        for name, _, _ in call.exports():
            if name in exported:
                raise SpecError(call.where, f'{name} is exported twice')
            exported[name] = call


def size_of(param, text):
    """Parses 'expr <= MAX'. Returns (Expr, MAX); MAX is None if there is none."""
    expr, _, bound = text.partition('<=')
    return Expr(param.where, expr), bound.strip() or param.bound


def check_size(call, var):
    for name in var.expr.names:
        field = call.req.field(name)
        if not field or field.count > 1 or field.opaque:
            raise SpecError(call.where, f"{call.name}: the size of '{var.name}' names '{name}', which is no number of this call")
        if not var.cstr and (field.source.opt or (field.leaf and field.leaf.converted)):
            raise SpecError(call.where, f"{call.name}: the size of '{var.name}' names '{name}', which may be NULL or has another value on"
                                        ' the server')


def check_counter(call, var):
    """Checks the counter of an out array: an inout number, in: the array's size, out: the number of
    elements."""
    field = call.rep.field(var.expr.text)
    if not field or field.source.way != 'inout' or var.source.way != 'out':
        raise SpecError(call.where, f"{call.name}: '{var.source.name}[*{var.expr.text}]' is an out array, and {var.expr.text} an inout pointer to"
                                    ' the number of its elements')
    field.bound = var.bound


def check_async(call):
    if call.klass == 'async' and (call.rep.fields or call.rep.vars):
        raise SpecError(call.where, f'{call.name} is async and has no reply: it cannot have an out parameter')


# ---- operations ----

def lay_out_op(spec, call):
    for p in call.params:
        lay_out_op_param(spec, call, p)
    for body in (call.req, call.rep):
        for field in body.fields:
            if field.bound:
                spec.const(call.where, field.bound)
        body.lay_out()
    for var in call.req.vars + call.rep.vars:
        check_size(call, var)
    check_async(call)
    if call.klass == 'bulk':
        check_bulk(call)


def lay_out_op_param(spec, call, p):
    body = call.rep if p.way == 'out' else call.req
    if p.kind == 'cstr':
        add_cstr(spec, body, p)
        return
    wire = 'u8' if p.kind == 'bytes' else p.base
    if p.array is None:
        body.fields.append(Field(p.name, wire, bound=p.bound, source=p))
    elif p.array.isdigit():
        if not 2 <= int(p.array) <= FIXED_MAX:
            raise SpecError(p.where, f'{call.name}: {p.name} has {p.array} elements; 2 to {FIXED_MAX} are possible')
        body.fields.append(Field(p.name, wire, int(p.array), source=p))
    else:
        expr, bound = size_of(p, p.array)
        if not bound:
            raise SpecError(p.where, f"{call.name}: '{p.name}[{p.array}]' needs a maximum: [{p.array} <= SOME_MAX]")
        spec.const(p.where, bound)
        var = Var(p.name, wire, expr, bound, source=p, streamed=p.way == 'out' and call.klass == 'bulk')
        if p.way == 'out' and not var.streamed:
            body.fields.append(Field(p.name + '_size', 'u32', source=p))
        body.vars.append(var)


def check_bulk(call):
    if len(call.req.vars + call.rep.vars) != 1:
        raise SpecError(call.where, f'{call.name} is bulk: exactly one parameter must be bytes of variable length')
    if not call.req.vars:
        return
    size = call.req.vars[0].expr
    if len(size.tokens) != 1 or [f.wire for f in call.req.fields[:2]] != ['u64', 'u64'] or call.req.fields[1].name != size.text:
        raise SpecError(call.where, f'{call.name} is bulk: its first two numbers must be u64, the place and the size of the'
                                    ' data, which the log moves on from chunk to chunk')


def add_cstr(spec, body, p):
    spec.const(p.where, p.array)
    body.fields.append(Field(p.name + '_size', 'u32', bound=p.array, source=p))
    body.vars.append(Var(p.name, 'u8', Expr(p.where, p.name + '_size'), p.array, cstr=True, source=p))


# ---- calls ----

def lay_out_call(spec, call):
    for i, p in enumerate(call.opts):
        p.given = i
    for p in call.params:
        lay_out_param(spec, call, p)
    if call.opts:
        given = Field('given', 'u32', source=call.opts[0])
        given.limit = (1 << len(call.opts)) - 1
        call.req.fields.append(given)
    call.req.lay_out()
    call.rep.lay_out()
    for var in call.req.vars + call.rep.vars:
        check_size(call, var)
        if var.expr.pointed:
            check_counter(call, var)
        if var.times > 1 and set(var.expr.tokens) & {'+', '-'}:
            raise SpecError(call.where, f"{call.name}: '{var.source.name}': an array inside a struct makes '{var.expr.text}' unclear:"
                                        ' give the number of elements as one name or a product')
    check_async(call)
    check_handles(call)
    check_stack(spec, call)
    if call.klass == 'cached':
        check_cached(spec, call)


def check_handles(call):
    made = [p for p in call.params if p.new or p.drop]
    if len(made) > 1:
        raise SpecError(call.where, f'{call.name}: a call makes or ends one handle, not {len(made)}')
    for p in made:
        word = 'new' if p.new else 'drop'
        if p.array is not None or p.opt or p.stars != (1 if p.new else 0) or not call.req.of(p) or not call.req.of(p)[0].leaf.kind:
            raise SpecError(p.where, f"{call.name}: '{word}' stands before " + ('a pointer to one handle' if p.new else 'one handle'))
        if 'noctx' not in call.words:
            raise SpecError(call.where, f"{call.name}: '{word}' is for handles that belong to no context: mark the call noctx")


def check_stack(spec, call):
    total = sum(spec.consts[v.bound][0] * v.width * v.times for v in call.req.vars + call.rep.vars if v.leaf)
    if total > STACK_MAX:
        raise SpecError(call.where, f'{call.name}: its arrays may have {total} bytes together, {STACK_MAX} are possible: lower the maxima,'
                                    ' or use a bulk operation')


def check_cached(spec, call):
    lone = len(call.rep.vars) == 1 and not call.rep.fields and not call.rep.vars[0].leaf.path
    if not call.req.size or not (lone or (call.rep.fields and not call.rep.vars)):
        raise SpecError(call.where, f'{call.name} is cached: it must take numbers, and give back numbers or one array')
    if call.new or call.drop or any(f.leaf and f.leaf.converted for f in call.rep.fields):
        raise SpecError(call.where, f'{call.name} is cached: it cannot make, end or give back handles or devices')
    if call.opts:
        raise SpecError(call.where, f'{call.name} is cached: its pointers cannot be NULL')
    for what, body, most in (('arguments', call.req, CACHE_KEY), ('answers', call.rep, CACHE_ANSWER)):
        size = body.size + sum((spec.consts[v.bound][0] * v.width * v.times + 7) // 8 * 8 for v in body.vars)
        if size > most:
            raise SpecError(call.where, f'{call.name} is cached: its {what} may have {size} bytes, {most} are possible: lower the maxima, or'
                                        ' make it sync')


def scalar_wire(spec, base):
    """Returns the wire type of a C type that is one number, else None."""
    if base in SCALARS:
        return SCALARS[base]
    if base in spec.types.enums:
        return 'u32'
    return 'u64' if base in spec.types.handles else None


def leaf_of(spec, where, what, name, path, base):
    """Returns the leaf of a number, a handle or an enumeration; None for other types."""
    wire = scalar_wire(spec, base)
    if not wire:
        return None
    leaf = Leaf(name, path, base, wire)
    leaf.kind = spec.handles.get(base)
    leaf.pointer_handle = base in spec.types.handles
    leaf.device = base == 'CUdevice'
    if base in spec.types.handles and not leaf.kind:
        raise SpecError(where, f'{what}: the handle {base} has no kind: declare it with handle')
    return leaf


def struct_leaves(spec, where, what, base, seen, name='', path=''):
    """Returns the leaves of a struct: one for its bytes, or those of its members, recursively."""
    struct = spec.structs.get(base)
    join = lambda a, b, mark: f'{a}{mark}{b}' if a else b
    if struct is None:
        raise SpecError(where, f'{what}: the struct {base} has no wire form: declare it with struct')
    if struct.size is not None:
        leaf = Leaf(name, path, base, 'u8', struct.size)
        leaf.opaque = True
        return [leaf]
    leaves = []
    for m in struct.members:
        inner_name, inner_path = join(name, m.path.replace('.', '_'), '_'), join(path, m.path, '.')
        if m.address:
            leaf = Leaf(inner_name, inner_path, m.base, 'u64')
            leaf.address = True
        else:
            leaf = leaf_of(spec, m.where, struct.name, inner_name, inner_path, m.base)
        if leaf is None:
            if m.base in seen + (base,):
                raise SpecError(m.where, f'{struct.name}: the struct {m.base} contains itself')
            leaves += struct_leaves(spec, m.where, struct.name, m.base, seen + (base,), inner_name, inner_path)
            continue
        leaf.count, leaf.device = m.count, leaf.device or m.device
        if m.when:
            leaf.when = (join(path, m.when[0], '.'), m.when[1])
        leaves.append(leaf)
    return leaves


def leaves_of(spec, call, p):
    if p.way == 'addr':
        leaf = Leaf(p.name, '', p.base, 'u64')
        leaf.address = True
        return [leaf]
    if p.base == 'void' and p.by_array:
        return [Leaf(p.name, '', p.base, 'u8')]
    leaf = leaf_of(spec, p.where, call.name, p.name, '', p.base)
    if leaf:
        leaf.device = leaf.device or p.device
        return [leaf]
    if p.base in spec.types.structs:
        return struct_leaves(spec, p.where, call.name, p.base, (), p.name)
    return None


def check_param(call, p):
    if p.way == 'addr':
        if p.stars != 1:
            raise SpecError(p.where, f"{call.name}: '{p.name}' is marked addr but is no pointer")
        return
    if p.opt and not (p.stars or p.array is not None):
        raise SpecError(p.where, f"{call.name}: '{p.name}' is marked opt but is no pointer")
    if p.array is not None or p.stars == 0:
        return
    if p.stars != 1 or p.base == 'void' or (p.way == 'in' and not p.const):
        raise SpecError(p.where, f"{call.name}: '{p.decl()}' cannot go over the wire: mark it addr, in, out or inout,"
                                 ' give it a size, or make the call local')


def lay_out_param(spec, call, p):
    check_param(call, p)
    if p.kind == 'cstr':
        if p.way != 'in' or not p.const or p.base != 'char':
            raise SpecError(p.where, f"{call.name}: '{p.name}': a cstr is a const char that the call reads")
        add_cstr(spec, call.req, p)
        call.req.vars[-1].given = p.given
        return
    leaves = leaves_of(spec, call, p)
    if leaves is None:
        what = f'an array of {p.base}' if p.by_array else f'a {p.base} by value' if not p.stars else p.decl()
        raise SpecError(p.where, f'{call.name}: {what} cannot go over the wire')
    if p.by_array:
        lay_out_array(spec, call, p, leaves)
        return
    fields = lambda: [Field(leaf.name, leaf.wire, leaf.count, source=p, leaf=leaf) for leaf in leaves]
    if p.new:
        call.req.fields += fields()
        return
    if p.way in ('out', 'inout') and any(leaf.kind for leaf in leaves):
        raise SpecError(p.where, f"{call.name}: '{p.name}': a handle cannot come back: mark it new, or make the call local")
    if p.way in ('in', 'inout', 'addr'):
        call.req.fields += fields()
    if p.way in ('out', 'inout'):
        call.rep.fields += fields()


def lay_out_array(spec, call, p, leaves):
    expr, bound = size_of(p, p.array)
    if p.way == 'inout' or any(leaf.opaque for leaf in leaves):
        raise SpecError(p.where, f'{call.name}: an array of {p.base} cannot go over the wire')
    if p.way == 'out' and any(leaf.kind for leaf in leaves):
        raise SpecError(p.where, f"{call.name}: '{p.name}': handles cannot come back in an array: make the call local")
    if not bound and p.way == 'out':
        # without a maximum of its own: it has that of the input array of the same length
        bound = next((size_of(q, q.array)[1] for q in call.params
                      if q.way == 'in' and q.by_array and size_of(q, q.array)[0].text == expr.text), None)
    if not bound:
        raise SpecError(p.where, f"{call.name}: '{p.name}[{p.array}]' needs a maximum: [{p.array} <= SOME_MAX]")
    spec.const(p.where, bound)
    body = call.req if p.way == 'in' else call.rep
    for leaf in leaves:
        var = Var(leaf.name, leaf.wire, expr, bound, source=p, leaf=leaf)
        var.given = p.given
        body.vars.append(var)
