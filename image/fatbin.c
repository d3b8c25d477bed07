/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "image/image.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "compression/codec.h"
#include "image/elf.h"
#include "image/ptx_scan.h"

#define WRAPPER_MAGIC    0x466243b1u
#define WRAPPER_LINKED   2u /* version whose last word points to a list of fatbins */
#define FATBIN_MAGIC     0xba55ed50u
#define FATBIN_MAX       ((uint64_t)4 << 30) /* bytes of all entries */
#define ENTRY_HEADER_MIN 64u

/* The headers of a fatbin and of its entries, as written by nvcc 13. */
struct fatbin_header {
	uint32_t magic;
	uint16_t version, header_size;
	uint64_t size; /* of all entries */
};

struct entry_header {
	uint16_t kind, unknown;
	uint32_t header_size;
	uint64_t size;            /* payload as stored, padded to 8 */
	uint32_t compressed_size; /* exact; 0: not compressed */
	uint32_t options_offset;
	uint16_t minor, major;
	uint32_t arch;
	uint32_t name_offset, name_size;
	uint64_t flags;
	uint64_t zero;
	uint64_t raw_size; /* 0: not compressed */
};

enum {
	ENTRY_DEBUG = 0x2,
	ENTRY_LZ4 = 0x2000,
	ENTRY_ZSTD = 0x8000,
	ENTRY_ARCH_SPECIFIC = 0x100000,
	ENTRY_ARCH_FAMILY = 0x200000,
};

_Static_assert(
	sizeof(struct fatbin_header) == 16 && sizeof(struct entry_header) == ENTRY_HEADER_MIN,
	"format");

static enum ob_err entry_codec(const struct entry_header *header, struct obi_entry *entry)
{
	if (header->flags & (ENTRY_LZ4 | ENTRY_ZSTD)) {
		entry->codec = header->flags & ENTRY_ZSTD ? OBI_ZSTD : OBI_LZ4;
		entry->size = header->compressed_size;
		if (header->compressed_size > header->size || !header->raw_size)
			return OB_ERR_IMAGE_DAMAGED;
		entry->raw_size = header->raw_size;
	} else {
		entry->codec = OBI_RAW;
		entry->size = entry->raw_size = header->size;
	}
	return header->raw_size > OBI_PAYLOAD_MAX || entry->raw_size > OBI_PAYLOAD_MAX
		? OB_ERR_LIMIT
		: OB_ERR_NONE;
}

/* Reads the entry at p; `left`: bytes of the fatbin from p on. */
static enum ob_err entry_read(const uint8_t *p, uint64_t left, struct obi_entry *entry)
{
	struct entry_header header;

	if (left < sizeof(header))
		return OB_ERR_IMAGE_DAMAGED;
	memcpy(&header, p, sizeof(header));
	if (header.header_size < sizeof(header) || header.header_size > left ||
		header.size > left - header.header_size)
		return OB_ERR_IMAGE_DAMAGED;
	*entry = (struct obi_entry){
		.kind = (enum obi_kind)header.kind,
		.arch = header.arch,
		.arch_specific = header.flags & ENTRY_ARCH_SPECIFIC,
		.arch_family = header.flags & ENTRY_ARCH_FAMILY,
		.debug = header.flags & ENTRY_DEBUG,
		.data = p + header.header_size,
		.whole = p,
		.whole_size = header.header_size + (size_t)header.size,
	};
	return entry_codec(&header, entry);
}

static enum ob_err fatbin_open(const uint8_t *data, size_t limit, struct obi_image *ret)
{
	struct fatbin_header header;
	size_t capacity = 0;

	if (limit < sizeof(header))
		return OB_ERR_IMAGE_DAMAGED;
	memcpy(&header, data, sizeof(header));
	if (header.version != 1 || header.header_size < sizeof(header) ||
		header.size > FATBIN_MAX || !ob_span_inside(header.header_size, header.size, limit))
		return OB_ERR_IMAGE_DAMAGED;
	ret->is_fatbin = true;
	for (uint64_t at = 0; at < header.size;) {
		if (ret->n_entries == OBI_ENTRY_MAX)
			return OB_ERR_LIMIT;
		if (ret->n_entries == capacity) {
			capacity = capacity ? capacity * 2 : 8;
			struct obi_entry *grown = realloc(ret->entries, capacity * sizeof(*grown));
			if (!grown)
				return OB_ERR_NO_MEMORY;
			ret->entries = grown;
		}
		struct obi_entry *entry = &ret->entries[ret->n_entries];
		enum ob_err err =
			entry_read(data + header.header_size + at, header.size - at, entry);
		if (err)
			return err;
		ret->n_entries++;
		at += entry->whole_size;
	}
	return OB_ERR_NONE;
}

/* Compares byte by byte, because a short text may end before the fourth byte. */
static bool begins_with(const void *image, uint32_t magic)
{
	const uint8_t *p = image;

	for (int i = 0; i < 4; i++)
		if (p[i] != (uint8_t)(magic >> 8 * i))
			return false;
	return true;
}

