/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "image/ptx_scan.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "image/ptx_plain.h"

/*
 * The static shared memory of a kernel is what its own body declares plus what it can reach by
 * name: module-level .shared variables and the bodies of the .func functions that it calls.
 * Functions and shared variables are nodes, names in a body are edges, and the graph is walked from
 * each kernel at the end. Calls through pointers are not followed: if the sum is too small, the
 * driver refuses the launch instead of the front end.
 */
#define NODE_MAX (1u << 20)
#define EDGE_MAX (8u << 20)

enum token_kind { TOKEN_END, TOKEN_WORD, TOKEN_DIRECTIVE, TOKEN_NUMBER, TOKEN_STRING, TOKEN_PUNCT };

struct token {
	enum token_kind kind;
	const char *text;
	size_t size;
};

struct node {
	const char *name;
	size_t name_size;
	uint32_t next; /* in the hash chain, index + 1 */
	uint32_t first_edge, n_edges;
	uint32_t seen;   /* stamp: the body or walk that visited it last */
	uint32_t kernel; /* index of the kernel, or NO_KERNEL */
	uint64_t shared; /* bytes: a variable's own, or declared in the body */
};

#define NO_KERNEL UINT32_MAX
#define HASH_SIZE 4096u

struct scan {
	const char *p, *end;
	struct token token; /* current */
	struct obi_builder *builder;
	struct ob_buf nodes, edges; /* struct node; uint32_t */
	uint32_t hash[HASH_SIZE];   /* index + 1 */
	uint32_t stamp;
	bool is_extern; /* linkage of the current declaration */
	struct obi_plain plain;
	uint64_t const_bytes;
	enum ob_err err;
};

static bool is_word_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		c == '_' || c == '$' || c == '%';
}

/* Returns the position after white space and comments. */
static const char *skip_blank(const char *p, const char *end)
{
	while (p < end) {
		if (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r' || *p == '\f' ||
			*p == '\v') {
			p++;
		} else if (*p == '/' && end - p > 1 && p[1] == '/') {
			p = memchr(p, '\n', (size_t)(end - p));
			if (!p)
				return end;
		} else if (*p == '/' && end - p > 1 && p[1] == '*') {
			p += 2;
			while (p < end && !(*p == '*' && end - p > 1 && p[1] == '/'))
				p++;
			p = end - p > 1 ? p + 2 : end;
		} else {
			break;
		}
	}
	return p;
}

static void next(struct scan *scan)
{
	const char *p = skip_blank(scan->p, scan->end), *start = p, *end = scan->end;
	struct token *token = &scan->token;

	if (p == end) {
		*token = (struct token){ TOKEN_END, end, 0 };
		scan->p = end;
		return;
	}
	if (*p == '"') {
		token->kind = TOKEN_STRING;
		for (p++; p < end && *p != '"'; p++)
			p += *p == '\\' && end - p > 1;
		p += p < end;
	} else if (is_word_char(*p) || (*p == '.' && end - p > 1 && is_word_char(p[1]))) {
		token->kind = *p == '.'          ? TOKEN_DIRECTIVE
			: *p >= '0' && *p <= '9' ? TOKEN_NUMBER
						 : TOKEN_WORD;
		p++;
		/*
		 * Dots are part of a word: "ld.shared.u32" is an instruction and not a declaration,
		 * "9.0" is one number.
		 */
		while (p < end && (is_word_char(*p) || *p == '.') &&
			!(token->kind == TOKEN_DIRECTIVE && *p == '.'))
			p++;
	} else {
		token->kind = TOKEN_PUNCT;
		p++;
	}
	token->text = start;
	token->size = (size_t)(p - start);
	scan->p = p;
}

static bool is(const struct scan *scan, const char *text)
{
	size_t n = strlen(text);

	return scan->token.size == n && memcmp(scan->token.text, text, n) == 0;
}

