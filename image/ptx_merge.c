/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "image/ptx_merge.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "image/image.h"

/* A statement at module scope: [from, to) of the text, with its properties for linking. */
enum kind { OTHER, FUNCTION, FUNCTION_DECLARED, VARIABLE };
enum linkage { LOCAL, EXTERN, VISIBLE, WEAK, COMMON };

struct statement {
	enum kind kind;
	enum linkage linkage;
	uint32_t module;
	size_t from, to;                 /* in the module's text */
	size_t linkage_at, linkage_size; /* the linking directive; size 0: none */
	size_t name_at, name_size;
	bool dropped;
};

struct merge {
	const struct obi_ptx *inputs;
	size_t n_inputs;
	struct statement *statements;
	size_t n, max;
	uint32_t *table;  /* open-addressing hash of statement index + 1, by name; without locals */
	uint32_t *locals; /* likewise for locals, by module and name */
	size_t mask;
	unsigned version, arch; /* 90 for .version 9.0, 75 for sm_75 */
	const char *target;     /* of the module with the newest target; borrowed */
	size_t target_size;
	char *log;
	size_t log_size;
};

static enum ob_err complain(
	struct merge *m, uint32_t module, const char *what, const char *name, size_t size)
{
	if (m->log && m->log_size)
		snprintf(m->log, m->log_size, "%s: %s%s%.*s", m->inputs[module].name, what,
			size ? " " : "", (int)ob_min(size, (size_t)512), name ? name : "");
	return OB_ERR_IMAGE_DAMAGED;
}

/* ---- tokens ---- */

static bool name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		c == '_' || c == '$' || c == '%';
}

/* Returns the position after white space and comments. */
static size_t skip(const struct obi_ptx *p, size_t i)
{
	while (i < p->size) {
		if (strchr(" \t\r\n\f\v", p->text[i]) && p->text[i]) {
			i++;
		} else if (p->text[i] == '/' && i + 1 < p->size && p->text[i + 1] == '/') {
			while (i < p->size && p->text[i] != '\n')
				i++;
		} else if (p->text[i] == '/' && i + 1 < p->size && p->text[i + 1] == '*') {
			for (i += 2; i < p->size && !(p->text[i - 1] == '*' && p->text[i] == '/');
				i++)
				;
			i += i < p->size;
		} else {
			break;
		}
	}
	return i;
}

/* Returns the end of the token at i: a word with the dots before it, a string, or one character. */
static size_t token_end(const struct obi_ptx *p, size_t i)
{
	size_t at = i;

	if (p->text[i] == '"') {
		for (i++; i < p->size && p->text[i] != '"' && p->text[i] != '\n'; i++)
			if (p->text[i] == '\\' && i + 1 < p->size)
				i++;
		return ob_min(i + 1, p->size);
	}
	if (p->text[i] == '.')
		i++;
	while (i < p->size && name_char(p->text[i]))
		i++;
	return i > at ? i : at + 1;
}

static bool is(const struct obi_ptx *p, size_t i, size_t end, const char *word)
{
	return end - i == strlen(word) && memcmp(p->text + i, word, end - i) == 0;
}

/* ---- reading one module ---- */

static bool statement_add(struct merge *m, const struct statement *s)
{
	if (m->n == m->max) {
		size_t max = m->max ? m->max * 2 : 64;
		struct statement *more = realloc(m->statements, max * sizeof *more);

		if (!more)
			return false;
		m->statements = more;
		m->max = max;
	}
	m->statements[m->n++] = *s;
	return true;
}

static unsigned number_after(const struct obi_ptx *p, size_t i, size_t end)
{
	unsigned n = 0;

	while (i < end && (p->text[i] < '0' || p->text[i] > '9'))
		i++;
	for (; i < end && p->text[i] >= '0' && p->text[i] <= '9' && n < 10000; i++)
		n = n * 10 + (unsigned)(p->text[i] - '0');
	return n;
}

static size_t line_end(const struct obi_ptx *p, size_t i)
{
	while (i < p->size && p->text[i] != '\n' && p->text[i] != ';')
		i++;
	return i;
}

/*
 * Reads .version, .target and .address_size, which are merged into one head. Returns the position
 * after the directive, or `at` when it is none of them.
 */
