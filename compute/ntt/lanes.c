/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "base/opt.h"
#include "compute/ntt/lanes.h"
#include "compute/ntt/reverse.h"

#if defined(__x86_64__)
void obk_ntt_tile_avx512(const struct obk_ntt_pass *pass, size_t item);
#endif

obk_ntt_tile_fn *obk_ntt_tile_choose(void)
{
#if defined(__x86_64__)
	if (ob_opt_on(OB_OPT_NTT) && __builtin_cpu_supports("avx512f") &&
		__builtin_cpu_supports("avx512dq"))
		return obk_ntt_tile_avx512;
#endif
	return NULL;
}

struct obk_fr obk_ntt_lanes_root(const struct obk_ntt_pass *p, size_t i)
{
	size_t mask = ((size_t)1 << p->log_roots) - 1;
	bool negative = p->inverse && i;
	struct obk_fr t;
	uint64_t turn;

	if (negative)
		i ^= ((size_t)1 << (63 - __builtin_clzll(i))) - 1;
	t = p->roots[i & mask];
	/* beyond the table: the product of the root of the high bits and that of the low bits */
	if (i & ~mask) {
		struct obk_fr high;

		obk_fr_root(&high, 32);
		turn = obk_ntt_reverse_bits((uint32_t)(i & ~mask), 31);
		obk_fr_pow(&high, &high, &turn, 1);
		obk_fr_mul(&t, &t, &high);
	}
	if (negative)
		obk_fr_neg(&t, &t);
	return t;
}
