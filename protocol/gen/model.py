# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""The classes of the call specification, which spec.py reads and layout.py completes."""

import re

CLASSES = ('front', 'local', 'server', 'sync', 'async', 'cached')
OP_CLASSES = ('sync', 'async', 'bulk')
TWINS = ('ptsz', 'ptds')
TWIN_SINCE = 7000        # CUDA 7.0 introduced the per-thread default stream
GROUP_MAX = 0x1f         # keeps the tables that are indexed by opcode small
# Names that generated functions use for their own parameters and variables.
RESERVED = {'x', 'rec', 'req', 'rep', 'body', 'at', 'slot', 'result', 'answer', 'capacity', 'got', 'from', 'head', 'size_t', 'rep_size',
            'bad', 'key', 'key_size', 'fixed', 'memcpy', 'memset', 'put', 'pad', 'put_part'}
RESERVED_IN_CALLS = {'ctx', 'i', 'given', 'one', 'used'}
RESERVED_PREFIXES = ('len_', 'id_', 'ids_', 'h_', 'wrong_', 'ret_', 'number_', 'in_', 'part_')
FIXED_MAX = 256          # maximum number of elements of an array of fixed length
CACHE_KEY = 256          # maximum bytes of the arguments of a cached call
CACHE_ANSWER = 128       # maximum bytes of its answer
STACK_MAX = 1 << 16      # maximum bytes of a call's arrays on the stack of generated code

WIRE = {'u8': ('uint8_t', 1), 'u16': ('uint16_t', 2), 'u32': ('uint32_t', 4), 'u64': ('uint64_t', 8),
        'i32': ('int32_t', 4), 'i64': ('int64_t', 8), 'f32': ('float', 4), 'f64': ('double', 8)}

# C scalars of prototypes -> wire type. Enumerations travel as u32, handles and device pointers as
# u64.
SCALARS = {'int': 'i32', 'unsigned int': 'u32', 'unsigned long long': 'u64', 'long long': 'i64', 'size_t': 'u64',
           'unsigned char': 'u8', 'unsigned short': 'u16', 'float': 'f32', 'double': 'f64', 'char': 'u8',
           'CUdevice': 'i32', 'CUdeviceptr': 'u64', 'CUdeviceptr_v1': 'u32', 'cuuint32_t': 'u32', 'cuuint64_t': 'u64',
           'CUmemGenericAllocationHandle': 'u64', 'CUtexObject': 'u64', 'CUsurfObject': 'u64',
           'CUgraphConditionalHandle': 'u64'}

# Handles that are numbers in C. The others are pointers, according to base/cuda_types.h.
NUMBER_HANDLES = ('CUmemGenericAllocationHandle',)


class SpecError(Exception):
    def __init__(self, where, message):
        super().__init__(f'{where[0]}:{where[1]}: {message}')


class CudaTypes:
    """The declarations of base/cuda_types.h that prototypes need."""

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
    """A size: identifiers and numbers joined by + - *. The C code gives UINT64_MAX if the result
    overflows or is negative."""

    OPS = {'+': 'obp_add', '-': 'obp_sub', '*': 'obp_mul'}

    def __init__(self, where, text):
        self.text = ' '.join(text.split())
        self.pointed = bool(re.fullmatch(r'\* ?\w+', self.text))
        if self.pointed:         # *n: the number that n points to
            self.text = text = self.text.lstrip('* ')
        tokens = re.findall(r'\w+|[-+*]', text)
        if re.sub(r'[\w\s+*-]', '', text) or not tokens or len(tokens) % 2 == 0:
            raise SpecError(where, f"'{text.strip()}' is not a size: names and numbers joined by + - *")
        for i, token in enumerate(tokens):
            if (token in self.OPS) != bool(i % 2):
                raise SpecError(where, f"'{text.strip()}' is not a size: names and numbers joined by + - *")
        self.tokens = tokens
        self.names = [t for t in tokens if not t.isdigit() and t not in self.OPS]

    def to_c(self, access):
        """Returns the C expression. access(name) returns that of an identifier."""
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


