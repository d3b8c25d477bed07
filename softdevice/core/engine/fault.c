/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/engine/fault.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "softdevice/core/engine/cluster.h"
#include "softdevice/core/engine/guard.h"
#include "softdevice/core/ops.h"

/*
 * Set while the thread runs device code. The signal handler uses no other state to decide whether a
 * fault belongs to a worker.
 */
static _Thread_local struct obd_worker *current_worker;
static _Thread_local volatile uintptr_t signal_address;
static struct sigaction old_segv, old_bus;
static pthread_once_t install_once = PTHREAD_ONCE_INIT;

static void chain(const struct sigaction *old, int sig, siginfo_t *info, void *context)
{
	if (old->sa_flags & SA_SIGINFO && old->sa_sigaction) {
		old->sa_sigaction(sig, info, context);
		return;
	}
	if (old->sa_handler == SIG_IGN)
		return;
	if (old->sa_handler && old->sa_handler != SIG_DFL) {
		old->sa_handler(sig);
		return;
	}
	/*
	 * The default action: restore it and return. The access faults again and ends the process.
	 */
	signal(sig, SIG_DFL);
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
	struct obd_worker *wk = current_worker;
	uintptr_t at = (uintptr_t)info->si_addr;

	obd_guard_fault(at);
	if (wk &&
		at - wk->launch->program->env.window_base < wk->launch->program->env.window_size) {
		current_worker = NULL;
		signal_address = at;
		siglongjmp(wk->jmp, OBD_JUMP_SIGNAL);
	}
	chain(sig == SIGSEGV ? &old_segv : &old_bus, sig, info, context);
}

static void install(void)
{
	struct sigaction sa = { .sa_sigaction = on_signal,
		.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK };

	sigemptyset(&sa.sa_mask);
	sigaction(SIGSEGV, &sa, &old_segv);
	sigaction(SIGBUS, &sa, &old_bus);
}

void obd_fault_install(void)
{
	pthread_once(&install_once, install);
}

void obd_fault_enter(struct obd_worker *wk)
{
	obd_fault_install();
	/*
	 * A SIGSEGV that is blocked would kill the process, and the caller may have blocked all
	 * signals.
	 */
	obd_guard_unblock();
	current_worker = wk;
}

void obd_fault_leave(void)
{
	current_worker = NULL;
}

/* True for the one caller that may write launch->fault. */
static bool claim_fault(struct obd_launch *l)
{
	return !atomic_exchange(&l->fault_taken, 1);
}

static void stop_launch(struct obd_launch *l)
{
	atomic_store(&l->stop, 1);
}

static void set_location(
	struct obd_fault *f, const struct obd_warp *w, const struct obd_insn *in, uint32_t lane)
{
	memcpy(f->block, w->cta->ctaid, sizeof(f->block));
	for (uint32_t i = 0; i < 3; i++)
		f->thread[i] = w->tid[i][lane];
	if (in && w->cur) {
		const struct obd_func *fn = w->cur->frame->func;

		if (in >= fn->code && in < fn->code + fn->n_code)
			f->ptx_line = fn->lines[in - fn->code];
	}
}

/* Does the instruction access shared memory, whatever the address is? */
static bool is_shared_access(const struct obd_insn *in)
{
	switch (in ? in->op : OBD_OP_nop) {
	case OBD_OP_ld8_s:
	case OBD_OP_ld16_s:
	case OBD_OP_ld32_s:
	case OBD_OP_ld64_s:
	case OBD_OP_st8_s:
	case OBD_OP_st16_s:
	case OBD_OP_st32_s:
	case OBD_OP_st64_s:
	case OBD_OP_wgmma:
		return true;
	default:
		return false;
	}
}

static const char *space_name(const struct obd_warp *w, const struct obd_insn *in, uintptr_t a)
{
	if (a - w->shared_base < w->shared_bytes || is_shared_access(in))
		return "__shared__";
	if (a - (uintptr_t)w->cta->local < w->cta->local_size)
		return "__local__";
	return "__global__";
}

