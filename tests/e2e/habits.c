/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Things that programs do without regard to a library: they cancel threads, call the library from
 * signal handlers, exit in one, close descriptors that they did not open, and use the numbers for
 * their own files. Prints results for habits.py. Every mode ends by itself or by an alarm.
 *
 *     habits cancel|handler|exit|close-low|close-all|close-reused|close-refilled|low-refilled|
 *            close-held
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/cuda_types.h"
#include "tests/waiting.h"

#define BYTES     (1u << 20)
#define FILES_MAX 64
#define ROUNDS    40
#define LOW_LIMIT 256 /* limit of descriptors: leaves the library no high numbers */

static CUresult (*init)(unsigned), (*retain)(CUcontext *, CUdevice), (*set)(CUcontext),
	(*set_limit)(CUlimit, size_t), (*alloc)(CUdeviceptr *, size_t),
	(*up)(CUdeviceptr, const void *, size_t), (*down)(void *, CUdeviceptr, size_t),
	(*fill)(CUdeviceptr, unsigned char, size_t, CUstream);
static CUcontext ctx;
static CUdeviceptr area;
static uint8_t host[BYTES];
/* see sendmsg below */
static enum { HOLD_NONE, HOLD_WANTED, HOLD_ENTERED, HOLD_ENDED, HOLD_LEFT } _Atomic hold;
static _Atomic int data_fd = -1;   /* the descriptor that the main thread sent on last */
static _Atomic pid_t held;         /* the thread */
static int failures, least = 1024; /* lowest descriptor of the library */

static void need(CUresult result, const char *what)
{
	if (result == CUDA_SUCCESS)
		return;
	printf("%s: %d\n", what, (int)result);
	failures++;
}

static void start(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	*(void **)&init = dlsym(library, "cuInit");
	*(void **)&retain = dlsym(library, "cuDevicePrimaryCtxRetain");
	*(void **)&set = dlsym(library, "cuCtxSetCurrent");
	*(void **)&set_limit = dlsym(library, "cuCtxSetLimit");
	*(void **)&alloc = dlsym(library, "cuMemAlloc_v2");
	*(void **)&up = dlsym(library, "cuMemcpyHtoD_v2");
	*(void **)&down = dlsym(library, "cuMemcpyDtoH_v2");
	*(void **)&fill = dlsym(library, "cuMemsetD8Async");
	need(init(0), "init");
	need(retain(&ctx, 0), "retain");
	need(set(ctx), "set");
	need(alloc(&area, BYTES), "alloc");
}

/* One call for each way of waiting. */
static void calls(void)
{
	need(fill(area, 7, BYTES, NULL), "memset");
	need(set_limit(CU_LIMIT_STACK_SIZE, 1024), "limit");
	need(down(host, area, BYTES), "read");
	need(up(area, host, BYTES), "write");
}

/* ---- cancelled threads ---- */

static void *looper(void *argument)
{
	unsigned char *mine = malloc(BYTES);
	set(ctx);
	for (;;) {
		fill(area, 1, 64, NULL);
		if ((uintptr_t)argument % 3 == 0)
			set_limit(CU_LIMIT_STACK_SIZE, 1024);
		else if ((uintptr_t)argument % 3 == 1)
			down(mine, area, BYTES);
		else
			up(area, mine, BYTES);
		if ((uintptr_t)argument % 3 == 2)
			set_limit(CU_LIMIT_STACK_SIZE, 1024);
	}
	return NULL;
}

static void cancel(void)
{
	for (uintptr_t i = 0; i < ROUNDS; i++) {
		pthread_t threads[2];

		for (int k = 0; k < 2; k++)
			pthread_create(&threads[k], NULL, looper, (void *)(i + (uintptr_t)k));
		let_pass(1000 * (1 + (unsigned)i % 7), "threads are cancelled at different places");
		for (int k = 0; k < 2; k++)
			pthread_cancel(threads[k]);
		calls();
		for (int k = 0; k < 2; k++)
			pthread_join(threads[k], NULL);
		calls();
	}
}

/* ---- signal handlers ---- */

static volatile sig_atomic_t answers[3]; /* success, not permitted, other */

static void caller(int signal_number)
{
	CUresult result = set_limit(CU_LIMIT_STACK_SIZE, 1024);

	(void)signal_number;
	answers[result == CUDA_SUCCESS ? 0 : result == CUDA_ERROR_NOT_PERMITTED ? 1 : 2]++;
}

