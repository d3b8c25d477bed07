# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""The call specification: reads protocol/spec/*.api into objects. The language is described in protocol/spec/README.md."""

import re

CLASSES = ('face', 'local', 'server', 'sync', 'async', 'cached')
OP_CLASSES = ('sync', 'async', 'bulk')
TWINS = ('ptsz', 'ptds')
TWIN_SINCE = 7000        # CUDA 7.0 introduced the per-thread default stream
GROUP_MAX = 0x1f         # keeps the tables that are indexed by opcode small
# Generated functions have parameters and variables of their own.
RESERVED = {'x', 'rec', 'req', 'rep', 'body', 'at', 'slot', 'result', 'answer', 'capacity', 'got', 'from', 'head', 'size_t', 'rep_size',
            'bad', 'key', 'key_size', 'fixed', 'memcpy', 'memset', 'put', 'pad', 'put_part'}
RESERVED_PREFIXES = ('len_', 'id_', 'h_', 'wrong_', 'ret_')
FIXED_MAX = 256          # elements of an array of fixed length

WIRE = {'u8': ('uint8_t', 1), 'u16': ('uint16_t', 2), 'u32': ('uint32_t', 4), 'u64': ('uint64_t', 8),
        'i32': ('int32_t', 4), 'i64': ('int64_t', 8), 'f32': ('float', 4), 'f64': ('double', 8)}

# C scalars of prototypes -> wire type. Enumerations travel as u32, handles and device pointers as u64.
SCALARS = {'int': 'i32', 'unsigned int': 'u32', 'unsigned long long': 'u64', 'long long': 'i64', 'size_t': 'u64',
           'unsigned char': 'u8', 'unsigned short': 'u16', 'float': 'f32', 'double': 'f64', 'char': 'u8',
           'CUdevice': 'i32', 'CUdeviceptr': 'u64', 'cuuint32_t': 'u32', 'cuuint64_t': 'u64',
           'CUmemGenericAllocationHandle': 'u64'}


class SpecError(Exception):
    def __init__(self, where, message):
        super().__init__(f'{where[0]}:{where[1]}: {message}')


class CudaTypes:
    """What base/cuda_types.h declares, as far as a prototype needs to know."""

    def __init__(self, text):
        self.text = text
        self.handles = set(re.findall(r'typedef struct \w+ \*(\w+);', text))
        self.enums = set(re.findall(r'^typedef enum (\w+)', text, re.M))
        self.structs = set(re.findall(r'^typedef (?:struct|union) (\w+) \{', text, re.M))
        self.functions = set(re.findall(r'^typedef \w+ \(\*(\w+)\)\(', text, re.M))
        for name, old in re.findall(r'^typedef (\w+) (\w+);', text, re.M):
            for kind in (self.handles, self.enums, self.structs):
                if name in kind:
                    kind.add(old)

    def knows(self, base):
        return base in SCALARS or base == 'void' or any(
            base in kind for kind in (self.handles, self.enums, self.structs, self.functions))


class Expr:
    """A size: identifiers and numbers joined by + - *. Evaluated in C without overflow; anything wrong becomes UINT64_MAX."""

    OPS = {'+': 'obp_add', '-': 'obp_sub', '*': 'obp_mul'}

    def __init__(self, where, text):
        self.text = ' '.join(text.split())
        tokens = re.findall(r'\w+|[-+*]', text)
        if re.sub(r'[\w\s+*-]', '', text) or not tokens or len(tokens) % 2 == 0:
            raise SpecError(where, f"'{text.strip()}' is not a size: names and numbers joined by + - *")
        for i, token in enumerate(tokens):
            if (token in self.OPS) != bool(i % 2):
                raise SpecError(where, f"'{text.strip()}' is not a size: names and numbers joined by + - *")
        self.tokens = tokens
        self.names = [t for t in tokens if not t.isdigit() and t not in self.OPS]

    def to_c(self, access):
        """access(name) -> C expression. Products bind closer than sums."""
        def atom(token):
            return token + 'u' if token.isdigit() else f'(uint64_t){access(token)}'
        terms, ops = [atom(self.tokens[0])], []
        for op, token in zip(self.tokens[1::2], self.tokens[2::2]):
            if op == '*':
                terms[-1] = f'obp_mul({terms[-1]}, {atom(token)})'
            else:
                ops.append(op)
                terms.append(atom(token))
        out = terms[0]
        for op, term in zip(ops, terms[1:]):
            out = f'{self.OPS[op]}({out}, {term})'
        return out


