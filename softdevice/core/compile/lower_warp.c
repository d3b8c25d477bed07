/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Barriers, fences, and operations among the lanes of a warp. */
#include "softdevice/core/compile/lower.h"

#define N OBD_NONE

/*
 * All lanes that execute a .sync operation must be one path. The callers therefore replace a guard
 * by a branch (obd_build_skip_begin).
 */
static struct obd_lin *emit_sync(struct obd_builder *b, uint32_t kind, uint32_t d, uint32_t a,
	uint32_t x, uint32_t c, uint32_t members, uint32_t pred)
{
	struct obd_lin *l = obd_emit(b, OBD_OP_sync, d, a, x, c);

	l->e_raw = (uint16_t)kind;
	l->f = members;
	l->g = pred;
	l->flags |= (uint16_t)((members != N ? OBD_USE_F : 0) | (pred != N ? OBD_DEF_G : 0));
	return l;
}

static void lower_shfl(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	bool sync = obd_q(s, OBD_Q_sync);
	uint32_t kind = obd_q(s, OBD_Q_up) ? OBD_SYNC_SHFL_UP
		: obd_q(s, OBD_Q_down)     ? OBD_SYNC_SHFL_DOWN
		: obd_q(s, OBD_Q_bfly)     ? OBD_SYNC_SHFL_BFLY
					   : OBD_SYNC_SHFL_IDX;
	uint32_t label = obd_build_skip_begin(b);

	(void)arg;
	obd_operand_count(b, s, sync ? 5 : 4, sync ? 5 : 4);
	uint32_t a = obd_src(b, s, 1, OBD_T_B32), x = obd_src(b, s, 2, OBD_T_U32),
		 c = obd_src(b, s, 3, OBD_T_U32);
	uint32_t members = sync ? obd_src(b, s, 4, OBD_T_U32) : N;

	emit_sync(b, kind, obd_dst(b, s, 0, OBD_T_B32), a, x, c, members, s->opd[0].pair);
	obd_build_skip_end(b, label);
}

static void lower_vote(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	bool sync = obd_q(s, OBD_Q_sync), ballot = obd_q(s, OBD_Q_ballot);
	uint32_t kind = ballot        ? OBD_SYNC_VOTE_BALLOT
		: obd_q(s, OBD_Q_all) ? OBD_SYNC_VOTE_ALL
		: obd_q(s, OBD_Q_any) ? OBD_SYNC_VOTE_ANY
				      : OBD_SYNC_VOTE_UNI;
	uint32_t label = obd_build_skip_begin(b);

	(void)arg;
	obd_operand_count(b, s, sync ? 3 : 2, sync ? 3 : 2);
	uint32_t p = obd_pred_value(b, s, 1), members = sync ? obd_src(b, s, 2, OBD_T_U32) : N;

	if (ballot)
		emit_sync(b, kind, obd_dst(b, s, 0, OBD_T_B32), p, N, N, members, N);
	else
		emit_sync(b, kind, N, p, N, N, members, obd_dst(b, s, 0, OBD_T_PRED));
	obd_build_skip_end(b, label);
}

static void lower_match(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	enum obd_type t = obd_type_at(b, s, 0);
	bool all = obd_q(s, OBD_Q_all), wide = obd_type_class(t) == OBD_CLASS_64;
	uint32_t kind = all ? (wide ? OBD_SYNC_MATCH_ALL64 : OBD_SYNC_MATCH_ALL32)
		: wide      ? OBD_SYNC_MATCH_ANY64
			    : OBD_SYNC_MATCH_ANY32;
	uint32_t label = obd_build_skip_begin(b);

	(void)arg;
	obd_operand_count(b, s, 3, 3);
	uint32_t a = obd_src(b, s, 1, t), members = obd_src(b, s, 2, OBD_T_U32);

	emit_sync(b, kind, obd_dst(b, s, 0, OBD_T_B32), a, N, N, members, all ? s->opd[0].pair : N);
	obd_build_skip_end(b, label);
}

