/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/ptx/symbol.h"

#include <string.h>

#include "base/hash.h"
#include "softdevice/core/ptx/token.h"

#define FIRST_BUCKETS     1024u
#define MAX_FAMILY_DIGITS 9u

static uint32_t hash(const char *name, uint32_t size)
{
	return (uint32_t)ob_hash(OB_HASH_START, name, size);
}

static void rehash(struct obd_loader *ld, uint32_t n)
{
	struct obd_symbol **fresh = obd_ptx_scratch(ld, n * sizeof(*fresh));

	for (uint32_t i = ld->n_buckets; i-- > 0;) {
		/* newer symbols precede older ones; the order must be kept */
		struct obd_symbol *reversed = NULL;

		for (struct obd_symbol *s = ld->buckets[i], *next; s; s = next) {
			next = s->next_bucket;
			s->next_bucket = reversed;
			reversed = s;
		}
		for (struct obd_symbol *s = reversed, *next; s; s = next) {
			next = s->next_bucket;
			s->next_bucket = fresh[s->hash & (n - 1)];
			fresh[s->hash & (n - 1)] = s;
		}
	}
	ld->buckets = fresh;
	ld->n_buckets = n;
}

static bool is_family(const struct obd_symbol *s)
{
	return s->kind == OBD_SYM_REGISTER && s->count;
}

/* The innermost symbol of that name: a family with that member, or none that is a family. */
static struct obd_symbol *find(
	struct obd_loader *ld, const char *name, uint32_t size, bool family, uint64_t member)
{
	uint32_t h = hash(name, size);

	if (!ld->n_buckets)
		return NULL;
	for (struct obd_symbol *s = ld->buckets[h & (ld->n_buckets - 1)]; s; s = s->next_bucket)
		if (s->hash == h && s->size == size && memcmp(s->name, name, size) == 0 &&
			is_family(s) == family && (!family || member < s->count))
			return s;
	return NULL;
}

struct obd_symbol *obd_sym_find(struct obd_loader *ld, const char *name, uint32_t size)
{
	return find(ld, name, size, false, 0);
}

struct obd_symbol *obd_sym_add(
	struct obd_loader *ld, const char *name, uint32_t size, enum obd_symbol_kind kind)
{
	struct obd_symbol *s;

	if (!ld->n_buckets || ld->n_symbols >= ld->n_buckets)
		rehash(ld, ld->n_buckets ? ld->n_buckets * 2 : FIRST_BUCKETS);
	s = obd_ptx_scratch(ld, sizeof(*s));
	s->name = name;
	s->size = size;
	s->hash = hash(name, size);
	s->kind = kind;
	s->scope = ld->scope;
	s->next_bucket = ld->buckets[s->hash & (ld->n_buckets - 1)];
	ld->buckets[s->hash & (ld->n_buckets - 1)] = s;
	s->next_scope = ld->scopes[ld->scope];
	ld->scopes[ld->scope] = s;
	ld->n_symbols++;
	return s;
}

void obd_sym_push(struct obd_loader *ld)
{
	if (ld->scope + 1 >= OBD_MAX_SCOPES)
		obd_ptx_fail(ld, "blocks { } nested more than %u levels deep", OBD_MAX_SCOPES);
	ld->scopes[++ld->scope] = NULL;
}

/* Passes a label that its block used but did not define to the enclosing block. */
static void pass_to_outer_scope(struct obd_loader *ld, const struct obd_symbol *s)
{
	for (struct obd_symbol *o = ld->buckets[s->hash & (ld->n_buckets - 1)]; o;
		o = o->next_bucket)
		if (o->kind == OBD_SYM_LABEL && o->hash == s->hash && o->size == s->size &&
			memcmp(o->name, s->name, s->size) == 0 &&
			(o->scope == ld->scope || ld->labels->at[o->index] != OBD_NONE)) {
			ld->labels->at[s->index] = OBD_LABEL_ALIAS | o->index;
			return;
		}
	obd_sym_add(ld, s->name, s->size, OBD_SYM_LABEL)->index = s->index;
}

void obd_sym_pop(struct obd_loader *ld)
{
	struct obd_symbol *list = ld->scopes[ld->scope];

	for (struct obd_symbol *s = list; s; s = s->next_scope) {
		struct obd_symbol **at = &ld->buckets[s->hash & (ld->n_buckets - 1)];

		while (*at && *at != s)
			at = &(*at)->next_bucket;
		if (*at)
			*at = s->next_bucket;
		ld->n_symbols--;
	}
	ld->scope--;
	if (ld->scope >= 1 && ld->labels)
		for (struct obd_symbol *s = list; s; s = s->next_scope)
			if (s->kind == OBD_SYM_LABEL && ld->labels->at[s->index] == OBD_NONE)
				pass_to_outer_scope(ld, s);
}

uint32_t obd_sym_register(
	struct obd_loader *ld, const char *name, uint32_t size, enum obd_type *ret_type)
{
	struct obd_symbol *plain = obd_sym_find(ld, name, size), *s;
	uint64_t n = 0, unit = 1;

	for (uint32_t digits = 1; digits <= MAX_FAMILY_DIGITS && digits < size; digits++) {
		char c = name[size - digits];

		if (c < '0' || c > '9')
			break;
		n += unit * (uint64_t)(c - '0');
		unit *= 10;
		if (c == '0' && digits > 1)
			continue; /* a name like %r012 is not a member of %r<> */
		s = find(ld, name, size - digits, true, n);
		/* of the same block: a family and a register cannot have the same names */
		if (s && (!plain || plain->scope < s->scope)) {
			*ret_type = s->type;
			return s->vreg + (uint32_t)n;
		}
	}
	if (!plain || plain->kind != OBD_SYM_REGISTER)
		return OBD_NONE;
	*ret_type = plain->type;
	return plain->vreg;
}

/* ---- labels ---- */

uint32_t obd_label_add(struct obd_loader *ld)
{
	struct obd_labels *l = ld->labels;

	obd_ptx_grow(ld, &l->at, &l->cap, l->n, sizeof(*l->at), OBD_MAX_LABELS);
	l->at[l->n] = OBD_NONE;
	return l->n++;
}

static struct obd_symbol *new_label(struct obd_loader *ld, const char *name, uint32_t size)
{
	struct obd_symbol *s = obd_sym_add(ld, name, size, OBD_SYM_LABEL);

	s->index = obd_label_add(ld);
	return s;
}

struct obd_symbol *obd_label_use(struct obd_loader *ld, const char *name, uint32_t size)
{
	struct obd_symbol *s = obd_sym_find(ld, name, size);

	if (s && s->kind == OBD_SYM_LABEL &&
		(s->scope == ld->scope || ld->labels->at[s->index] != OBD_NONE))
		return s;
	return new_label(ld, name, size);
}

void obd_label_define(struct obd_loader *ld, const char *name, uint32_t size, uint32_t position)
{
	struct obd_symbol *s = obd_sym_find(ld, name, size);

	if (!s || s->kind != OBD_SYM_LABEL || s->scope != ld->scope)
		s = new_label(ld, name, size);
	if (ld->labels->at[s->index] != OBD_NONE)
		obd_ptx_fail(ld, "label %.*s is defined twice", OBD_TEXT_ARG(name, size));
	ld->labels->at[s->index] = position;
}
