/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "base/opt.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"

#define ALL_ON ((UINT64_C(1) << OB_OPT_COUNT) - 1)

_Atomic uint64_t ob_opt_bits = OB_OPT_UNREAD;

static const char *const opt_names[] = {
#define X(name, text, what) text,
	OB_OPT_LIST(X)
#undef X
};

static const char *const opt_whats[] = {
#define X(name, text, what) what,
	OB_OPT_LIST(X)
#undef X
};

static uint64_t parse(const char *text)
{
	uint64_t bits = ALL_ON;

	while (text && *text) {
		size_t n = strcspn(text, ",");
		bool off = n > 0 && text[0] == '-', known = n == 0;
		const char *name = off ? text + 1 : text;
		size_t length = off ? n - 1 : n;

		if (length == 3 && strncmp(name, "all", 3) == 0) {
			bits = off ? 0 : ALL_ON;
			known = true;
		}
		for (unsigned i = 0; i < OB_OPT_COUNT; i++)
			if (strlen(opt_names[i]) == length &&
				strncmp(name, opt_names[i], length) == 0) {
				bits = off ? bits & ~(UINT64_C(1) << i) : bits | UINT64_C(1) << i;
				known = true;
			}
		if (!known)
			ob_warn("OUTBOARD_OPT: there is no switch '%.*s'; outboard(7) lists them",
				(int)length, name);
		text += n;
		text += *text == ',';
	}
	return bits;
}

uint64_t ob_opt_read(void)
{
	uint64_t bits = parse(getenv("OUTBOARD_OPT"));

	atomic_store_explicit(&ob_opt_bits, bits, memory_order_relaxed);
	return bits;
}

const char *ob_opt_name(enum ob_opt opt)
{
	return opt_names[opt];
}

const char *ob_opt_what(enum ob_opt opt)
{
	return opt_whats[opt];
}

void ob_opt_set(enum ob_opt opt, bool on)
{
	uint64_t bit = UINT64_C(1) << opt;

	ob_opt_on(opt);
	if (on)
		atomic_fetch_or(&ob_opt_bits, bit);
	else
		atomic_fetch_and(&ob_opt_bits, ~bit);
}
