/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "image/elf.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/cleanup.h"

enum {
	MACHINE_CUDA = 190,
	/* nvcc 13: SM in bits 8..15 of e_flags; before (0x33) in bits 0..7 */
	OSABI_NEW = 0x41,
	SYMBOL_IS_ENTRY = 0x10, /* st_other */
	SYMBOL_IS_MANAGED = 0x04,
	SYMBOL_TEXTURE = 10, /* types of symbols without a section, as ptxas writes them */
	SYMBOL_SURFACE = 12,
	SECTION_NV_INFO = 0x70000000,
	/* from this SM number on .nv.shared.K starts with a part reserved for the system */
	SHARED_RESERVED_FROM_SM = 90,
	SHARED_RESERVED_BYTES = 1024,
};

/* .nv.info attributes, described at their uses */
enum {
	NVINFO_MAX_THREADS = 0x05,
	NVINFO_REQNTID = 0x10,
	NVINFO_KPARAM_INFO = 0x17,
	NVINFO_CBANK_PARAM_SIZE = 0x19,
	NVINFO_REGCOUNT = 0x2f,
	NVINFO_KPARAM_INFO_LARGE = 0x45,
};

#define NO_KERNEL UINT32_MAX

struct elf {
	const uint8_t *data;
	size_t size;
	Elf64_Ehdr header;
	uint64_t n_sections;
	/* owned copy: nothing guarantees that a cubin inside a fatbin is 8-byte aligned */
	Elf64_Shdr *sections;
	const char *names; /* section names */
	size_t names_size;
};

static uint16_t get16(const uint8_t *p)
{
	uint16_t v;
	memcpy(&v, p, sizeof(v));
	return v;
}

static uint32_t get32(const uint8_t *p)
{
	uint32_t v;
	memcpy(&v, p, sizeof(v));
	return v;
}

bool obi_elf_is(const void *data, size_t size)
{
	return size >= sizeof(Elf64_Ehdr) && memcmp(data, ELFMAG, SELFMAG) == 0;
}

uint32_t obi_elf_arch(const void *elf, size_t size)
{
	Elf64_Ehdr header;

	if (!obi_elf_is(elf, size))
		return 0;
	memcpy(&header, elf, sizeof(header));
	if (header.e_machine != MACHINE_CUDA)
		return 0;
	return header.e_ident[EI_OSABI] == OSABI_NEW ? (header.e_flags >> 8) & 0xff
						     : header.e_flags & 0xff;
}

static bool header_read(const void *data, size_t limit, Elf64_Ehdr *ret)
{
	if (!obi_elf_is(data, limit))
		return false;
	memcpy(ret, data, sizeof(*ret));
	return ret->e_ident[EI_CLASS] == ELFCLASS64 && ret->e_ident[EI_DATA] == ELFDATA2LSB &&
		ret->e_ehsize >= sizeof(*ret) &&
		(!ret->e_shnum || ret->e_shentsize == sizeof(Elf64_Shdr)) &&
		(!ret->e_phnum || ret->e_phentsize == sizeof(Elf64_Phdr));
}

/* Raises *end to offset + size; false when that exceeds `limit`. */
static bool reach(size_t *end, uint64_t offset, uint64_t size, size_t limit)
{
	if (!ob_span_inside(offset, size, limit))
		return false;
	*end = ob_max(*end, (size_t)(offset + size));
	return true;
}

size_t obi_elf_size(const void *elf, size_t limit)
{
	Elf64_Ehdr header;
	size_t end = 0;

	limit = ob_min(limit, (size_t)OBI_PAYLOAD_MAX);
	if (!header_read(elf, limit, &header))
		return 0;
	const uint8_t *data = elf;
	if (!reach(&end, 0, header.e_ehsize, limit) ||
		!reach(&end, header.e_phoff, (uint64_t)header.e_phnum * sizeof(Elf64_Phdr),
			limit) ||
		!reach(&end, header.e_shoff, (uint64_t)header.e_shnum * sizeof(Elf64_Shdr), limit))
		return 0;
	for (size_t i = 0; i < header.e_shnum; i++) {
		Elf64_Shdr section;

		memcpy(&section, data + header.e_shoff + i * sizeof(section), sizeof(section));
		if (section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL &&
			!reach(&end, section.sh_offset, section.sh_size, limit))
			return 0;
	}
	for (size_t i = 0; i < header.e_phnum; i++) {
		Elf64_Phdr segment;

		memcpy(&segment, data + header.e_phoff + i * sizeof(segment), sizeof(segment));
		if (!reach(&end, segment.p_offset, segment.p_filesz, limit))
			return 0;
	}
	return end;
}