static bool is_punct(const struct scan *scan, char c)
{
	return scan->token.kind == TOKEN_PUNCT && *scan->token.text == c;
}

/* Invalid PTX ends the scan but not the load: the compiler reports the error and its position. */
static void damaged(struct scan *scan)
{
	scan->plain.ok = false;
	if (!scan->err)
		scan->err = OB_ERR_IMAGE_DAMAGED;
}

/*
 * The current NUMBER token's value: decimal, 0x, 0b or octal, with an optional suffix U; saturates.
 */
static uint64_t number(const struct scan *scan)
{
	const char *p = scan->token.text, *end = p + scan->token.size;
	unsigned base = 10;
	uint64_t value = 0;

	if (p < end && *p == '0') {
		base = 8;
		if (end - p > 1 && (p[1] == 'x' || p[1] == 'X'))
			base = 16;
		else if (end - p > 1 && (p[1] == 'b' || p[1] == 'B'))
			base = 2;
		p += base != 8 ? 2 : 0;
	}
	for (; p < end; p++) {
		unsigned digit = *p >= '0' && *p <= '9' ? (unsigned)(*p - '0')
			: *p >= 'a' && *p <= 'f'        ? (unsigned)(*p - 'a') + 10
			: *p >= 'A' && *p <= 'F'        ? (unsigned)(*p - 'A') + 10
							: 99;
		if (digit >= base)
			break;
		if (ob_mul_overflows(value, base, &value) || ob_add_overflows(value, digit, &value))
			return UINT64_MAX;
	}
	return value;
}

static enum obi_plain_kind plain_kind(const struct scan *scan)
{
	switch (scan->token.kind) {
	case TOKEN_WORD:
		return OBI_PLAIN_WORD;
	case TOKEN_DIRECTIVE:
		return OBI_PLAIN_DIRECTIVE;
	case TOKEN_NUMBER:
		return OBI_PLAIN_NUMBER;
	case TOKEN_PUNCT:
		return OBI_PLAIN_PUNCT;
	default:
		return OBI_PLAIN_OTHER;
	}
}

/* Passes the current token, outside of bodies, to the check for plain PTX. */
static void judge_outside(struct scan *scan)
{
	obi_plain_outside(&scan->plain, plain_kind(scan), scan->token.text, scan->token.size);
}

/* The same inside a body. */
static void judge_inside(struct scan *scan)
{
	if (scan->plain.ok)
		obi_plain_token(&scan->plain, plain_kind(scan), scan->token.text, scan->token.size,
			scan->token.kind == TOKEN_NUMBER ? number(scan) : 0);
}

/* Skips the block whose '{' or '(' is the current token. */
static void skip_nested(struct scan *scan)
{
	size_t depth = 0;

	for (; scan->token.kind != TOKEN_END; next(scan)) {
		if (is_punct(scan, '{') || is_punct(scan, '('))
			depth++;
		else if ((is_punct(scan, '}') || is_punct(scan, ')')) && --depth == 0) {
			next(scan);
			return;
		}
	}
	damaged(scan);
}

/* ---- nodes ---- */

static struct node *node_at(const struct scan *scan, uint32_t index)
{
	return (struct node *)(void *)scan->nodes.data + index;
}

static uint32_t *hash_slot(struct scan *scan, const char *name, size_t size)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < size; i++)
		h = (h ^ (uint8_t)name[i]) * 16777619u;
	return &scan->hash[(h ^ h >> 15) % HASH_SIZE];
}

static struct node *node_find(struct scan *scan, const char *name, size_t size)
{
	for (uint32_t i = *hash_slot(scan, name, size); i; i = node_at(scan, i - 1)->next) {
		struct node *node = node_at(scan, i - 1);

		if (node->name_size == size && memcmp(node->name, name, size) == 0)
			return node;
	}
	return NULL;
}

/*
 * Returns the node of this name, creating it if necessary. Pointers are valid until the next call.
 */
