/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Loads and stores at linear addresses, parameters, special registers, and calls of handlers. */
#include "softdevice/core/engine/exec.h"
#include "softdevice/core/native/unit.h"

static uint32_t cell_bytes(uint32_t op)
{
	switch (op) {
	case OBD_OP_ld8_g:
	case OBD_OP_ld8_s:
	case OBD_OP_ld8_i:
	case OBD_OP_st8_g:
	case OBD_OP_st8_s:
	case OBD_OP_st8_i:
		return 1;
	case OBD_OP_ld16_g:
	case OBD_OP_ld16_s:
	case OBD_OP_ld16_i:
	case OBD_OP_st16_g:
	case OBD_OP_st16_s:
	case OBD_OP_st16_i:
		return 2;
	case OBD_OP_ld64_g:
	case OBD_OP_ld64_s:
	case OBD_OP_ld64_i:
	case OBD_OP_st64_g:
	case OBD_OP_st64_s:
	case OBD_OP_st64_i:
		return 8;
	default:
		return 4;
	}
}

static bool is_shared(uint32_t op)
{
	return (op >= OBD_OP_ld8_s && op <= OBD_OP_ld64_s) ||
		(op >= OBD_OP_st8_s && op <= OBD_OP_st64_s);
}

/*
 * RDX = the address of lane 0, after the checks that all bytes from `low` to `high`, relative to
 * it, are in the memory, and that it is aligned. An access that does not pass is left to the
 * interpreter.
 */
static void address(struct obn_unit *u, uint32_t i, int32_t low, int32_t high)
{
	const struct obd_insn *in = &u->f->code[i];
	struct x_buf *x = &u->x;
	int a = obn_scalar_get(u, in->a);
	bool shared = is_shared(in->op);

	if (obn_indexed(in->op)) {
		int base = obn_scalar_get(u, in->c);

		if (in->e & OBD_INDEX_SIGNED)
			x_movsxd(x, RDX, a);
		else
			x_mov(x, false, RDX, a);
		x_shift(x, X_SHL, true, RDX, (uint32_t)__builtin_ctz(cell_bytes(in->op)));
		x_alu(x, X_ADD, true, RDX, base);
		a = RDX;
	}
	x_lea(x, !shared, RDX, (struct x_mem){ a, (int32_t)in->u.imm });
	if (shared)
		x_load(x, false, RCX, OBN_WARP(shared_bytes));
	else
		x_load(x, true, RCX, OBN_WARP(window_size));
	x_alu_imm(x, X_SUB, true, RCX, high - low);
	obn_exit(u, CC_B, i);
	x_lea(x, !shared, RAX, (struct x_mem){ RDX, low });
	if (!shared)
		x_alu_mem(x, X_SUB, true, RAX, OBN_WARP(window_base));
	x_alu(x, X_CMP, true, RAX, RCX);
	obn_exit(u, CC_A, i);
	if (shared)
		x_alu_mem(x, X_ADD, true, RDX, OBN_WARP(shared_base));
	if (in->e & 0xff) {
		x_test_imm(x, RDX, in->e & 0xff);
		obn_exit(u, CC_NE, i);
	}
}

/* For a fault: how the lanes' addresses follow from that of lane 0. */
static void record(struct obn_unit *u, uint32_t i, enum obd_mem_form form, struct obn_form f)
{
	struct x_buf *x = &u->x;

	if (is_shared(u->f->code[i].op))
		return;
	x_mov_imm(x, RAX, (uint64_t)(uintptr_t)(u->f->code + i) + form);
	x_store(x, true, OBN_WARP(mem_in), RAX);
	x_store_imm(x, false, OBN_WARP(mem_mask), -1);
	if (form != OBD_MEM_HALVES) {
		x_store(x, true, OBN_WARP(mem_first), RDX);
		return;
	}
	x_store(x, true, OBN_WARP(addr), RDX);
	x_lea(x, true, RAX, (struct x_mem){ RDX, f.lane });
	x_store(x, true, OBN_WARP(addr[1]), RAX);
	x_lea(x, true, RAX, (struct x_mem){ RDX, f.half });
	x_store(x, true, OBN_WARP(addr[OBN_HALF]), RAX);
}

/* From the address of lane 0 to that of the first lane of a chunk. */
static struct x_mem chunk_at(const struct obn_unit *u, struct obn_form f, uint32_t c, bool wide)
{
	int32_t first = (int32_t)(c * u->chunk_bytes / (wide ? 8 : 4));