static enum ob_err elf_open(const uint8_t *data, size_t size, struct elf *elf)
{
	memset(elf, 0, sizeof(*elf));
	elf->data = data;
	elf->size = size;
	if (!header_read(data, size, &elf->header))
		return OB_ERR_IMAGE_DAMAGED;
	const Elf64_Ehdr *header = &elf->header;
	elf->n_sections = header->e_shnum;
	if (!elf->n_sections)
		return OB_ERR_IMAGE_DAMAGED;
	if (!ob_span_inside(header->e_shoff, elf->n_sections * sizeof(Elf64_Shdr), size))
		return OB_ERR_IMAGE_DAMAGED;
	elf->sections = malloc(elf->n_sections * sizeof(Elf64_Shdr));
	if (!elf->sections)
		return OB_ERR_NO_MEMORY;
	memcpy(elf->sections, data + header->e_shoff, elf->n_sections * sizeof(Elf64_Shdr));
	if (header->e_shstrndx >= elf->n_sections)
		return OB_ERR_IMAGE_DAMAGED;
	const Elf64_Shdr *names = &elf->sections[header->e_shstrndx];
	if (names->sh_type != SHT_STRTAB || !ob_span_inside(names->sh_offset, names->sh_size, size))
		return OB_ERR_IMAGE_DAMAGED;
	elf->names = (const char *)data + names->sh_offset;
	elf->names_size = names->sh_size;
	return OB_ERR_NONE;
}

/* Returns the NUL-terminated string at `offset` of a table; "" when it is not inside the table. */
static const char *table_string(const char *table, size_t size, size_t offset)
{
	if (offset >= size || !memchr(table + offset, 0, size - offset))
		return "";
	return table + offset;
}

static const char *section_name(const struct elf *elf, const Elf64_Shdr *section)
{
	return table_string(elf->names, elf->names_size, section->sh_name);
}