static struct node *node_add(struct scan *scan, const char *name, size_t size)
{
	struct node *node = node_find(scan, name, size);

	if (node)
		return node;
	uint32_t *slot = hash_slot(scan, name, size);
	node = ob_buf_extend(&scan->nodes, sizeof(*node));
	if (!node) {
		scan->err = OB_ERR_LIMIT;
		return NULL;
	}
	*node = (struct node){
		.name = name, .name_size = size, .next = *slot, .kernel = NO_KERNEL
	};
	*slot = (uint32_t)(scan->nodes.size / sizeof(*node));
	return node;
}

/* ---- declarations ---- */

/* Returns the size in bytes of a fundamental type directive; 0 when it is not one. */
static uint32_t type_size(const struct scan *scan)
{
	static const struct {
		char name[12];
		uint8_t size;
	} types[] = {
		{ ".b8", 1 },
		{ ".u8", 1 },
		{ ".s8", 1 },
		{ ".b16", 2 },
		{ ".u16", 2 },
		{ ".s16", 2 },
		{ ".f16", 2 },
		{ ".bf16", 2 },
		{ ".b32", 4 },
		{ ".u32", 4 },
		{ ".s32", 4 },
		{ ".f32", 4 },
		{ ".f16x2", 4 },
		{ ".bf16x2", 4 },
		{ ".b64", 8 },
		{ ".u64", 8 },
		{ ".s64", 8 },
		{ ".f64", 8 },
		{ ".f32x2", 8 },
		{ ".b128", 16 },
		{ ".texref", 8 },
		{ ".surfref", 8 },
	};
	for (size_t i = 0; i < ob_count(types); i++)
		if (is(scan, types[i].name))
			return types[i].size;
	return is(scan, ".samplerref") ? 8 : 0;
}

struct declarator {
	const char *name;
	size_t name_size;
	uint64_t size, align; /* bytes */
	bool is_managed, pointer_seen;
	uint32_t element, vector;
};

/*
 * Reads the attributes and type before a name: [.attribute(…)] [.align N] [.v2] .type [.ptr .space
 * .align N]. The name becomes the current token.
 */
static void declaration_head(struct scan *scan, struct declarator *d)
{
	*d = (struct declarator){ .align = 1, .vector = 1 };
	while (scan->token.kind == TOKEN_DIRECTIVE) {
		uint32_t size = type_size(scan);

		judge_outside(scan);

		if (size) {
			d->element = size;
			next(scan);
		} else if (is(scan, ".align")) {
			next(scan);
			/* after .ptr it is the alignment of the pointee */
			if (scan->token.kind == TOKEN_NUMBER && !d->pointer_seen)
				d->align = number(scan);
			next(scan);
		} else if (is(scan, ".v2") || is(scan, ".v4") || is(scan, ".v8")) {
			d->vector = (uint32_t)(scan->token.text[2] - '0');
			next(scan);
		} else if (is(scan, ".ptr")) {
			d->pointer_seen = true;
			next(scan);
		} else if (is(scan, ".attribute")) {
			next(scan);
			while (!is_punct(scan, ')') && scan->token.kind != TOKEN_END) {
				d->is_managed |= is(scan, ".managed");
				next(scan);
			}
			next(scan);
		} else {
			next(scan);
		}
	}
	if (d->align & (d->align - 1) || !d->align || d->align > 1u << 16)
		damaged(scan);
}

