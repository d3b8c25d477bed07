/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The handler of operations among the lanes of a warp; included by interp.c. It computes the usual
 * case with vectors: each lane is in its own member mask, and no member is missing on this path.
 * Lanes with the same member mask are a group. obd_warp_sync does the rest, with the same results.
 */

/* The lanes whose element is x. */
static inline u32 lanes_with32(const u32 *v, u32 x)
{
#if defined(__AVX512F__)
	__m512i all = _mm512_set1_epi32((int)x);

	return _mm512_cmpeq_epi32_mask(_mm512_load_si512(v), all) |
		((u32)_mm512_cmpeq_epi32_mask(_mm512_load_si512(v + 16), all) << 16);
#else
	_Alignas(64) u32 t[OBD_LANES];

	LOOP LANES t[i] = v[i] == x ? ~0u : 0;
	return lanes_to_mask(t);
#endif
}

static inline u32 lanes_with64(const u64 *v, u64 x)
{
	_Alignas(64) u32 t[OBD_LANES];

	LOOP LANES t[i] = v[i] == x ? ~0u : 0;
	return lanes_to_mask(t);
}

static inline void put32(u32 *d, const u32 *v, u32 m)
{
	LOOP LANES d[i] = (m & lane_bit[i]) ? v[i] : d[i];
}

/* out[i] = a[from[i]]; from[i] < 32 */
static inline void permute32(u32 *out, const u32 *a, const u32 *from)
{
#if defined(__AVX512F__)
	__m512i low = _mm512_load_si512(a), high = _mm512_load_si512(a + 16);

	for (unsigned i = 0; i < OBD_LANES; i += 16)
		_mm512_store_si512(
			out + i, _mm512_permutex2var_epi32(low, _mm512_load_si512(from + i), high));
#elif defined(__AVX2__)
	const __m256i *v = (const __m256i *)(const void *)a;
	__m256i v0 = v[0], v1 = v[1], v2 = v[2], v3 = v[3];

	for (unsigned i = 0; i < OBD_LANES; i += 8) {
		__m256i k = *(const __m256i *)(const void *)(from + i);
		/* a blend looks at the sign bit only: here bits 3 and 4 of the index */
		__m256 bit3 = (__m256)_mm256_slli_epi32(k, 28),
		       bit4 = (__m256)_mm256_slli_epi32(k, 27);
		__m256 low = _mm256_blendv_ps((__m256)_mm256_permutevar8x32_epi32(v0, k),
			(__m256)_mm256_permutevar8x32_epi32(v1, k), bit3);
		__m256 high = _mm256_blendv_ps((__m256)_mm256_permutevar8x32_epi32(v2, k),
			(__m256)_mm256_permutevar8x32_epi32(v3, k), bit3);

		_mm256_store_ps((float *)(void *)(out + i), _mm256_blendv_ps(low, high, bit4));
	}
#else
	LANES out[i] = a[from[i]];
#endif
}

/* Each lane's source lane and whether it is in range, as the PTX ISA describes shfl. */
#define SOURCES(source, test)                                                           \
	LOOP LANES                                                                      \
	{                                                                               \
		u32 lane = i, x = b[i] & 31, clamp = c[i] & 31, seg = (c[i] >> 8) & 31; \
		u32 most = (lane & seg) | (clamp & ~seg), least UNUSED = lane & seg;    \
		u32 f = (source);                                                       \
		bool good = (test);                                                     \
		from[i] = good ? f & 31 : lane;                                         \
		ok[i] = good ? ~0u : 0;                                                 \
	}                                                                               \
	break;
static inline void shuffle_fast(const struct obd_insn *in, char *regs, u32 m)
{
	const u32 *b = (const u32 *)(const void *)REG(in->b),
		  *c = (const u32 *)(const void *)REG(in->c);
	_Alignas(64) u32 from[OBD_LANES], ok[OBD_LANES], out[OBD_LANES];

	switch (in->e) {
	case OBD_SYNC_SHFL_UP:
		SOURCES(lane - x, (i32)f >= (i32)most)
	case OBD_SYNC_SHFL_DOWN:
		SOURCES(lane + x, f <= most)
	case OBD_SYNC_SHFL_BFLY:
		SOURCES(lane ^ x, f <= most)
	default:
		SOURCES(least | (x & ~seg & 31), f <= most)
	}
	permute32(out, (const u32 *)(const void *)REG(in->a), from);
	if (in->d != OBD_NO_SLOT)
		put32((u32 *)(void *)REG(in->d), out, m);
	if (in->u.x.g != OBD_NO_SLOT)
		PRED(in->u.x.g) = (PRED(in->u.x.g) & ~m) | (lanes_to_mask(ok) & m);
}

/*
 * out[i]: the lanes of `group` with the value of lane i. Returns true if they all have one value.
 */
#define MATCHES(width)                                                               \
	static inline bool match##width(u32 *out, const u##width *v, u32 group)      \
	{                                                                            \
		u32 same = 0;                                                        \
                                                                                     \
		for (u32 rest = group; rest; rest &= ~same) {                        \
			same = lanes_with##width(v, v[__builtin_ctz(rest)]) & group; \
			LOOP LANES out[i] = (same & lane_bit[i]) ? same : out[i];    \
		}                                                                    \
		return same == group;                                                \
	}
