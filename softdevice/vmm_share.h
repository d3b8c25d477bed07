/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Memory of cuMemCreate that other processes map. The descriptor that a program gets is that of the
 * memory's own file (vmm_inside.h), which consists of the memory and a page that describes it. The
 * file's size is sealed, so that a process that has it cannot make an access of another one fail.
 * Any thread.
 */
#ifndef OBD_VMM_SHARE_H
#define OBD_VMM_SHARE_H

#include <stdint.h>

#include "base/cuda_types.h"

/* The front end's table of sharing (front/share.h). */
CUresult obd_vmm_export(CUmemGenericAllocationHandle handle, int *ret_fd);
CUresult obd_vmm_import(int fd, CUmemGenericAllocationHandle *ret);
CUresult obd_vmm_retain(uint64_t addr, CUmemGenericAllocationHandle *ret);

#endif