/* Reads name [dim]…; sets size and align. False: there is no name. */
static bool declarator(struct scan *scan, struct declarator *d)
{
	if (scan->token.kind != TOKEN_WORD) {
		damaged(scan);
		return false;
	}
	d->name = scan->token.text;
	d->name_size = scan->token.size;
	d->size = (uint64_t)d->element * d->vector;
	d->align = ob_max(d->align, ob_max(d->size, (uint64_t)1));
	next(scan);
	/*
	 * <N>, as used by .reg, does not occur in these spaces; [] means that another declaration
	 * gives the size
	 */
	while (is_punct(scan, '[')) {
		uint64_t count = 0;

		next(scan);
		if (scan->token.kind == TOKEN_NUMBER) {
			count = number(scan);
			next(scan);
		}
		if (!is_punct(scan, ']') || ob_mul_overflows(d->size, count, &d->size)) {
			damaged(scan);
			return false;
		}
		next(scan);
	}
	return true;
}

/* Skips an initialiser, up to the ',' of the next declarator or the ';'. */
static void skip_initialiser(struct scan *scan)
{
	while (scan->token.kind != TOKEN_END && !is_punct(scan, ';') && !is_punct(scan, ',')) {
		/* A word is the address of a symbol, which may be undefined. */
		scan->plain.ok &= scan->token.kind != TOKEN_WORD;
		if (is_punct(scan, '{') || is_punct(scan, '('))
			skip_nested(scan);
		else
			next(scan);
	}
}

static void add_shared(struct scan *scan, uint64_t *sum, const struct declarator *d)
{
	if (d->size > UINT32_MAX || *sum > UINT32_MAX) {
		damaged(scan);
		return;
	}
	*sum = ob_round_up(*sum, d->align) + d->size;
}

/*
 * Scans a variable of .global, .const or .shared at module level; the current token is the space
 * directive.
 */
static void scan_variable(struct scan *scan)
{
	bool is_const = is(scan, ".const"), is_shared = is(scan, ".shared");
	struct declarator head, d;

	next(scan);
	declaration_head(scan, &head);
	for (;;) {
		d = head;
		if (!declarator(scan, &d))
			return;
		if (is_shared) {
			struct node *node = node_add(scan, d.name, d.name_size);
			if (node)
				node->shared = d.size;
		} else if (scan->is_extern) {
			scan->plain.ok = false;
		} else if (d.name[0] != '$') {
			struct obi_variable *variable =
				obi_builder_variable(scan->builder, d.name, d.name_size);
			if (variable) {
				variable->size = d.size;
				variable->is_const = is_const;
				variable->is_managed = d.is_managed;
			}
		}
		if (is_const && ob_add_overflows(scan->const_bytes, d.size, &scan->const_bytes))
			scan->const_bytes = UINT64_MAX;
		if (is_punct(scan, '='))
			skip_initialiser(scan);
		if (!is_punct(scan, ','))
			break;
		next(scan);
	}
	if (!is_punct(scan, ';'))
		damaged(scan);
}

/*
 * Scans a body; the current token is '{'. Records .shared declarations and names of nodes. Ends
 * after the closing brace.
 */
static void scan_body(struct scan *scan, const char *name, size_t name_size, uint32_t kernel)
{
	uint32_t first_edge = (uint32_t)(scan->edges.size / sizeof(uint32_t)),
		 stamp = ++scan->stamp;
	uint64_t shared = 0;
	size_t depth = 0;

	obi_plain_body(&scan->plain);
	do {
		judge_inside(scan);
		if (scan->token.kind == TOKEN_END) {
			damaged(scan);
			return;
		}
		if (is_punct(scan, '{')) {
			depth++;
		} else if (is_punct(scan, '}')) {
			depth--;
		} else if (scan->token.kind == TOKEN_DIRECTIVE && is(scan, ".shared")) {
			struct declarator d;

			next(scan);
			declaration_head(scan, &d);
			if (declarator(scan, &d))
				add_shared(scan, &shared, &d);
			continue; /* the next token is already current */
		} else if (scan->token.kind == TOKEN_WORD && *scan->token.text != '%' &&
			scan->nodes.size) {
			struct node *node = node_find(scan, scan->token.text, scan->token.size);

			if (node && node->seen != stamp) {
				uint32_t index = (uint32_t)(node - node_at(scan, 0));
				node->seen = stamp;
				if (!ob_buf_append(&scan->edges, &index, sizeof(index)))
					scan->err = OB_ERR_LIMIT;
			}
		}
		next(scan);
	} while (depth && !scan->err);
	struct node *node = node_add(scan, name, name_size);
	if (!node)
		return;
	node->kernel = kernel;
	node->shared = shared;
	node->first_edge = first_edge;
	node->n_edges = (uint32_t)(scan->edges.size / sizeof(uint32_t)) - first_edge;
}