class Leaf:
    """One number that travels: a parameter, or a member of a parameter's struct."""

    def __init__(self, name, path, base, wire, count=1):
        self.name, self.path, self.base, self.wire, self.count = name, path, base, wire, count
        self.kind = None         # kind of a handle; a handle travels as the client's id
        self.pointer_handle = False
        self.device = False      # a device number: client and server number devices differently
        self.when = None         # (path, value): it is a device only if that member has this value
        self.address = False     # a pointer that travels as a number
        self.opaque = False      # a struct that travels as its bytes

    def place(self, p, index=None, local=None):
        """Returns the C expression for this leaf of parameter p, of its element `index`, or of a
        local variable."""
        dot = '.' + self.path if self.path else ''
        if local:
            return local + dot
        if p.array is not None:
            return f'{p.name}[{index}]{dot}'
        if p.stars and p.way != 'addr':
            return f'{p.name}->{self.path}' if self.path else f'*{p.name}'
        return p.name + dot

    @property
    def converted(self):
        """Whether its value on the wire differs from its value in C."""
        return bool(self.kind) or self.device


class Field:
    """A scalar, an array of fixed length or a struct inside the fixed part of a body."""

    def __init__(self, name, wire, count=1, bound=None, source=None, leaf=None):
        self.name, self.wire, self.count, self.bound, self.source, self.leaf = name, wire, count, bound, source, leaf
        self.limit = None        # maximum of the value, if `bound` does not name one
        self.ctype, self.width = WIRE[wire]
        self.size = self.width * count
        self.align = self.width
        self.offset = 0

    @property
    def opaque(self):
        return self.leaf is not None and self.leaf.opaque

    @property
    def is_array(self):
        return self.count > 1 or self.opaque

    @property
    def most(self):
        """The maximum value as a C expression, or None."""
        return f'OBP_{self.bound}' if self.bound else f'{self.limit}u' if self.limit is not None else None

    def decl(self):
        return f'{self.ctype} {self.name}' + (f'[{self.count}]' if self.is_array else '')


class Var:
    """A part of variable length after the fixed part; its offset is a multiple of 8."""

    def __init__(self, name, wire, expr, bound, cstr=False, source=None, streamed=False, leaf=None):
        self.name, self.wire, self.expr, self.bound, self.cstr, self.source = name, wire, expr, bound, cstr, source
        self.streamed, self.leaf = streamed, leaf
        self.given = None        # bit of the field `given`: if it is 0 the part is empty
        self.ctype, self.width = WIRE[wire]

    @property
    def times(self):
        """How many numbers one element has: more than one for an array inside a struct."""
        return self.leaf.count if self.leaf else 1

    @property
    def most(self):
        """The maximum number of numbers, as a C expression."""
        return f'OBP_{self.bound}' + (f' * {self.times}u' if self.times > 1 else '')

    def count(self, access):
        """Returns the number of elements of the parameter, as a 64-bit C expression."""
        text = self.expr.to_c(access)
        return f'({access("given")} >> {self.given} & 1 ? {text} : 0)' if self.given is not None else text

    def length(self, access):
        """Returns how many numbers are in the part, as a C expression."""
        text = self.count(access)
        return f'obp_mul({text}, {self.times}u)' if self.times > 1 else text

    def bytes(self, length):
        return length + (f' * {self.width}' if self.width > 1 else '')


class Struct:
    """A struct that can travel, as `size` bytes or member by member."""

    def __init__(self, where, name, size=None):
        self.where, self.name, self.size, self.members = where, name, size, []


class Member:
    def __init__(self, where, base, path):
        self.where, self.base, self.path = where, base, path
        self.count, self.device, self.when, self.address = 1, False, None, False


class Body:
    """The body of a request or a reply: fixed fields, the widest first so that there is no padding
    between them, then the variable parts."""

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

    def of(self, param):
        """Returns the fields or variable parts that carry this parameter."""
        return [f for f in self.fields if f.source is param and f.leaf] or [v for v in self.vars if v.source is param]


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
        self.kind = 'scalar'     # scalar, cstr; of op parameters also bytes
        self.new = False         # the call creates this handle; the client chooses its id
        self.drop = False        # the call destroys this handle
        self.opt = False         # a pointer that may be NULL
        self.device = False      # an int that is a device number
        self.given = None        # bit number in the field `given`

    @property
    def pointer(self):
        """Whether it is a pointer to one object."""
        return self.stars > 0 and self.way != 'addr' and self.array is None

    @property
    def by_array(self):
        return self.array is not None and self.kind != 'cstr'

    def ctype(self):
        stars = self.stars + (1 if self.array is not None else 0)
        return ('const ' if self.const else '') + self.base + (' ' + '*' * stars if stars else '')

    def decl(self):
        text = self.ctype()
        return text + ('' if text.endswith('*') else ' ') + self.name


