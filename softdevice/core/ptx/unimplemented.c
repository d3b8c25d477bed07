/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/ptx/unimplemented.h"

#include <string.h>

/* From the chapter "Instructions" of PTX ISA 9.0. */
static const char *const unimplemented[] = {
	"tcgen05",
	"multimem",
	"clusterlaunchcontrol",
	"vadd",
	"vsub",
	"vabsdiff",
	"vmin",
	"vmax",
	"vshl",
	"vshr",
	"vmad",
	"vset",
};

/*
 * Types and other qualifiers. In addition, every word with a "::" is refused: PTX uses it for
 * variants of its newer instructions.
 */
static const char *const words[] = {
	"e2m1x4",
	"e3m2x4",
	"e2m3x4",
	"e4m3x4",
	"e5m2x4",
	"ue8m0",
	"ue4m3",
	"b1",
	"b4",
	"s2f6x2",
	"u8x4",
	"s8x4",
	"rs",
};

static bool is_in(const char *const *list, size_t n, const char *name, uint32_t size)
{
	for (size_t i = 0; i < n; i++)
		if (strlen(list[i]) == size && memcmp(list[i], name, size) == 0)
			return true;
	return false;
}

bool obd_ptx_newer(uint32_t version)
{
	return version > 90;
}

bool obd_ptx_unimplemented(const char *name, uint32_t size)
{
	return is_in(unimplemented, sizeof(unimplemented) / sizeof(unimplemented[0]), name, size);
}

bool obd_ptx_unimplemented_word(const char *word, uint32_t size)
{
	return is_in(words, sizeof(words) / sizeof(words[0]), word, size) ||
		memmem(word, size, "::", 2);
}
