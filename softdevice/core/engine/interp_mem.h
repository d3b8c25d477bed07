/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Handlers of strong accesses, atomics and addresses; included by interp.c after interp_load.h.
 */

/*
 * For volatile and ordered accesses and atomics. in->a is a shared address if `space` is
 * OBD_SP_SHARED, otherwise a flat one. in->b is the value that is written.
 */
static inline void flat_or_shared(const struct obd_insn *in, char *regs, u32 m, struct obd_warp *w,
	u32 size, u32 space, bool write, u32 al)
{
	u64 *ad = w->addr;

	w->mem_in = in;
	w->mem_mask = m;
	if (space == OBD_SP_SHARED) {
		ADDRESS_s(u8) if (any_bad(ad, m, w->shared_base, (u64)w->shared_bytes - size, al))
			obd_fault_access(w, in, m, size, write, al);
	} else {
		ADDRESS_g(u8) if (any_bad(ad, m, w->window_base, w->window_size - size, al))
			obd_fault_access(w, in, m, size, write, al);
	}
	if (UNLIKELY(w->memcheck))
		obd_fault_memcheck(w, in, m, size, write);
}

#define SPIN_COST 50 /* counted as this many backward branches */

/* c: log2 of the size; +8: shared memory */
HANDLER(H_ld_strong)
{
	flat_or_shared(in, regs, m, w, 1u << (in->c & 7), in->c & 8 ? OBD_SP_SHARED : OBD_SP_FLAT,
		false, in->e);
	w->budget -= SPIN_COST; /* a loop of such loads waits for another thread */
	w->spinning++;
	OUTSIDE();
	obd_load_strong(w, in, regs, m);
	NEXT_H;
}

HANDLER(H_st_strong)
{
	flat_or_shared(in, regs, m, w, 1u << (in->c & 7), in->c & 8 ? OBD_SP_SHARED : OBD_SP_FLAT,
		true, in->e);
	OUTSIDE();
	obd_store_strong(w, in, regs, m);
	NEXT_H;
}

HANDLER(H_atom)
{
	u32 size = obd_atom_bytes((in->e >> 4) & 31);

	flat_or_shared(in, regs, m, w, size, (in->e >> 9) & 3, true, size - 1);
	if ((in->e & 15) >= OBD_ATOM_EXCH) {
		w->budget -= SPIN_COST;
		w->spinning++;
	}
	OUTSIDE();
	obd_atomic(w, in, regs, m);
	NEXT_H;
}

HANDLER(H_fence)
{
	atomic_thread_fence(memory_order_seq_cst);
	NEXT_H;
}

/* ---- the same value in every lane ---- */

static inline void spread32(char *reg, u32 v, u32 m, u32 live)
{
	u32 *d = (u32 *)(void *)reg;

	if (m == live)
		LANES d[i] = v;
	else
		LOOP LANES d[i] = (m & lane_bit[i]) ? v : d[i];
}

static inline void spread64(char *reg, u64 v, u32 m, u32 live)
{
	u64 *d = (u64 *)(void *)reg;

	if (m == live)
		LANES d[i] = v;
	else
		LOOP LANES d[i] = (m & lane_bit[i]) ? v : d[i];
}

/* imm: offset, which the lowering has checked against the parameters; e: bytes */
HANDLER(H_param32)
{
	u32 v = 0;

	memcpy(&v, w->cta->launch->params + in->u.imm, in->e);
	spread32(REG(in->d), v, m, w->live);
	NEXT_H;
}

HANDLER(H_param64)
{
	u64 v;

	memcpy(&v, w->cta->launch->params + in->u.imm, 8);
	spread64(REG(in->d), v, m, w->live);
	NEXT_H;
}

HANDLER(H_param_addr)
{
	spread64(REG(in->d), (u64)(uintptr_t)w->cta->launch->params + in->u.imm, m, w->live);
	NEXT_H;
}

/*
 * The offset of a shared variable in the kernel's shared memory. Returns ~0, which is out of
 * bounds, if the kernel does not reach the variable by its call graph. That happens only in a
 * function that is called through a forged address.
 */