static void describe_access(struct obd_warp *w, const struct obd_insn *in, uint32_t lane,
	uintptr_t a, uint32_t size, bool write, bool misaligned)
{
	struct obd_launch *l = w->cta->launch;
	struct obd_fault *f = &l->fault;

	if (claim_fault(l)) {
		set_location(f, w, in, lane);
		f->result = misaligned ? CUDA_ERROR_MISALIGNED_ADDRESS : CUDA_ERROR_ILLEGAL_ADDRESS;
		f->address = a;
		f->access_bytes = size;
		f->is_write = write;
		snprintf(f->text, sizeof(f->text),
			"%s %s %s of size %u bytes at 0x%llx by thread (%u,%u,%u) in block "
			"(%u,%u,%u), kernel %.60s, PTX line %u",
			misaligned ? "Misaligned" : "Invalid", space_name(w, in, a),
			write ? "write" : "read", size, (unsigned long long)a, f->thread[0],
			f->thread[1], f->thread[2], f->block[0], f->block[1], f->block[2],
			l->entry->pub.name, f->ptx_line);
	}
	stop_launch(l);
}

static _Noreturn void leave_worker(struct obd_warp *w)
{
	struct obd_worker *wk = w->worker;

	current_worker = NULL;
	siglongjmp(wk->jmp, OBD_JUMP_FAULT);
}

void obd_fault_access(struct obd_warp *w, const struct obd_insn *in, uint32_t m, uint32_t size,
	bool write, uint32_t align_mask)
{
	/*
	 * The same checks as in the handlers, to find the lane that failed. An address outside the
	 * window is reported in preference to a misaligned one, as it is the more likely error.
	 */
	uint32_t lane = (uint32_t)__builtin_ctz(m);
	bool misaligned = false, found = false;

	for (uint32_t r = m; r && !found; r &= r - 1) {
		uint32_t i = (uint32_t)__builtin_ctz(r);
		uint64_t t = w->addr[i] - w->window_base;

		if (t >= w->window_size || w->window_size - t < size) {
			lane = i;
			found = true;
		}
	}
	for (uint32_t r = m; r && !found; r &= r - 1) {
		uint32_t i = (uint32_t)__builtin_ctz(r);

		if (w->addr[i] & align_mask) {
			lane = i;
			found = misaligned = true;
		}
	}
	if (!found) { /* beyond the end of shared or local memory, but inside the window */
		for (uint32_t r = m; r && !found; r &= r - 1) {
			uint32_t i = (uint32_t)__builtin_ctz(r);
			uint64_t s = w->addr[i] - w->shared_base, o = w->addr[i] - w->lbase[i];
			bool in_shared = s < w->shared_bytes && w->shared_bytes - s >= size;
			bool in_local = o < w->stack_bytes && w->stack_bytes - o >= size;

			if (!in_shared && !in_local) {
				lane = i;
				found = true;
			}
		}
	}
	describe_access(w, in, lane, (uintptr_t)w->addr[lane], size, write, misaligned);
	leave_worker(w);
}

void obd_fault_memcheck(
	struct obd_warp *w, const struct obd_insn *in, uint32_t m, uint32_t size, bool write)
{
	const struct obd_env *env = &w->cta->launch->program->env;
	const struct obd_launch *l = w->cta->launch;

	for (uint32_t r = m; r; r &= r - 1) {
		uint32_t i = (uint32_t)__builtin_ctz(r);
		uintptr_t a = (uintptr_t)w->addr[i];

		if (obd_cluster_owns(w, a) || a - (uintptr_t)w->cta->local < w->cta->local_size ||
			a - (uintptr_t)l->params < l->entry->pub.param_bytes ||
			(l->workspace && a - (uintptr_t)l->workspace < 64))
			continue;
		if (!env->check(env->user, a, size) && !(l->owns && l->owns(l, a, size))) {
			describe_access(w, in, i, a, size, write, false);
			leave_worker(w);
		}
	}
}

void obd_fault_raise(struct obd_warp *w, const struct obd_insn *in, uint32_t m, CUresult result,
	const char *what)
{
	struct obd_launch *l = w->cta->launch;
	struct obd_fault *f = &l->fault;

	if (claim_fault(l)) {
		set_location(f, w, in, m ? (uint32_t)__builtin_ctz(m) : 0);
		f->result = result;
		snprintf(f->text, sizeof(f->text),
			"%.110s, by thread (%u,%u,%u) in block (%u,%u,%u), kernel %.60s, PTX line "
			"%u",
			what, f->thread[0], f->thread[1], f->thread[2], f->block[0], f->block[1],
			f->block[2], l->entry->pub.name, f->ptx_line);
	}
	stop_launch(l);
	leave_worker(w);
}

