/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/cuda/fault.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "base/check.h"
#include "client-shim/session/inside.h"
#include "client-shim/session/log.h"

#define STACK_BYTES (256u << 10) /* for a thread whose handlers run on a small stack of their own */

/*
 * The action of the program. Two places, because a handler may read one while the program's new
 * action is stored in the other.
 */
static struct sigaction actions[2];
static _Atomic unsigned action_now;

static obc_fault_serve *_Atomic serve; /* set once */

/* ---- faults that are not ours ---- */

static void default_action(int sig, const siginfo_t *info)
{
	struct sigaction action = { .sa_handler = SIG_DFL };

	sigaction(sig, &action, NULL);
	/* A fault occurs again when the handler returns; a signal that was sent does not. */
	if (info->si_code <= 0)
		raise(sig);
}

/* Does what the system would have done without our handler. */
static void pass_on(int sig, siginfo_t *info, void *context)
{
	struct sigaction *action = &actions[atomic_load(&action_now)];
	struct sigaction now = *action;

	if (!(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_IGN && info->si_code <= 0)
		return;
	if (!(now.sa_flags & SA_SIGINFO) &&
		(now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN)) {
		default_action(sig, info);
		return;
	}
	if (now.sa_flags & SA_RESETHAND)
		*action = (struct sigaction){ .sa_handler = SIG_DFL };
	pthread_sigmask(SIG_BLOCK, &now.sa_mask, NULL);
	if (now.sa_flags & SA_NODEFER) {
		sigset_t set;

		sigemptyset(&set);
		sigaddset(&set, sig);
		pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	}
	if (now.sa_flags & SA_SIGINFO)
		now.sa_sigaction(sig, info, context);
	else
		now.sa_handler(sig);
}

/* ---- ours ---- */

/* 1: a write, 0: a read, -1: unknown, -2: the processor fetched an instruction. */
static int access_kind(const ucontext_t *context)
{
#if defined(__x86_64__)
	uint64_t error = (uint64_t)context->uc_mcontext.gregs[REG_ERR];

	return error & 0x10 ? -2 : (error & 2) != 0;
#else
	(void)context;
	return -1;
#endif
}

/* The request of the thread whose handler switches to another stack. */
static _Thread_local struct {
	uint64_t addr;
	int write;
	bool served;
} request;

static void serve_request(void)
{
	request.served = serve(request.addr, request.write);
}

/* On a stack of our own: that of the program's handlers may be as small as 2 KiB. */
static bool serve_elsewhere(uint64_t addr, int write)
{
	void *stack =
		mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ucontext_t here, there;

	if (stack == MAP_FAILED)
		return false;
	request.addr = addr;
	request.write = write;
	request.served = false;
	if (getcontext(&there) == 0) {
		there.uc_stack.ss_sp = stack;
		there.uc_stack.ss_size = STACK_BYTES;
		there.uc_link = &here;
		makecontext(&there, serve_request, 0);
		swapcontext(&here, &there);
	}
	munmap(stack, STACK_BYTES);
	return request.served;
}

static bool serve_here(uint64_t addr, int write)
{
	unsigned was = obc_inside;
	stack_t stack;
	bool served;
	OBC_WAITS();

	if (ob_unlikely(was && obc_log_writing()))
		return false;
	/* A handler of the program that interrupts this must make no CUDA call. */
	obc_inside = was ? was : OBC_INSIDE_CALL;
	if (sigaltstack(NULL, &stack) == 0 && stack.ss_flags & SS_ONSTACK)
		served = serve_elsewhere(addr, write);
	else
		served = serve(addr, write);
	obc_inside = was;
	return served;
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	int saved = errno, kind = access_kind(context);

	if (info->si_code <= 0 || kind == -2 || !serve_here((uintptr_t)info->si_addr, kind))
		pass_on(sig, info, context);
	errno = saved;
}

bool obc_fault_install(obc_fault_serve *fn)
{
	struct sigaction ours = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK },
			 now;
	unsigned next = !atomic_load(&action_now);

	atomic_store(&serve, fn);
	if (sigaction(SIGSEGV, NULL, &now) != 0)
		return false;
	if (ob_likely(now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_fault))
		return true;
	actions[next] = now;
	atomic_store(&action_now, next);
	sigemptyset(&ours.sa_mask);
	return sigaction(SIGSEGV, &ours, NULL) == 0;
}
