/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_address: what lies at an address of this process. Copies, fills, frees, queries and the
 * checked accesses of kernels ask obd_address_classify; no other code interprets the entries of the
 * window's table (window.h). Device memory is memory of this process, so each address is also the
 * pointer with which the software device accesses it.
 *
 * No lock for addresses inside the window; the front end's map is locked for the others. Any
 * thread.
 */
#ifndef OBD_ADDRESS_H
#define OBD_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cuda_types.h"

struct obd_alloc;
struct obd_mapping;
struct obd_span;

enum obd_address_kind {
	/* outside the window */
	OBD_ADDRESS_INVALID, /* no memory can be there */
	OBD_ADDRESS_HOST,    /* pageable host memory, or nothing */
	OBD_ADDRESS_PINNED,  /* allocated by cuMemHostAlloc and similar calls, or registered */
	/* inside */
	OBD_ADDRESS_UNUSED,    /* free, a guard page or block, or reserved and not mapped */
	OBD_ADDRESS_MEMORY,    /* an allocation of the program, or a variable of a module */
	OBD_ADDRESS_HEAP,      /* malloc in a kernel: only kernels may access it */
	OBD_ADDRESS_ARRAY,     /* an array: only copies with arrays may access it */
	OBD_ADDRESS_SCRATCH,   /* memory of the interpreter: shared and local memory of kernels */
	OBD_ADDRESS_MAPPED,    /* cuMemMap, and some device has access */
	OBD_ADDRESS_NO_ACCESS, /* cuMemMap, and no device has access */
};

struct obd_address {
	enum obd_address_kind kind;
	/*
	 * Bytes from the address to the end of the memory; 0 for kinds without known memory:
	 * invalid, host, unused. Adjacent mappings that are accessible count as one, and are
	 * followed until `size` bytes are found.
	 */
	uint64_t left;
	union {                              /* the owner; NULL for the kinds outside the window */
		struct obd_alloc *alloc;     /* MEMORY, HEAP, ARRAY */
		struct obd_mapping *mapping; /* MAPPED, NO_ACCESS */
		struct obd_span *span;       /* SCRATCH */
	};
};

struct obd_address obd_address_classify(uint64_t addr, uint64_t size);

/*
 * For copies and fills: CUDA_SUCCESS if all of [addr, addr + size) is device memory that the
 * program may access, or if size is 0. CUDA_ERROR_INVALID_VALUE otherwise.
 */
CUresult obd_address_check(uint64_t addr, uint64_t size);
/* May kernels access [addr, addr + size)? */
bool obd_address_kernel_may_access(uint64_t addr, uint64_t size);
/* The same for textures and surfaces, whose memory may be an array. */
bool obd_address_texture_may_access(uint64_t addr, uint64_t size);

#endif