static void leaver(int signal_number)
{
	(void)signal_number;
	exit(3);
}

static void every(void (*handler)(int), long us)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
	struct itimerval timer = { { 0, us }, { 0, us } };

	sigaction(SIGPROF, &action, NULL);
	sigaction(SIGUSR1, &action, NULL);
	setitimer(ITIMER_PROF, &timer, NULL);
}

static void *sender(void *argument)
{
	pthread_t target = *(pthread_t *)argument;

	for (int i = 0; i < 3000; i++) {
		pthread_kill(target, SIGUSR1);
		if (i % 4 == 0)
			waiting_look();
	}
	return NULL;
}

static void handler(void)
{
	pthread_t self = pthread_self(), thread;
	sigset_t all, before;

	/* The other thread has no context: the timer's signals must go to this one. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	pthread_create(&thread, NULL, sender, &self);
	every(caller, 1000);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	while (pthread_tryjoin_np(thread, NULL) != 0)
		calls();
	signal(SIGPROF, SIG_IGN);
	printf("handler: %s, %s, other %d\n", answers[0] + answers[1] > 0 ? "called" : "never",
		answers[1] > 0 ? "refused" : "never refused", (int)answers[2]);
}

static void leave(void)
{
	every(leaver, 100000);
	for (;;)
		calls();
}

/* ---- descriptors ---- */

static int sockets(int *ret)
{
	DIR *folder = opendir("/proc/self/fd");
	struct dirent *entry;
	int n = 0;

	while (folder && (entry = readdir(folder)) && n < FILES_MAX) {
		int fd = (int)strtol(entry->d_name, NULL, 10), type;
		socklen_t size = sizeof type;

		if (fd > 2 && fd != dirfd(folder) &&
			getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0)
			ret[n++] = fd;
	}
	if (folder)
		closedir(folder);
	return n;
}

static bool sockets_high(int *ret, int *ret_n)
{
	bool high = (*ret_n = sockets(ret)) >= 2;

	for (int i = 0; i < *ret_n; i++)
		high = high && ret[i] >= least;
	return high;
}

static bool thread_over(pid_t thread)
{
	return syscall(SYS_tgkill, getpid(), thread, 0) != 0;
}

static bool others_asleep(void)
{
	DIR *folder = opendir("/proc/self/task");
	struct dirent *entry;
	bool asleep = true;

	while (folder && (entry = readdir(folder))) {
		pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10);

		if (thread && thread != gettid())
			asleep = asleep && thread_asleep(thread);
	}
	if (folder)
		closedir(folder);
	return asleep;
}

/*
 * Waits until both connections of the session exist and every thread of the library sleeps. A
 * thread checks its descriptor before it uses it, but nothing can make the check and the use one
 * step: a thread that loses the processor in between would use a number that is reused meanwhile.
 */
static int sockets_made(int *ret)
{
	int n;

	UNTIL(sockets_high(ret, &n) && others_asleep());
	return n;
}

static void close_low(void)
{
	int fds[FILES_MAX], n = sockets_made(fds);

	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	for (int i = 0; i < n; i++)
		printf("descriptor %s\n", fds[i] >= 1024 ? "high" : "low");
	calls();
}

static void close_all(void)
{
	int fds[FILES_MAX];

	sockets_made(fds);
	for (int i = 0; i < 3; i++) {
		syscall(SYS_close_range, 3u, ~0u, 0u);
		calls();
		let_pass(30000 * (unsigned)i,
			"the connections may be made again or not when the next round closes them");
	}
}

/* Replaces the library's sockets by a socket pair and a file with the same descriptor numbers. */
static void close_reused(void)
{
	int fds[FILES_MAX], n = sockets_made(fds), pair[2], file;
	char text[64];

	syscall(SYS_close_range, 3u, ~0u, 0u);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0 ||
		(file = open("/tmp", O_TMPFILE | O_RDWR, 0600)) < 0)
		exit(2);
	for (int i = 0; i < n; i++)
		dup2(i % 2 ? file : pair[0], fds[i]);
	let_pass(1000, "the library takes a number to be its own for 50 us after it looked");
	calls();
	let_pass(1500000, "threads of the library look at their descriptors now and then");
	calls();
	for (int i = 0; i < n; i++)
		if (fcntl(fds[i], F_GETFD) < 0)
			printf("the library closed a file of the program\n");
	if (recv(pair[1], text, sizeof text, MSG_DONTWAIT) >= 0 || lseek(file, 0, SEEK_END) != 0)
		printf("the library wrote to a file of the program\n");
	if (send(pair[1], "x", 1, 0) != 1 || recv(pair[0], text, 1, 0) != 1)
		printf("the library ended a socket of the program\n");
	printf("reused %s\n", n ? "some" : "none");
}

