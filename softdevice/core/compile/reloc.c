/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/compile/reloc.h"

#include <string.h>

#include "softdevice/core/code.h"
#include "softdevice/core/ptx/token.h"

void obd_reloc_add(struct obd_loader *ld, struct obd_reloc r)
{
	struct obd_reloc *copy = obd_ptx_scratch(ld, sizeof(*copy));

	r.next = ld->relocs;
	*copy = r;
	ld->relocs = copy;
}

static uint64_t symbol_address(struct obd_loader *ld, const struct obd_symbol *s, uint32_t line)
{
	if (s->kind == OBD_SYM_FUNC)
		return OBD_CODE_TAG | ((uint64_t)s->index << 4);
	if (!s->addr) {
		ld->lex.tok.line = line;
		obd_ptx_fail(ld,
			"undefined variable %.*s: it is declared .extern and has no definition",
			OBD_TEXT_ARG(s->name, s->size));
	}
	return (uint64_t)(uintptr_t)s->addr;
}

void obd_reloc_apply(struct obd_loader *ld)
{
	for (struct obd_reloc *r = ld->relocs; r; r = r->next) {
		uint64_t v = symbol_address(ld, r->sym, r->line) + (uint64_t)r->offset;

		if (r->func) {
			r->func->consts[r->const_index].value = v;
			continue;
		}
		if (r->mask != ~0ull) { /* mask(0xff00) x: that byte of the address */
			v &= r->mask;
			if (r->mask)
				v >>= __builtin_ctzll(r->mask);
		}
		memcpy(r->cell, &v, r->size < 8 ? r->size : 8);
	}
}