static size_t head_read(struct merge *m, uint32_t module, size_t at, size_t end)
{
	const struct obi_ptx *p = &m->inputs[module];
	size_t stop = line_end(p, end);

	if (is(p, at, end, ".version")) {
		const char *dot = memchr(p->text + end, '.', stop - end);
		unsigned major = number_after(p, end, stop),
			 minor = dot ? number_after(p, (size_t)(dot - p->text), stop) : 0;

		m->version = ob_max(m->version, major * 10 + minor);
		return stop;
	}
	if (is(p, at, end, ".target")) {
		unsigned arch = number_after(p, end, stop);

		if (arch >= m->arch) {
			m->arch = arch;
			m->target = p->text + at;
			m->target_size = stop - at;
		}
		return stop;
	}
	if (is(p, at, end, ".address_size") || is(p, at, end, ".file"))
		return stop;
	return at;
}

struct reading {
	uint32_t module;
	size_t at;
	struct statement s;
	unsigned depth, round; /* of braces; of parentheses */
	bool named, is_function, assigned, is_section;
};

static void word_note(struct reading *r, const struct obi_ptx *p, size_t at, size_t end)
{
	static const char *const links[] = {
		[EXTERN] = ".extern", [VISIBLE] = ".visible", [WEAK] = ".weak", [COMMON] = ".common"
	};

	for (unsigned i = EXTERN; i <= COMMON; i++)
		if (is(p, at, end, links[i])) {
			r->s.linkage = (enum linkage)i;
			r->s.linkage_at = at;
			r->s.linkage_size = end - at;
			return;
		}
	if (is(p, at, end, ".func") || is(p, at, end, ".entry"))
		r->is_function = true;
	else if (is(p, at, end, ".global") || is(p, at, end, ".const") || is(p, at, end, ".shared"))
		r->s.kind = VARIABLE;
	else if (is(p, at, end, ".section"))
		r->is_section = true;
	else if (p->text[at] != '.' && name_char(p->text[at]) &&
		!(p->text[at] >= '0' && p->text[at] <= '9') && !r->named && r->round == 0 &&
		(r->is_function || r->s.kind == VARIABLE)) {
		r->s.name_at = at;
		r->s.name_size = end - at;
		r->named = true;
	}
}

/* Reads a statement at r->at and sets r->at to its end. False: it has no end. */
static bool statement_read(struct reading *r, const struct obi_ptx *p)
{
	r->s.from = r->at;
	while (r->at < p->size) {
		size_t at = r->at, end = token_end(p, at);
		char c = p->text[at];

		r->at = skip(p, end);
		r->s.to = end;
		if (c == '{') {
			if (++r->depth > OBI_MERGE_MAX_DEPTH)
				return false;
		} else if (c == '}') {
			if (r->depth-- == 0)
				return false;
			if (r->depth == 0 && !r->assigned)
				return true;
		} else if (c == ';' && r->depth == 0) {
			return true;
		} else if (r->depth == 0) {
			if (c == '(')
				r->round++;
			else if (c == ')')
				r->round -= r->round > 0;
			else if (c == '=')
				r->assigned = true;
			else if (!r->assigned)
				word_note(r, p, at, end);
		}
	}
	return false;
}

static enum ob_err module_read(struct merge *m, uint32_t module)
{
	const struct obi_ptx *p = &m->inputs[module];
	size_t at = skip(p, 0);

	while (at < p->size && p->text[at] != '\0') {
		struct reading r = { .module = module, .at = at };
		size_t after = head_read(m, module, at, token_end(p, at));

		if (after != at) {
			at = skip(p, after);
			continue;
		}
		r.s.module = module;
		if (!statement_read(&r, p))
			return complain(
				m, module, "unexpected end of text in a declaration", NULL, 0);
		if (r.is_function)
			r.s.kind = p->text[r.s.to - 1] == '}' ? FUNCTION : FUNCTION_DECLARED;
		if (!r.named)
			r.s.kind = OTHER;
		if (!r.is_section && !statement_add(m, &r.s))
			return OB_ERR_NO_MEMORY;
		at = r.at;
	}
	return OB_ERR_NONE;
}

/* ---- symbols ---- */

static uint64_t hash(const char *text, size_t size, uint64_t seed)
{
	uint64_t h = ob_hash(ob_hash(OB_HASH_START, &seed, sizeof(seed)), text, size);

	return h ^ h >> 29; /* the lowest bits select the slot */
}

static const char *name_of(const struct merge *m, const struct statement *s)
{
	return m->inputs[s->module].text + s->name_at;
}

