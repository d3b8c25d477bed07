/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Names of types, and a hash table of symbols with scopes. */
#include <string.h>

#include "softdevice/core/ptx/ptx.h"

#define FIRST_BUCKETS     1024u
#define MAX_FAMILY_DIGITS 9u

static uint32_t hash(const char *name, uint32_t size)
{
	uint32_t h = 2166136261u;

	for (uint32_t i = 0; i < size; i++)
		h = (h ^ (uint8_t)name[i]) * 16777619u;
	return h;
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

struct obd_symbol *obd_sym_find(struct obd_loader *ld, const char *name, uint32_t size)
{
	uint32_t h = hash(name, size);

	if (!ld->n_buckets)
		return NULL;
	for (struct obd_symbol *s = ld->buckets[h & (ld->n_buckets - 1)]; s; s = s->next_bucket)
		if (s->hash == h && s->size == size && memcmp(s->name, name, size) == 0)
			return s;
	return NULL;
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
		obd_ptx_fail(ld, "more than %u blocks { } inside each other", OBD_MAX_SCOPES);
	ld->scopes[++ld->scope] = NULL;
}

/* Passes a label that its block used but did not define to the enclosing block. */
static void hand_outward(struct obd_loader *ld, const struct obd_symbol *s)
{
	for (struct obd_symbol *o = ld->buckets[s->hash & (ld->n_buckets - 1)]; o;
		o = o->next_bucket)
		if (o->kind == OBD_SYM_LABEL && o->hash == s->hash && o->size == s->size &&
			memcmp(o->name, s->name, s->size) == 0 &&
			(o->scope == ld->scope || ld->b->labels[o->index] != OBD_NONE)) {
			ld->b->labels[s->index] = OBD_LABEL_ALIAS | o->index;
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
	if (ld->scope >= 1 && ld->b)
		for (struct obd_symbol *s = list; s; s = s->next_scope)
			if (s->kind == OBD_SYM_LABEL && ld->b->labels[s->index] == OBD_NONE)
				hand_outward(ld, s);
}

uint32_t obd_sym_register(
	struct obd_loader *ld, const char *name, uint32_t size, enum obd_type *ret_type)
{
	struct obd_symbol *s = obd_sym_find(ld, name, size);
	uint64_t n = 0, unit = 1;

	if (s && s->kind == OBD_SYM_REGISTER && !s->count) {
		*ret_type = s->type;
		return s->vreg;
	}
	for (uint32_t digits = 1; digits <= MAX_FAMILY_DIGITS && digits < size; digits++) {
		char c = name[size - digits];

		if (c < '0' || c > '9')
			break;
		n += unit * (uint64_t)(c - '0');
		unit *= 10;
		if (c == '0' && digits > 1)
			continue; /* a name like %r012 is not a member of %r<> */
		s = obd_sym_find(ld, name, size - digits);
		if (s && s->kind == OBD_SYM_REGISTER && n < s->count) {
			*ret_type = s->type;
			return s->vreg + (uint32_t)n;
		}
	}
	return OBD_NONE;
}

static const struct {
	const char *name;
	enum obd_type type;
	uint8_t bytes;
	uint8_t cls;
} types[] = {
	{ "u8", OBD_T_U8, 1, OBD_CLASS_32 },
	{ "u16", OBD_T_U16, 2, OBD_CLASS_32 },
	{ "u32", OBD_T_U32, 4, OBD_CLASS_32 },
	{ "u64", OBD_T_U64, 8, OBD_CLASS_64 },
	{ "s8", OBD_T_S8, 1, OBD_CLASS_32 },
	{ "s16", OBD_T_S16, 2, OBD_CLASS_32 },
	{ "s32", OBD_T_S32, 4, OBD_CLASS_32 },
	{ "s64", OBD_T_S64, 8, OBD_CLASS_64 },
	{ "f16", OBD_T_F16, 2, OBD_CLASS_32 },
	{ "f32", OBD_T_F32, 4, OBD_CLASS_32 },
	{ "f64", OBD_T_F64, 8, OBD_CLASS_64 },
	{ "bf16", OBD_T_BF16, 2, OBD_CLASS_32 },
	{ "tf32", OBD_T_TF32, 4, OBD_CLASS_32 },
	{ "e4m3", OBD_T_E4M3, 1, OBD_CLASS_32 },
	{ "e5m2", OBD_T_E5M2, 1, OBD_CLASS_32 },
	{ "b8", OBD_T_B8, 1, OBD_CLASS_32 },
	{ "b16", OBD_T_B16, 2, OBD_CLASS_32 },
	{ "b32", OBD_T_B32, 4, OBD_CLASS_32 },
	{ "b64", OBD_T_B64, 8, OBD_CLASS_64 },
	{ "b128", OBD_T_B128, 16, OBD_CLASS_128 },
	{ "pred", OBD_T_PRED, 1, OBD_CLASS_PRED },
	{ "f16x2", OBD_T_F16X2, 4, OBD_CLASS_32 },
	{ "bf16x2", OBD_T_BF16X2, 4, OBD_CLASS_32 },
	{ "e4m3x2", OBD_T_E4M3X2, 2, OBD_CLASS_32 },
	{ "e5m2x2", OBD_T_E5M2X2, 2, OBD_CLASS_32 },
	{ "u16x2", OBD_T_U16X2, 4, OBD_CLASS_32 },
	{ "s16x2", OBD_T_S16X2, 4, OBD_CLASS_32 },
};

#define N_TYPES (sizeof(types) / sizeof(types[0]))

enum obd_type obd_type_named(const char *text, uint32_t size)
{
	for (size_t i = 0; i < N_TYPES; i++)
		if (types[i].name[0] == text[0] && strlen(types[i].name) == size &&
			memcmp(types[i].name, text, size) == 0)
			return types[i].type;
	return OBD_T_NONE;
}

uint32_t obd_type_bytes(enum obd_type t)
{
	for (size_t i = 0; i < N_TYPES; i++)
		if (types[i].type == t)
			return types[i].bytes;
	return 4;
}

enum obd_reg_class obd_type_class(enum obd_type t)
{
	for (size_t i = 0; i < N_TYPES; i++)
		if (types[i].type == t)
			return (enum obd_reg_class)types[i].cls;
	return OBD_CLASS_32;
}

bool obd_type_signed(enum obd_type t)
{
	return t >= OBD_T_S8 && t <= OBD_T_S64;
}

bool obd_type_float(enum obd_type t)
{
	return t >= OBD_T_F16 && t <= OBD_T_E5M2;
}

bool obd_type_is16(enum obd_type t)
{
	return t == OBD_T_U16 || t == OBD_T_S16 || t == OBD_T_B16;
}
