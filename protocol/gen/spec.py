# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Reads protocol/spec/*.api. The language is described in protocol/spec/README.md."""

import re

import layout
from model import (CLASSES, Call, CudaTypes, GROUP_MAX, Member, NUMBER_HANDLES, OP_CLASSES, Param, RESERVED, RESERVED_IN_CALLS,
                   RESERVED_PREFIXES, Spec, SpecError, Struct, TWINS, WIRE)

STREAM_STRUCTS = ('CUDA_GRAPH_INSTANTIATE_PARAMS',)  # a member is a stream, whose default the call chooses

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
                self.parse_handle(where)
            elif token == 'struct':
                self.parse_struct(where)
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

    def parse_handle(self, where):
        ctype = self.name('a handle type')
        if ctype not in self.spec.types.handles and ctype not in NUMBER_HANDLES:
            raise SpecError(where, f'base/cuda_types.h has no handle {ctype}: add it there, as in cuda.h')
        self.spec.handles[ctype] = self.name('a kind')
        self.spec.errors[ctype] = 'CUDA_ERROR_INVALID_HANDLE'
        if self.accept('else'):
            self.spec.errors[ctype] = self.name('an error')
            if not re.search(rf'\b{self.spec.errors[ctype]} =', self.spec.types.text):
                raise SpecError(where, f'base/cuda_types.h has no error {self.spec.errors[ctype]}')
        self.expect(';')

    def parse_struct(self, where):
        ctype = self.name('a struct type')
        if ctype not in self.spec.types.structs:
            raise SpecError(where, f'base/cuda_types.h has no struct {ctype}: add it there, as in cuda.h')
        if ctype in self.spec.structs:
            raise SpecError(where, f'the struct {ctype} was already given')
        struct = self.spec.structs[ctype] = Struct(where, ctype)
        if not self.accept('{'):
            struct.size = self.number('a size in bytes', 1, 4096)
            self.expect(';')
            return
        while not self.accept('}'):
            struct.members.append(self.parse_member(struct))
        if not struct.members:
            raise SpecError(where, f'{ctype}: a struct without members does not travel')

    def parse_member(self, struct):
        """Parses `[device] type path [count] [when path == VALUE];` or `addr type *path;`."""
        where, words = self.where(), []
        while self.peek() not in (';', '[', 'when', ''):
            words.append(self.next())
        path = []
        while words and (not path or words[-1] == '.' or path[0] == '.'):
            path.insert(0, words.pop())
        device = words[:1] == ['device']
        address = words[:1] == ['addr']
        words = words[device or address:]
        if address and words[-1:] == ['*']:
            words.pop()
        elif address or not words:
            raise SpecError(where, f'{struct.name}: a member needs a type and a name, an addr also a *')
        member = Member(where, ' '.join(w for w in words if w != 'const'), ''.join(path))
        member.device, member.address = device, address
        if device and member.base not in ('int', 'CUdevice'):
            raise SpecError(where, f"{struct.name}: '{member.path}' is marked device but is no int")
        if not self.spec.types.knows(member.base):
            raise SpecError(where, f"{struct.name}: base/cuda_types.h has no type '{member.base}': add it there, as in cuda.h")
        if self.accept('['):
            member.count = self.number('a number of elements', 2, 256)
            self.expect(']')
        if self.accept('when'):
            other = self.name('a member')
            for _ in range(2):
                self.expect('=')
            member.when = (other, self.name('a value'))
            if not device or all(m.path != other for m in struct.members):
                raise SpecError(where, f"{struct.name}: 'when' names a member above it, and stands behind a device")
        if any(m.path == member.path for m in struct.members):
            raise SpecError(where, f"{struct.name} has two members named '{member.path}'")
        self.expect(';')
        return member

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
            elif word in ('wrapped', 'front') and call.on_wire and not call.op:
                if call.words & {'wrapped', 'front'}:
                    raise SpecError(where, f"'{word}': {call.name} already has a hand-written function")
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
        if call.twin == 'ptsz' and not (call.stream or call.config or any(p.base in STREAM_STRUCTS for p in call.params)):
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
            if call.on_wire and (p.name in RESERVED or p.name.startswith(RESERVED_PREFIXES) or (
                    p.name in RESERVED_IN_CALLS and not call.op)):
                raise SpecError(p.where, f"{call.name}: generated code uses the name '{p.name}' itself: choose another")

    def bracket(self):
        text = []
        while not self.accept(']'):
            text.append(self.next())
        return ' '.join(text)

    WORDS = ('in', 'out', 'inout', 'addr', 'opt', 'new', 'drop', 'device', 'cstr')

    @staticmethod
    def take_word(p, word):
        if word in ('in', 'out', 'inout', 'addr'):
            p.way = word
        elif word == 'cstr':
            p.kind = word
        else:
            setattr(p, word, True)
            p.way = 'out' if word == 'new' else p.way

    def parse_param(self, call):
        where = self.where()
        words = []
        while self.peek() not in (',', ')', '[', ''):
            words.append(self.next())
        if len(words) < 2:
            raise SpecError(where, f'{call.name}: a parameter needs a type and a name')
        p = Param(where, words.pop())
        while words and words[0] in self.WORDS:
            self.take_word(p, words.pop(0))
        while words and words[-1] == '*':
            words.pop()
            p.stars += 1
        if words and words[0] == 'const':
            words.pop(0)
            p.const = True
        p.base = ' '.join(words)
        if self.accept('['):
            p.array = self.bracket()
        elif p.kind == 'cstr':
            raise SpecError(where, f"{call.name}: '{p.name}' is a cstr and needs its maximum in brackets")
        if p.device and p.base != 'int':
            raise SpecError(where, f"{call.name}: '{p.name}' is marked device but is no int")
        if not self.spec.types.knows(p.base):
            raise SpecError(where, f"{call.name}: base/cuda_types.h has no type '{p.base}': add it there, as in cuda.h")
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
    """Returns the Spec. paths: [(path, name for messages)]. Raises SpecError."""
    spec = Spec(CudaTypes(types_text))
    for name, value in builtin_consts:
        spec.consts[name] = (value, None)
    for path, shown in paths:
        with open(path, encoding='utf-8') as f:
            Parser(spec, path, shown, f.read()).parse()
    layout.finish(spec)
    return spec
