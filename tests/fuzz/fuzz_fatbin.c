/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Fatbins without their wrappers: opens them, selects an entry, decompresses it and reads its
 * symbols.
 */
#include <stdlib.h>

#include "image/image.h"
#include "tests/fuzz/fuzz.h"

#define PAYLOAD_MAX (1u << 22) /* larger ones cost time and test nothing more */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct obi_image image;
	char text[256];

	if (obi_image_open_bounded(data, size, &image))
		return 0;
	obi_image_describe(&image, text, sizeof text);
	for (uint32_t cc = 50; cc <= 130; cc += 10)
		obi_image_select(&image, cc, cc % 20 == 0);
	for (size_t i = 0; i < image.n_entries; i++) {
		struct obi_symbols symbols;
		const uint8_t *payload;
		size_t n;
		bool owned;

		if (image.entries[i].raw_size > PAYLOAD_MAX ||
			obi_entry_payload(&image.entries[i], &payload, &n, &owned))
			continue;
		if (obi_symbols_read(payload, n, &symbols) == OB_ERR_NONE)
			obi_symbols_fini(&symbols);
		if (owned)
			free((void *)payload);
	}
	obi_image_fini(&image);
	return 0;
}
