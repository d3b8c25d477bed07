/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obi_image: the argument of cuModuleLoadData and similar calls (nvcc's wrapper, a bare fatbin, a
 * cubin, PTX text) as a list of entries. obi_symbols: the kernels, variables, and texture and
 * surface references that one entry defines.
 *
 * All input is validated, and nothing is executed. An opened image borrows the caller's bytes;
 * entries and symbols own what they decompress. No shared state; any thread.
 */
#ifndef OBI_IMAGE_H
#define OBI_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define OBI_ENTRY_MAX       4096u      /* entries in one fatbin */
#define OBI_PAYLOAD_MAX     (1u << 30) /* bytes of one entry, uncompressed */
#define OBI_KERNEL_MAX      65536u     /* kernels in one entry */
#define OBI_PARAM_MAX       4096u      /* parameters of one kernel */
#define OBI_PARAM_BYTES_MAX 32764u

enum obi_kind { OBI_PTX = 1, OBI_ELF = 2, OBI_LTO = 8 };
enum obi_codec { OBI_RAW, OBI_LZ4, OBI_ZSTD };

struct obi_entry {
	enum obi_kind kind;
	enum obi_codec codec;
	uint32_t arch;      /* 90 for sm_90; 0 when a bare cubin or PTX text does not say */
	bool arch_specific; /* sm_90a */
	bool arch_family;   /* sm_100f */
	bool debug;
	const uint8_t *data; /* as stored */
	size_t size;         /* exact bytes as stored */
	size_t raw_size;     /* uncompressed */
	/* header and payload as stored in the fatbin; NULL for a bare cubin or PTX */
	const uint8_t *whole;
	size_t whole_size;
};

struct obi_image {
	size_t n_entries;
	struct obi_entry *entries; /* owned */
	bool is_wrapper, is_fatbin;
	/*
	 * Wrapper of nvcc -rdc=true: the fatbins of the objects that were linked, terminated by
	 * NULL; borrowed. Used by ptx_merge.h.
	 */
	const void *const *prelinked;
};

/*
 * Opens an image. The CUDA API does not give its length: obi_image_open relies on the lengths in
 * the formats, as a driver must. obi_image_open_bounded takes the readable size and never reads
 * beyond it. OB_ERR_IMAGE_*.
 */
enum ob_err obi_image_open(const void *image, struct obi_image *ret);
enum ob_err obi_image_open_bounded(const void *image, size_t size, struct obi_image *ret);
void obi_image_fini(struct obi_image *image);

/*
 * Computes the size of a cubin from its tables, at most `limit` (SIZE_MAX: unbounded); 0 when it is
 * not a valid ELF file.
 */
size_t obi_elf_size(const void *elf, size_t limit);

/*
 * Selects the entry for a device of compute capability `cc` (90 for 9.0): the highest cubin with
 * the device's major version and at most its minor version (exact match for "a", family rule for
 * "f"), otherwise the newest PTX that is at most cc. NULL: no entry fits. ptx_only: never a cubin. If
 * nothing else fits, PTX for older devices of one kind ("sm_90a", "sm_120f") is taken as well: such a
 * device interprets the instructions, and refuses a kernel with one that it does not know.
 */
const struct obi_entry *obi_image_select(const struct obi_image *image, uint32_t cc, bool ptx_only);
/* "sm_80, sm_90 (no PTX)" for messages; always NUL-terminated. */
void obi_image_describe(const struct obi_image *image, char *ret_text, size_t size);

/*
 * Returns the uncompressed payload. *ret_owned: the caller must free *ret_data with free().
 * Trailing NULs of PTX are removed.
 */
enum ob_err obi_entry_payload(
	const struct obi_entry *entry, const uint8_t **ret_data, size_t *ret_size, bool *ret_owned);

struct obi_param {
	uint32_t offset, size;
};

struct obi_kernel {
	const char *name;
	const struct obi_param *params;
	uint32_t n_params;
	uint32_t param_bytes;
	uint32_t static_shared; /* bytes; 0 when unknown */
	uint32_t max_threads;   /* launch bound; 0 when none */
	uint32_t reqntid[3];
	uint32_t registers; /* 0 when unknown (PTX) */
};

struct obi_variable {
	const char *name;
	uint64_t size; /* 0 when unknown */
	/* where its initial value lies in a cubin; 0: it begins as zeros, or it is in PTX */
	uint64_t init;
	bool is_const, is_managed;
};

/* A texture or a surface reference: a variable of type .texref or .surfref. */
struct obi_ref {
	const char *name;
	bool is_surface;
};

struct obi_symbols {
	size_t n_kernels, n_variables, n_refs;
	struct obi_kernel *kernels;     /* sorted by name */
	struct obi_variable *variables; /* sorted by name */
	struct obi_ref *refs;           /* sorted by name */
	bool prints;                    /* refers to vprintf or __assertfail, so it may print */
	uint32_t arch;                  /* .target or e_flags */
	uint32_t ptx_version;           /* 90 for .version 9.0; 0 for a cubin */
	uint64_t variable_bytes;        /* total of the variables whose size is known */
	/* PTX that every driver of its version accepts: image/ptx_plain.h. False for a cubin */
	bool plain;
	void *storage; /* names and params */
};

/*
 * Reads the symbols of an uncompressed cubin or PTX text; the content decides which it is. PTX is
 * scanned, not parsed: .entry, .param, .maxntid, .reqntid, .shared, globals, .texref, .surfref.
 */
enum ob_err obi_symbols_read(const void *data, size_t size, struct obi_symbols *ret);
void obi_symbols_fini(struct obi_symbols *symbols);
const struct obi_kernel *obi_symbols_kernel(const struct obi_symbols *symbols, const char *name);
const struct obi_variable *obi_symbols_variable(
	const struct obi_symbols *symbols, const char *name);
/* NULL: there is none of that name, or it is of the other kind. */
const struct obi_ref *obi_symbols_ref(
	const struct obi_symbols *symbols, const char *name, bool is_surface);

#endif
