/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Memory of cuMemCreate, for vmm.c and vmm_share.c. The functions take the lock of vmm.c, except
 * obd_file_size_allowed and obd_physical_file.
 */
#ifndef OBD_VMM_INSIDE_H
#define OBD_VMM_INSIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cuda_types.h"

struct obd_device;

/*
 * A piece of memory. It lives as long as a handle or a mapping of it. Memory that was created with
 * a handle type for other processes, or comes from one, is a file of its own; other memory is a
 * piece of the device's file.
 */
struct obd_physical {
	struct obd_device *device;
	CUmemAllocationProp prop; /* as the program passed it */
	uint64_t offset, size;    /* in the file, multiples of OBD_UNIT */
	uint32_t refs;            /* guarded by the lock */
	int fd;                   /* the file of its own; -1: the device's */
	bool imported;            /* the device is not charged for it */
};

/*
 * Whether the process may make files of this size. Above its limit ftruncate raises SIGXFSZ, also for
 * files in memory. False: errno is EFBIG.
 */
bool obd_file_size_allowed(uint64_t size);
/* Creates the file of its own. False: the system has no memory or descriptors for it. */
bool obd_physical_file(struct obd_physical *physical);
/*
 * A descriptor of the memory's own file, which the caller closes; -1 with errno.
 * *ret_known false: no such handle, or memory without a file of its own.
 */
int obd_physical_dup(CUmemGenericAllocationHandle handle, bool *ret_known);
/* Gives the memory a handle, which holds its one reference. 0: too many handles. */
CUmemGenericAllocationHandle obd_physical_enter(struct obd_physical *physical);
/* A further handle of the memory that is mapped at addr. 0: none is, or too many handles. */
CUmemGenericAllocationHandle obd_physical_retain(uint64_t addr);

#endif
