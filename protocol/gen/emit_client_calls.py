# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""client-shim: obc_call_<call>, which sends a CUDA call in the form that its line of the
specification defines."""

from emit import body_start, rep_type, req_type, wrap
from model import CACHE_ANSWER, CACHE_KEY

INVALID = '\t\treturn CUDA_ERROR_INVALID_VALUE;'


# ---- handles that generated code creates ----

def made_tables(spec):
    """A table of live ids for each kind of handle that generated calls create."""
    out = []
    for i, (ctype, kind) in enumerate(spec.made().items()):
        number = 'handle' if ctype not in spec.types.handles else '(uint64_t)(uintptr_t)handle'
        out.append(f'''static struct ob_ids {kind}_ids = OB_IDS_INIT(MADE_KIND + {i}, OB_IDS_MAX);

CUresult obc_wire_{kind}({ctype} handle, uint64_t *ret_id)
{{
	uintptr_t server;
	*ret_id = {number};
	server = (uintptr_t)ob_ids_get(&{kind}_ids, *ret_id);
	return server ? obc_server_choose((uint32_t)server - 1) : {spec.errors[ctype]};
}}
''')
    if out:
        out.insert(0, '/*\n * A handle that a call with a parameter marked `new` returns is an id, which is also its id on the wire. The tables store the\n'
                      ' * number of the server that has the object, and 1.\n */\n'
                      '#define MADE_KIND 0x80 /* kind in an id; greater than those of enum obf_kind */\n')
    return out


def member_asserts(spec):
    """Static assertions that the struct members of the specification match base/cuda_types.h."""
    out = []
    for struct in spec.structs.values():
        for m in struct.members:
            ctype = f'{m.base} *' if m.address else m.base + (f'[{m.count}]' if m.count > 1 else '')
            out.append(wrap(f'_Static_assert(__builtin_types_compatible_p(__typeof__((({struct.name} *)0)->{m.path}), {ctype}), '
                            f'"{struct.name}.{m.path} is another type in base/cuda_types.h");'))
        if struct.size is not None:
            out.append(f'_Static_assert(sizeof({struct.name}) == {struct.size}, "{struct.name} has another size in base/cuda_types.h");')
    return ['\n'.join(out) + '\n'] if out else []


# ---- checks and conversions before the record is begun ----

def enter(spec, call):
    lines = ['\tCUresult bad = obc_log_alive();'] if 'noctx' in call.words else [
        '\tstruct obf_ctx *ctx;', '\tCUresult bad = obf_ctx_enter(&ctx);']
    lines += ['\tif (bad)', '\t\treturn bad;']
    if spec.newer(call):
        lines += [f'\tif (obc_lines_known < OBP_LINE_{call.name})', '\t\treturn CUDA_ERROR_NOT_SUPPORTED;']
    return lines


def check_pointers(call):
    lines = []
    for p in call.params:
        if (p.pointer or p.kind == 'cstr') and not p.opt:
            lines += [f'\tif (!{p.name})', INVALID]
    for p in call.opts:
        if p.pointer and p.way in ('in', 'inout'):
            lines += [f'\t{p.base} in_{p.name};', f'\tmemset(&in_{p.name}, 0, sizeof(in_{p.name}));', f'\tif ({p.name})',
                      f'\t\tin_{p.name} = *{p.name};']
    if call.opts:
        bits = ' | '.join(f'({p.name} ? 1u << {p.given} : 0u)' for p in call.opts)
        lines.append('\t' + wrap(f'const uint32_t given = {bits};'))
    return lines


def check_sizes(call):
    lines = []
    access = lambda name: name if name == 'given' else call.size_access(name)
    for v in call.req.vars + call.rep.vars:
        if v.cstr:
            text = f'strnlen({v.name}, OBP_{v.bound}) + 1u'
            lines.append(f'\tuint64_t len_{v.name} = ' + (f'{v.name} ? {text} : 0;' if v.given is not None else f'{text};'))
        else:
            lines.append(f'\tuint64_t len_{v.name} = {v.length(access)};')
        lines += [f'\tif (len_{v.name} > {v.most})', INVALID]
    for p in call.params:
        if p.by_array and not p.opt:
            lines += [f'\tif (len_{(call.req.of(p) + call.rep.of(p))[0].name} && !{p.name})', INVALID]
    return lines


def value(f, index=None):
    """Returns the C expression for the value of field or part f."""
    p = f.source
    return f.leaf.place(p, index, local=f'in_{p.name}' if p.opt and p.pointer and p.way != 'out' else None)


def when(f, index=None):
    """Returns the C condition under which a member is a device, or None."""
    if not f.leaf.when:
        return None
    other, constant = f.leaf.when
    place = value(f, index)
    return f'{place[:len(place) - len(f.leaf.path)]}{other} == {constant}'


def convert_one(spec, f, target, index, tab):
    """Statements that store a handle's id or a device's number in `target`."""
    lines = []
    if f.leaf.kind:
        call = f'obc_wire_{f.leaf.kind}({value(f, index)}, &{target})'
    else:
        call = f'obc_wire_device({value(f, index)}, &number_{f.name})'
        lines += [f'{tab}uint32_t number_{f.name} = (uint32_t){value(f, index)};']
    lines.append(f'{tab}CUresult wrong_{f.name} = CUDA_SUCCESS;' if when(f, index) or f.source.opt else f'{tab}CUresult wrong_{f.name} = {call};')
    conditions = [c for c in (f.source.name if f.source.opt else None, when(f, index)) if c]
    if conditions:
        lines += [f'{tab}if ({" && ".join(conditions)})', f'{tab}\twrong_{f.name} = {call};']
    lines += [f'{tab}if (wrong_{f.name})', f'{tab}\treturn wrong_{f.name};']
    if not f.leaf.kind and target != f'number_{f.name}':
        lines.append(f'{tab}{target} = ({f.ctype})number_{f.name};')
    return lines


def convert(spec, call):
    """Statements that convert handles to ids and devices to numbers, before the record is begun."""
    lines = []
    for f in call.req.fields:
        if not f.leaf or not f.leaf.converted or f.source.new:
            continue
        if f.leaf.kind:
            lines.append(f'\tuint64_t id_{f.name}' + (' = 0;' if f.source.opt else ';'))
        lines += convert_one(spec, f, f'id_{f.name}' if f.leaf.kind else f'number_{f.name}', None, '\t')
    for v in call.req.vars:
        if not v.leaf or not v.leaf.converted:
            continue
        lines += [f'\t{v.ctype} ids_{v.name}[OBP_{v.bound}];', f'\tfor (uint64_t i = 0; i < len_{v.name}; i++) {{']
        lines += convert_one(spec, v, f'ids_{v.name}[i]', 'i', '\t\t') + ['\t}']
    return lines


def answer_buffer(call):
    """Allocates the buffer for the reply before the record is begun, because no call may be made
    between begin and commit."""
    if not call.rep.vars:
        return []
    fixed = [f'sizeof({rep_type(call)})'] if call.rep.size else []
    total = ' + '.join(fixed + [f'obp_pad({v.bytes("len_" + v.name)})' for v in call.rep.vars])
    return [f'\tuint32_t capacity = (uint32_t)({total});',
            '\tuint8_t *answer OB_CLEANUP(ob_freep) = malloc(capacity ? capacity : 1);',
            '\tif (!answer)', '\t\treturn CUDA_ERROR_OUT_OF_MEMORY;']


# ---- the record ----

def record_size(call):
    parts = [f'sizeof({req_type(call)})'] if call.req.size else []
    parts += [f'obp_pad({v.bytes("len_" + v.name)})' for v in call.req.vars]
    return ' + '.join(parts) or '0'


def stored(f):
    """Returns the C expression that is stored in a field of the record."""
    if f.name == 'given' and not f.leaf:
        return 'given'
    if not f.leaf:
        return f'(uint32_t)len_{f.source.name}'  # the size of a string
    if f.leaf.opaque:
        return f.source.name if f.source.pointer and not f.source.opt else '&' + value(f)
    if f.leaf.address:
        return f'(uint64_t)(uintptr_t){value(f)}'
    if f.leaf.kind:
        return f'id_{f.name}'
    if f.leaf.device:
        return f'({f.ctype})number_{f.name}'
    return value(f) if f.count > 1 else f'({f.ctype}){value(f)}'


def store_fields(call):
    lines = []
    for f in call.req.fields:
        if f.is_array:
            lines.append(f'\tmemcpy(req->{f.name}, {stored(f)}, sizeof(req->{f.name}));')
        else:
            lines.append(f'\treq->{f.name} = {stored(f)};')
    if call.req.pad:
        lines.append('\tmemset(req->pad_, 0, sizeof(req->pad_));')
    return lines


def store_vars(call):
    """Copies the variable parts after the fixed part and clears their padding."""
    if not call.req.vars:
        return []
    lines = ['\tuint8_t *at = ' + body_start(call).replace('const ', '') + ';']
    for i, v in enumerate(call.req.vars):
        size = v.bytes('len_' + v.name)
        if v.leaf and v.leaf.path and not v.leaf.converted:
            element = v.width * v.times
            lines += [f'\tif (len_{v.name})', '\t\t' + wrap(f'obp_gather(at, &{v.source.name}->{v.leaf.path}, sizeof(*{v.source.name}), {element}, '
                      f'len_{v.name}' + (f' / {v.times}' if v.times > 1 else '') + ');'), f'\tpad(at, {size});']
        else:
            lines.append(f'\tput_part(at, {"ids_" + v.name if v.leaf and v.leaf.converted else v.name}, {size});')
        if i + 1 < len(call.req.vars):
            lines.append(f'\tat += obp_pad({size});')
    return lines


# ---- the reply ----

def load(p, target, ctype, source, leaf):
    """Copies one number of the reply to the program's memory."""
    if leaf.address:
        return [f'{target} = ({leaf.base} *)(uintptr_t){source};']
    return [f'{target} = ({ctype}){source};']