/*
 * Returns the slot of a name, or the one where it must be inserted. module UINT32_MAX: any module.
 */
static uint32_t *slot_of(
	const struct merge *m, uint32_t *table, uint32_t module, const char *name, size_t size)
{
	size_t i = hash(name, size, module) & m->mask;

	for (; table[i]; i = (i + 1) & m->mask) {
		const struct statement *s = &m->statements[table[i] - 1];

		if ((module == UINT32_MAX || s->module == module) && s->name_size == size &&
			memcmp(name_of(m, s), name, size) == 0)
			break;
	}
	return &table[i];
}

static bool defines(const struct statement *s)
{
	return s->kind == FUNCTION || (s->kind == VARIABLE && s->linkage != EXTERN);
}

/* Decides which of two statements for one shared name is kept. */
static enum ob_err resolve(
	struct merge *m, struct statement *old, struct statement *new, uint32_t *slot)
{
	if (!defines(new)) {
		new->dropped = new->kind == VARIABLE;
		return OB_ERR_NONE;
	}
	if (!defines(old)) {
		old->dropped = old->kind == VARIABLE;
		*slot = (uint32_t)(new - m->statements) + 1;
		return OB_ERR_NONE;
	}
	if (new->linkage == WEAK || new->linkage == COMMON) {
		new->dropped = true;
		return OB_ERR_NONE;
	}
	if (old->linkage == WEAK || old->linkage == COMMON) {
		old->dropped = true;
		*slot = (uint32_t)(new - m->statements) + 1;
		return OB_ERR_NONE;
	}
	return complain(m, new->module, "symbol is also defined in another input:", name_of(m, new),
		new->name_size);
}

static enum ob_err symbols_resolve(struct merge *m)
{
	size_t size = 64;
	enum ob_err result = OB_ERR_NONE;

	while (size < m->n * 2 + 2)
		size *= 2;
	m->mask = size - 1;
	m->table = calloc(size, sizeof *m->table);
	m->locals = calloc(size, sizeof *m->locals);
	if (!m->table || !m->locals)
		return OB_ERR_NO_MEMORY;
	for (size_t i = 0; i < m->n && !result; i++) {
		struct statement *s = &m->statements[i];
		bool local = s->linkage == LOCAL;
		uint32_t *slot;

		if (s->kind == OTHER)
			continue;
		slot = slot_of(m, local ? m->locals : m->table, local ? s->module : UINT32_MAX,
			name_of(m, s), s->name_size);
		if (!*slot)
			*slot = (uint32_t)i + 1;
		else if (!local)
			result = resolve(m, &m->statements[*slot - 1], s, slot);
	}
	return result;
}

/* ---- writing ---- */

/*
 * Writes a statement's text: local names get the module's number, and a declaration loses .extern
 * when a module defines the symbol.
 */
static void statement_write(const struct merge *m, const struct statement *s, struct ob_buf *out)
{
	const struct obi_ptx *p = &m->inputs[s->module];
	const struct statement *stands = s->linkage == EXTERN && s->kind == FUNCTION_DECLARED
		? &m->statements[*slot_of(m, m->table, UINT32_MAX, name_of(m, s), s->name_size) - 1]
		: s;
	size_t done = s->from;

	for (size_t at = skip(p, s->from), end; at < s->to; at = skip(p, end)) {
		end = token_end(p, at);
		if (stands != s && defines(stands) && at == s->linkage_at && s->linkage_size) {
			ob_buf_append(out, p->text + done, at - done);
			ob_buf_printf(out, stands->linkage == WEAK ? ".weak" : ".visible");
			done = end;
		} else if (m->n_inputs > 1 && p->text[at] != '.' && p->text[at] != '"' &&
			name_char(p->text[at]) &&
			*slot_of(m, m->locals, s->module, p->text + at, end - at)) {
			ob_buf_append(out, p->text + done, end - done);
			ob_buf_printf(out, "$m%u", s->module);
			done = end;
		}
	}
	ob_buf_append(out, p->text + done, s->to - done);
	ob_buf_append(out, "\n", 1);
}

static void all_write(const struct merge *m, struct ob_buf *out)
{
	static const enum kind order[] = { OTHER, FUNCTION_DECLARED, VARIABLE, FUNCTION };

	ob_buf_printf(out, ".version %u.%u\n", m->version / 10, m->version % 10);
	ob_buf_append(out, m->target, m->target_size);
	ob_buf_printf(out, "\n.address_size 64\n");
	for (size_t k = 0; k < ob_count(order); k++)
		for (size_t i = 0; i < m->n; i++)
			if (m->statements[i].kind == order[k] && !m->statements[i].dropped)
				statement_write(m, &m->statements[i], out);
}