	return (struct x_mem){ RDX, f.lane * (first % OBN_HALF) + f.half * (first / OBN_HALF) };
}

static void load_rows(
	struct obn_unit *u, const struct obd_insn *in, uint32_t cell, struct obn_form f)
{
	bool wide = cell == 8;
	uint32_t n = wide ? 2 * u->chunks : u->chunks;

	for (uint32_t c = 0; c < n; c++) {
		obn_step(u);
		int d = obn_vector_new(u);
		struct x_mem m = chunk_at(u, f, c, wide);

		if (f.lane == 0) /* vpbroadcast */
			x_vm(&u->x, wide ? V(2, P66, u->x.wide, 0x59u) : VPBROADCASTD, obn_how(u),
				d, 0, m);
		else if (cell >= 4)
			obn_vec_load(u, d, m);
		else /* vpmovzxbd, vpmovzxwd */
			x_vm(&u->x, V(2, P66, 0, cell == 1 ? 0x31u : 0x33u), obn_how(u), d, 0, m);
		obn_vector_set(u, in->d, c, d);
	}
	obn_vector_done(u, in->d);
}

static void store_rows(
	struct obn_unit *u, const struct obd_insn *in, uint32_t cell, struct obn_form f)
{
	bool wide = cell == 8;
	uint32_t n = wide ? 2 * u->chunks : u->chunks;

	for (uint32_t c = 0; c < n; c++) {
		obn_step(u);
		int v = obn_vector_get(u, in->b, c);
		struct x_mem m = chunk_at(u, f, c, wide);

		if (cell >= 4)
			obn_vec_store(u, m, v);
		else /* vpmovdb, vpmovdw */
			x_vm(&u->x, V(2, PF3, 0, cell == 1 ? 0x31u : 0x33u), obn_how(u), v, 0, m);
	}
}

static void load_same(struct obn_unit *u, const struct obd_insn *in, uint32_t cell)
{
	int d = obn_scalar_new(u);
	struct x_mem m = { RDX, 0 };

	if (cell < 4)
		x_load_small(&u->x, cell, d, m);
	else
		x_load(&u->x, cell == 8, d, m);
	obn_scalar_set(u, in->d, d, 0);
}

/*
 * The next warp mostly accesses the next row. In blocks of several rows, and where a thread strides
 * through an array, the processor does not expect it.
 */
static void fetch_next(struct obn_unit *u, int32_t bytes, bool write)
{
	for (int32_t at = 0; at < bytes; at += 64)
		x_prefetch(&u->x, write, (struct x_mem){ RDX, bytes + at });
}

bool obn_access(struct obn_unit *u, uint32_t i, int32_t form)
{
	const struct obd_insn *in = &u->f->code[i];
	int32_t cell = (int32_t)cell_bytes(in->op), at = u->state[in->a];
	bool load = obn_op_info(in->op)->special == OBN_LOAD, indexed = obn_indexed(in->op);
	struct obn_form f;

	if (at == OBN_VARIES || (indexed && u->state[in->c] != 0))
		return false;
	f = u->forms[at];
	if (indexed &&
		(f.lane > INT16_MAX || f.lane < 0 || f.half > INT16_MAX || f.half < INT16_MIN))
		return false;
	if (indexed)
		f = (struct obn_form){ .lane = f.lane * cell, .half = f.half * cell };
	if (load && form == 0) {
		address(u, i, 0, cell);
		record(u, i, OBD_MEM_SAME, f);
		load_same(u, in, (uint32_t)cell);
		return true;
	}
	/* rows of 32 or of 16 cells; for loads, also one cell for each half */
	bool pair = load && f.lane == 0 && cell >= 4, row = f.lane == cell;

	if (!(row || pair) || (f.half | f.lane) & in->e & 0xff || (!load && cell < 4 && !u->x.wide))
		return false;
	if (indexed && at != 0)
		obn_check_wrap(u, i, in->a, in->e & OBD_INDEX_SIGNED);
	int32_t low = f.half < 0 ? f.half : 0,
		high = (f.half > 0 ? f.half : 0) + f.lane * (OBN_HALF - 1) + cell;

	address(u, i, low, high);
	if (f.half == cell * OBN_HALF && row && !is_shared(in->op))
		fetch_next(u, cell * (int32_t)OBD_LANES, !load);
	record(u, i, row && f.half == cell * OBN_HALF ? OBD_MEM_ROW : OBD_MEM_HALVES, f);
	if (load)
		load_rows(u, in, (uint32_t)cell, f);
	else
		store_rows(u, in, (uint32_t)cell, f);
	return true;
}