static bool has_prefix(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Returns the section's bytes; NULL when they exceed the file or there are none. */
static const uint8_t *section_bytes(const struct elf *elf, const Elf64_Shdr *section)
{
	if (section->sh_type == SHT_NOBITS ||
		!ob_span_inside(section->sh_offset, section->sh_size, elf->size))
		return NULL;
	return elf->data + section->sh_offset;
}

struct nvinfo {
	const uint8_t *p, *end;
	uint8_t format, attribute;
	const uint8_t *value;
	size_t size;
};

/*
 * Reads the next record: u8 format, u8 attribute, then nothing (format 1), u8 (2), u16 (3), or u16
 * length and bytes (4).
 */
static bool nvinfo_next(struct nvinfo *it)
{
	if (it->end - it->p < 4)
		return false;
	it->format = it->p[0];
	it->attribute = it->p[1];
	it->value = it->p + 2;
	it->size = 2;
	if (it->format == 4) {
		it->size = get16(it->p + 2);
		it->value = it->p + 4;
		if ((size_t)(it->end - it->value) < it->size)
			return false;
		it->p = it->value + it->size;
		return true;
	}
	it->p += 4;
	return it->format >= 1 && it->format <= 3;
}

/*
 * Reads both forms of a parameter record, 12 bytes: u32 0, u16 ordinal, u16 offset, then a u32 with
 * the size in its upper 14 bits or, for kernels with more than 4 KB of parameters, in its lower 24
 * (sm_100 stores the pointee's space above them).
 */
static bool nvinfo_param(const struct nvinfo *it, uint32_t *ret_ordinal, struct obi_param *ret)
{
	if (it->format != 4 || it->size < 12 ||
		(it->attribute != NVINFO_KPARAM_INFO && it->attribute != NVINFO_KPARAM_INFO_LARGE))
		return false;
	uint32_t word = get32(it->value + 8);
	*ret_ordinal = get16(it->value + 4);
	ret->offset = get16(it->value + 6);
	ret->size = it->attribute == NVINFO_KPARAM_INFO_LARGE ? word & 0xffffff : word >> 18;
	return true;
}

static enum ob_err kernel_info(
	const uint8_t *bytes, size_t size, struct obi_builder *builder, uint32_t index)
{
	struct obi_kernel *kernel = obi_builder_kernel_at(builder, index);
	struct nvinfo it = { .p = bytes, .end = bytes + size };
	uint32_t n = 0, seen = 0, ordinal;
	struct obi_param param;

	while (nvinfo_next(&it)) {
		if (nvinfo_param(&it, &ordinal, &param)) {
			n = ob_max(n, ordinal + 1);
			seen++;
		} else if (it.attribute == NVINFO_CBANK_PARAM_SIZE && it.format == 3) {
			kernel->param_bytes = get16(it.value);
		} else if (it.attribute == NVINFO_MAX_THREADS && it.format == 4 && it.size >= 12) {
			uint64_t threads = (uint64_t)get32(it.value) * get32(it.value + 4);

			if (threads <= UINT32_MAX && threads * get32(it.value + 8) <= UINT32_MAX)
				kernel->max_threads = (uint32_t)(threads * get32(it.value + 8));
		} else if (it.attribute == NVINFO_REQNTID && it.format == 4 && it.size >= 12) {
			for (int i = 0; i < 3; i++)
				kernel->reqntid[i] = get32(it.value + 4 * i);
		}
	}
	if (n > OBI_PARAM_MAX)
		return OB_ERR_LIMIT;
	/* A gap would make cuLaunchKernel's pointer array ambiguous. */
	if (n != seen)
		return OB_ERR_IMAGE_DAMAGED;
	struct obi_param *params = obi_builder_params(builder, kernel, n);
	if (!params)
		return OB_ERR_LIMIT;
	it = (struct nvinfo){ .p = bytes, .end = bytes + size };
	while (nvinfo_next(&it)) {
		if (!nvinfo_param(&it, &ordinal, &param))
			continue;
		if (param.size > OBI_PARAM_BYTES_MAX ||
			param.offset + param.size > OBI_PARAM_BYTES_MAX)
			return OB_ERR_LIMIT;
		params[ordinal] = param;
		kernel->param_bytes = ob_max(kernel->param_bytes, param.offset + param.size);
	}
	return kernel->param_bytes > OBI_PARAM_BYTES_MAX ? OB_ERR_LIMIT : OB_ERR_NONE;
}

/*
 * Result of reading the symbol table: maps text sections and symbols to kernels, for the records
 * that follow.
 */
struct symbols_map {
	uint32_t *kernel_of_section; /* by section, owned */
	const uint8_t *table;
	const char *strings;
	size_t strings_size;
	uint64_t n_symbols;
};

static Elf64_Sym symbol_at(const struct symbols_map *map, uint64_t index)
{
	Elf64_Sym symbol;

	memcpy(&symbol, map->table + index * sizeof(symbol), sizeof(symbol));
	return symbol;
}

static void scan_variable(const struct elf *elf, const Elf64_Sym *symbol, const char *name,
	struct obi_builder *builder)
{
	const Elf64_Shdr *holder = &elf->sections[symbol->st_shndx];
	const char *section = section_name(elf, holder);
	bool is_const = strcmp(section, ".nv.constant3") == 0;

	/* A name that begins with $ was made by the compiler (string literals). */
	if ((!is_const && strcmp(section, ".nv.global") != 0 &&
		    strcmp(section, ".nv.global.init") != 0) ||
		name[0] == '$')
		return;
	struct obi_variable *variable = obi_builder_variable(builder, name, strlen(name));
	if (variable) {
		variable->size = symbol->st_size;
		variable->is_const = is_const;
		variable->is_managed = symbol->st_other & SYMBOL_IS_MANAGED;
		if (section_bytes(elf, holder) &&
			ob_span_inside(symbol->st_value, symbol->st_size, holder->sh_size))
			variable->init = holder->sh_offset + symbol->st_value;
	}
}

static enum ob_err scan_symbols(
	const struct elf *elf, struct symbols_map *map, struct obi_builder *builder)
{
	for (uint64_t i = 0; i < map->n_symbols; i++) {
		Elf64_Sym symbol = symbol_at(map, i);
		const char *name = table_string(map->strings, map->strings_size, symbol.st_name);
		int type = ELF64_ST_TYPE(symbol.st_info);

		if (!name[0])
			continue;
		if (symbol.st_shndx == SHN_UNDEF) {
			builder->prints |=
				strcmp(name, "vprintf") == 0 || strcmp(name, "__assertfail") == 0;
			if (type == SYMBOL_TEXTURE || type == SYMBOL_SURFACE)
				obi_builder_ref(
					builder, name, strlen(name), type == SYMBOL_SURFACE);
			continue;
		}
		if (symbol.st_shndx >= elf->n_sections)
			continue;
		if (type == STT_FUNC && (symbol.st_other & SYMBOL_IS_ENTRY)) {
			if (map->kernel_of_section[symbol.st_shndx] != NO_KERNEL)
				return OB_ERR_IMAGE_DAMAGED;
			if (!obi_builder_kernel(builder, name, strlen(name)))
				return OB_ERR_LIMIT;
			map->kernel_of_section[symbol.st_shndx] =
				(uint32_t)(obi_builder_n_kernels(builder) - 1);
		} else if (type == STT_OBJECT) {
			scan_variable(elf, &symbol, name, builder);
		}
	}
	return OB_ERR_NONE;
}

/* REGCOUNT records are in the .nv.info section of the whole file: u32 symbol, u32 registers. */
static void scan_registers(const uint8_t *bytes, size_t size, const struct elf *elf,
	const struct symbols_map *map, struct obi_builder *builder)
{
	struct nvinfo it = { .p = bytes, .end = bytes + size };

	while (nvinfo_next(&it)) {
		if (it.attribute != NVINFO_REGCOUNT || it.format != 4 || it.size < 8 ||
			get32(it.value) >= map->n_symbols)
			continue;
		Elf64_Sym symbol = symbol_at(map, get32(it.value));
		if (symbol.st_shndx >= elf->n_sections || !(symbol.st_other & SYMBOL_IS_ENTRY))
			continue;
		uint32_t kernel = map->kernel_of_section[symbol.st_shndx];
		if (kernel != NO_KERNEL)
			obi_builder_kernel_at(builder, kernel)->registers = get32(it.value + 4);
	}
}

static enum ob_err scan_sections(
	const struct elf *elf, const struct symbols_map *map, struct obi_builder *builder)
{
	for (uint64_t i = 1; i < elf->n_sections; i++) {
		const Elf64_Shdr *section = &elf->sections[i];
		const char *name = section_name(elf, section);

		if (has_prefix(name, ".nv.shared.") && section->sh_info < elf->n_sections) {
			uint32_t kernel = map->kernel_of_section[section->sh_info];
			uint64_t reserved = builder->arch >= SHARED_RESERVED_FROM_SM
				? SHARED_RESERVED_BYTES
				: 0;

			if (kernel != NO_KERNEL && section->sh_size >= reserved &&
				section->sh_size <= UINT32_MAX)
				obi_builder_kernel_at(builder, kernel)->static_shared =
					(uint32_t)(section->sh_size - reserved);
			continue;
		}
		if (section->sh_type != SECTION_NV_INFO || !has_prefix(name, ".nv.info"))
			continue;
		const uint8_t *bytes = section_bytes(elf, section);
		if (!bytes)
			return OB_ERR_IMAGE_DAMAGED;
		if (strcmp(name, ".nv.info") == 0) {
			scan_registers(bytes, section->sh_size, elf, map, builder);
			continue;
		}
		if (section->sh_info >= elf->n_sections)
			return OB_ERR_IMAGE_DAMAGED;
		uint32_t kernel = map->kernel_of_section[section->sh_info];
		if (kernel == NO_KERNEL)
			continue; /* belongs to a device function */
		enum ob_err err = kernel_info(bytes, section->sh_size, builder, kernel);
		if (err)
			return err;
	}
	return OB_ERR_NONE;
}

static enum ob_err map_init(const struct elf *elf, struct symbols_map *map)
{
	const Elf64_Shdr *symtab = NULL;

	memset(map, 0, sizeof(*map));
	map->kernel_of_section = malloc(elf->n_sections * sizeof(uint32_t));
	if (!map->kernel_of_section)
		return OB_ERR_NO_MEMORY;
	for (uint64_t i = 0; i < elf->n_sections; i++) {
		map->kernel_of_section[i] = NO_KERNEL;
		if (elf->sections[i].sh_type == SHT_SYMTAB)
			symtab = &elf->sections[i];
	}
	if (!symtab)
		return OB_ERR_NONE; /* no symbols: no kernels */
	if (symtab->sh_link >= elf->n_sections)
		return OB_ERR_IMAGE_DAMAGED;
	const Elf64_Shdr *strings = &elf->sections[symtab->sh_link];
	map->table = section_bytes(elf, symtab);
	map->strings = (const char *)section_bytes(elf, strings);
	map->strings_size = strings->sh_size;
	map->n_symbols = symtab->sh_size / sizeof(Elf64_Sym);
	return map->table && map->strings ? OB_ERR_NONE : OB_ERR_IMAGE_DAMAGED;
}

enum ob_err obi_elf_scan(const uint8_t *data, size_t size, struct obi_builder *builder)
{
	struct elf elf;
	struct symbols_map map = { 0 };
	enum ob_err err = elf_open(data, size, &elf);

	builder->arch = obi_elf_arch(data, size);
	if (!err)
		err = map_init(&elf, &map);
	if (!err)
		err = scan_symbols(&elf, &map, builder);
	if (!err)
		err = scan_sections(&elf, &map, builder);
	free(map.kernel_of_section);
	free(elf.sections);
	return err;
}
