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
 *   0-19 pending arrivals, 20-39 arrivals per phase, 40-60 pending bytes of transactions (signed),
 *   61-63 number of the phase
 * A phase ends when no arrival and no byte is pending. The token that an arrival returns is the
 * value before it.
 */
#define COUNT_MASK     0xfffffu
#define TX_MASK        0x1fffffu
#define EXPECTED_SHIFT 20
#define TX_SHIFT       40
#define PHASE_SHIFT    61

struct state {
	uint32_t pending, expected, tx, phase;
};

static struct state unpack(uint64_t v)
{
	return (struct state){ (uint32_t)v & COUNT_MASK,
		(uint32_t)(v >> EXPECTED_SHIFT) & COUNT_MASK, (uint32_t)(v >> TX_SHIFT) & TX_MASK,
		(uint32_t)(v >> PHASE_SHIFT) };
}

/* Ends the phase if nothing is pending. */
static uint64_t pack(struct state s)
{
	s.tx &= TX_MASK;
	if (!s.pending && !s.tx) {
		s.pending = s.expected;
		s.phase = (s.phase + 1) & 7;
	}
	return s.pending | (uint64_t)s.expected << EXPECTED_SHIFT | (uint64_t)s.tx << TX_SHIFT |
		(uint64_t)s.phase << PHASE_SHIFT;
}

static uint32_t less(uint32_t from, uint32_t count)
{
	return from > count ? from - count : 0;
}

void obd_mbarrier_complete(uint64_t *bar, uint32_t bytes)
{
	struct state s = unpack(*bar);

	s.tx -= bytes;
	*bar = pack(s);
}

/* Arrivals and changes of the transaction count. n: arrivals, or bytes with a TX operation. */
static uint64_t change(uint64_t v, uint32_t op, uint32_t n)
{
	struct state s = unpack(v);
	bool tx = op >= OBD_MBAR_EXPECT_TX;
	uint32_t arrivals = op == OBD_MBAR_EXPECT_TX || op == OBD_MBAR_COMPLETE_TX ? 0 : tx ? 1 : n;

	if (tx)
		s.tx += op == OBD_MBAR_COMPLETE_TX ? 0 - n : n;
	if (op == OBD_MBAR_ARRIVE_DROP || op == OBD_MBAR_ARRIVE_DROP_TX)
		s.expected = less(s.expected, arrivals);
	s.pending = less(s.pending, arrivals);
	return pack(s);
}

/* The sources are read before any result is written: their registers may overlap. */
void obd_mbarrier(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m)
{
	uint32_t op = in->e & 15, done = 0, count[OBD_LANES] = { 0 };
	uint64_t token[OBD_LANES] = { 0 }, result[OBD_LANES] = { 0 };

	for (uint32_t i = 0; i < OBD_LANES; i++) {
		count[i] = in->b != OBD_NO_SLOT ? reg32(regs, in->b)[i] : 0;
		if (in->c != OBD_NO_SLOT)
			token[i] = op == OBD_MBAR_TEST_PARITY ? reg32(regs, in->c)[i]
							      : reg64(regs, in->c)[i];
	}
	for (uint32_t rest = m; rest; rest &= rest - 1) {
		uint32_t i = (uint32_t)__builtin_ctz(rest);
		uint64_t *bar = (uint64_t *)(uintptr_t)w->addr[i];
		uint64_t v = op == OBD_MBAR_PENDING ? 0 : *bar;

		result[i] = v;
		switch (op) {
		case OBD_MBAR_INIT:
			count[i] &= COUNT_MASK;
			*bar = count[i] | (uint64_t)count[i] << EXPECTED_SHIFT;
			break;
		case OBD_MBAR_INVAL:
			*bar = 0;
			break;
		case OBD_MBAR_PENDING:
			result[i] = token[i] & COUNT_MASK;
			break;
		case OBD_MBAR_TEST:
			done |= v >> PHASE_SHIFT != token[i] >> PHASE_SHIFT ? 1u << i : 0;
			break;
		case OBD_MBAR_TEST_PARITY:
			done |= ((v >> PHASE_SHIFT) & 1) != (token[i] & 1) ? 1u << i : 0;
			break;
		default:
			*bar = change(v, op, count[i]);
			break;
		}
	}
	if (op == OBD_MBAR_TEST || op == OBD_MBAR_TEST_PARITY) {
		uint32_t *p = (uint32_t *)(void *)regs + in->d;

		*p = (*p & ~m) | done;
		return;
	}
	for (uint32_t rest = in->d != OBD_NO_SLOT ? m : 0; rest; rest &= rest - 1) {
		uint32_t i = (uint32_t)__builtin_ctz(rest);

		if (op == OBD_MBAR_PENDING)
			reg32(regs, in->d)[i] = (uint32_t)result[i];
		else
			reg64(regs, in->d)[i] = result[i];
	}
}