static void scan_func(struct scan *scan)
{
	next(scan);
	while (scan->token.kind == TOKEN_DIRECTIVE)
		next(scan);
	if (is_punct(scan, '('))
		skip_nested(scan); /* the return parameter */
	if (scan->token.kind != TOKEN_WORD) {
		damaged(scan);
		return;
	}
	struct token name = scan->token;
	scan->builder->prints |= is(scan, "vprintf") || is(scan, "__assertfail");
	if (scan->is_extern)
		obi_plain_extern(&scan->plain, name.text, name.size);
	if (!node_add(scan, name.text, name.size))
		return;
	next(scan);
	if (is_punct(scan, '('))
		skip_nested(scan);
	for (; scan->token.kind != TOKEN_END && !is_punct(scan, ';') && !is_punct(scan, '{');
		next(scan))
		judge_outside(scan);
	if (is_punct(scan, '{'))
		scan_body(scan, name.text, name.size, NO_KERNEL);
}

/*
 * Scans ( .param …, … ); the current token is '('. Appends to `params`; offsets follow the
 * alignment rules of a kernel's parameter block.
 */
static void scan_params(
	struct scan *scan, struct obi_param *params, uint32_t *ret_n, uint32_t *ret_bytes)
{
	uint64_t offset = 0;
	uint32_t n = 0;

	next(scan);
	while (!is_punct(scan, ')') && !scan->err) {
		struct declarator d;

		if (!is(scan, ".param")) {
			damaged(scan);
			return;
		}
		next(scan);
		declaration_head(scan, &d);
		if (!declarator(scan, &d) || !d.element) {
			damaged(scan);
			return;
		}
		offset = ob_round_up(offset, d.align);
		if (n == OBI_PARAM_MAX || d.size > OBI_PARAM_BYTES_MAX ||
			offset + d.size > OBI_PARAM_BYTES_MAX) {
			scan->err = OB_ERR_LIMIT;
			return;
		}
		params[n++] =
			(struct obi_param){ .offset = (uint32_t)offset, .size = (uint32_t)d.size };
		offset += d.size;
		if (is_punct(scan, ','))
			next(scan);
		else if (!is_punct(scan, ')'))
			damaged(scan);
	}
	next(scan);
	*ret_n = n;
	*ret_bytes = (uint32_t)offset;
}

/* Reads "x, y, z" after .maxntid or .reqntid. The token after it becomes the current one. */
static void dimensions(struct scan *scan, uint32_t ret[3])
{
	ret[0] = ret[1] = ret[2] = 1;
	next(scan);
	for (int i = 0; i < 3 && scan->token.kind == TOKEN_NUMBER; i++) {
		uint64_t value = number(scan);

		ret[i] = value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
		next(scan);
		if (!is_punct(scan, ','))
			break;
		next(scan);
	}
}