def load_fields(call, access):
    lines, cleared = [], set()
    for f in call.rep.fields:
        p, tab = f.source, '\t'
        if p.opt:
            tab = '\t\t'
        inside = []
        if f.leaf.path and p.way == 'out' and p not in cleared:
            inside.append(f'{tab}memset({p.name}, 0, sizeof(*{p.name}));')
            cleared.add(p)
        place = f.leaf.place(p)
        if f.leaf.opaque or f.count > 1:
            inside.append(f'{tab}memcpy({p.name if f.leaf.opaque and not f.leaf.path else ("&" if f.leaf.opaque else "") + place}, '
                          f'{access}{f.name}, sizeof({access}{f.name}));')
        else:
            inside += [tab + line for line in load(p, place, f.leaf.base, access + f.name, f.leaf)]
        lines += [f'\tif ({p.name}) {{'] + inside + ['\t}'] if p.opt else inside
    return lines + load_devices(call.rep.fields)


def load_devices(fields):
    """Converts device numbers. Comes after the copies, because one member may decide whether
    another is a device."""
    lines = []
    for f in fields:
        if not f.leaf.device:
            continue
        place = f.leaf.place(f.source)
        conditions = [f.source.name] if f.source.opt else []
        if f.leaf.when:
            conditions.append(f'{place[:len(place) - len(f.leaf.path)]}{f.leaf.when[0]} == {f.leaf.when[1]}')
        lines += [f'\tif ({" && ".join(conditions)})', f'\t\t{place} = obc_program_device({place});'] if conditions else [
            f'\t{place} = obc_program_device({place});']
    return lines


