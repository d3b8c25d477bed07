/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "front/visible.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define UUID_TEXT_MAX 48

/* An entry of the list, without surrounding blanks. */
struct entry {
	const char *text;
	size_t size;
};

/* Returns the entry at *at and advances *at past the comma. The last entry sets *at to NULL. */
static struct entry entry_next(const char **at)
{
	struct entry entry = { *at, strcspn(*at, ",") };

	*at = entry.text[entry.size] ? entry.text + entry.size + 1 : NULL;
	while (entry.size && isspace((unsigned char)*entry.text)) {
		entry.text++;
		entry.size--;
	}
	while (entry.size && isspace((unsigned char)entry.text[entry.size - 1]))
		entry.size--;
	return entry;
}

/*
 * Parses a number like the driver: characters after the digits are ignored ("1gpu" is 1). False:
 * the entry does not start with digits.
 */
static bool entry_number(const struct entry *entry, long *ret)
{
	const char *digits =
		entry->text + (entry->size && (*entry->text == '-' || *entry->text == '+'));

	if (!entry->size || !isdigit((unsigned char)*digits))
		return false;
	errno = 0;
	*ret = strtol(entry->text, NULL, 10);
	return errno == 0;
}

/* The UUID of a device in the form that nvidia-smi -L prints. */
static void uuid_text(const struct obf_device *device, char ret[UUID_TEXT_MAX])
{
	const unsigned char *b = (const unsigned char *)device->uuid.bytes;
	const char *kind = strstr(device->name, " MIG ") ? "MIG" : "GPU";

	snprintf(ret, UUID_TEXT_MAX,
		"%s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", kind,
		b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
		b[13], b[14], b[15]);
}

static enum obf_visible_end find_by_uuid(
	const struct obf_device *devices, int n, const struct entry *entry, int *ret)
{
	enum obf_visible_end end = OBF_VISIBLE_UNKNOWN;

	for (int i = 0; i < n; i++) {
		char text[UUID_TEXT_MAX];

		uuid_text(&devices[i], text);
		if (entry->size > strlen(text) || strncasecmp(text, entry->text, entry->size) != 0)
			continue;
		if (end == OBF_VISIBLE_WHOLE)
			return OBF_VISIBLE_AMBIGUOUS;
		*ret = i;
		end = OBF_VISIBLE_WHOLE;
	}
	return end;
}

/* WHOLE: the entry names devices[*ret]. */
static enum obf_visible_end find(const struct obf_device *devices, int n, const int *sorted,
	const struct entry *entry, int *ret)
{
	long number;

	if (!entry->size)
		return OBF_VISIBLE_HIDDEN;
	if (!strncasecmp(entry->text, "GPU-", 4) || !strncasecmp(entry->text, "MIG-", 4))
		return find_by_uuid(devices, n, entry, ret);
	if (!entry_number(entry, &number))
		return OBF_VISIBLE_UNKNOWN;
	if (number < 0)
		return OBF_VISIBLE_HIDDEN;
	if (number >= n)
		return OBF_VISIBLE_UNKNOWN;
	*ret = sorted[number];
	return OBF_VISIBLE_WHOLE;
}

static int compare_pci(const struct obf_device *a, const struct obf_device *b)
{
	static const CUdevice_attribute parts[] = { CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID,
		CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID };

	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
		if (a->attr[parts[i]] != b->attr[parts[i]])
			return a->attr[parts[i]] < b->attr[parts[i]] ? -1 : 1;
	return 0;
}

static void sort(const struct obf_device *devices, int n, const char *order, int *ret)
{
	bool by_pci = order && strcmp(order, "PCI_BUS_ID") == 0;

	for (int i = 0; i < n; i++) {
		int at = i;

		for (; by_pci && at > 0 && compare_pci(&devices[ret[at - 1]], &devices[i]) > 0;
			at--)
			ret[at] = ret[at - 1];
		ret[at] = i;
	}
}

bool obf_visible_none(const char *list)
{
	struct entry first;
	long number;

	if (!list)
		return false;
	first = entry_next(&list);
	return !first.size || (entry_number(&first, &number) && number < 0);
}

bool obf_visible_first(const char *order, const char *list)
{
	bool by_pci = order && strcmp(order, "PCI_BUS_ID") == 0;
	struct entry first;
	long number;

	if (!list)
		return true;
	first = entry_next(&list);
	return !by_pci && entry_number(&first, &number) && number == 0;
}

static bool has(const struct obf_visible *visible, int ordinal)
{
	for (int i = 0; i < visible->n; i++)
		if (visible->ordinal[i] == ordinal)
			return true;
	return false;
}

void obf_visible_choose(const struct obf_device *devices, int n, const char *order,
	const char *list, struct obf_visible *ret)
{
	int sorted[OBF_DEVICE_MAX];

	*ret = (struct obf_visible){ .end = OBF_VISIBLE_WHOLE };
	sort(devices, n, order, sorted);
	if (!list) {
		memcpy(ret->ordinal, sorted, (size_t)n * sizeof *sorted);
		ret->n = n;
		return;
	}
	while (list) {
		struct entry entry = entry_next(&list);
		int ordinal = 0;

		ret->end = find(devices, n, sorted, &entry, &ordinal);
		if (ret->end == OBF_VISIBLE_WHOLE && has(ret, ordinal)) {
			ret->end = OBF_VISIBLE_TWICE;
			ret->n = 0;
		}
		if (ret->end != OBF_VISIBLE_WHOLE) {
			ret->entry = entry.text;
			ret->entry_size = entry.size;
			return;
		}
		/* at most n entries, because no device is taken twice */
		ret->ordinal[ret->n++] = ordinal;
	}
}