class Call:
    """A call or an operation: one line of the specification."""

    def __init__(self, where, name, klass):
        self.where, self.name, self.klass = where, name, klass
        self.since, self.params, self.twin, self.words = 0, [], None, set()
        self.opcode, self.op, self.group, self.doc = None, False, None, ''
        self.reason = self.target = None
        self.line = 0            # line number in opcodes.lock; 0: unknown
        self.req, self.rep = Body(), Body()

    @property
    def on_wire(self):
        return self.opcode is not None

    @property
    def enum(self):
        return 'OBP_OP_' + self.name.upper() if self.op else 'OBP_CALL_' + self.name

    @property
    def stream(self):
        """The CUstream parameter whose default differs in the _ptsz variant, or None."""
        streams = [p for p in self.params if p.base == 'CUstream' and not p.stars and p.array is None]
        return streams[0] if streams else None

    @property
    def config(self):
        return next((p for p in self.params if p.base == 'CUlaunchConfig'), None)

    @property
    def extra_stream(self):
        """Whether the implementation has an additional parameter, the default stream of the called
        flavour."""
        return self.twin is not None and not self.stream and not self.config

    @property
    def wrapped(self):
        return 'wrapped' in self.words

    @property
    def in_front(self):
        return self.klass == 'front' or 'front' in self.words

    @property
    def new(self):
        return next((p for p in self.params if p.new), None)

    @property
    def drop(self):
        return next((p for p in self.params if p.drop), None)

    @property
    def opts(self):
        return [p for p in self.params if p.opt]

    def size_access(self, name):
        """Returns the C expression for a number that determines a size, in the client's
        function."""
        field = self.req.field(name)
        return field.leaf.place(field.source) if field.leaf else name

    def prototype(self):
        return ', '.join(p.decl() for p in self.params) or 'void'

    def impl_params(self):
        decls = [p.decl() for p in self.params] + (['CUstream stream'] if self.extra_stream else [])
        return ', '.join(decls) or 'void'

    def since_of(self, twin):
        return max(self.since, TWIN_SINCE) if twin else self.since

    def exports(self):
        """Returns [(exported name, since, flavour)]. flavour: None, 'ptsz' or 'ptds'."""
        names = [(self.name, self.since, None)]
        if self.twin:
            names.append((f'{self.name}_{self.twin}', self.since_of(self.twin), self.twin))
        return names


class Spec:
    def __init__(self, types):
        self.types = types
        self.calls = []          # CUDA calls, in the order of the files
        self.ops = []            # operations, which are not CUDA calls
        self.absent = []
        self.aliases = []
        self.groups = {}         # number -> name
        self.consts = {}         # name -> (value, comment)
        self.handles = {}        # C type -> kind
        self.errors = {}         # C type of a handle -> the client's error for one that does not exist
        self.structs = {}        # C type -> Struct
        # Number of lines in opcodes.lock; number of those that every server knows.
        self.lines = self.first_lines = 0
        self.by_name = {}
        self.by_opcode = {}

    def wire_calls(self):
        return sorted(self.by_opcode.values(), key=lambda c: c.opcode)

    def exported(self):
        return self.calls + self.aliases + self.absent

    def made(self):
        """Returns {C type: kind} of the handles that generated code creates."""
        types = {p.base for c in self.calls if c.on_wire for p in c.params if p.new}
        return {ctype: kind for ctype, kind in self.handles.items() if ctype in types}

    def newer(self, call):
        """Whether an older server may lack this call."""
        return call.line > self.first_lines

    def one_line(self):
        """The calls that consist of a line in the specification, without hand-written code."""
        return [c for c in self.calls if c.on_wire and not c.wrapped and not c.in_front]

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