static void scan_entry(struct scan *scan, struct obi_param *params)
{
	uint32_t n_params = 0, param_bytes = 0, max[3], req[3] = { 0 };
	uint64_t max_threads = 0;

	next(scan);
	if (scan->token.kind != TOKEN_WORD) {
		damaged(scan);
		return;
	}
	struct token name = scan->token;
	next(scan);
	if (is_punct(scan, '('))
		scan_params(scan, params, &n_params, &param_bytes);
	scan->plain.ok &= param_bytes <= OBI_PLAIN_PARAM;
	while (!scan->err && scan->token.kind != TOKEN_END && !is_punct(scan, ';') &&
		!is_punct(scan, '{')) {
		judge_outside(scan);
		if (is(scan, ".maxntid")) {
			dimensions(scan, max);
			max_threads = (uint64_t)max[0] * max[1];
			max_threads = max_threads > UINT32_MAX ? UINT32_MAX : max_threads * max[2];
		} else if (is(scan, ".reqntid")) {
			dimensions(scan, req);
		} else {
			next(scan);
		}
	}
	if (scan->err || !is_punct(scan, '{'))
		return; /* a declaration without a body */
	struct obi_kernel *kernel = obi_builder_kernel(scan->builder, name.text, name.size);
	if (!kernel) {
		scan->err = OB_ERR_LIMIT;
		return;
	}
	memcpy(kernel->reqntid, req, sizeof(req));
	kernel->max_threads = max_threads > UINT32_MAX ? UINT32_MAX : (uint32_t)max_threads;
	kernel->param_bytes = param_bytes;
	struct obi_param *copy = obi_builder_params(scan->builder, kernel, n_params);
	if (!copy) {
		scan->err = OB_ERR_LIMIT;
		return;
	}
	memcpy(copy, params, n_params * sizeof(*params));
	scan_body(scan, name.text, name.size, (uint32_t)(obi_builder_n_kernels(scan->builder) - 1));
}

/* ---- the walk ---- */

/* Sums the shared memory of all nodes reachable from `root`; `stack` has room for every node. */
static uint64_t reachable_shared(struct scan *scan, uint32_t root, uint32_t *stack)
{
	uint32_t stamp = ++scan->stamp, depth = 0;
	const uint32_t *edges = (const uint32_t *)(const void *)scan->edges.data;
	uint64_t sum = 0;

	stack[depth++] = root;
	node_at(scan, root)->seen = stamp;
	while (depth) {
		const struct node *node = node_at(scan, stack[--depth]);

		if (node->shared) {
			sum = ob_round_up(sum, 16) + node->shared;
			if (sum > UINT32_MAX)
				return UINT32_MAX;
		}
		for (uint32_t i = 0; i < node->n_edges; i++) {
			struct node *to = node_at(scan, edges[node->first_edge + i]);

			if (to->seen != stamp) {
				to->seen = stamp;
				stack[depth++] = (uint32_t)(to - node_at(scan, 0));
			}
		}
	}
	return sum;
}

static void sum_shared(struct scan *scan)
{
	uint32_t n = (uint32_t)(scan->nodes.size / sizeof(struct node));
	uint32_t *stack = malloc((n ? n : 1) * sizeof(*stack));

	if (!stack) {
		scan->err = OB_ERR_NO_MEMORY;
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct node *node = node_at(scan, i);

		if (node->kernel != NO_KERNEL) {
			uint32_t shared =
				(uint32_t)(node->n_edges ? reachable_shared(scan, i, stack)
							 : node->shared);

			obi_builder_kernel_at(scan->builder, node->kernel)->static_shared = shared;
			scan->plain.ok &= shared <= OBI_PLAIN_SHARED;
		}
	}
	free(stack);
}

/* ---- the file ---- */

static void scan_version(struct scan *scan)
{
	next(scan);
	const char *dot = memchr(scan->token.text, '.', scan->token.size);
	uint32_t major = (uint32_t)ob_min(number(scan), (uint64_t)1000), minor = 0;

	if (dot && dot + 1 < scan->token.text + scan->token.size && dot[1] >= '0' && dot[1] <= '9')
		minor = (uint32_t)(dot[1] - '0');
	scan->builder->ptx_version = major * 10 + minor;
}