/* Bytecode of CUDA Tile IR begins with this and a zero (Tile IR specification, "Bytecode"). */
static bool is_tile_ir(const uint8_t *data, size_t limit)
{
	static const char magic[] = "\x7fTileIR";

	for (size_t i = 0; i < sizeof(magic); i++)
		if (i >= limit || data[i] != (uint8_t)magic[i])
			return false;
	return true;
}

/* Opens a cubin or PTX text outside of a fatbin as one entry. */
static enum ob_err bare_open(const uint8_t *data, size_t limit, struct obi_image *ret)
{
	struct obi_entry entry = { .data = data };
	char letter;

	if (limit >= 4 && begins_with(data, 0x464c457fu)) {
		entry.kind = OBI_ELF;
		entry.size = obi_elf_size(data, limit);
		entry.arch = obi_elf_arch(data, entry.size);
		if (!entry.size)
			return OB_ERR_IMAGE_DAMAGED;
	} else if (obi_ptx_is(data, limit)) {
		entry.kind = OBI_PTX;
		entry.size =
			strnlen((const char *)data, ob_min(limit, (size_t)OBI_PAYLOAD_MAX + 1));
		if (entry.size > OBI_PAYLOAD_MAX)
			return OB_ERR_LIMIT;
		entry.arch = obi_ptx_arch(data, entry.size, &letter);
		entry.arch_specific = letter == 'a';
		entry.arch_family = letter == 'f';
	} else {
		return is_tile_ir(data, limit) ? OB_ERR_IMAGE_TILE_IR : OB_ERR_IMAGE_UNKNOWN;
	}
	entry.raw_size = entry.size;
	ret->entries = malloc(sizeof(entry));
	if (!ret->entries)
		return OB_ERR_NO_MEMORY;
	ret->entries[0] = entry;
	ret->n_entries = 1;
	return OB_ERR_NONE;
}

static enum ob_err open_at(const void *data, size_t limit, struct obi_image *ret)
{
	struct obi_image image = { .is_wrapper = ret->is_wrapper, .prelinked = ret->prelinked };
	bool is_fatbin = limit >= 4 && begins_with(data, FATBIN_MAGIC);

	enum ob_err err =
		is_fatbin ? fatbin_open(data, limit, &image) : bare_open(data, limit, &image);
	if (err) {
		free(image.entries);
		return err;
	}
	*ret = image;
	return OB_ERR_NONE;
}

enum ob_err obi_image_open(const void *image, struct obi_image *ret)
{
	struct obi_image opened = { 0 };
	struct ob_fatbin_wrapper wrapper;

	if (!image)
		return OB_ERR_ARGUMENT;
	if (begins_with(image, WRAPPER_MAGIC)) {
		memcpy(&wrapper, image, sizeof(wrapper));
		if (!wrapper.data)
			return OB_ERR_IMAGE_DAMAGED;
		image = wrapper.data;
		opened.is_wrapper = true;
		if (wrapper.version == WRAPPER_LINKED)
			opened.prelinked = wrapper.filename_or_prelinked;
	}
	/*
	 * The lengths and terminators in the formats bound every read. The limit, SIZE_MAX -
	 * address, keeps sums of addresses and sizes from wrapping.
	 */
	enum ob_err err = open_at(image, SIZE_MAX - (uintptr_t)image, &opened);
	if (!err)
		*ret = opened;
	return err;
}

enum ob_err obi_image_open_bounded(const void *image, size_t size, struct obi_image *ret)
{
	struct obi_image opened = { 0 };

	if (!image)
		return OB_ERR_ARGUMENT;
	enum ob_err err = open_at(image, size, &opened);
	if (!err)
		*ret = opened;
	return err;
}

void obi_image_fini(struct obi_image *image)
{
	if (!image)
		return;
	free(image->entries);
	memset(image, 0, sizeof(*image));
}

enum ob_err obi_entry_payload(
	const struct obi_entry *entry, const uint8_t **ret_data, size_t *ret_size, bool *ret_owned)
{
	const uint8_t *data = entry->data;
	size_t size = entry->raw_size;
	bool owned = false;

	if (entry->codec != OBI_RAW) {
		/* One more byte, zero: users of PTX may rely on a terminator. */
		uint8_t *raw = malloc(entry->raw_size + 1);
		if (!raw)
			return OB_ERR_NO_MEMORY;
		enum obz_codec codec = entry->codec == OBI_LZ4 ? OBZ_LZ4 : OBZ_ZSTD;
		enum ob_err err =
			obz_decompress(codec, entry->data, entry->size, raw, entry->raw_size);
		if (err) {
			free(raw);
			return err;
		}
		raw[entry->raw_size] = 0;
		data = raw;
		owned = true;
	}
	if (entry->kind == OBI_PTX)
		size = strnlen((const char *)data, size);
	*ret_data = data;
	*ret_size = size;
	*ret_owned = owned;
	return OB_ERR_NONE;
}
