/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Operations among the lanes of a warp: shuffles, votes, matches, reductions. Fields of the
 * instruction: d result; a, b, c operands; x.f slot of the member mask; x.g predicate result. For
 * votes a is a predicate.
 */
#include "softdevice/core/engine/sync.h"

#include <string.h>

#include "softdevice/core/engine/slot.h"
#include "softdevice/core/half.h"
#include "softdevice/core/ops.h"

static const void *slot(const char *regs, uint32_t index)
{
	return regs + (size_t)index * OBD_SLOT_BYTES;
}

void obd_sync_members(
	const struct obd_insn *in, const char *regs, uint32_t m, uint32_t *ret_members)
{
	const uint32_t *v = slot(regs, in->u.x.f);

	for (uint32_t i = 0; i < OBD_LANES; i++)
		ret_members[i] = in->u.x.f == OBD_NO_SLOT ? m : v[i];
}

static bool is_vote(uint32_t kind)
{
	return kind >= OBD_SYNC_VOTE_ALL && kind <= OBD_SYNC_VOTE_BALLOT;
}

static bool is_shfl(uint32_t kind)
{
	return kind >= OBD_SYNC_SHFL_UP && kind <= OBD_SYNC_SHFL_IDX;
}

static bool is_wide_match(uint32_t kind)
{
	return kind == OBD_SYNC_MATCH_ANY64 || kind == OBD_SYNC_MATCH_ALL64;
}

void obd_sync_gather(
	const struct obd_insn *in, const char *regs, uint32_t lanes, struct obd_sync_io *io)
{
	uint32_t kind = in->e;

	if (kind == OBD_SYNC_WARP || kind == OBD_SYNC_ELECT)
		return;
	if (is_vote(kind)) {
		uint32_t p = ((const uint32_t *)(const void *)regs)[in->a];

		io->pin = (io->pin & ~lanes) | (p & lanes);
		return;
	}
	if (is_wide_match(kind)) {
		obd_write64((char *)io->a64, slot(regs, in->a), lanes);
		return;
	}
	obd_write32((char *)io->a, slot(regs, in->a), lanes);
	if (is_shfl(kind)) {
		obd_write32((char *)io->b, slot(regs, in->b), lanes);
		obd_write32((char *)io->c, slot(regs, in->c), lanes);
	}
}

static void shuffle(uint32_t kind, uint32_t mask, struct obd_sync_io *io)
{
	io->pred &= ~mask;
	for (uint32_t r = mask; r; r &= r - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(r);
		uint32_t b = io->b[lane] & 31, clamp = io->c[lane] & 31,
			 seg = (io->c[lane] >> 8) & 31;
		uint32_t most = (lane & seg) | (clamp & ~seg), least = lane & seg, from;
		bool ok;

		switch (kind) {
		case OBD_SYNC_SHFL_UP:
			from = lane - b;
			ok = (int32_t)from >= (int32_t)most;
			break;
		case OBD_SYNC_SHFL_DOWN:
			from = lane + b;
			ok = from <= most;
			break;
		case OBD_SYNC_SHFL_BFLY:
			from = lane ^ b;
			ok = from <= most;
			break;
		default:
			from = least | (b & ~seg & 31);
			ok = from <= most;
			break;
		}
		if (!ok)
			from = lane;
		io->out[lane] = io->a[from & 31];
		io->pred |= ok ? 1u << lane : 0;
	}
}

static uint32_t reduce(uint32_t kind, uint32_t mask, const uint32_t *a)
{
	uint32_t r = a[__builtin_ctz(mask)];

	for (uint32_t rest = mask & (mask - 1); rest; rest &= rest - 1) {
		uint32_t v = a[__builtin_ctz(rest)];

		switch (kind) {
		case OBD_SYNC_REDUX_ADD:
			r += v;
			break;
		case OBD_SYNC_REDUX_MIN_U:
			r = v < r ? v : r;
			break;
		case OBD_SYNC_REDUX_MAX_U:
			r = v > r ? v : r;
			break;
		case OBD_SYNC_REDUX_MIN_S:
			r = (int32_t)v < (int32_t)r ? v : r;
			break;
		case OBD_SYNC_REDUX_MAX_S:
			r = (int32_t)v > (int32_t)r ? v : r;
			break;
		case OBD_SYNC_REDUX_AND:
			r &= v;
			break;
		case OBD_SYNC_REDUX_OR:
			r |= v;
			break;
		case OBD_SYNC_REDUX_XOR:
			r ^= v;
			break;
		case OBD_SYNC_REDUX_FMIN:
			r = obd_bits_f32(v) < obd_bits_f32(r) || obd_bits_f32(r) != obd_bits_f32(r)
				? v
				: r;
			break;
		default:
			r = obd_bits_f32(v) > obd_bits_f32(r) || obd_bits_f32(r) != obd_bits_f32(r)
				? v
				: r;
			break;
		}
	}
	return r;
}