enum ob_err obi_ptx_merge(
	const struct obi_ptx *inputs, size_t n, struct ob_buf *ret, char *log, size_t log_size)
{
	struct merge m = { .inputs = inputs, .n_inputs = n, .log = log, .log_size = log_size };
	enum ob_err result = n && n <= OBI_MERGE_MAX_INPUTS ? OB_ERR_NONE : OB_ERR_LIMIT;

	for (uint32_t i = 0; i < n && !result; i++)
		result = module_read(&m, i);
	if (!result && (!m.version || !m.target))
		result = complain(&m, 0, "not PTX: missing .version or .target", NULL, 0);
	if (!result)
		result = symbols_resolve(&m);
	if (!result) {
		all_write(&m, ret);
		if (ret->failed)
			result = OB_ERR_NO_MEMORY;
	}
	free(m.statements);
	free(m.table);
	free(m.locals);
	return result;
}

/* ---- separately compiled objects ---- */

static enum ob_err object_open(const void *fatbin, uint32_t cc, uint32_t i, struct obi_ptx *ret,
	char *name, size_t name_size)
{
	struct obi_image image;
	const struct obi_entry *entry;
	const uint8_t *text = NULL;
	bool owned = false;
	size_t size = 0;
	enum ob_err err = obi_image_open(fatbin, &image);

	if (err)
		return err;
	entry = obi_image_select(&image, cc, true);
	err = entry ? obi_entry_payload(entry, &text, &size, &owned) : OB_ERR_IMAGE_NO_ENTRY;
	if (!err) {
		char *copy = malloc(size + 1);

		if (copy)
			memcpy(copy, text, size);
		else
			err = OB_ERR_NO_MEMORY;
		snprintf(name, name_size, "object %u", i + 1);
		*ret = (struct obi_ptx){ copy, size, name };
		if (owned)
			free((void *)(uintptr_t)text);
	}
	obi_image_fini(&image);
	return err;
}

struct object {
	char name[32];
};

/*
 * Whether the object is the toolkit's device library (libcudadevrt). It calls into the driver's own
 * device code, and its PTX is for the newest devices only; the device has the functions built in.
 */
static bool is_device_library(const struct obi_ptx *ptx)
{
	static const char internal[] = "cnpGetLastError";

	return memmem(ptx->text, ptx->size, internal, sizeof internal - 1) != NULL;
}

enum ob_err obi_image_relink(
	const struct obi_image *image, uint32_t cc, struct ob_buf *ret, char *log, size_t log_size)
{
	uint32_t n = 0, opened = 0;
	struct obi_ptx *inputs;
	struct object *objects;
	enum ob_err err = OB_ERR_NONE;

	while (image->prelinked && image->prelinked[n] && n <= OBI_MERGE_MAX_INPUTS)
		n++;
	if (n == 0)
		return OB_ERR_IMAGE_NO_ENTRY;
	if (n > OBI_MERGE_MAX_INPUTS)
		return OB_ERR_LIMIT;
	inputs = calloc(n, sizeof *inputs);
	objects = calloc(n, sizeof *objects);
	if (!inputs || !objects)
		err = OB_ERR_NO_MEMORY;
	for (uint32_t i = 0; i < n && !err; i++) {
		err = object_open(image->prelinked[i], cc, i, &inputs[opened], objects[opened].name,
			sizeof objects->name);
		if (!err && is_device_library(&inputs[opened]))
			free((void *)(uintptr_t)inputs[opened].text);
		else
			opened += !err;
		/* If a name of an object without PTX is missing, that is reported. */
		if (err == OB_ERR_IMAGE_NO_ENTRY)
			err = OB_ERR_NONE;
	}
	if (!err && opened == 0)
		err = OB_ERR_IMAGE_NO_ENTRY;
	if (!err)
		err = obi_ptx_merge(inputs, opened, ret, log, log_size);
	if (!err && !ob_buf_append(ret, "", 1))
		err = OB_ERR_NO_MEMORY;
	for (uint32_t i = 0; i < opened; i++)
		free((void *)(uintptr_t)inputs[i].text);
	free(inputs);
	free(objects);
	return err;
}
