/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "image/ptx_scan.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "image/ptx_declarator.h"
#include "image/ptx_graph.h"
#include "image/ptx_lexer.h"
#include "image/ptx_plain.h"

struct scan {
	struct obi_ptx_lexer lexer;
	struct obi_builder *builder;
	struct obi_ptx_graph graph;
	bool is_extern; /* linkage of the current declaration */
	struct obi_plain plain;
	uint64_t const_bytes;
	enum ob_err err;
};

static void next(struct scan *scan)
{
	obi_ptx_next(&scan->lexer);
}

static bool is(const struct scan *scan, const char *text)
{
	return obi_ptx_is_text(&scan->lexer, text);
}

static bool is_punct(const struct scan *scan, char c)
{
	return obi_ptx_is_punct(&scan->lexer, c);
}

static uint64_t number(const struct scan *scan)
{
	return obi_ptx_number(&scan->lexer);
}

/* Invalid PTX ends the scan but not the load: the compiler reports the error and its position. */
static void damaged(struct scan *scan)
{
	scan->plain.ok = false;
	if (!scan->err)
		scan->err = OB_ERR_IMAGE_DAMAGED;
}

/* Passes the current token, outside of bodies, to the check for plain PTX. */
static void judge_outside(struct scan *scan)
{
	obi_plain_outside(&scan->plain, &scan->lexer);
}

/* The same inside a body. */
static void judge_inside(struct scan *scan)
{
	obi_plain_token(&scan->plain, &scan->lexer);
}

/* Skips the block whose '{' or '(' is the current token. */
static void skip_nested(struct scan *scan)
{
	size_t depth = 0;

	for (; scan->lexer.token.kind != OBI_PTX_END; next(scan)) {
		if (is_punct(scan, '{') || is_punct(scan, '('))
			depth++;
		else if ((is_punct(scan, '}') || is_punct(scan, ')')) && --depth == 0) {
			next(scan);
			return;
		}
	}
	damaged(scan);
}

/* ---- declarations ---- */

static void declaration_head(struct scan *scan, struct obi_declarator *d)
{
	if (!obi_declarator_head(d, &scan->lexer, &scan->plain))
		damaged(scan);
}

static bool declarator(struct scan *scan, struct obi_declarator *d)
{
	if (obi_declarator_name(d, &scan->lexer))
		return true;
	damaged(scan);
	return false;
}

/* Skips an initialiser, up to the ',' of the next declarator or the ';'. */
static void skip_initialiser(struct scan *scan)
{
	while (scan->lexer.token.kind != OBI_PTX_END && !is_punct(scan, ';') &&
		!is_punct(scan, ',')) {
		/* A word is the address of a symbol, which may be undefined. */
		scan->plain.ok &= scan->lexer.token.kind != OBI_PTX_WORD;
		if (is_punct(scan, '{') || is_punct(scan, '('))
			skip_nested(scan);
		else
			next(scan);
	}
}

static void add_shared(struct scan *scan, uint64_t *sum, const struct obi_declarator *d)
{
	if (d->size > UINT32_MAX || *sum > UINT32_MAX) {
		damaged(scan);
		return;
	}
	*sum = ob_round_up(*sum, d->align) + d->size;
}

/*
 * A reference has no address. An .extern one counts too: a compiler that sees no other definition
 * makes it one. Arrays of references cannot be bound by name.
 */
static void add_ref(struct scan *scan, const struct obi_declarator *d)
{
	if (d->ref != OBI_DECLARATOR_SAMPLER && d->size == d->element)
		obi_builder_ref(
			scan->builder, d->name, d->name_size, d->ref == OBI_DECLARATOR_SURFACE);
}

/*
 * Scans a variable of .global, .const, .shared or .tex at module level; the current token is the
 * space directive.
 */
