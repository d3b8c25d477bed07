/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Vector accesses (ld.v4, st.v4 of 32-bit elements) of a whole warp, each lane anywhere; included
 * by interp.c. They are lowered to four accesses in a row. The handler of the first one does all
 * four, with one access of 16 bytes per lane.
 */
#if defined(__SSE2__)

#define QUAD_BYTES 16u

/* Is `in` the first of four accesses to adjacent cells? `d` of a load must not be its address. */
static inline bool is_quad(const struct obd_insn *in, uintptr_t limit, u32 address_slots, bool load)
{
	if ((uintptr_t)(in + 3) >= limit)
		return false;
	for (u32 k = 1; k < 4; k++)
		if (in[k].op != in->op || in[k].a != in->a || in[k].c != in->c ||
			in[k].u.imm != in->u.imm + 4 * k ||
			(load && (u32)in[k - 1].d - in->a < address_slots))
			return false;
	return true;
}

static inline void load_quad(const struct obd_insn *in, char *regs, const u64 *ad)
{
	for (unsigned i = 0; i < OBD_LANES; i += 4) {
		__m128 x = _mm_load_ps((const float *)(uintptr_t)ad[i]),
		       y = _mm_load_ps((const float *)(uintptr_t)ad[i + 1]),
		       z = _mm_load_ps((const float *)(uintptr_t)ad[i + 2]),
		       t = _mm_load_ps((const float *)(uintptr_t)ad[i + 3]);

		_MM_TRANSPOSE4_PS(x, y, z, t);
		_mm_store_ps((float *)(void *)REG(in[0].d) + i, x);
		_mm_store_ps((float *)(void *)REG(in[1].d) + i, y);
		_mm_store_ps((float *)(void *)REG(in[2].d) + i, z);
		_mm_store_ps((float *)(void *)REG(in[3].d) + i, t);
	}
}

static inline void store_quad(const struct obd_insn *in, char *regs, const u64 *ad)
{
	for (unsigned i = 0; i < OBD_LANES; i += 4) {
		__m128 x = _mm_load_ps((const float *)(void *)REG(in[0].b) + i),
		       y = _mm_load_ps((const float *)(void *)REG(in[1].b) + i),
		       z = _mm_load_ps((const float *)(void *)REG(in[2].b) + i),
		       t = _mm_load_ps((const float *)(void *)REG(in[3].b) + i);

		_MM_TRANSPOSE4_PS(x, y, z, t);
		_mm_store_ps((float *)(uintptr_t)ad[i], x);
		_mm_store_ps((float *)(uintptr_t)ad[i + 1], y);
		_mm_store_ps((float *)(uintptr_t)ad[i + 2], z);
		_mm_store_ps((float *)(uintptr_t)ad[i + 3], t);
	}
}

/* In the handler of a 32-bit access, after w->addr has been computed. */
#define QUAD_u32(kind, slots, load, access)                                               \
	if (m == OBD_FULL_MASK && !w->memcheck && is_quad(in, limit, slots, load) &&      \
		!any_bad(ad, m, BASE_##kind, SIZE_##kind - QUAD_BYTES, QUAD_BYTES - 1)) { \
		access(in, regs, ad);                                                     \
		GO_ON(in + 4, WHOLE(m) ? full_table : mask_table);                        \
	}
#else
#define QUAD_u32(kind, slots, load, access)
#endif
#define QUAD_u8(kind, slots, load, access)
#define QUAD_u16(kind, slots, load, access)
#define QUAD_u64(kind, slots, load, access)
#define ADDRESS_SLOTS_g 2
#define ADDRESS_SLOTS_s 1
#define ADDRESS_SLOTS_i 1
#define ADDRESS_SLOTS_l 2