def load_vars(call):
    lines, cleared = [], set()
    last = len(call.rep.vars) - 1
    for i, v in enumerate(call.rep.vars):
        size, p = v.bytes('len_' + v.name), v.source
        if not v.leaf.path:
            lines.append(f'\tput({p.name}, answer + from, {size});')
        else:
            n = f'len_{v.name}' + (f' / {v.times}' if v.times > 1 else '')
            lines.append(f'\tif (len_{v.name}) {{')
            if p not in cleared:
                lines.append(f'\t\tmemset({p.name}, 0, {n} * sizeof(*{p.name}));')
                cleared.add(p)
            lines += ['\t\t' + wrap(f'obp_scatter(&{p.name}->{v.leaf.path}, sizeof(*{p.name}), answer + from, {v.width * v.times}, {n});'), '\t}']
        if i != last:
            lines.append(f'\tfrom += obp_pad({size});')
    for v in call.rep.vars:
        if not v.leaf.device:
            continue
        place = v.leaf.place(v.source, 'i')
        lines.append(f'\tfor (uint64_t i = 0; i < len_{v.name}; i++)')
        if v.leaf.when:
            lines.append(f'\t\tif ({place[:len(place) - len(v.leaf.path)]}{v.leaf.when[0]} == {v.leaf.when[1]})')
        lines.append(('\t\t\t' if v.leaf.when else '\t\t') + f'{place} = obc_program_device({place});')
    return lines


