/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Memory of other sessions that this one has imported: descriptors on their way to the driver, and
 * what may be imported at a time. Imported memory is charged to the session that created it. It
 * lives on when that one frees it, so its sum is limited like that of the session's own memory.
 * Any thread.
 */
#ifndef OBS_IMPORTS_H
#define OBS_IMPORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cuda_types.h"

#define OBS_TICKETS_MAX 16u   /* descriptors that wait for cuMemImportFromShareableHandle */
#define OBS_IMPORTS_MAX 4096u /* imported handles */

/*
 * Keeps the descriptor of memory of `bytes` bytes for one import, and charges them: the descriptor
 * keeps the memory as well as a handle does. Returns what the import passes in place of the
 * descriptor, which no client chooses; 0: too much memory would be imported, or no random bytes.
 * The oldest descriptor is closed when there are too many.
 */
uint64_t obs_imports_put(int fd, uint64_t bytes);
/* -1: no such ticket. The caller closes the descriptor, and has its charge. */
int obs_imports_take(uint64_t ticket, uint64_t *ret_bytes);

/* False: too much memory would be imported. */
bool obs_imports_charge(uint64_t bytes);
void obs_imports_discharge(uint64_t bytes);

#endif