/* ---- values of the launch ---- */

/* RAX = a field of the warp's launch */
static void launch_field(struct obn_unit *u, size_t field)
{
	struct x_buf *x = &u->x;

	x_load(x, true, RAX, OBN_WARP(cta));
	x_load(x, true, RAX, (struct x_mem){ RAX, (int32_t)offsetof(struct obd_cta, launch) });
	x_load(x, true, RAX, (struct x_mem){ RAX, (int32_t)field });
}

static void special_register(struct obn_unit *u, uint32_t which, int d)
{
	struct x_buf *x = &u->x;

	if (which <= OBD_SREG_TID_Z) {
		x_load(x, false, d,
			(struct x_mem){ RBP,
				(int32_t)(offsetof(struct obd_warp, tid) +
					which * sizeof(uint32_t) * OBD_LANES) });
	} else if (which <= OBD_SREG_NTID_Z) {
		launch_field(u, offsetof(struct obd_launch, grid));
		x_load(x, false, d,
			(struct x_mem){ RAX,
				(int32_t)(offsetof(struct obd_grid, block) +
					4 * (which - OBD_SREG_NTID_X)) });
	} else if (which <= OBD_SREG_CTAID_Z) {
		x_load(x, true, RAX, OBN_WARP(cta));
		x_load(x, false, d,
			(struct x_mem){ RAX,
				(int32_t)(offsetof(struct obd_cta, ctaid) +
					4 * (which - OBD_SREG_CTAID_X)) });
	} else if (which <= OBD_SREG_NCTAID_Z) {
		launch_field(u, offsetof(struct obd_launch, grid));
		x_load(x, false, d,
			(struct x_mem){ RAX,
				(int32_t)(offsetof(struct obd_grid, grid) +
					4 * (which - OBD_SREG_NCTAID_X)) });
	} else if (which == OBD_SREG_WARPID) {
		x_load(x, false, d, OBN_WARP(id));
	} else {
		x_mov_imm(x, d, which == OBD_SREG_ONE);
	}
}

static void parameter(struct obn_unit *u, const struct obd_insn *in, int d)
{
	struct x_buf *x = &u->x;
	struct x_mem m = { RAX, (int32_t)in->u.imm };

	launch_field(u, offsetof(struct obd_launch, params));
	if (in->op == OBD_OP_param_addr)
		x_lea(x, true, d, m);
	else if (in->op == OBD_OP_param64)
		x_load(x, true, d, m);
	else if (in->e < 4)
		x_load_small(x, in->e, d, m);
	else
		x_load(x, false, d, m);
}

bool obn_value(struct obn_unit *u, uint32_t i, int32_t form)
{
	const struct obd_insn *in = &u->f->code[i];
	struct x_buf *x = &u->x;
	int d;

	if (form == OBN_VARIES)
		return false;
	switch (in->op) {
	case OBD_OP_param32:
		if (in->e == 3)
			return false;
		/* fallthrough */
	case OBD_OP_param64:
	case OBD_OP_param_addr:
		d = obn_scalar_new(u);
		parameter(u, in, d);
		break;
	case OBD_OP_sreg32:
	case OBD_OP_sreg64:
		d = obn_scalar_new(u);
		special_register(u, in->e, d);
		break;
	case OBD_OP_thread_index:
		d = obn_scalar_new(u);
		x_load(x, true, RAX, OBN_WARP(cta));
		x_load(x, false, d,
			(struct x_mem){ RAX,
				(int32_t)(offsetof(struct obd_cta, first_thread) + 4u * in->e) });
		x_alu_mem(x, X_ADD, false, d,
			(struct x_mem){ RBP,
				(int32_t)(offsetof(struct obd_warp, tid) +
					in->e * sizeof(uint32_t) * OBD_LANES) });
		break;
	case OBD_OP_shared_addr: /* the kernel decides where the variable is */
		obn_handler(u, i);
		obn_step(u);
		d = obn_scalar_new(u);
		x_load(x, in->e, d, obn_slot_at(u, in->d, 0));
		break;
	case OBD_OP_cvta_shared:
		d = obn_scalar_new(u);
		x_mov(x, false, d, obn_scalar_get(u, in->a));
		x_alu_mem(x, X_ADD, true, d, OBN_WARP(shared_base));
		break;
	case OBD_OP_to_shared:
		d = obn_scalar_new(u);
		x_mov(x, true, d, obn_scalar_get(u, in->a));
		x_alu_mem(x, X_SUB, false, d, OBN_WARP(shared_base));
		break;
	default:
		return false;
	}
	obn_scalar_set(u, in->d, d, form);
	return true;
}

