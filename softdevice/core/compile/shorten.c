/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/compile/shorten.h"

#include "base/opt.h"
#include "softdevice/core/compile/shorten_inside.h"
#include "softdevice/core/ops.h"

/* registers that the passes may add */
#define SPARE_VREGS 64u

void obd_shorten_visit(
	const struct obd_builder *b, const struct obd_lin *l, obd_visit_fn fn, void *arg)
{
	static const uint16_t use[] = { OBD_USE_A, OBD_USE_B, OBD_USE_C, OBD_USE_D, OBD_USE_E,
		OBD_USE_F };
	const uint32_t reg[] = { l->a, l->b, l->c, l->d, l->e, l->f };

	for (int i = 0; i < 6; i++)
		if (l->flags & use[i])
			fn(arg, reg[i], false);
	if (l->flags & OBD_CALL) {
		const uint32_t *c = b->calls + l->imm;

		for (uint32_t k = 0; k < c[0]; k++)
			fn(arg, c[2 + k], false);
		for (uint32_t k = 0; k < c[1]; k++)
			fn(arg, c[2 + c[0] + k], true);
	}
	if (l->flags & OBD_DEF_D)
		fn(arg, l->d, true);
	if (l->flags & OBD_DEF_G)
		fn(arg, l->g, true);
}

bool obd_shorten_is_pure(uint32_t op)
{
	static const bool pure[OBD_OP_COUNT + 1] = {
#define ELT1(name, td, ta, value)             [OBD_OP_##name] = true,
#define ELT2(name, td, ta, tb, value)         [OBD_OP_##name] = true,
#define ELT3(name, td, ta, tb, tc, value)     [OBD_OP_##name] = true,
#define ELT4(name, td, ta, tb, tc, te, value) [OBD_OP_##name] = true,
#define SEL(name, t)                          [OBD_OP_##name] = true,
#define HALF(name, format, value)             [OBD_OP_##name] = true,
#define HALFU(name, value)                    [OBD_OP_##name] = true,
#define VEC(name, value)                      [OBD_OP_##name] = true,
#define QUOT(name, narrow, wide)              [OBD_OP_##name] = true,
#include "softdevice/core/ops_elt.h"
#include "softdevice/core/ops_vector.h"
#include "softdevice/core/ops_undef.h"
	};

	return pure[op];
}

bool obd_shorten_has_prefix(const struct obd_builder *b, uint32_t i)
{
	return i && (b->code[i - 1].op == OBD_OP_guard || b->code[i - 1].op == OBD_OP_round);
}

bool obd_shorten_is_plain(const struct obd_builder *b, uint32_t i)
{
	const struct obd_lin *l = &b->code[i];
	const uint32_t other =
		OBD_PARTIAL | OBD_CALL | OBD_BRANCH | OBD_STOP | OBD_TABLE | OBD_DEF_G | OBD_USE_D;

	return l->flags & OBD_DEF_D && !(l->flags & other) && !l->d_half &&
		b->vregs[l->d].cls != OBD_CLASS_128 && !b->vregs[l->d].fixed &&
		!obd_shorten_has_prefix(b, i);
}

static void count(void *arg, uint32_t v, bool is_def)
{
	struct obd_shorten *s = arg;

	if (is_def)
		s->defs[v]++;
	else
		s->uses[v]++;
}

static void uncount(void *arg, uint32_t v, bool is_def)
{
	struct obd_shorten *s = arg;

	if (is_def)
		s->defs[v]--;
	else
		s->uses[v]--;
}

void obd_shorten_remove(struct obd_shorten *s, uint32_t i)
{
	struct obd_lin *l = &s->b->code[i];

	obd_shorten_visit(s->b, l, uncount, s);
	l->op = OBD_REMOVED;
	l->flags = 0;
}

/* Takes the removed instructions out of the code, and moves the labels. */
static void close_gaps(struct obd_builder *b, uint32_t *fresh)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < b->n_code; i++) {
		fresh[i] = n;
		if (b->code[i].op != OBD_REMOVED)
			b->code[n++] = b->code[i];
	}
	fresh[b->n_code] = n;
	for (uint32_t i = 0; i < b->labels.n; i++)
		if (b->labels.at[i] <= b->n_code)
			b->labels.at[i] = fresh[b->labels.at[i]];
	b->n_code = n;
}

void obd_shorten(struct obd_builder *b)
{
	bool invariant = ob_opt_on(OB_OPT_INVARIANT), fuse = ob_opt_on(OB_OPT_FUSE);
	struct obd_shorten s = { .b = b };
	uint32_t *fresh;

	if (!invariant && !fuse)
		return;
	s.capacity = b->n_vregs + SPARE_VREGS;
	s.defs = obd_build_work(b, s.capacity, sizeof(uint32_t));
	s.uses = obd_build_work(b, s.capacity, sizeof(uint32_t));
	s.source = obd_build_work(b, s.capacity, sizeof(uint32_t));
	fresh = obd_build_work(b, b->n_code + 1, sizeof(uint32_t));
	/* without memory the code stays as it is */
	if (s.defs && s.uses && s.source && fresh) {
		for (uint32_t i = 0; i < b->n_consts; i++)
			s.source[b->consts[i].vreg] = i;
		for (uint32_t i = 0; i < b->n_code; i++)
			obd_shorten_visit(b, &b->code[i], count, &s);
		if (invariant)
			obd_shorten_invariant(&s);
		if (fuse)
			obd_shorten_fuse(&s);
		close_gaps(b, fresh);
	}
	obd_build_work_free(b);
}
