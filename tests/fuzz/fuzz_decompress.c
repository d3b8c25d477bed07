/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Every codec: never a byte beyond the announced size. */
#include <stdlib.h>
#include <string.h>

#include "compression/codec.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint16_t announced;
	uint8_t *out;

	if (size < 3)
		return 0;
	memcpy(&announced, data, 2);
	out = malloc(announced + 1u);
	if (out)
		obz_decompress((enum obz_codec)(data[2] % 4), data + 3, size - 3, out, announced);
	free(out);
	return 0;
}