static inline u32 shared_offset(const struct obd_entry *e, u64 var)
{
	u32 low = 0, high = e->n_shared;

	while (high - low > 1) {
		u32 middle = low + (high - low) / 2;

		if (e->shared[middle].var <= var)
			low = middle;
		else
			high = middle;
	}
	return low < e->n_shared && e->shared[low].var == var ? e->shared[low].offset : ~0u;
}

HANDLER(H_shared_addr)
{
	u32 off = shared_offset(w->cta->launch->entry, in->u.imm);

	if (in->e)
		spread64(REG(in->d), off, m, w->live);
	else
		spread32(REG(in->d), off, m, w->live);
	NEXT_H;
}

HANDLER(H_local_addr)
{
	const u32 *fp = w->cur->frame->fp;
	u64 *d = (u64 *)(void *)REG(in->d);

	LOOP LANES d[i] = (m & lane_bit[i]) ? (u64)fp[i] + in->u.imm : d[i];
	NEXT_H;
}

/* e: enum obd_sreg */
#define SREG(bits)                                                                               \
	HANDLER(H_sreg##bits)                                                                    \
	{                                                                                        \
		u##bits *d = (u##bits *)(void *)REG(in->d);                                      \
		_Alignas(64) u32 lanes[OBD_LANES];                                               \
		const u32 *v = lanes;                                                            \
		u32 which = in->e;                                                               \
                                                                                                 \
		if (which <= OBD_SREG_TID_Z) {                                                   \
			v = w->tid[which];                                                       \
		} else if (which == OBD_SREG_LANEID ||                                           \
			(which >= OBD_SREG_LM_EQ && which <= OBD_SREG_LM_GT)) {                  \
			OUTSIDE();                                                               \
			obd_sreg_lanes(which, lanes);                                            \
		} else if (which >= OBD_SREG_CTAID_X && which <= OBD_SREG_CTAID_Z) {             \
			spread##bits(                                                            \
				(char *)d, w->cta->ctaid[which - OBD_SREG_CTAID_X], m, w->live); \
			NEXT_H;                                                                  \
		} else {                                                                         \
			OUTSIDE();                                                               \
			u64 u = obd_sreg_uniform(w, which);                                      \
			spread##bits((char *)d, (u##bits)u, m, w->live);                         \
			NEXT_H;                                                                  \
		}                                                                                \
		LOOP LANES d[i] = (m & lane_bit[i]) ? v[i] : d[i];                               \
		NEXT_H;                                                                          \
	}
SREG(32)
SREG(64)

HANDLER(H_thread_index)
{
	u32 *d = (u32 *)(void *)REG(in->d), first = w->cta->first_thread[in->e];
	const u32 *v = w->tid[in->e];

	if (m == OBD_FULL_MASK)
		LOOP LANES d[i] = first + v[i];
	else
		LOOP LANES d[i] = (m & lane_bit[i]) ? first + v[i] : d[i];
	NEXT_H;
}

