/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Fatal errors of a grid. The first fault of a launch is recorded. The thread that caused it jumps
 * out of its work, and the other threads check launch->stop. Memory faults inside the window arrive
 * as signals. The handlers are installed once; they pass all other signals on to the previous
 * handlers.
 */
#ifndef OBD_CORE_FAULT_H
#define OBD_CORE_FAULT_H

#include "softdevice/core/engine/exec.h"

#define OBD_JUMP_FAULT  1
#define OBD_JUMP_SIGNAL 2

/* End the work of the calling thread; do not return. */
_Noreturn void obd_fault_access(struct obd_warp *w, const struct obd_insn *in, uint32_t m,
	uint32_t size, bool write, uint32_t align_mask);
_Noreturn void obd_fault_raise(struct obd_warp *w, const struct obd_insn *in, uint32_t m,
	CUresult result, const char *what);
/* OUTBOARD_SOFT_MEMCHECK: checks each lane's access by obd_env.check. Returns if all are valid. */
void obd_fault_memcheck(
	struct obd_warp *w, const struct obd_insn *in, uint32_t m, uint32_t size, bool write);

/* Installs the signal handlers, once. */
void obd_fault_install(void);
/* Between these two calls, faults on the calling thread are handled for the worker. */
void obd_fault_enter(struct obd_worker *wk);
void obd_fault_leave(void);
/* Called after the jump: records the access that raised the signal. */
void obd_fault_from_signal(struct obd_worker *wk);
/* Record a fault that has no place in the program: a stop by another thread, and lack of memory. */
void obd_fault_abort(struct obd_launch *l);
void obd_fault_memory(struct obd_launch *l);

#endif