def ends(spec, call):
    """Returns (lines for a failed call, lines for a successful one) for the handle that the call
    creates or destroys."""
    if call.new:
        kind, p = spec.handles[call.new.base], call.new
        cast = f'({p.base})' + ('(uintptr_t)' if p.base in spec.types.handles else '')
        return [f'\t\tob_ids_remove(&{kind}_ids, id_{p.name});'], [f'\t*{p.name} = {cast}id_{p.name};']
    if call.drop:
        return [], [f'\tob_ids_remove(&{spec.handles[call.drop.base]}_ids, id_{call.drop.name});']
    return [], []


def failing(lines, result):
    """Returns (opening brace or '', lines) of an if statement's body that returns `result`."""
    return (' {', lines + [f'\t\treturn {result};', '\t}']) if lines else ('', [f'\t\treturn {result};'])


def finish(spec, call):
    failed, succeeded = ends(spec, call)
    brace, failure = failing(failed, 'result')
    if call.klass == 'async':
        if not failed and not succeeded:
            return ['\treturn obc_log_commit(&slot);']
        lines = ['\tCUresult result = obc_log_commit(&slot);']
        if call.drop:  # the handle is invalid also if the record could not be sent
            return lines + succeeded + ['\treturn result;']
        return lines + ['\tif (result)' + brace] + failure + succeeded + ['\treturn CUDA_SUCCESS;']
    if not call.rep.size and not call.rep.vars:
        if not failed and not succeeded:
            return ['\treturn obc_log_call(&slot, NULL, 0, NULL);']
        return ['\tCUresult result = obc_log_call(&slot, NULL, 0, NULL);', '\tif (result)' + brace] + failure + succeeded + [
            '\treturn CUDA_SUCCESS;']
    lines, whole = [], 'capacity'
    if call.rep.vars:
        source = 'answer, capacity'
        if not call.rep.size and len(call.rep.vars) == 1:  # a single array is not padded
            whole = call.rep.vars[0].bytes('len_' + call.rep.vars[0].name)
    else:
        lines.append(f'\t{rep_type(call)} rep;')
        source, whole = '&rep, sizeof(rep)', 'sizeof(rep)'
    lines += ['\tuint32_t got = 0;', f'\tCUresult result = obc_log_call(&slot, {source}, &got);', '\tif (result)' + brace] + failure
    brace, failure = failing(failed, f'bad_reply({call.enum})')
    lines += [f'\tif (got != {whole})' + brace] + failure
    if call.rep.vars:
        if call.rep.size:
            lines.append(f'\tconst {rep_type(call)} *rep = (const void *)answer;')
            lines += load_fields(call, 'rep->')
        lines.append(f'\tuint64_t from = sizeof({rep_type(call)});' if call.rep.size else '\tuint64_t from = 0;')
        lines += load_vars(call)
    else:
        lines += load_fields(call, 'rep.')
    return lines + succeeded + ['\treturn CUDA_SUCCESS;']


def make_id(spec, call):
    """Allocates the id. This is the last step before the record that can fail, so that only the
    code after the record has to undo it."""
    if not call.new:
        return []
    kind, name = spec.handles[call.new.base], call.new.name
    return [f'\tuint64_t id_{name} = ob_ids_add(&{kind}_ids, (void *)((uintptr_t)obc_server_number() + 1));', f'\tif (!id_{name})', '\t\treturn CUDA_ERROR_OUT_OF_MEMORY;']


def chooses_server(call):
    """Whether an argument, a device or a handle, belongs to one of several servers."""
    return any(f.leaf and f.leaf.converted and not f.source.new and f.leaf.kind != 'stream' for f in call.req.fields + call.req.vars)


def choose_server(call):
    """Statements that find the server of the addresses, after that of the devices and handles."""
    if not chooses_server(call):
        return []
    lines = []
    for p in call.params:
        if p.base == 'CUdeviceptr' and not p.pointer:
            lines += [f'\tCUresult wrong_{p.name} = obc_server_choose_at({p.name});', f'\tif (wrong_{p.name})', f'\t\treturn wrong_{p.name};']
    return lines