#define CONVERT_ADDRESS(name, value)                                   \
	HANDLER(H_##name)                                              \
	{                                                              \
		u64 *d = (u64 *)(void *)REG(in->d);                    \
		const u64 *pa = (const u64 *)(const void *)REG(in->a); \
		const u64 *lb UNUSED = w->lbase;                       \
		u64 sb UNUSED = w->shared_base;                        \
		LOOP LANES                                             \
		{                                                      \
			u64 a = pa[i];                                 \
			d[i] = (m & lane_bit[i]) ? (value) : d[i];     \
		}                                                      \
		NEXT_H;                                                \
	}
CONVERT_ADDRESS(cvta_shared, sb + (u32)a)
CONVERT_ADDRESS(cvta_local, lb[i] + a)
CONVERT_ADDRESS(to_shared, (u64)(u32)(a - sb))
CONVERT_ADDRESS(to_local, a - lb[i])

HANDLER(H_cluster_addr)
{
	OUTSIDE();
	obd_cluster_address(w, in, regs, m);
	NEXT_H;
}

/* e: 0 global, 1 shared, 2 local, 3 const, 4 param, 5 shared of the cluster */
HANDLER(H_isspacep)
{
	const u64 *pa = (const u64 *)(const void *)REG(in->a);
	u32 p = 0;
	const struct obd_launch *l = w->cta->launch;

	LANES
	{
		u64 a = pa[i];
		bool shared = a - w->shared_base < w->shared_bytes;
		bool local = a - (u64)(uintptr_t)w->cta->local < w->cta->local_size;
		bool param = a - (u64)(uintptr_t)l->params < l->entry->pub.param_bytes;
		bool cnst = false;

		for (u32 g = 0; g < l->program->n_globals; g++)
			if (l->program->globals[g].is_const &&
				a - (u64)(uintptr_t)l->program->globals[g].addr <
					l->program->globals[g].size)
				cnst = true;
		bool peer = obd_cluster_owns(w, a);
		bool global =
			!peer && !local && !param && !cnst && a - w->window_base < w->window_size;
		bool r = in->e == 0  ? global
			: in->e == 1 ? shared
			: in->e == 2 ? local
			: in->e == 3 ? cnst
			: in->e == 4 ? param
				     : peer;

		p |= r ? lane_bit[i] : 0;
	}
	PRED(in->d) = (PRED(in->d) & ~m) | (p & m);
	NEXT_H;
}

HANDLER(H_stack_save)
{
	u64 *d = (u64 *)(void *)REG(in->d);

	LANES if (m & lane_bit[i]) d[i] = w->sp[i];
	NEXT_H;
}

HANDLER(H_stack_restore)
{
	const u64 *pa = (const u64 *)(const void *)REG(in->a);

	LANES if (m & lane_bit[i])
	{
		if (pa[i] > w->sp[i])
			obd_fault_raise(w, in, lane_bit[i], CUDA_ERROR_HARDWARE_STACK_ERROR,
				"stackrestore: the address is above the stack pointer");
		w->sp[i] = (u32)pa[i];
	}
	NEXT_H;
}

/* imm: alignment */
HANDLER(H_alloca)
{
	const u64 *pa = (const u64 *)(const void *)REG(in->a);
	u64 *d = (u64 *)(void *)REG(in->d);
	u64 al = in->u.imm;

	LANES if (m & lane_bit[i])
	{
		u64 at = (w->sp[i] + al - 1) & ~(al - 1), size = pa[i];

		if (size > w->stack_bytes || at + size > w->stack_bytes)
			obd_fault_raise(w, in, lane_bit[i], CUDA_ERROR_HARDWARE_STACK_ERROR,
				"alloca failed: the local memory of the thread is used up");
		w->sp[i] = (u32)((at + size + 15) & ~15ull);
		if (w->sp[i] > w->stack_bytes)
			w->sp[i] = w->stack_bytes;
		d[i] = at;
	}
	NEXT_H;
}

/*
 * d: slot of the destination address (32-bit shared). a: slot of the source address (flat). b:
 * number of bytes to read in each lane. imm: bytes.
 */
HANDLER(H_copy_async)
{
	struct obd_insn dst = *in;
	u32 n = in->u.imm;
	u64 from[OBD_LANES];
	const u32 *take = (const u32 *)(const void *)REG(in->b);

	dst.u.imm = 0;
	w->mem_in = in;
	u32 reading = 0;
	LANES if ((m & lane_bit[i]) && take[i]) reading |= lane_bit[i];
	{
		u64 *ad = w->addr;
		const u64 *pa = (const u64 *)(const void *)REG(in->a);
		LANES from[i] = ad[i] = pa[i];
		if (reading && any_bad(ad, reading, w->window_base, w->window_size - n, n - 1))
			obd_fault_access(w, in, reading, n, false, n - 1);
		if (reading && UNLIKELY(w->memcheck))
			obd_fault_memcheck(w, in, reading, n, false);
	}
	dst.a = in->d;
	flat_or_shared(&dst, regs, m, w, n, OBD_SP_SHARED, true, n - 1);
	w->mem_in = in;
	LANES if (m & lane_bit[i])
	{
		u32 t = take[i] < n ? take[i] : n;

		memcpy((void *)(uintptr_t)w->addr[i], (const void *)(uintptr_t)from[i], t);
		memset((char *)(uintptr_t)w->addr[i] + t, 0, n - t);
	}
	NEXT_H;
}