class Field:
    """A scalar, an array of fixed length or a struct inside the fixed part of a body."""

    def __init__(self, name, wire, count=1, bound=None, struct=None, source=None):
        self.name, self.wire, self.count, self.bound, self.struct, self.source = name, wire, count, bound, struct, source
        self.ctype, self.width = WIRE[wire]
        self.size = self.width * count
        self.align = self.width
        self.offset = 0

    def decl(self):
        return f'{self.ctype} {self.name}' + (f'[{self.count}]' if self.count > 1 or self.struct else '')


class Var:
    """A part of variable length after the fixed part; each starts at a multiple of 8."""

    def __init__(self, name, wire, expr, bound, cstr=False, source=None, streamed=False):
        self.name, self.wire, self.expr, self.bound, self.cstr, self.source = name, wire, expr, bound, cstr, source
        self.streamed = streamed
        self.ctype, self.width = WIRE[wire]


class Body:
    """One direction of a call: fixed fields, widest first so that there are no holes, then the variable parts."""

    def __init__(self):
        self.fields, self.vars, self.pad, self.size = [], [], 0, 0

    def lay_out(self):
        self.fields.sort(key=lambda f: -f.align)
        offset = 0
        for field in self.fields:
            assert offset % field.align == 0
            field.offset = offset
            offset += field.size
        self.pad = -offset % 8
        self.size = offset + self.pad

    def field(self, name):
        return next((f for f in self.fields if f.name == name), None)


class Param:
    """One parameter of a prototype or of an operation."""

    def __init__(self, where, name):
        self.where, self.name = where, name
        self.way = 'in'          # in, out, inout, addr
        self.base = ''           # C type without const and stars, or the wire type
        self.const = False
        self.stars = 0
        self.array = None        # text between the brackets of an array
        self.bound = None
        self.kind = 'scalar'     # op parameters: scalar, bytes, cstr

    def ctype(self):
        stars = self.stars + (1 if self.array is not None else 0)
        return ('const ' if self.const else '') + self.base + (' ' + '*' * stars if stars else '')

    def decl(self):
        text = self.ctype()
        return text + ('' if text.endswith('*') else ' ') + self.name


class Call:
    """One line of the specification."""

    def __init__(self, where, name, klass):
        self.where, self.name, self.klass = where, name, klass
        self.since, self.params, self.twin, self.words = 0, [], None, set()
        self.opcode, self.op, self.group, self.doc = None, False, None, ''
        self.reason = self.target = None
        self.req, self.rep = Body(), Body()

    @property
    def on_wire(self):
        return self.opcode is not None

    @property
    def enum(self):
        return 'OBP_OP_' + self.name.upper() if self.op else 'OBP_CALL_' + self.name

    @property
    def stream(self):
        """The CUstream parameter that a _ptsz twin replaces, or None."""
        streams = [p for p in self.params if p.base == 'CUstream' and not p.stars and p.array is None]
        return streams[0] if streams else None

    @property
    def config(self):
        return next((p for p in self.params if p.base == 'CUlaunchConfig'), None)

    @property
    def extra_stream(self):
        """The implementation takes the default stream of the calling flavour as one more parameter."""
        return self.twin is not None and not self.stream and not self.config

    def prototype(self):
        return ', '.join(p.decl() for p in self.params) or 'void'

    def impl_params(self):
        decls = [p.decl() for p in self.params] + (['CUstream stream'] if self.extra_stream else [])
        return ', '.join(decls) or 'void'

    def since_of(self, twin):
        return max(self.since, TWIN_SINCE) if twin else self.since

    def exports(self):
        """[(exported name, since, flavour)] with flavour None, 'ptsz' or 'ptds'."""
        names = [(self.name, self.since, None)]
        if self.twin:
            names.append((f'{self.name}_{self.twin}', self.since_of(self.twin), self.twin))
        return names


