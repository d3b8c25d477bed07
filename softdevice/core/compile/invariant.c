/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/compile/shorten_inside.h"
#include "softdevice/core/ops.h"

/* Each result has a slot of its own in every frame. */
#define MAX_PROLOGUE 1024u

/* Has the special register one value in all threads of a launch? */
static bool is_of_launch(uint32_t sreg)
{
	switch (sreg) {
	case OBD_SREG_NTID_X ... OBD_SREG_NTID_Z:
	case OBD_SREG_NCTAID_X ... OBD_SREG_ONE:
	case OBD_SREG_NWARPID:
	case OBD_SREG_NSMID:
	case OBD_SREG_GRIDID:
	case OBD_SREG_ENVREG1 ... OBD_SREG_RESERVED_1:
	case OBD_SREG_NCLUSTERID_X ... OBD_SREG_NCLUSTERID_Z:
	case OBD_SREG_CLUSTER_NCTAID_X ... OBD_SREG_CLUSTER_NCTAID_Z:
	case OBD_SREG_CLUSTER_NCTARANK:
	case OBD_SREG_EXPLICIT_CLUSTER:
		return true;
	default:
		return false;
	}
}

static bool is_invariant(const struct obd_builder *b, const struct obd_lin *l)
{
	static const uint16_t use[] = { OBD_USE_A, OBD_USE_B, OBD_USE_C, OBD_USE_E };
	const uint32_t reg[] = { l->a, l->b, l->c, l->e };

	switch (l->op) {
	case OBD_OP_param32:
	case OBD_OP_param64:
	case OBD_OP_param_addr:
	case OBD_OP_shared_addr:
		return true;
	case OBD_OP_sreg32:
	case OBD_OP_sreg64:
		return is_of_launch(l->e_raw);
	default:
		break;
	}
	if (!obd_shorten_is_pure(l->op))
		return false;
	for (int i = 0; i < 4; i++)
		if (l->flags & use[i] && !b->vregs[reg[i]].is_const)
			return false;
	return true;
}

bool obd_shorten_prologue(struct obd_shorten *s, const struct obd_lin *l)
{
	struct obd_builder *b = s->b;

	if (b->n_prologue >= MAX_PROLOGUE)
		return false;
	obd_ptx_grow(b->ld, &b->prologue, &b->cap_prologue, b->n_prologue, sizeof(*b->prologue),
		MAX_PROLOGUE);
	s->source[l->d] = b->n_prologue;
	b->prologue[b->n_prologue++] = *l;
	b->vregs[l->d].is_const = OBD_IN_PROLOGUE;
	return true;
}

/*
 * A register that one instruction writes has that value wherever it has one at all. The order of
 * the prologue is that of the code, so operands come first.
 */
void obd_shorten_invariant(struct obd_shorten *s)
{
	struct obd_builder *b = s->b;

	for (uint32_t i = 0; i < b->n_code; i++) {
		struct obd_lin *l = &b->code[i];

		if (!obd_shorten_is_plain(b, i) || s->defs[l->d] != 1 ||
			b->vregs[l->d].cls == OBD_CLASS_PRED || !is_invariant(b, l))
			continue;
		if (!obd_shorten_prologue(s, l))
			return;
		l->op = OBD_REMOVED;
		l->flags = 0;
	}
}
