/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/compile/cooperative.h"

#include <string.h>

#include "softdevice/core/code.h"
#include "softdevice/core/compile/module.h"
#include "softdevice/core/ptx/decl.h"
#include "softdevice/core/ptx/symbol.h"

/*
 * The handle of the grid (scope 1) is the address of its workspace, 0 without a cooperative launch.
 * The second word of the workspace is the barrier. The first thread of each block adds to it and
 * waits until the highest bit flips. Block 0 adds 0x80000001 - (number of blocks), each other block
 * 1, so the bit flips when the last one arrives. The algorithm is that of sync_grids_arrive and
 * _wait in cooperative_groups of CUDA 13.0. Without a workspace the status is
 * cudaErrorInvalidValue.
 */
/* clang-format off */
static const char text[] =
	".func (.param .b64 r) cudaCGGetIntrinsicHandle(.param .b32 scope)\n{\n"
	"	.reg .b32 a, b, s;\n	.reg .b64 w;\n	.reg .pred p;\n"
	"	ld.param.b32 s, [scope];\n	mov.u32 a, %envreg1;\n	mov.u32 b, %envreg2;\n"
	"	mov.b64 w, {b, a};\n	setp.ne.u32 p, s, 1;\n	@p mov.b64 w, 0;\n"
	"	st.param.b64 [r], w;\n	ret;\n}\n"
	".func (.param .b32 r) cudaCGSynchronizeGrid(.param .b64 handle, .param .b32 flags)\n{\n"
	"	.reg .b32 n, x, y, z, old, now;\n	.reg .b64 w;\n	.reg .pred p;\n"
	"	ld.param.b64 w, [handle];\n	setp.eq.u64 p, w, 0;\n	@p bra NONE;\n"
	"	barrier.sync 0;\n"
	"	mov.u32 x, %tid.x;\n	mov.u32 y, %tid.y;\n	mov.u32 z, %tid.z;\n"
	"	or.b32 x, x, y;\n	or.b32 x, x, z;\n	setp.ne.u32 p, x, 0;\n	@p bra DONE;\n"
	"	mov.u32 x, %nctaid.x;\n	mov.u32 y, %nctaid.y;\n	mov.u32 z, %nctaid.z;\n"
	"	mul.lo.u32 x, x, y;\n	mul.lo.u32 x, x, z;\n	sub.u32 n, 0x80000001, x;\n"
	"	mov.u32 x, %ctaid.x;\n	mov.u32 y, %ctaid.y;\n	mov.u32 z, %ctaid.z;\n"
	"	or.b32 x, x, y;\n	or.b32 x, x, z;\n	setp.ne.u32 p, x, 0;\n	@p mov.u32 n, 1;\n"
	"	atom.add.acq_rel.gpu.u32 old, [w+4], n;\n"
	"WAIT:\n	ld.acquire.gpu.u32 now, [w+4];\n	xor.b32 now, now, old;\n"
	"	setp.ge.s32 p, now, 0;\n	@p bra WAIT;\n"
	"DONE:\n	barrier.sync 0;\n	st.param.b32 [r], 0;\n	ret;\n"
	"NONE:\n	st.param.b32 [r], 1;\n	ret;\n}\n"
	".func (.param .b32 r) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)\n{\n"
	"	.reg .b32 s, f;\n	.reg .b64 w;\n"
	"	ld.param.b64 w, [handle];\n	ld.param.b32 f, [flags];\n"
	"	{\n	.param .b64 h;\n	.param .b32 g;\n	.param .b32 o;\n"
	"	st.param.b64 [h], w;\n	st.param.b32 [g], f;\n"
	"	call.uni (o), cudaCGSynchronizeGrid, (h, g);\n	ld.param.b32 s, [o];\n	}\n"
	"	st.param.b32 [r], s;\n	ret;\n}\n";
/* clang-format on */

static const struct {
	const char *name;
	uint32_t args, rets; /* words of the parameters and of the result */
} names[] = { { "cudaCGGetIntrinsicHandle", 1, 2 }, { "cudaCGSynchronizeGrid", 3, 1 },
	{ "cudaCGSynchronize", 3, 1 } };

void obd_cooperative_define(struct obd_loader *ld)
{
	bool any = false;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct obd_symbol *s =
			obd_sym_find(ld, names[i].name, (uint32_t)strlen(names[i].name));

		if (!s)
			continue;
		/*
		 * The module defines one itself or declares it otherwise: add none. Kernels that
		 * call one that stays undefined are refused.
		 */
		if (s->kind != OBD_SYM_FUNC || s->decl->func->defined ||
			s->decl->func->n_arg_words != names[i].args ||
			s->decl->func->n_ret_words != names[i].rets)
			return;
		any = true;
	}
	if (!any)
		return;
	obd_lex_init(&ld->lex, text, sizeof(text) - 1);
	obd_module_parse(ld);
}
