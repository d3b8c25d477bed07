/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "image/image.h"

#include <stdio.h>
#include <string.h>

/*
 * True if a device of capability cc runs the entry, by CUDA's compatibility rules: a cubin runs on
 * the same major version with an equal or higher minor version, PTX on any newer device; an "a"
 * target only on exactly its own version, an "f" target within its major version. A bare image
 * without a target is left to the driver.
 */
static bool fits(const struct obi_entry *entry, uint32_t cc, bool ptx_only)
{
	if (entry->kind == OBI_ELF ? ptx_only : entry->kind != OBI_PTX)
		return false;
	if (!entry->arch)
		return true;
	if (entry->arch_specific)
		return entry->arch == cc;
	if (entry->arch_family || entry->kind == OBI_ELF)
		return entry->arch / 10 == cc / 10 && entry->arch % 10 <= cc % 10;
	return entry->arch <= cc;
}

/* Higher is better: any cubin before any PTX, then the newer target, then the more specific one. */
static uint32_t rank(const struct obi_entry *entry)
{
	return (entry->kind == OBI_ELF ? 1u << 30 : 0) + entry->arch * 4 +
		(entry->arch_specific                ? 2
				: entry->arch_family ? 1
						     : 0) +
		1;
}

/* PTX for one device or family that is older than the device. */
static bool is_older_specific(const struct obi_entry *entry, uint32_t cc)
{
	return entry->kind == OBI_PTX && (entry->arch_specific || entry->arch_family) &&
		entry->arch <= cc;
}

const struct obi_entry *obi_image_select(const struct obi_image *image, uint32_t cc, bool ptx_only)
{
	const struct obi_entry *best = NULL, *specific = NULL;

	for (size_t i = 0; i < image->n_entries; i++) {
		const struct obi_entry *entry = &image->entries[i];

		if (entry->arch >= 1u << 20)
			continue;
		if (fits(entry, cc, ptx_only) && (!best || rank(entry) > rank(best)))
			best = entry;
		if (ptx_only && is_older_specific(entry, cc) &&
			(!specific || rank(entry) > rank(specific)))
			specific = entry;
	}
	return best ? best : specific;
}

void obi_image_describe(const struct obi_image *image, char *ret_text, size_t size)
{
	size_t used = 0;
	bool ptx = false, any = false;

	if (!size)
		return;
	ret_text[0] = 0;
	for (size_t i = 0; i < image->n_entries && used < size; i++) {
		const struct obi_entry *entry = &image->entries[i];
		const char *form = entry->kind == OBI_PTX ? "PTX for compute"
			: entry->kind == OBI_ELF          ? "sm"
							  : "LTO code for";
		const char *letter = entry->arch_specific ? "a" : entry->arch_family ? "f" : "";
		int n;

		ptx |= entry->kind == OBI_PTX;
		if (entry->arch)
			n = snprintf(ret_text + used, size - used, "%s%s_%u%s", any ? ", " : "",
				form, entry->arch, letter);
		else
			n = snprintf(ret_text + used, size - used, "%s%s", any ? ", " : "",
				entry->kind == OBI_PTX ? "PTX" : "a cubin");
		any = true;
		if (n < 0)
			return;
		used += (size_t)n;
	}
	if (!any)
		snprintf(ret_text, size, "nothing");
	else if (!ptx && used < size)
		snprintf(ret_text + used, size - used, " (no PTX)");
}