static void match(uint32_t kind, uint32_t mask, struct obd_sync_io *io)
{
	bool wide = is_wide_match(kind),
	     all = kind == OBD_SYNC_MATCH_ALL32 || kind == OBD_SYNC_MATCH_ALL64;

	io->pred &= ~mask;
	for (uint32_t r = mask; r; r &= r - 1) {
		uint32_t i = (uint32_t)__builtin_ctz(r), same = 0;

		for (uint32_t q = mask; q; q &= q - 1) {
			uint32_t k = (uint32_t)__builtin_ctz(q);

			if (wide ? io->a64[i] == io->a64[k] : io->a[i] == io->a[k])
				same |= 1u << k;
		}
		io->out[i] = all ? (same == mask ? mask : 0) : same;
		io->pred |= same == mask ? 1u << i : 0;
	}
}

/*
 * The result that is the same for all lanes: the value, and *ret_predicate for votes. For an empty
 * mask the value is 0 and *ret_predicate is that of a vote without lanes.
 */
static uint32_t common_result(
	uint32_t kind, uint32_t mask, const struct obd_sync_io *io, bool *ret_predicate)
{
	uint32_t p = io->pin & mask;

	*ret_predicate = false;
	switch (kind) {
	case OBD_SYNC_VOTE_ALL:
		*ret_predicate = p == mask;
		return 0;
	case OBD_SYNC_VOTE_ANY:
		*ret_predicate = p != 0;
		return 0;
	case OBD_SYNC_VOTE_UNI:
		*ret_predicate = p == mask || p == 0;
		return 0;
	case OBD_SYNC_VOTE_BALLOT:
		return p;
	case OBD_SYNC_ELECT:
		return mask ? (uint32_t)__builtin_ctz(mask) : 0;
	default:
		return mask ? reduce(kind, mask, io->a) : 0;
	}
}

static bool is_match(uint32_t kind)
{
	return kind >= OBD_SYNC_MATCH_ANY32 && kind <= OBD_SYNC_MATCH_ALL64;
}

void obd_sync_compute_outside(
	const struct obd_insn *in, uint32_t lane, uint32_t members, struct obd_sync_io *io)
{
	uint32_t kind = in->e, bit = 1u << lane;
	struct obd_sync_io with;
	bool predicate;

	if (kind == OBD_SYNC_WARP)
		return;
	if (is_shfl(kind)) {
		shuffle(kind, bit, io);
		return;
	}
	if (is_match(kind)) {
		with = *io;
		match(kind, members | bit, &with);
		io->out[lane] = with.out[lane] & members;
		io->pred = (io->pred & ~bit) | (with.pred & bit);
		return;
	}
	io->out[lane] = common_result(kind, members, io, &predicate);
	io->pred = (io->pred & ~bit) | (predicate ? bit : 0);
}

void obd_sync_compute(const struct obd_insn *in, uint32_t mask, struct obd_sync_io *io)
{
	uint32_t kind = in->e, v;
	bool predicate;

	if (kind == OBD_SYNC_WARP)
		return;
	if (is_shfl(kind)) {
		shuffle(kind, mask, io);
		return;
	}
	if (is_match(kind)) {
		match(kind, mask, io);
		return;
	}
	v = common_result(kind, mask, io, &predicate);
	for (uint32_t r = mask; r; r &= r - 1)
		io->out[__builtin_ctz(r)] = v;
	io->pred = (io->pred & ~mask) | (kind == OBD_SYNC_ELECT ? 1u << v : predicate ? mask : 0);
}

void obd_sync_scatter(
	const struct obd_insn *in, char *regs, uint32_t lanes, const struct obd_sync_io *io)
{
	if (in->e == OBD_SYNC_WARP)
		return;
	if (in->d != OBD_NO_SLOT)
		obd_write32(regs + (size_t)in->d * OBD_SLOT_BYTES, io->out, lanes);
	if (in->u.x.g != OBD_NO_SLOT) {
		uint32_t *p = (uint32_t *)(void *)regs + in->u.x.g;

		*p = (*p & ~lanes) | (io->pred & lanes);
	}
}
