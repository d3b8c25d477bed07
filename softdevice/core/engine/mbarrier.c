/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/engine/mbarrier.h"

#include "softdevice/core/ops.h"

static uint32_t *reg32(char *regs, uint32_t slot)
{
	return (uint32_t *)(void *)(regs + (size_t)slot * OBD_SLOT_BYTES);
}

static uint64_t *reg64(char *regs, uint32_t slot)
{
	return (uint64_t *)(void *)(regs + (size_t)slot * OBD_SLOT_BYTES);
}

/*
 * The 64 bits of an mbarrier, which are opaque to programs:
 *   0-19 pending arrivals, 20-39 arrivals per phase, 40-63 number of the phase
 * The token that an arrival returns is the value before it.
 */
#define COUNT_MASK 0xfffffu

static uint64_t arrive(uint64_t v, uint32_t count)
{
	uint64_t pending = v & COUNT_MASK, expected = (v >> 20) & COUNT_MASK, phase = v >> 40;

	pending = pending > count ? pending - count : 0;
	if (!pending) {
		pending = expected;
		phase++;
	}
	return pending | expected << 20 | phase << 40;
}

void obd_mbarrier(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m)
{
	uint32_t op = in->e & 15, done = 0;

	for (uint32_t rest = m; rest; rest &= rest - 1) {
		uint32_t i = (uint32_t)__builtin_ctz(rest),
			 count = in->b != OBD_NO_SLOT ? reg32(regs, in->b)[i] & COUNT_MASK : 0;
		uint64_t *bar = (uint64_t *)(uintptr_t)w->addr[i];
		uint64_t v = op == OBD_MBAR_PENDING ? 0 : *bar;

		switch (op) {
		case OBD_MBAR_INIT:
			*bar = (uint64_t)count | (uint64_t)count << 20;
			break;
		case OBD_MBAR_INVAL:
			*bar = 0;
			break;
		case OBD_MBAR_PENDING:
			reg32(regs, in->d)[i] = (uint32_t)(reg64(regs, in->c)[i] & COUNT_MASK);
			break;
		case OBD_MBAR_TEST:
			done |= v >> 40 != reg64(regs, in->c)[i] >> 40 ? 1u << i : 0;
			break;
		case OBD_MBAR_TEST_PARITY:
			done |= ((v >> 40) & 1) != (reg32(regs, in->c)[i] & 1) ? 1u << i : 0;
			break;
		default:
			if (in->d != OBD_NO_SLOT)
				reg64(regs, in->d)[i] = v;
			if (op == OBD_MBAR_ARRIVE_DROP) {
				uint64_t expected = (v >> 20) & COUNT_MASK;

				expected = expected > count ? expected - count : 0;
				v = (v & ~((uint64_t)COUNT_MASK << 20)) | expected << 20;
			}
			*bar = arrive(v, count);
			break;
		}
	}
	if (op == OBD_MBAR_TEST || op == OBD_MBAR_TEST_PARITY) {
		uint32_t *p = (uint32_t *)(void *)regs + in->d;

		*p = (*p & ~m) | done;
	}
}
