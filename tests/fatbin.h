/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Makes a fatbin in nvcc's format with one uncompressed entry. Uses only the C library, because
 * the programs in tests/programs include it, too.
 */
#ifndef OB_TESTS_FATBIN_H
#define OB_TESTS_FATBIN_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum fatbin_kind { FATBIN_PTX = 1, FATBIN_ELF = 2 };

/* arch: 75 for sm_75. The caller frees the result. */
static inline void *fatbin_new(enum fatbin_kind kind, uint32_t arch, const void *code, size_t size)
{
	const size_t padded = (size + 7) & ~(size_t)7;
	unsigned char *bytes = (unsigned char *)calloc(1, 80 + padded);
	const uint32_t magic = 0xba55ed50, entry_header = 64;
	const uint16_t version = 1, header = 16, entry_kind = (uint16_t)kind, entry_version = 0x101;
	const uint64_t entries = 64 + padded, stored = padded, flags = 0x11;

	if (!bytes)
		abort();
	memcpy(bytes, &magic, 4);
	memcpy(bytes + 4, &version, 2);
	memcpy(bytes + 6, &header, 2);
	memcpy(bytes + 8, &entries, 8);
	memcpy(bytes + 16, &entry_kind, 2);
	memcpy(bytes + 18, &entry_version, 2);
	memcpy(bytes + 20, &entry_header, 4);
	memcpy(bytes + 24, &stored, 8);
	memcpy(bytes + 44, &arch, 4);
	memcpy(bytes + 56, &flags, 8);
	memcpy(bytes + 80, code, size);
	return bytes;
}

#endif
