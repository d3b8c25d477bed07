/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/compile/module.h"

#include <string.h>

#include "softdevice/core/code.h"
#include "softdevice/core/compile/function.h"
#include "softdevice/core/compile/variable.h"
#include "softdevice/core/ptx/decl.h"
#include "softdevice/core/ptx/skip.h"
#include "softdevice/core/ptx/symbol.h"
#include "softdevice/core/ptx/token.h"

static void parse_version(struct obd_loader *ld)
{
	obd_tok_next(ld);
	double v = 0;

	if (obd_tok(ld)->kind == OBD_TOK_F64)
		memcpy(&v, &obd_tok(ld)->value, sizeof(v));
	if (!(v >= 1.0 && v < 100.0))
		obd_ptx_fail(ld, "expected a number such as 8.0 after .version");
	uint32_t version = (uint32_t)(v * 10 + 0.5);

	if (version > 99)
		obd_ptx_fail_with(ld, CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
			"PTX version %u.%u is newer than 9.9, the last that this driver reads: "
			"compile with an older CUDA toolkit",
			version / 10, version % 10);
	ld->version = version;
	if (version > ld->prog->ptx_version)
		ld->prog->ptx_version = version;
	obd_tok_next(ld);
}

static void parse_target(struct obd_loader *ld)
{
	obd_tok_next(ld);
	for (;; obd_tok_next(ld)) {
		struct obd_token *t = obd_tok(ld);

		if (t->kind != OBD_TOK_WORD)
			obd_ptx_fail(ld, "expected an architecture such as sm_75 after .target");
		if (t->size > 3 && memcmp(t->text, "sm_", 3) == 0) {
			uint32_t arch = 0;

			for (uint32_t i = 3; i < t->size && t->text[i] >= '0' &&
				t->text[i] <= '9' && arch < 10000;
				i++)
				arch = arch * 10 + (uint32_t)(t->text[i] - '0');
			if (arch > ld->prog->env.compute_capability)
				obd_ptx_fail_with(ld, CUDA_ERROR_NO_BINARY_FOR_GPU,
					"the module is for sm_%u and the device is sm_%u: compile "
					"for the device's architecture or an older one",
					arch, ld->prog->env.compute_capability);
			if (arch > ld->prog->target_arch)
				ld->prog->target_arch = arch;
		}
		struct obd_lex save = ld->lex;

		obd_tok_next(ld);
		if (!obd_tok_is(obd_tok(ld), ',')) {
			ld->lex = save;
			break;
		}
	}
	obd_tok_next(ld);
}

static void parse_alias(struct obd_loader *ld)
{
	obd_tok_next(ld);
	struct obd_token a = *obd_tok(ld);

	obd_tok_next(ld);
	obd_tok_expect(ld, ',');
	struct obd_symbol *s = obd_sym_find(ld, a.text, a.size),
			  *t = obd_sym_find(ld, obd_tok(ld)->text, obd_tok(ld)->size);

	if (!s || !t || s->kind != OBD_SYM_FUNC || t->kind != OBD_SYM_FUNC)
		obd_ptx_fail(ld, ".alias names a function that is not declared before it");
	obd_tok_next(ld);
	obd_tok_expect(ld, ';');
	ld->prog->funcs[s->decl->func->index] = t->decl->func;
	s->decl = t->decl;
	s->index = t->decl->func->index;
}

static void parse_linked(struct obd_loader *ld)
{
	struct obd_function_head h = { 0 };

	for (;; obd_tok_next(ld)) {
		if (obd_tok_dot_is(ld, "extern"))
			h.is_extern = true;
		else if (obd_tok_dot_is(ld, "weak") || obd_tok_dot_is(ld, "common"))
			h.is_weak = true;
		else if (!obd_tok_dot_is(ld, "visible"))
			break;
	}
	if (obd_tok_dot_is(ld, "entry") || obd_tok_dot_is(ld, "func")) {
		h.is_entry = obd_tok_dot_is(ld, "entry");
		obd_tok_next(ld);
		while (obd_tok_dot_is(ld, "noreturn")) {
			h.noreturn = true;
			obd_tok_next(ld);
		}
		obd_function_parse(ld, &h);
		return;
	}
	if (!obd_tok_dot_is(ld, "global") && !obd_tok_dot_is(ld, "const") &&
		!obd_tok_dot_is(ld, "shared") && !obd_tok_dot_is(ld, "local"))
		obd_ptx_fail(ld, "unknown directive '%.*s'", OBD_TOK_ARG(obd_tok(ld)));
	struct obd_token space = *obd_tok(ld);

	obd_tok_next(ld);
	obd_variable_parse(ld, space.text[0], h.is_extern, h.is_weak);
}

void obd_module_parse(struct obd_loader *ld)
{
	while (obd_tok(ld)->kind != OBD_TOK_END) {
		if (obd_tok_accept(ld, ';'))
			continue;
		if (obd_tok(ld)->kind != OBD_TOK_DOT)
			obd_tok_unexpected(ld, "a directive");
		if (obd_tok_dot_is(ld, "version")) {
			parse_version(ld);
		} else if (obd_tok_dot_is(ld, "target")) {
			parse_target(ld);
		} else if (obd_tok_dot_is(ld, "address_size")) {
			obd_tok_next(ld);
			if (obd_tok_integer(ld) != 64)
				obd_ptx_fail(ld,
					"32-bit modules are not supported: compile for 64-bit "
					"addresses (-m64)");
		} else if (obd_skip_directive(ld)) {
			continue;
		} else if (obd_tok_dot_is(ld, "alias")) {
			parse_alias(ld);
		} else {
			parse_linked(ld);
		}
	}
	if (!ld->prog->ptx_version)
		obd_ptx_fail(ld, "the text has no .version directive");
}