/*
 * Opens sockets until the library's descriptor numbers are in use again: the kernel returns the
 * lowest free number.
 */
static void close_refilled(void)
{
	static int mine[2 * 4096];
	int fds[FILES_MAX], n = sockets_made(fds), last = 0, count = 0, touched = 0;
	struct rlimit limit;
	char byte;

	for (int i = 0; i < n; i++)
		last = fds[i] > last ? fds[i] : last;
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	calls();
	syscall(SYS_close_range, 3u, ~0u, 0u);
	while (count < 4096 && (!count || mine[count - 1] < last) &&
		socketpair(AF_UNIX, SOCK_STREAM, 0, mine + count) == 0)
		count += 2;
	calls();
	let_pass(1500000, "threads of the library look at their descriptors now and then");
	calls();
	for (int i = 0; i < count; i++)
		touched += fcntl(mine[i], F_GETFD) < 0 ||
			recv(mine[i], &byte, 1, MSG_DONTWAIT) >= 0 || errno != EAGAIN;
	if (touched)
		printf("the library touched %d sockets of the program\n", touched);
	printf("reused %s\n", count && mine[count - 1] >= last ? "all" : "not all");
}

/*
 * Stands in for the C library's sendmsg in the library, too. If wanted, holds the next thread that
 * has sent on the data connection, except the main thread, at the end of the system call.
 */
__attribute__((visibility("default"))) ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	ssize_t done = syscall(SYS_sendmsg, fd, msg, flags);
	int error = errno;

	if (gettid() == getpid()) {
		atomic_store(&data_fd, fd);
	} else if (fd == atomic_load(&data_fd) && atomic_load(&hold) == HOLD_WANTED) {
		atomic_store(&held, gettid());
		atomic_store(&hold, HOLD_ENTERED);
		UNTIL(atomic_load(&hold) == HOLD_ENDED);
		atomic_store(&hold, HOLD_LEFT);
	}
	errno = error;
	return done;
}

/*
 * The descriptors are reused and a further call is made while a thread of the library is in the
 * system call for an earlier call.
 */
static void close_held(void)
{
	int fds[FILES_MAX], n = sockets_made(fds), pair[2];
	char byte;

	atomic_store(&hold, HOLD_WANTED);
	need(fill(area, 1, 64, NULL), "memset");
	UNTIL(atomic_load(&hold) == HOLD_ENTERED);
	syscall(SYS_close_range, 3u, ~0u, 0u);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
		exit(2);
	for (int i = 0; i < n; i++)
		dup2(pair[0], fds[i]);
	let_pass(1000, "the library takes a number to be its own for 50 us after it looked");
	fill(area, 2, 64, NULL); /* fails if the library has noticed and does not resume */
	atomic_store(&hold, HOLD_ENDED);
	/* the thread ends if the session does */
	UNTIL(atomic_load(&hold) == HOLD_LEFT && (thread_asleep(held) || thread_over(held)));
	calls();
	if (recv(pair[1], &byte, 1, MSG_DONTWAIT) >= 0)
		printf("the library wrote to a file of the program\n");
	printf("reused %s\n", n ? "some" : "none");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} modes[] = { { "cancel", cancel }, { "handler", handler }, { "exit", leave },
		{ "close-low", close_low }, { "close-all", close_all },
		{ "close-reused", close_reused }, { "close-refilled", close_refilled },
		{ "low-refilled", close_refilled }, { "close-held", close_held } };

	alarm(60);
	if (argc == 2 && strncmp(argv[1], "low", 3) == 0) {
		setrlimit(RLIMIT_NOFILE, &(struct rlimit){ LOW_LIMIT, LOW_LIMIT });
		least = 0;
	}
	start();
	for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
		if (argc == 2 && strcmp(argv[1], modes[i].name) == 0)
			modes[i].run();
	printf("failures %d\n", failures);
	return failures ? 1 : 0;
}