static void scan_module(struct scan *scan, struct obi_param *params)
{
	next(scan);
	while (scan->token.kind != TOKEN_END && !scan->err) {
		judge_outside(scan);
		if (scan->token.kind != TOKEN_DIRECTIVE) {
			scan->is_extern &= !is_punct(scan, ';');
			if (is_punct(scan, '{') || is_punct(scan, '('))
				skip_nested(scan);
			else
				next(scan);
		} else if (is(scan, ".extern")) {
			scan->is_extern = true;
			next(scan);
		} else if (is(scan, ".visible") || is(scan, ".weak") || is(scan, ".common")) {
			scan->is_extern = false;
			next(scan);
		} else if (is(scan, ".entry")) {
			scan_entry(scan, params);
			scan->is_extern = false;
		} else if (is(scan, ".func")) {
			scan_func(scan);
			scan->is_extern = false;
		} else if (is(scan, ".global") || is(scan, ".const") || is(scan, ".shared")) {
			scan_variable(scan);
			scan->is_extern = false;
		} else if (is(scan, ".version")) {
			scan_version(scan);
		} else {
			next(scan);
		}
	}
}

enum ob_err obi_ptx_scan(const char *text, size_t size, struct obi_builder *builder)
{
	struct scan *scan = calloc(1, sizeof(*scan));
	struct obi_param *params = malloc(OBI_PARAM_MAX * sizeof(*params));
	enum ob_err err = OB_ERR_NO_MEMORY;
	char letter;

	if (scan && params) {
		scan->p = text;
		scan->end = text + size;
		scan->builder = builder;
		obi_plain_init(&scan->plain);
		ob_buf_init(&scan->nodes, NODE_MAX * sizeof(struct node));
		ob_buf_init(&scan->edges, EDGE_MAX * sizeof(uint32_t));
		builder->arch = obi_ptx_arch(text, size, &letter);
		scan_module(scan, params);
		if (scan->err == OB_ERR_IMAGE_DAMAGED)
			scan->err = OB_ERR_NONE;
		if (!scan->err)
			sum_shared(scan);
		err = scan->err;
		builder->plain = scan->plain.ok && !letter && scan->const_bytes <= OBI_PLAIN_CONST;
		ob_buf_fini(&scan->nodes);
		ob_buf_fini(&scan->edges);
	}
	free(params);
	free(scan);
	return err;
}

#define PTX_PROLOGUE_MAX (64u << 10) /* bytes of comments before .version */

/*
 * Returns how many bytes may be examined. An image of unknown length ends with a NUL, so no byte
 * after a NUL may be read. PTX_PROLOGUE_MAX limits the comments before .version for the same
 * reason.
 */
static size_t prologue_size(const void *data, size_t size)
{
	return strnlen(data, ob_min(size, (size_t)PTX_PROLOGUE_MAX));
}

bool obi_ptx_is(const void *data, size_t size)
{
	static const char word[] = ".version";
	const char *text = data, *end;

	/* Binary data ends at its first NUL. */
	end = text + prologue_size(data, size);
	text = skip_blank(text, end);
	return (size_t)(end - text) > sizeof(word) - 1 && memcmp(text, word, sizeof(word) - 1) == 0;
}

uint32_t obi_ptx_arch(const void *data, size_t size, char *ret_letter)
{
	struct scan scan = { .p = data, .end = (const char *)data + prologue_size(data, size) };
	uint32_t arch = 0;

	*ret_letter = 0;
	do {
		next(&scan);
	} while (scan.token.kind != TOKEN_END && !is(&scan, ".target"));
	next(&scan);
	if (scan.token.kind != TOKEN_WORD || scan.token.size < 5 ||
		memcmp(scan.token.text, "sm_", 3) != 0)
		return 0;
	for (size_t i = 3; i < scan.token.size; i++) {
		char c = scan.token.text[i];

		if (c >= '0' && c <= '9' && arch < 10000)
			arch = arch * 10 + (uint32_t)(c - '0');
		else
			*ret_letter = c;
	}
	return arch;
}