class Spec:
    def __init__(self, types):
        self.types = types
        self.calls = []          # CUDA calls, in the order of the files
        self.ops = []            # wire operations that are no CUDA call
        self.absent = []
        self.aliases = []
        self.groups = {}         # number -> name
        self.consts = {}         # name -> (value, comment)
        self.handles = {}        # C type -> kind
        self.structs = {}        # C type -> bytes
        self.by_name = {}
        self.by_opcode = {}

    def wire_calls(self):
        return sorted(self.by_opcode.values(), key=lambda c: c.opcode)

    def exported(self):
        return self.calls + self.aliases + self.absent

    def driver_calls(self):
        return self.calls

    def add(self, call):
        if call.name in self.by_name:
            first = self.by_name[call.name].where
            raise SpecError(call.where, f'{call.name} was already given in {first[0]}:{first[1]}')
        self.by_name[call.name] = call
        if call.opcode is not None:
            other = self.by_opcode.get(call.opcode)
            if other:
                raise SpecError(call.where, f'opcode 0x{call.opcode:04x} of {call.name} belongs to {other.name}')
            self.by_opcode[call.opcode] = call
        if call.klass == 'absent':
            self.absent.append(call)
        elif call.klass == 'alias':
            self.aliases.append(call)
        elif call.op:
            self.ops.append(call)
        else:
            self.calls.append(call)

    def const(self, where, name):
        if name not in self.consts:
            raise SpecError(where, f"the maximum '{name}' is unknown: declare it with const")
        return self.consts[name][0]

    # ---- after all files are read ----

    def finish(self):
        for alias in self.aliases:
            target = self.by_name.get(alias.target)
            if not target or target.klass in ('alias', 'absent') or target.op:
                raise SpecError(alias.where, f'{alias.name} is an alias of {alias.target}, which is no call')
            alias.params = target.params
            if alias.twin and alias.twin != target.twin:
                raise SpecError(alias.where, f'{alias.name} has a {alias.twin} twin, {target.name} has not')
        for call in self.calls + self.ops:
            if call.on_wire:
                (self.lay_out_op if call.op else self.lay_out_call)(call)
        exported = {}
        for call in self.exported():
            for name, _, _ in call.exports():
                if name in exported:
                    raise SpecError(call.where, f'{name} is exported twice')
                exported[name] = call

    def size_of(self, param, text):
        """'expr <= MAX' -> (Expr, MAX)."""
        expr, _, bound = text.partition('<=')
        return Expr(param.where, expr), bound.strip() or param.bound

    def check_names(self, call, body, var):
        for name in var.expr.names:
            if not body.field(name) or body.field(name).count > 1:
                raise SpecError(call.where, f"{call.name}: the size of '{var.name}' names '{name}', which is no number of this call")

    def lay_out_op(self, call):
        for p in call.params:
            body = call.rep if p.way == 'out' else call.req
            if p.kind == 'cstr':
                self.const(p.where, p.array)
                body.fields.append(Field(p.name + '_size', 'u32', bound=p.array, source=p))
                body.vars.append(Var(p.name, 'u8', Expr(p.where, p.name + '_size'), p.array, cstr=True, source=p))
                continue
            wire = 'u8' if p.kind == 'bytes' else p.base
            if p.array is None:
                body.fields.append(Field(p.name, wire, bound=p.bound, source=p))
            elif p.array.isdigit():
                if not 2 <= int(p.array) <= FIXED_MAX:
                    raise SpecError(p.where, f'{call.name}: {p.name} has {p.array} elements; 2 to {FIXED_MAX} are possible')
                body.fields.append(Field(p.name, wire, int(p.array), source=p))
            else:
                expr, bound = self.size_of(p, p.array)
                if not bound:
                    raise SpecError(p.where, f"{call.name}: '{p.name}[{p.array}]' needs a maximum: [{p.array} <= SOME_MAX]")
                self.const(p.where, bound)
                var = Var(p.name, wire, expr, bound, source=p, streamed=p.way == 'out' and call.klass == 'bulk')
                if p.way == 'out' and not var.streamed:
                    body.fields.append(Field(p.name + '_size', 'u32', source=p))
                body.vars.append(var)
        for body in (call.req, call.rep):
            for field in body.fields:
                if field.bound:
                    self.const(call.where, field.bound)
            body.lay_out()
        for var in call.req.vars + call.rep.vars:
            self.check_names(call, call.req, var)
        if call.klass == 'async' and (call.rep.fields or call.rep.vars):
            raise SpecError(call.where, f'{call.name} is async and has no reply: it cannot have an out parameter')
        if call.klass == 'bulk' and sum(1 for v in call.req.vars + call.rep.vars) != 1:
            raise SpecError(call.where, f'{call.name} is bulk: exactly one parameter must be bytes of variable length')
        if call.klass == 'bulk' and call.req.vars:
            size = call.req.vars[0].expr
            if len(size.tokens) != 1 or [f.wire for f in call.req.fields[:2]] != ['u64', 'u64'] or \
                    call.req.fields[1].name != size.text:
                raise SpecError(call.where, f'{call.name} is bulk: its first two numbers must be u64, the place and the size of the'
                                            ' data, which the log moves on from chunk to chunk')

    def lay_out_call(self, call):
        for p in call.params:
            self.lay_out_param(call, p)
        call.req.lay_out()
        call.rep.lay_out()
        for var in call.req.vars + call.rep.vars:
            self.check_names(call, call.req, var)
        if call.klass == 'async' and (call.rep.fields or call.rep.vars):
            raise SpecError(call.where, f'{call.name} is async and has no reply: it cannot have an out parameter')
        if call.rep.vars and (call.rep.fields or len(call.rep.vars) > 1):
            raise SpecError(call.where, f'{call.name}: a call that gives back an array gives back nothing else: use an operation')
        if call.klass == 'cached' and (not call.rep.vars or not call.req.size):
            raise SpecError(call.where, f'{call.name} is cached: it must take numbers and give back one array')

    def wire_of(self, call, p):
        types = self.types
        if p.base in SCALARS:
            return SCALARS[p.base]
        if p.base in types.enums:
            return 'u32'
        if p.base in types.handles:
            if p.base not in self.handles:
                raise SpecError(p.where, f"{call.name}: the handle {p.base} has no kind: declare it with handle")
            return 'u64'
        return None

    def lay_out_param(self, call, p):
        if p.way == 'addr':
            if p.stars != 1:
                raise SpecError(p.where, f"{call.name}: '{p.name}' is marked addr but is no pointer")
            call.req.fields.append(Field(p.name, 'u64', source=p))
            return
        wire = self.wire_of(call, p)
        if p.array is not None:
            expr, bound = self.size_of(p, p.array)
            if p.way == 'in' and not bound:
                raise SpecError(p.where, f"{call.name}: '{p.name}[{p.array}]' needs a maximum: [{p.array} <= SOME_MAX]")
            if bound:
                self.const(p.where, bound)
            if not wire or p.way == 'inout':
                raise SpecError(p.where, f"{call.name}: an array of {p.base} cannot go over the wire")
            body = call.req if p.way == 'in' else call.rep
            if p.way == 'out' and not bound:
                bound = next((v.bound for v in call.req.vars if v.expr.text == expr.text), None) or next(
                    (self.size_of(q, q.array)[1] for q in call.params
                     if q.way == 'in' and q.array is not None and self.size_of(q, q.array)[0].text == expr.text), None)
                if not bound:
                    raise SpecError(p.where, f"{call.name}: '{p.name}[{p.array}]' needs a maximum: [{p.array} <= SOME_MAX]")
            body.vars.append(Var(p.name, wire, expr, bound, source=p))
            return
        if p.stars == 0:
            if not wire:
                raise SpecError(p.where, f"{call.name}: a {p.base} by value cannot go over the wire")
            call.req.fields.append(Field(p.name, wire, source=p))
            return
        if p.stars != 1 or p.base == 'void' or (p.way == 'in' and not p.const):
            raise SpecError(p.where, f"{call.name}: '{p.decl()}' cannot go over the wire: mark it addr, in, out or inout,"
                                     ' give it a size, or make the call local')
        if wire:
            make = lambda: Field(p.name, wire, source=p)
        elif p.base in self.structs:
            make = lambda: Field(p.name, 'u8', self.structs[p.base], struct=p.base, source=p)
        else:
            raise SpecError(p.where, f'{call.name}: the struct {p.base} has no size: declare it with struct')
        if p.way in ('in', 'inout'):
            call.req.fields.append(make())
        if p.way in ('out', 'inout'):
            call.rep.fields.append(make())


