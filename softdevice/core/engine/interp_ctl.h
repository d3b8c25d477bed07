/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Handlers of control flow and of operations among lanes; included by interp.c. The less common
 * cases are in warp.c.
 */

HANDLER(H_nop)
{
	NEXT_H;
}

/*
 * A backward branch reduces the warp's budget, so that a spin loop does not keep others from
 * running.
 */
#define GO(target)                                                  \
	do {                                                        \
		const struct obd_insn *to_ = (target);              \
		COUNT();                                            \
		if (to_ <= in && UNLIKELY(--w->budget < 0)) {       \
			w->cur->pc = to_;                           \
			w->yield = true;                            \
			return OBD_LEAVE;                           \
		}                                                   \
		w->from = to_;                                      \
		GO_ON(to_, m == w->live ? full_table : mask_table); \
	} while (0)

/*
 * Calls a function of warp.c. It returns OBD_LEAVE after it has stored the path's pc; otherwise
 * execution continues after `in`.
 */
#define DECIDED(call)                                \
	do {                                         \
		OUTSIDE();                           \
		const struct obd_insn *to_ = (call); \
		if (to_ == OBD_LEAVE) {              \
			COUNT();                     \
			return to_;                  \
		}                                    \
		NEXT_H;                              \
	} while (0)

HANDLER(H_bra)
{
	GO(in + (i32)in->u.imm);
}

HANDLER(H_bra_p)
{
	u32 t = (PRED(in->a) ^ (in->e ? ~0u : 0)) & m;

	if (!t)
		NEXT_H;
	if (t == m)
		GO(in + (i32)in->u.imm);
	DECIDED(obd_warp_branch(w, in + (i32)in->u.imm, t, in + 1));
}

HANDLER(H_brx)
{
	DECIDED(obd_warp_branch_table(w, in, (const u32 *)(const void *)REG(in->a), m));
}

HANDLER(H_call)
{
	DECIDED(obd_warp_call(
		w, in, regs, m, w->cta->launch->program->funcs[((u32)in->d << 16) | in->a]));
}

HANDLER(H_call_ind)
{
	DECIDED(obd_warp_call_indirect(w, in, regs, m));
}

/*
 * The last lanes of a warp leave the kernel, and nobody waits for them. Their registers go to the
 * next warp that starts.
 */
static inline bool leave_kernel(struct obd_warp *w, u32 m)
{
	struct obd_frame *f = w->cur->frame;
	struct obd_cta *c = w->cta;

	if (f->parent || w->n_paths != 1 || m != w->cur->mask || f->refs != 1 || c->arrived ||
		c->cluster || w->worker->first_frame)
		return false;
	w->live &= ~m;
	c->n_live -= (u32)__builtin_popcount(m);
	w->n_paths = 0;
	w->worker->first_frame = f;
	return true;
}

HANDLER(H_ret)
{
	if (LIKELY(leave_kernel(w, m))) {
		COUNT();
		return OBD_LEAVE;
	}
	DECIDED(obd_warp_return(w, in, m));
}

HANDLER(H_exit)
{
	if (LIKELY(leave_kernel(w, m))) {
		COUNT();
		return OBD_LEAVE;
	}
	DECIDED(obd_warp_exit(w, in, m));
}

HANDLER(H_trap)
{
	obd_fault_raise(
		w, in, m, CUDA_ERROR_LAUNCH_FAILED, in->e ? "brkpt executed" : "trap executed");
}

HANDLER(H_nanosleep)
{
	/* Ends the turn instead of sleeping, which would delay the other blocks of this worker. */
	COUNT();
	w->cur->pc = in + 1;
	w->yield = true;
	w->spinning++;
	return OBD_LEAVE;
}

HANDLER(H_bar)
{
	DECIDED(obd_barrier(w, in, regs, m));
}

HANDLER(H_activemask)
{
	spread32(REG(in->d), m, m, w->live);
	NEXT_H;
}

HANDLER(H_gather)
{
	if (LIKELY(m == OBD_FULL_MASK))
		GO_ON(in + 1, WHOLE(m) ? full_table : mask_table);
	DECIDED(obd_warp_sync(w, in, regs, m));
}

HANDLER(H_mma)
{
	obd_mma(w, in, regs, m);
	NEXT_H;
}

HANDLER(H_wgmma)
{
	obd_wgmma(w, in, regs, m);
	NEXT_H;
}

/*
 * a: address of a row. e: OBD_LDM_*; each register has eight rows. Only lanes that supply a
 * row address are checked.
 */
HANDLER(H_ldmatrix)
{
	u32 n = in->e & OBD_LDM_COUNT, rows = n == 4 ? ~0u : (1u << (8 * n)) - 1;
	struct obd_insn access = *in;

	access.u.imm = (u32)(i32)(int16_t)in->d;
	flat_or_shared(&access, regs, m & rows, w, 16, in->c ? OBD_SP_SHARED : OBD_SP_FLAT,
		in->e & OBD_LDM_STORE, 15);
	w->mem_in = in;
	OUTSIDE();
	obd_ldmatrix(w, in, regs, m);
	NEXT_H;
}

HANDLER(H_movmatrix)
{
	OUTSIDE();
	obd_movmatrix(w, in, regs, m);
	NEXT_H;
}

HANDLER(H_wmma_move)
{
	u32 bytes, n, rows;
	bool shared = in->e & 128;
	u64 align = 0;

	OUTSIDE();
	n = obd_wmma_rows(w, in, regs, m, &bytes);
	rows = n == OBD_LANES ? ~0u : (1u << n) - 1;
	w->mem_in = in;
	w->mem_mask = rows;
	align = (u64)obd_element_bits((in->e >> 2) & 15) / 8;
	align = align ? align - 1 : 0;
	if (UNLIKELY(any_bad(w->addr, rows, shared ? w->shared_base : w->window_base,
		    (shared ? (u64)w->shared_bytes : w->window_size) - bytes, align)))
		obd_fault_access(w, in, rows, bytes, in->e & 256, (u32)align);
	if (UNLIKELY(w->memcheck))
		obd_fault_memcheck(w, in, rows, bytes, in->e & 256);
	OUTSIDE();
	obd_wmma_move(w, in, regs);
	NEXT_H;
}

HANDLER(H_copy_bulk)
{
	OUTSIDE();
	obd_copy_bulk(w, in, regs, m);
	NEXT_H;
}

HANDLER(H_tensor)
{
	OUTSIDE();
	obd_tensor(w, in, regs, m);
	NEXT_H;
}

HANDLER(H_texture)
{
	OUTSIDE();
	obd_texture_run(w, in, regs, m);
	NEXT_H;
}

HANDLER(H_mbarrier)
{
	if ((in->e & 15) != OBD_MBAR_PENDING)
		flat_or_shared(
			in, regs, m, w, 8, in->e & 16 ? OBD_SP_SHARED : OBD_SP_FLAT, true, 7);
	if ((in->e & 15) == OBD_MBAR_TEST || (in->e & 15) == OBD_MBAR_TEST_PARITY) {
		w->budget -= SPIN_COST;
		w->spinning++;
	}
	OUTSIDE();
	obd_mbarrier(w, in, regs, m);
	NEXT_H;
}