static void lower_redux(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	enum obd_type t = obd_type_at(b, s, 0);
	bool sign = obd_type_signed(t), max = obd_q(s, OBD_Q_max), f32 = t == OBD_T_F32;
	uint32_t kind, label = obd_build_skip_begin(b);

	(void)arg;
	obd_operand_count(b, s, 3, 3);
	if (max || obd_q(s, OBD_Q_min))
		kind = f32     ? (max ? OBD_SYNC_REDUX_FMAX : OBD_SYNC_REDUX_FMIN)
			: max  ? (sign ? OBD_SYNC_REDUX_MAX_S : OBD_SYNC_REDUX_MAX_U)
			: sign ? OBD_SYNC_REDUX_MIN_S
			       : OBD_SYNC_REDUX_MIN_U;
	else
		kind = obd_q(s, OBD_Q_add)    ? OBD_SYNC_REDUX_ADD
			: obd_q(s, OBD_Q_and) ? OBD_SYNC_REDUX_AND
			: obd_q(s, OBD_Q_or)  ? OBD_SYNC_REDUX_OR
					      : OBD_SYNC_REDUX_XOR;
	if (obd_type_class(t) != OBD_CLASS_32)
		obd_invalid(b, s, "invalid type for this instruction");
	uint32_t a = obd_src(b, s, 1, t);

	if (f32 && obd_q(s, OBD_Q_abs)) {
		uint32_t w = obd_temp(b, t);

		obd_emit(b, OBD_OP_abs_f32, w, a, N, N);
		a = w;
	}
	emit_sync(b, kind, obd_dst(b, s, 0, t), a, N, N, obd_src(b, s, 2, OBD_T_U32), N);
	obd_build_skip_end(b, label);
}

static void lower_activemask(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	(void)arg;
	obd_operand_count(b, s, 1, 1);
	obd_emit(b, OBD_OP_activemask, obd_dst(b, s, 0, OBD_T_B32), N, N, N);
}

static void lower_elect(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	uint32_t label = obd_build_skip_begin(b);

	(void)arg;
	obd_operand_count(b, s, 2, 2);
	uint32_t d = s->opd[0].kind == OBD_OPD_SINK ? N : obd_dst(b, s, 0, OBD_T_B32);

	emit_sync(b, OBD_SYNC_ELECT, d, N, N, N, obd_src(b, s, 1, OBD_T_U32), s->opd[0].pair);
	obd_build_skip_end(b, label);
}

/* ---- barriers ---- */

static void cluster_barrier(struct obd_builder *b, const struct obd_stmt *s)
{
	struct obd_lin *l = obd_emit(b, OBD_OP_bar, N, N, N, N);

	l->e_raw = obd_q(s, OBD_Q_wait) ? OBD_BAR_CLUSTER_WAIT : OBD_BAR_CLUSTER_ARRIVE;
}

static void barrier_red(struct obd_builder *b, struct obd_stmt *s)
{
	bool popc = obd_q(s, OBD_Q_popc), three = s->n_opd == 4;
	uint32_t kind = popc          ? OBD_BAR_RED_POPC
		: obd_q(s, OBD_Q_and) ? OBD_BAR_RED_AND
				      : OBD_BAR_RED_OR;
	uint32_t id, count, p, d;
	struct obd_lin *l;

	obd_operand_count(b, s, 3, 4);
	id = obd_src(b, s, 1, OBD_T_U32);
	count = three ? obd_src(b, s, 2, OBD_T_U32) : N;
	p = obd_pred_value(b, s, s->n_opd - 1);
	d = obd_dst(b, s, 0, popc ? OBD_T_U32 : OBD_T_PRED);
	l = obd_emit(b, OBD_OP_bar, d, id, count, p);
	l->e_raw = (uint16_t)kind;
}

static void lower_bar(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	uint32_t label = obd_build_skip_begin(b), id, count;

	(void)arg;
	if (obd_q(s, OBD_Q_warp)) {
		obd_operand_count(b, s, 1, 1);
		emit_sync(b, OBD_SYNC_WARP, N, N, N, N, obd_src(b, s, 0, OBD_T_U32), N);
	} else if (obd_q(s, OBD_Q_cluster)) {
		cluster_barrier(b, s);
	} else if (obd_q(s, OBD_Q_red)) {
		barrier_red(b, s);
	} else {
		bool arrive = obd_q(s, OBD_Q_arrive);

		obd_operand_count(b, s, arrive ? 2 : 0, 2);
		id = s->n_opd ? obd_src(b, s, 0, OBD_T_U32)
			      : obd_const_new(b, OBD_CLASS_32, 0, NULL);
		count = s->n_opd > 1 ? obd_src(b, s, 1, OBD_T_U32) : N;
		obd_emit(b, OBD_OP_bar, N, id, count, N)->e_raw =
			arrive ? OBD_BAR_ARRIVE : OBD_BAR_SYNC;
	}
	obd_build_skip_end(b, label);
}

static void lower_fence(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	(void)s;
	(void)arg;
	obd_emit(b, OBD_OP_fence, N, N, N, N);
}

const struct obd_opcode obd_opcodes_warp[] = {
	{ "shfl", lower_shfl, 0 },
	{ "vote", lower_vote, 0 },
	{ "match", lower_match, 0 },
	{ "redux", lower_redux, 0 },
	{ "activemask", lower_activemask, 0 },
	{ "elect", lower_elect, 0 },
	{ "bar", lower_bar, 0 },
	{ "barrier", lower_bar, 0 },
	{ "membar", lower_fence, 0 },
	{ "fence", lower_fence, 0 },
	{ 0 },
};