def call_function(spec, call):
    lines = [wrap(f'CUresult obc_call_{call.name}({call.prototype()})'), '{']
    if chooses_server(call):
        lines.append('\tOBC_CHOOSES_SERVER();')
    lines += enter(spec, call) + check_pointers(call) + check_sizes(call) + convert(spec, call) + choose_server(call)
    if call.klass == 'cached':
        return '\n'.join(lines + cached_tail(call) + ['}']) + '\n'
    lines += answer_buffer(call) + make_id(spec, call)
    brace, failure = failing(ends(spec, call)[0], 'obc_log_error()')
    lines += ['\tstruct obc_slot slot;', f'\tvoid *body = obc_log_begin(&slot, {call.enum}, (uint32_t)({record_size(call)}));',
              '\tif (!body)' + brace] + failure
    if call.req.size:
        lines.append(f'\t{req_type(call)} *req = body;')
    lines += store_fields(call) + store_vars(call) + finish(spec, call)
    return '\n'.join(lines + ['}']) + '\n'


# ---- cached calls ----

def cached_tail(call):
    """A cached call: the request's bytes are the key. One buffer holds the request, one the
    reply."""
    lines = ['\tuint8_t key[CACHE_KEY];', f'\tuint64_t key_size = {record_size(call)};']
    if call.rep.vars:
        v = call.rep.vars[0]
        size = v.bytes('len_' + v.name)
        answer = f'{v.name}, (uint32_t)({size})'
    else:
        answer = '&rep, sizeof(rep)'
        lines.append(f'\t{rep_type(call)} rep;')
    lines.append('\tmemset(key, 0, sizeof(key));')
    lines += (['\tuint8_t *body = key;'] if call.req.vars else []) + [f'\t{req_type(call)} fixed;', f'\t{req_type(call)} *req = &fixed;']
    lines += store_fields(call) + ['\tmemcpy(key, req, sizeof(*req));'] + store_vars(call)
    if call.rep.vars:
        return lines + [f'\treturn cached_call({call.enum}, key, (uint32_t)key_size, {answer});']
    return lines + [f'\tCUresult result = cached_call({call.enum}, key, (uint32_t)key_size, {answer});', '\tif (result)',
                    '\t\treturn result;'] + load_fields(call, 'rep.') + ['\treturn CUDA_SUCCESS;']


CACHE = '''/*
 * Replies that do not change during a session: a table of sets, by the hash of opcode and arguments.
 * Within a set the oldest entry is replaced. A framework may use some hundred tensor maps in turn.
 */
#define CACHE_SETS 512
#define CACHE_WAYS 4
#define CACHE_KEY KEY_BYTES
#define CACHE_ANSWER ANSWER_BYTES

static struct {
	pthread_mutex_t lock;
	struct cache_set {
		unsigned next;
		struct {
			uint16_t opcode; /* 0: unused */
			uint32_t server, key_size, answer_size;
			uint8_t key[CACHE_KEY], answer[CACHE_ANSWER];
		} ways[CACHE_WAYS];
	} sets[CACHE_SETS];
} cache = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct cache_set *cache_set(uint16_t opcode, const void *key, uint32_t key_size)
{
	uint64_t hash = ob_hash_words(OB_HASH_START ^ opcode, key, key_size);
	return &cache.sets[(hash ^ hash >> 32) % CACHE_SETS];
}

static bool cache_find(struct cache_set *set, uint16_t opcode, const void *key, uint32_t key_size, void *ret_answer, uint32_t answer_size)
{
	bool found = false;
	pthread_mutex_lock(&cache.lock);
	for (unsigned i = 0; i < CACHE_WAYS && !found; i++) {
		if (set->ways[i].opcode != opcode || set->ways[i].server != obc_server_number() || set->ways[i].key_size != key_size ||
			set->ways[i].answer_size != answer_size || memcmp(set->ways[i].key, key, key_size))
			continue;
		memcpy(ret_answer, set->ways[i].answer, answer_size);
		found = true;
	}
	pthread_mutex_unlock(&cache.lock);
	return found;
}

static CUresult cached_call(uint16_t opcode, const void *key, uint32_t key_size, void *ret_answer, uint32_t answer_size)
{
	struct cache_set *set = cache_set(opcode, key, key_size);
	if (cache_find(set, opcode, key, key_size, ret_answer, answer_size))
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
	unsigned i = set->next++ % CACHE_WAYS;
	set->ways[i].opcode = opcode;
	set->ways[i].server = obc_server_number();
	set->ways[i].key_size = key_size;
	set->ways[i].answer_size = answer_size;
	memcpy(set->ways[i].key, key, key_size);
	put(set->ways[i].answer, answer, answer_size);
	pthread_mutex_unlock(&cache.lock);
	return CUDA_SUCCESS;
}
'''.replace('KEY_BYTES', str(CACHE_KEY)).replace('ANSWER_BYTES', str(CACHE_ANSWER))