static void scan_variable(struct scan *scan)
{
	bool is_const = is(scan, ".const"), is_shared = is(scan, ".shared"),
	     is_tex = is(scan, ".tex"); /* before PTX 1.5: a texture reference of any type */
	struct obi_declarator head, d;

	next(scan);
	declaration_head(scan, &head);
	if (is_tex)
		head.ref = OBI_DECLARATOR_TEXTURE;
	for (;;) {
		d = head;
		if (!declarator(scan, &d))
			return;
		if (is_shared) {
			if (!obi_ptx_graph_variable(&scan->graph, d.name, d.name_size, d.size))
				scan->err = OB_ERR_LIMIT;
		} else if (d.ref) {
			add_ref(scan, &d);
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
	uint64_t shared = 0;
	size_t depth = 0;

	obi_plain_body(&scan->plain);
	obi_ptx_graph_body_begin(&scan->graph);
	do {
		judge_inside(scan);
		if (scan->lexer.token.kind == OBI_PTX_END) {
			damaged(scan);
			return;
		}
		if (is_punct(scan, '{')) {
			depth++;
		} else if (is_punct(scan, '}')) {
			depth--;
		} else if (scan->lexer.token.kind == OBI_PTX_DIRECTIVE && is(scan, ".shared")) {
			struct obi_declarator d;

			next(scan);
			declaration_head(scan, &d);
			if (declarator(scan, &d))
				add_shared(scan, &shared, &d);
			continue; /* the next token is already current */
		} else if (scan->lexer.token.kind == OBI_PTX_WORD &&
			*scan->lexer.token.text != '%' &&
			!obi_ptx_graph_body_name(
				&scan->graph, scan->lexer.token.text, scan->lexer.token.size)) {
			scan->err = OB_ERR_LIMIT;
		}
		next(scan);
	} while (depth && !scan->err);
	if (!obi_ptx_graph_body_end(&scan->graph, name, name_size, kernel, shared))
		scan->err = OB_ERR_LIMIT;
}

static void scan_func(struct scan *scan)
{
	next(scan);
	while (scan->lexer.token.kind == OBI_PTX_DIRECTIVE)
		next(scan);
	if (is_punct(scan, '('))
		skip_nested(scan); /* the return parameter */
	if (scan->lexer.token.kind != OBI_PTX_WORD) {
		damaged(scan);
		return;
	}
	struct obi_ptx_token name = scan->lexer.token;
	scan->builder->prints |= is(scan, "vprintf") || is(scan, "__assertfail");
	if (scan->is_extern)
		obi_plain_extern(&scan->plain, name.text, name.size);
	if (!obi_ptx_graph_function(&scan->graph, name.text, name.size)) {
		scan->err = OB_ERR_LIMIT;
		return;
	}
	next(scan);
	if (is_punct(scan, '('))
		skip_nested(scan);
	for (; scan->lexer.token.kind != OBI_PTX_END && !is_punct(scan, ';') &&
		!is_punct(scan, '{');
		next(scan))
		judge_outside(scan);
	if (is_punct(scan, '{'))
		scan_body(scan, name.text, name.size, OBI_PTX_GRAPH_NO_KERNEL);
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
		struct obi_declarator d;

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
	for (int i = 0; i < 3 && scan->lexer.token.kind == OBI_PTX_NUMBER; i++) {
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
	if (scan->lexer.token.kind != OBI_PTX_WORD) {
		damaged(scan);
		return;
	}
	struct obi_ptx_token name = scan->lexer.token;
	next(scan);
	if (is_punct(scan, '('))
		scan_params(scan, params, &n_params, &param_bytes);
	scan->plain.ok &= param_bytes <= OBI_PLAIN_PARAM;
	while (!scan->err && scan->lexer.token.kind != OBI_PTX_END && !is_punct(scan, ';') &&
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

/* ---- the file ---- */

static void set_shared(void *user, uint32_t kernel, uint32_t shared)
{
	struct scan *scan = user;

	obi_builder_kernel_at(scan->builder, kernel)->static_shared = shared;
	scan->plain.ok &= shared <= OBI_PLAIN_SHARED;
}

static void scan_version(struct scan *scan)
{
	next(scan);
	const char *dot = memchr(scan->lexer.token.text, '.', scan->lexer.token.size);
	uint32_t major = (uint32_t)ob_min(number(scan), (uint64_t)1000), minor = 0;

	if (dot && dot + 1 < scan->lexer.token.text + scan->lexer.token.size && dot[1] >= '0' &&
		dot[1] <= '9')
		minor = (uint32_t)(dot[1] - '0');
	scan->builder->ptx_version = major * 10 + minor;
}

static void scan_module(struct scan *scan, struct obi_param *params)
{
	next(scan);
	while (scan->lexer.token.kind != OBI_PTX_END && !scan->err) {
		judge_outside(scan);
		if (scan->lexer.token.kind != OBI_PTX_DIRECTIVE) {
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
		} else if (is(scan, ".global") || is(scan, ".const") || is(scan, ".shared") ||
			is(scan, ".tex")) {
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
		scan->lexer.p = text;
		scan->lexer.end = text + size;
		scan->builder = builder;
		obi_plain_init(&scan->plain);
		obi_ptx_graph_init(&scan->graph);
		builder->arch = obi_ptx_arch(text, size, &letter);
		scan_module(scan, params);
		if (scan->err == OB_ERR_IMAGE_DAMAGED)
			scan->err = OB_ERR_NONE;
		if (!scan->err)
			scan->err = obi_ptx_graph_sum(&scan->graph, set_shared, scan);
		err = scan->err;
		builder->plain = scan->plain.ok && !letter && scan->const_bytes <= OBI_PLAIN_CONST;
		obi_ptx_graph_fini(&scan->graph);
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
	text += obi_ptx_blank_size(text, end);
	return (size_t)(end - text) > sizeof(word) - 1 && memcmp(text, word, sizeof(word) - 1) == 0;
}

uint32_t obi_ptx_arch(const void *data, size_t size, char *ret_letter)
{
	struct obi_ptx_lexer lexer = { .p = data,
		.end = (const char *)data + prologue_size(data, size) };
	uint32_t arch = 0;

	*ret_letter = 0;
	do {
		obi_ptx_next(&lexer);
	} while (lexer.token.kind != OBI_PTX_END && !obi_ptx_is_text(&lexer, ".target"));
	obi_ptx_next(&lexer);
	if (lexer.token.kind != OBI_PTX_WORD || lexer.token.size < 5 ||
		memcmp(lexer.token.text, "sm_", 3) != 0)
		return 0;
	for (size_t i = 3; i < lexer.token.size; i++) {
		char c = lexer.token.text[i];

		if (c >= '0' && c <= '9' && arch < 10000)
			arch = arch * 10 + (uint32_t)(c - '0');
		else
			*ret_letter = c;
	}
	return arch;
}