/* ---- handlers ---- */

static void flush_used(void *user, uint32_t slot, bool def, bool partial)
{
	if (!def || partial)
		obn_flush_slot(user, slot);
}

static void now_in_memory(void *user, uint32_t slot, bool def, bool partial)
{
	(void)partial;
	if (def)
		obn_in_memory(user, slot);
}

/* Four loads or stores of adjacent cells, which one handler does together. */
static bool is_four(const struct obn_unit *u, uint32_t i)
{
	const struct obd_insn *in = &u->f->code[i];

	if (i + 4 > u->block->last || cell_bytes(in->op) != 4)
		return false;
	for (uint32_t k = 1; k < 4; k++)
		if (in[k].op != in->op || in[k].a != in->a || in[k].u.imm != in->u.imm + 4 * k)
			return false;
	return true;
}

/* Can the handler of instruction i go on with it? Nothing of a carry chain leaves in between. */
static bool is_chain(const struct obn_unit *u, uint32_t i)
{
	const struct obn_op *o = obn_op_info(u->f->code[i].op);

	return u->isa->chains && o->chain && !o->scalar && !o->vector;
}

uint32_t obn_handler(struct obn_unit *u, uint32_t i)
{
	const struct obd_func *f = u->f;
	struct x_buf *x = &u->x;
	uint32_t n = 1, skip = 0, special = obn_op_info(f->code[i].op)->special;
	bool guarded = f->code[i].op == OBD_OP_guard;

	while (obn_op_info(f->code[i + n - 1].op)->special == OBN_PREFIX)
		n++;
	if ((special == OBN_LOAD || special == OBN_STORE) && is_four(u, i))
		n = 4;
	if (is_chain(u, i))
		while (i + n < u->block->last && is_chain(u, i + n))
			n++;
	for (uint32_t k = i; k < i + n; k++)
		obn_visit(f, k, flush_used, u);
	int pred = guarded ? obn_pred_get(u, f->code[i].a) : 0;

	obn_flush_for_call(u);
	if (guarded) { /* the register still has the value */
		if (f->code[i].e)
			x_alu_imm(x, X_CMP, false, pred, -1);
		else
			x_test(x, false, pred, pred);
		skip = x_jump(x, CC_E);
	}
	x_mov_imm(x, RDI, (uint64_t)(uintptr_t)(f->code + i));
	x_store(x, true, OBN_WARP(from), RDI);
	x_mov(x, true, RSI, RBX);
	x_mov_imm(x, RDX, OBD_FULL_MASK);
	x_mov(x, true, RCX, RBP);
	x_mov_imm(
		x, R8, special != OBN_PREFIX && n > 1 ? (uint64_t)(uintptr_t)(f->code + i + n) : 0);
	x_mov_imm(x, RAX, (uint64_t)(uintptr_t)u->isa->full[f->code[i].op]);
	x_call(x, RAX);
	for (uint32_t k = i; k < i + n; k++) {
		uint32_t shape = f->shapes[k], flags = OBD_SHAPE_FLAGS(shape);

		obn_visit(f, k, now_in_memory, u);
		if (flags & (OBD_DEF_G | OBD_CALL))
			obn_forget_preds(u, OBN_NONE);
		else if (flags & OBD_DEF_D && OBD_SHAPE_CLASS(shape, OBD_SHAPE_D) == OBD_CLASS_PRED)
			obn_forget_preds(u, f->code[k].d);
	}
	x_mov_imm(x, RCX, (uint64_t)(uintptr_t)(f->code + i + n));
	x_alu(x, X_CMP, true, RAX, RCX);
	obn_exit_returned(u, CC_NE, i + n);
	if (guarded)
		x_here(x, skip);
	return n;
}
