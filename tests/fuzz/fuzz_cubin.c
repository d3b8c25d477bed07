/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Symbol tables of cubins and PTX text; reads every resulting name and parameter. */
#include <string.h>

#include "image/image.h"
#include "tests/fuzz/fuzz.h"

static volatile size_t sink;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct obi_symbols symbols;

	sink += obi_elf_size(data, size);
	if (obi_symbols_read(data, size, &symbols))
		return 0;
	for (size_t i = 0; i < symbols.n_kernels; i++) {
		const struct obi_kernel *k = &symbols.kernels[i];

		sink += strlen(k->name);
		for (uint32_t p = 0; p < k->n_params; p++)
			sink += k->params[p].offset + k->params[p].size;
		if (!obi_symbols_kernel(&symbols, k->name))
			__builtin_trap();
	}
	for (size_t i = 0; i < symbols.n_variables; i++)
		sink += strlen(symbols.variables[i].name);
	obi_symbols_fini(&symbols);
	return 0;
}