class Parser:
    TOKEN = re.compile(r'//[^\n]*|"(?:[^"\n]|\\")*"|0x[0-9a-fA-F]+|\w+|<=|[^\s\w]')

    def __init__(self, spec, path, shown, text):
        self.spec, self.shown = spec, shown
        self.group = None
        self.tokens, self.comments = [], {}
        line = 1
        position = 0
        for match in self.TOKEN.finditer(text):
            line += text.count('\n', position, match.start())
            position = match.start()
            if match[0].startswith('//'):
                self.comments[line] = match[0][2:].strip()
            else:
                self.tokens.append((match[0], line))
        self.last_line = line
        self.i = 0

    # ---- tokens ----

    def where(self):
        return (self.shown, self.tokens[self.i][1] if self.i < len(self.tokens) else self.last_line)

    def peek(self):
        return self.tokens[self.i][0] if self.i < len(self.tokens) else ''

    def next(self):
        token = self.peek()
        if not token:
            raise SpecError(self.where(), 'the file ends in the middle of a declaration')
        self.i += 1
        return token

    def expect(self, token):
        where = self.where()
        got = self.next()
        if got != token:
            raise SpecError(where, f"'{token}' was expected before '{got}'")

    def accept(self, token):
        if self.peek() == token:
            self.i += 1
            return True
        return False

    def name(self, what):
        where = self.where()
        token = self.next()
        if not re.fullmatch(r'[A-Za-z_]\w*', token):
            raise SpecError(where, f"{what} was expected instead of '{token}'")
        return token

    def number(self, what, least=0, most=1 << 64):
        where = self.where()
        token = self.next()
        try:
            value = int(token, 0)
        except ValueError:
            raise SpecError(where, f"{what} was expected instead of '{token}'") from None
        if not least <= value <= most:
            raise SpecError(where, f'{what} {token} is out of range: {least} to {most}')
        return value

    def doc_above(self, line):
        lines = []
        while line - 1 in self.comments and not any(t[1] == line - 1 for t in self.tokens):
            line -= 1
            lines.insert(0, self.comments[line])
        return ' '.join(lines)

    # ---- declarations ----

    def parse(self):
        while self.peek():
            where, token = self.where(), self.next()
            if token == 'group':
                self.parse_group(where)
            elif token == 'const':
                name = self.name('a name')
                if name in self.spec.consts:
                    raise SpecError(where, f'the constant {name} was already given')
                self.spec.consts[name] = (self.number('a value'), self.comments.get(where[1], ''))
                self.expect(';')
            elif token == 'handle':
                ctype = self.name('a handle type')
                if ctype not in self.spec.types.handles:
                    raise SpecError(where, f'base/cuda_types.h has no handle {ctype}')
                self.spec.handles[ctype] = self.name('a kind')
                self.expect(';')
            elif token == 'struct':
                ctype = self.name('a struct type')
                if ctype not in self.spec.types.structs:
                    raise SpecError(where, f'base/cuda_types.h has no struct {ctype}')
                self.spec.structs[ctype] = self.number('a size in bytes', 1, 4096)
                self.expect(';')
            elif token == 'absent':
                self.parse_absent(where)
            elif token == 'alias':
                self.parse_alias(where)
            elif token.startswith('0x'):
                self.parse_wire(where, token)
            elif token in CLASSES:
                if token in ('sync', 'async', 'cached'):
                    raise SpecError(where, f'a call of class {token} goes over the wire and needs an opcode in front')
                self.parse_call(where, token, None)
            else:
                raise SpecError(where, f"'{token}' begins no declaration: group, const, handle, struct, absent, alias,"
                                       f" an opcode or one of {', '.join(CLASSES[:3])}")

    def parse_group(self, where):
        name = self.name('a group name')
        number = self.number('a group number', 1, GROUP_MAX)
        self.expect(';')
        if number in self.spec.groups:
            raise SpecError(where, f'group 0x{number:02x} of {name} belongs to {self.spec.groups[number]}')
        self.spec.groups[number] = name
        self.group = (number, name)

    def parse_twin(self, call):
        if self.peek() in TWINS:
            call.twin = self.next()

    def parse_absent(self, where):
        reason = self.next()
        if not reason.startswith('"') or len(reason) < 4:
            raise SpecError(where, 'an absent block begins with its reason in quotes')
        self.expect('{')
        while not self.accept('}'):
            line = self.where()
            since = self.number('the CUDA version', 0, 99999)
            call = Call(line, self.call_name(), 'absent')
            call.since, call.reason = since, reason[1:-1]
            self.parse_twin(call)
            self.expect(';')
            self.spec.add(call)

    def parse_alias(self, where):
        since = self.number('the CUDA version', 0, 99999)
        call = Call(where, self.call_name(), 'alias')
        self.expect('=')
        call.since, call.target = since, self.call_name()
        self.parse_twin(call)
        self.expect(';')
        self.spec.add(call)

    def call_name(self):
        where = self.where()
        name = self.name("a call's name")
        if not re.fullmatch(r'cu[A-Z]\w*', name):
            raise SpecError(where, f"'{name}' is no name of a driver call: those begin with cu and a capital")
        if re.search(r'_pt[sd][sz]$', name):
            raise SpecError(where, f"'{name}': twins are not written out, put ptsz or ptds behind the call")
        return name

    def parse_wire(self, where, token):
        if self.group is None:
            raise SpecError(where, 'an opcode needs a group: give the group first')
        byte = int(token, 16)
        if not 1 <= byte <= 255:
            raise SpecError(where, f'opcode byte {token} is out of range: 0x01 to 0xff')
        opcode = self.group[0] << 8 | byte
        if self.accept('op'):
            return self.parse_op(where, opcode)
        klass = self.next()
        if klass not in ('sync', 'async', 'cached'):
            raise SpecError(where, f"a call of class '{klass}' does not go over the wire: remove the opcode")
        return self.parse_call(where, klass, opcode)

    def parse_words(self, call):
        while not self.accept(';'):
            where = self.where()
            word = self.next()
            if word in TWINS and not call.op:
                call.twin = word
            elif word in ('noctx', 'blocks') and call.on_wire:
                call.words.add(word)
            else:
                raise SpecError(where, f"the word '{word}' is not known here")

    def parse_call(self, where, klass, opcode):
        since = self.number('the CUDA version', 0, 99999)
        call = Call(where, self.call_name(), klass)
        call.since, call.opcode, call.group = since, opcode, self.group
        self.expect('(')
        if not self.accept(')'):
            while True:
                call.params.append(self.parse_param(call))
                if self.accept(')'):
                    break
                self.expect(',')
        self.check_params(call)
        self.parse_words(call)
        if call.twin == 'ptsz' and not call.stream and not call.config:
            raise SpecError(where, f'{call.name} has a ptsz twin but no stream')
        if call.twin == 'ptds' and call.stream:
            raise SpecError(where, f'{call.name} takes a stream: its twin is ptsz')
        if call.extra_stream and call.on_wire:
            raise SpecError(where, f'{call.name} has a ptds twin and must be local')
        self.spec.add(call)

    def check_params(self, call):
        seen = set()
        for p in call.params:
            if p.name in seen:
                raise SpecError(p.where, f"{call.name} has two parameters named '{p.name}'")
            seen.add(p.name)
            if call.on_wire and (p.name in RESERVED or p.name.startswith(RESERVED_PREFIXES) or (p.name == 'ctx' and not call.op)):
                raise SpecError(p.where, f"{call.name}: generated code uses the name '{p.name}' itself: choose another")

    def bracket(self):
        text = []
        while not self.accept(']'):
            text.append(self.next())
        return ' '.join(text)

    def parse_param(self, call):
        where = self.where()
        words = []
        while self.peek() not in (',', ')', '[', ''):
            words.append(self.next())
        if len(words) < 2:
            raise SpecError(where, f'{call.name}: a parameter needs a type and a name')
        p = Param(where, words.pop())
        if words[0] in ('in', 'out', 'inout', 'addr'):
            p.way = words.pop(0)
        while words and words[-1] == '*':
            words.pop()
            p.stars += 1
        if words and words[0] == 'const':
            words.pop(0)
            p.const = True
        p.base = ' '.join(words)
        if self.accept('['):
            p.array = self.bracket()
        if not self.spec.types.knows(p.base):
            raise SpecError(where, f"{call.name}: base/cuda_types.h has no type '{p.base}'")
        return p

    # ---- operations ----

    def parse_op(self, where, opcode):
        klass = self.next()
        if klass not in OP_CLASSES:
            raise SpecError(where, f"an operation is {', '.join(OP_CLASSES)}, not '{klass}'")
        call = Call(where, self.name("an operation's name"), klass)
        if not re.fullmatch(r'[a-z][a-z0-9_]*', call.name):
            raise SpecError(where, f"'{call.name}': names of operations are in small letters")
        call.op, call.opcode, call.group, call.doc = True, opcode, self.group, self.doc_above(where[1])
        self.expect('(')
        if not self.accept(')'):
            while True:
                call.params.append(self.parse_op_param(call))
                if self.accept(')'):
                    break
                self.expect(',')
        self.check_params(call)
        self.parse_words(call)
        self.spec.add(call)

    def parse_op_param(self, call):
        where = self.where()
        way = 'out' if self.accept('out') else 'in'
        base = self.next()
        p = Param(where, '')
        p.way, p.base = way, base
        if base in ('bytes', 'cstr'):
            p.kind = base
        elif base not in WIRE:
            raise SpecError(where, f"{call.name}: '{base}' is no wire type: {', '.join(WIRE)}, bytes, cstr")
        p.name = self.name('a name')
        if self.accept('['):
            p.array = self.bracket()
        elif p.kind != 'scalar':
            raise SpecError(where, f"{call.name}: '{p.name}' needs a size in brackets")
        if self.accept('<='):
            p.bound = self.name('the name of a maximum')
        if p.kind == 'cstr' and way == 'out':
            raise SpecError(where, f"{call.name}: '{p.name}': a cstr cannot come back, use bytes")
        return p


def read(paths, types_text, builtin_consts=()):
    """paths: [(path, name shown in messages)]. Raises SpecError."""
    spec = Spec(CudaTypes(types_text))
    for name, value in builtin_consts:
        spec.consts[name] = (value, None)
    for path, shown in paths:
        with open(path, encoding='utf-8') as f:
            Parser(spec, path, shown, f.read()).parse()
    spec.finish()
    return spec