/* The size and the direction of a memory instruction. */
static void insn_access(const struct obd_insn *in, uint32_t *ret_size, bool *ret_write)
{
	*ret_size = 4;
	*ret_write = false;
	switch (in ? in->op : OBD_OP_nop) {
#define CASES(kind)                \
	case OBD_OP_ld8_##kind:    \
		*ret_size = 1;     \
		break;             \
	case OBD_OP_ld16_##kind:   \
		*ret_size = 2;     \
		break;             \
	case OBD_OP_ld64_##kind:   \
		*ret_size = 8;     \
		break;             \
	case OBD_OP_st8_##kind:    \
		*ret_size = 1;     \
		*ret_write = true; \
		break;             \
	case OBD_OP_st16_##kind:   \
		*ret_size = 2;     \
		*ret_write = true; \
		break;             \
	case OBD_OP_st32_##kind:   \
		*ret_write = true; \
		break;             \
	case OBD_OP_st64_##kind:   \
		*ret_size = 8;     \
		*ret_write = true; \
		break;
		CASES(g)
		CASES(s)
		CASES(l)
		CASES(i)
#undef CASES
	case OBD_OP_ld_strong:
		*ret_size = 1u << (in->c & 7);
		break;
	case OBD_OP_st_strong:
		*ret_size = 1u << (in->c & 7);
		*ret_write = true;
		break;
	case OBD_OP_atom:
		*ret_write = true;
		break;
	default:
		break;
	}
}

_Static_assert(_Alignof(struct obd_insn) > OBD_MEM_HALVES, "mem_in has room for the form");

/* Fills w->addr where the access has recorded less than 32 addresses. Returns the instruction. */
static const struct obd_insn *mem_access(struct obd_warp *w, uint32_t *ret_size, bool *ret_write)
{
	uintptr_t how = (uintptr_t)w->mem_in % _Alignof(struct obd_insn);
	const struct obd_insn *in =
		(const struct obd_insn *)(const void *)((const char *)w->mem_in - how);

	insn_access(in, ret_size, ret_write);
	if (how == OBD_MEM_HALVES) {
		uint64_t step = w->addr[1] - w->addr[0];

		for (uint32_t i = 2; i < OBD_LANES; i++)
			w->addr[i] = w->addr[i / 16 * 16] + i % 16 * step;
	} else {
		for (uint32_t i = 0; how && i < OBD_LANES; i++)
			w->addr[i] =
				w->mem_first + (how == OBD_MEM_ROW ? (uint64_t)i * *ret_size : 0);
	}
	return in;
}

void obd_fault_from_signal(struct obd_worker *wk)
{
	struct obd_warp *w = wk->cur_warp;
	uintptr_t at = signal_address;
	uint32_t lane = 0, size;
	uint64_t nearest = UINT64_MAX, next = UINT64_MAX;
	bool write;
	const struct obd_insn *in = mem_access(w, &size, &write);

	for (uint32_t i = 0; i < OBD_LANES; i++) {
		uint64_t away = (uint64_t)at - w->addr[i];

		if ((w->mem_mask >> i) & 1 && away < nearest) {
			nearest = away;
			lane = i;
		}
	}
	/*
	 * An access of a vector under a mask may report the address of a lane that is not active.
	 * The lane that failed is then the next one.
	 */
	for (uint32_t i = 0; nearest >= OBD_SLOT_BYTES && i < OBD_LANES; i++) {
		uint64_t ahead = w->addr[i] - (uint64_t)at;

		if ((w->mem_mask >> i) & 1 && ahead < next && ahead < 2 * OBD_SLOT_BYTES) {
			next = ahead;
			lane = i;
		}
	}
	describe_access(w, in, lane,
		nearest < 16 || next < UINT64_MAX ? (uintptr_t)w->addr[lane] : at, size, write,
		false);
}

void obd_fault_abort(struct obd_launch *l)
{
	if (claim_fault(l)) {
		l->fault.result = CUDA_ERROR_LAUNCH_TIMEOUT;
		snprintf(l->fault.text, sizeof(l->fault.text),
			"kernel %.60s was stopped by the host before its end", l->entry->pub.name);
	}
	stop_launch(l);
}

void obd_fault_memory(struct obd_launch *l)
{
	if (claim_fault(l)) {
		l->fault.result = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
		snprintf(l->fault.text, sizeof(l->fault.text),
			"out of memory for a block of kernel %.60s with %u bytes of shared memory",
			l->entry->pub.name, l->shared_size);
	}
	stop_launch(l);
}