MATCHES(32)
MATCHES(64)

#define FOLD(start, type, next)                                                  \
	{                                                                        \
		type r = (type)(start);                                          \
		LOOP LANES                                                       \
		{                                                                \
			type v = (m & lane_bit[i]) ? (type)a[i] : (type)(start); \
			r = (next);                                              \
		}                                                                \
		*ret = (u32)r;                                                   \
		return true;                                                     \
	}
/* A reduction whose result does not depend on the order. False: another kind. */
static inline bool fold(u32 kind, const u32 *a, u32 m, u32 *ret)
{
	switch (kind) {
	case OBD_SYNC_REDUX_ADD:
		FOLD(0, u32, r + v)
	case OBD_SYNC_REDUX_MIN_U:
		FOLD(UINT32_MAX, u32, v < r ? v : r)
	case OBD_SYNC_REDUX_MAX_U:
		FOLD(0, u32, v > r ? v : r)
	case OBD_SYNC_REDUX_MIN_S:
		FOLD(INT32_MAX, i32, v < r ? v : r)
	case OBD_SYNC_REDUX_MAX_S:
		FOLD(INT32_MIN, i32, v > r ? v : r)
	case OBD_SYNC_REDUX_AND:
		FOLD(UINT32_MAX, u32, r & v)
	case OBD_SYNC_REDUX_OR:
		FOLD(0, u32, r | v)
	case OBD_SYNC_REDUX_XOR:
		FOLD(0, u32, r ^ v)
	default:
		return false;
	}
}

/* Results of one group: values in `out`, predicates as the return value. */
static inline u32 group_result(const struct obd_insn *in, char *regs, u32 group, u32 *out)
{
	const void *a = REG(in->a);
	u32 v = 0, p;

	switch (in->e) {
	case OBD_SYNC_MATCH_ANY32:
		return match32(out, a, group) ? group : 0;
	case OBD_SYNC_MATCH_ANY64:
		return match64(out, a, group) ? group : 0;
	case OBD_SYNC_MATCH_ALL32:
		p = lanes_with32(a, ((const u32 *)a)[__builtin_ctz(group)]) & group;
		v = p = p == group ? group : 0;
		break;
	case OBD_SYNC_MATCH_ALL64:
		p = lanes_with64(a, ((const u64 *)a)[__builtin_ctz(group)]) & group;
		v = p = p == group ? group : 0;
		break;
	case OBD_SYNC_VOTE_ALL:
		return (PRED(in->a) & group) == group ? group : 0;
	case OBD_SYNC_VOTE_ANY:
		return PRED(in->a) & group ? group : 0;
	case OBD_SYNC_VOTE_UNI:
		p = PRED(in->a) & group;
		return p == group || p == 0 ? group : 0;
	case OBD_SYNC_VOTE_BALLOT:
		v = PRED(in->a) & group;
		p = 0;
		break;
	case OBD_SYNC_ELECT:
		v = (u32)__builtin_ctz(group);
		p = 1u << v;
		break;
	default:
		fold(in->e, a, group, &v);
		p = 0;
		break;
	}
	LOOP LANES out[i] = (group & lane_bit[i]) ? v : out[i];
	return p;
}

SLOW_HANDLER(S_sync)
{
	DECIDED(obd_warp_sync(w, in, regs, m));
}

/* The operations that need one set of lanes for each member mask. */
static inline u32 next_group(const u32 *members, u32 rest)
{
	return members ? lanes_with32(members, members[__builtin_ctz(rest)]) & rest : rest;
}

HANDLER(H_sync)
{
	const u32 *members =
		in->u.x.f == OBD_NO_SLOT ? NULL : (const u32 *)(const void *)REG(in->u.x.f);
	_Alignas(64) u32 out[OBD_LANES];
	u32 kind = in->e, p = 0, group;

	for (u32 rest = m; rest && members; rest &= ~group) {
		u32 want = members[__builtin_ctz(rest)];

		group = next_group(members, rest);
		if (UNLIKELY((want & w->live & ~group) | (group & ~want)))
			TAIL return S_sync(in, regs, m, w, limit);
	}
	if (kind == OBD_SYNC_WARP)
		NEXT_H;
	if (kind >= OBD_SYNC_SHFL_UP && kind <= OBD_SYNC_SHFL_IDX) {
		shuffle_fast(in, regs, m);
		NEXT_H;
	}
	if (UNLIKELY(kind == OBD_SYNC_REDUX_FMIN || kind == OBD_SYNC_REDUX_FMAX))
		TAIL return S_sync(in, regs, m, w, limit);
	for (u32 rest = m; rest; rest &= ~group) {
		group = next_group(members, rest);
		p |= group_result(in, regs, group, out);
	}
	if (in->d != OBD_NO_SLOT)
		put32((u32 *)(void *)REG(in->d), out, m);
	if (in->u.x.g != OBD_NO_SLOT)
		PRED(in->u.x.g) = (PRED(in->u.x.g) & ~m) | (p & m);
	NEXT_H;
}
