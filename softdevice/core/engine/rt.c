/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The device runtime: functions that code from nvcc calls and that no module defines. The arguments
 * are words in the caller's registers, laid out as in PTX's calling convention.
 */
#include "softdevice/core/engine/rt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softdevice/core/engine/fault.h"
#include "softdevice/core/engine/format.h"
#include "softdevice/core/engine/rt_words.h"
#include "softdevice/core/ops.h"

#define MAX_STRING 4096u /* bytes of a string argument of assert */

/* A string in device memory, checked against the window. A longer string is cut. */
static const char *device_string(
	struct obd_warp *w, const struct obd_insn *in, uint32_t lane, uint64_t a)
{
	if (a - w->window_base >= w->window_size) {
		w->addr[lane] = a;
		obd_fault_access(w, in, 1u << lane, 1, false, 0);
	}
	w->mem_in = in;
	w->mem_mask = 1u << lane;
	w->addr[lane] = a;
	return (const char *)(uintptr_t)a;
}

static void do_assert(struct obd_warp *w, const struct obd_insn *in, const char *regs, uint32_t m)
{
	const struct obd_env *env = &w->cta->launch->program->env;
	char text[3 * 256 + 256];

	for (uint32_t r = m; r; r &= r - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(r);
		const char *expr = device_string(w, in, lane, obd_rt_wide(w, in, regs, 0, lane));
		const char *file = device_string(w, in, lane, obd_rt_wide(w, in, regs, 2, lane));
		uint32_t line = obd_rt_word(w, in, regs, 4, lane);
		const char *func = device_string(w, in, lane, obd_rt_wide(w, in, regs, 5, lane));
		const uint32_t *b = w->cta->ctaid;
		int n = snprintf(text, sizeof(text),
			"%.255s:%u: %.255s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion "
			"`%.255s` failed.\n",
			file, line, func, b[0], b[1], b[2], w->tid[0][lane], w->tid[1][lane],
			w->tid[2][lane], expr);

		(void)env;
		if (n > 0)
			fwrite(text, 1, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1,
				stderr);
	}
	obd_fault_raise(w, in, m, CUDA_ERROR_ASSERT, "device-side assertion failed");
}

static void do_printf(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m)
{
	const struct obd_env *env = &w->cta->launch->program->env;

	for (uint32_t r = m; r; r &= r - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(r);
		const char *fmt = device_string(w, in, lane, obd_rt_wide(w, in, regs, 0, lane));
		uint64_t args = obd_rt_wide(w, in, regs, 2, lane);
		char *text = NULL;
		size_t size = 0;
		int n = obd_format(fmt, args, w->window_base, w->window_size, &text, &size);

		/*
		 * Reading the arguments raises the fault, which leaves this function; the text is
		 * freed first.
		 */
		if (n < -1) {
			free(text);
			text = NULL;
			device_string(w, in, lane, args);
		}
		if (text && size)
			env->print(env->user, text, size);
		free(text);
		obd_rt_result(w, in, regs, 0, lane, (uint32_t)n);
	}
}

static void do_malloc(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m)
{
	const struct obd_env *env = &w->cta->launch->program->env;

	for (uint32_t r = m; r; r &= r - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(r);
		uint64_t size = obd_rt_wide(w, in, regs, 0, lane);
		uint64_t p = (uint64_t)(uintptr_t)env->heap_alloc(env->user, (size_t)size);

		obd_rt_result(w, in, regs, 0, lane, (uint32_t)p);
		obd_rt_result(w, in, regs, 1, lane, (uint32_t)(p >> 32));
	}
}

static void do_free(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m)
{
	const struct obd_env *env = &w->cta->launch->program->env;

	for (uint32_t r = m; r; r &= r - 1) {
		uint64_t p = obd_rt_wide(w, in, regs, 0, (uint32_t)__builtin_ctz(r));

		if (p)
			env->heap_free(env->user, (void *)(uintptr_t)p);
	}
}

/* The handle of a condition is the address of its word. */
static void do_condition(
	struct obd_warp *w, const struct obd_insn *in, const char *regs, uint32_t m)
{
	uint32_t bad = 0;

	for (uint32_t r = m; r; r &= r - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(r);
		uint64_t a = w->addr[lane] = obd_rt_wide(w, in, regs, 0, lane);

		if (a - w->window_base > w->window_size - sizeof(uint32_t) || a % sizeof(uint32_t))
			bad |= 1u << lane;
	}
	w->mem_in = in;
	w->mem_mask = m;
	if (bad)
		obd_fault_access(w, in, bad, sizeof(uint32_t), true, 0);
	if (w->memcheck)
		obd_fault_memcheck(w, in, m, sizeof(uint32_t), true);
	for (uint32_t r = m; r; r &= r - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(r);

		atomic_store_explicit((_Atomic uint32_t *)(uintptr_t)w->addr[lane],
			obd_rt_word(w, in, regs, 2, lane), memory_order_relaxed);
	}
}

bool obd_rt_call(struct obd_warp *w, const struct obd_insn *in, const struct obd_func *f,
	char *regs, uint32_t m)
{
	switch (f->builtin) {
	case OBD_BUILTIN_VPRINTF:
		do_printf(w, in, regs, m);
		break;
	case OBD_BUILTIN_MALLOC:
		do_malloc(w, in, regs, m);
		break;
	case OBD_BUILTIN_FREE:
		do_free(w, in, regs, m);
		break;
	case OBD_BUILTIN_ASSERTFAIL:
		do_assert(w, in, regs, m);
		break;
	case OBD_BUILTIN_CONDITION:
		do_condition(w, in, regs, m);
		break;
	case OBD_BUILTIN_NANOSLEEP:
		break;
	case OBD_BUILTIN_BUFFER ... OBD_BUILTIN_BLOCK_SYNC:
		return w->cta->launch->runtime(w, in, f, regs, m);
	default: {
		char what[110];

		snprintf(what, sizeof(what), "call of the undefined function %.60s", f->name);
		obd_fault_raise(w, in, m, CUDA_ERROR_INVALID_PC, what);
	}
	}
	return false;
}
