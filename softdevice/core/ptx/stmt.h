/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Statements: guard, opcode with its set of qualifiers, operands. */
#ifndef OBD_CORE_STMT_H
#define OBD_CORE_STMT_H

#include <string.h>

#include "softdevice/core/ptx/operand.h"

#define OBD_MAX_OPERANDS   16u
#define OBD_MAX_TYPES      4u
#define OBD_MAX_FREE_WORDS 8u

/* The known qualifiers; a statement has a set of them. */
/* clang-format off */
#define OBD_QUALIFIERS(Q) \
	Q(cc) Q(lo) Q(hi) Q(wide) Q(ftz) Q(sat) Q(rn) Q(rz) Q(rm) Q(rp) Q(rna) Q(rni) Q(rzi) \
	Q(rmi) Q(rpi) Q(approx) Q(full) Q(satfinite) Q(relu) Q(NaN) Q(xorsign) Q(abs) Q(uni) Q(to) \
	Q(global) Q(shared) Q(local) Q(param) Q(generic) Q(relaxed) Q(acquire) Q(release) \
	Q(acq_rel) Q(weak) Q(mmio) Q(sc) Q(cta) Q(gpu) Q(sys) Q(cluster) Q(nc) Q(ca) Q(cg) Q(cs) \
	Q(lu) Q(cv) Q(wb) Q(wt) Q(v2) Q(v4) Q(v8) Q(eq) Q(ne) Q(lt) Q(le) Q(gt) Q(ge) Q(ls) Q(hs) \
	Q(equ) Q(neu) Q(ltu) Q(leu) Q(gtu) Q(geu) Q(num) Q(nan) Q(and) Q(or) Q(xor) Q(popc) Q(add) \
	Q(inc) Q(dec) Q(min) Q(max) Q(exch) Q(cas) Q(sync) Q(arrive) Q(red) Q(aligned) Q(all) \
	Q(any) Q(ballot) Q(up) Q(down) Q(bfly) Q(idx) Q(l) Q(r) Q(clamp) Q(wrap) Q(shiftamt) \
	Q(b4e) Q(f4e) Q(rc8) Q(ecl) Q(ecr) Q(rc16) Q(noftz) Q(finite) Q(infinite) Q(number) \
	Q(notanumber) Q(normal) Q(subnormal) Q(warp) Q(wait) Q(async) Q(bulk) Q(commit_group) \
	Q(wait_group) Q(wait_all) Q(launch_dependents) Q(proxy) Q(alias) Q(mode) Q(wt_hint) \
	Q(unsupported) Q(l2) Q(oob) Q(entry) Q(divergent) Q(mbarrier_init) Q(noinc) Q(gl) \
	Q(unified) Q(mask) Q(remote)
/* clang-format on */

enum obd_qualifier {
#define Q(name) OBD_Q_##name,
	OBD_QUALIFIERS(Q)
#undef Q
		OBD_Q_volatile,
	OBD_Q_const,
	OBD_Q_COUNT
};

struct obd_stmt {
	const char *op;
	uint32_t op_size;
	uint32_t line;
	uint32_t guard; /* @p: vreg of the predicate, or OBD_NONE */
	bool guard_negated;
	uint64_t quals[(OBD_Q_COUNT + 63) / 64];
	enum obd_type types[OBD_MAX_TYPES];
	uint32_t n_types;
	uint8_t order[8]; /* comparison, boolean and operation qualifiers, in source order */
	uint32_t n_order;
	/* qualifiers that are not in the set, such as m16n8k16; only a few opcodes have some */
	struct {
		const char *text;
		uint32_t size;
	} words[OBD_MAX_FREE_WORDS];
	uint32_t n_words;
	struct obd_operand opd[OBD_MAX_OPERANDS];
	uint32_t n_opd;
};

static inline bool obd_q(const struct obd_stmt *s, enum obd_qualifier q)
{
	return (s->quals[q / 64] >> (q % 64)) & 1;
}

/* Has the statement this free qualifier? */
static inline bool obd_word(const struct obd_stmt *s, const char *name)
{
	for (uint32_t i = 0; i < s->n_words; i++)
		if (s->words[i].size == strlen(name) &&
			memcmp(s->words[i].text, name, s->words[i].size) == 0)
			return true;
	return false;
}

/* Reads a statement, from its guard or opcode to the token after its ';'. */
void obd_stmt_parse(struct obd_loader *ld, struct obd_stmt *s);

#endif
