/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A driver that simulates a compromised worker. When free memory is queried it tries operations
 * that a worker must not be able to do, in the calling thread and in a thread that was started
 * before the sandbox. It answers with one bit for each attempt that succeeded. When preloaded, it
 * does the same in the admission process and writes the result to the log. The targets are in the
 * environment, OUTBOARD_ATTACK_....
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cuda_types.h"
#include "tests/one_device.h"

#define PIDS 400 /* how many process ids above the supervisor's are probed */

static bool opens(const char *path, int flags)
{
	int fd = path ? open(path, flags | O_CLOEXEC, 0600) : -1;

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static bool key(void)
{
	return opens(getenv("OUTBOARD_ATTACK_KEY"), O_RDONLY);
}

static bool tokens(void)
{
	return opens(getenv("OUTBOARD_ATTACK_TOKENS"), O_RDONLY);
}

static bool other_cache(void)
{
	return opens(getenv("OUTBOARD_ATTACK_OTHER"), O_RDONLY);
}

static bool home(void)
{
	return opens(getenv("OUTBOARD_ATTACK_HOME"), O_RDONLY | O_DIRECTORY);
}

static bool write_outside(void)
{
	return opens(getenv("OUTBOARD_ATTACK_OUTSIDE"), O_WRONLY | O_CREAT);
}

static bool passwd(void)
{
	return opens("/etc/passwd", O_RDONLY);
}

static bool other_environ(void)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/environ", (int)getppid());
	return opens(path, O_RDONLY);
}

static bool other_memory(void)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/mem", (int)getppid());
	return opens(path, O_RDWR);
}

static bool makes_socket(int family, int type)
{
	int fd = socket(family, type | SOCK_CLOEXEC, 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static bool tcp_socket(void)
{
	return makes_socket(AF_INET, SOCK_STREAM);
}

static bool netlink_socket(void)
{
	return makes_socket(AF_NETLINK, SOCK_RAW);
}

static bool unix_connect(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const char *path = getenv("OUTBOARD_ATTACK_SOCKET");
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool done;

	if (fd < 0 || !path)
		return false;
	snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
	done = connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
	close(fd);
	return done;
}

/* With a socket that it has: listen on another port. */
static bool listens(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool done =
		fd >= 0 && bind(fd, (struct sockaddr *)&any, sizeof any) == 0 && listen(fd, 1) == 0;

	if (fd >= 0)
		close(fd);
	return done;
}

static bool signals_supervisor(void)
{
	return kill(getppid(), SIGCONT) == 0;
}

static bool signals_worker(void)
{
	for (pid_t pid = getppid() + 1; pid < getppid() + PIDS; pid++)
		if (pid != getpid() && kill(pid, 0) == 0)
			return true;
	return false;
}

/* The kernel sends the signal when a byte arrives. */
static bool signals_by_file(void)
{
	struct f_owner_ex owner = { F_OWNER_PID, getppid() };
	int ends[2], number = getppid();
	bool done;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return false;
	done = fcntl(ends[0], F_SETOWN, number) == 0 || fcntl(ends[0], F_SETOWN_EX, &owner) == 0 ||
		fcntl(ends[0], F_SETSIG, SIGCONT) == 0 || ioctl(ends[0], FIOSETOWN, &number) == 0 ||
		syscall(SYS_fcntl, ends[0], F_SETSIG | 1l << 32, SIGCONT) == 0;
	close(ends[0]);
	close(ends[1]);
	return done;
}

static bool traces(void)
{
	if (ptrace(PTRACE_SEIZE, getppid(), NULL, NULL) != 0)
		return false;
	ptrace(PTRACE_INTERRUPT, getppid(), NULL, NULL);
	waitpid(getppid(), NULL, __WALL);
	ptrace(PTRACE_DETACH, getppid(), NULL, NULL);
	return true;
}

/* EFAULT means that the call was allowed: the kernel tried to read the memory. */
static bool reads_process(void)
{
	char byte;
	struct iovec here = { &byte, 1 }, there = { (void *)(uintptr_t)&environ, 1 };

	return process_vm_readv(getppid(), &here, 1, &there, 1, 0) >= 0 || errno == EFAULT;
}

/* The argument is not readable, so that nothing is replaced if the call is allowed. */
static bool executes(void)
{
	return syscall(SYS_execve, "/bin/true", (char **)8, NULL) == 0 || errno == EFAULT;
}

static bool forks(void)
{
	pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

	if (pid == 0)
		syscall(SYS_exit_group, 0);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	return pid > 0;
}

/* ENOENT, EFAULT, EINVAL: the sandbox did not refuse the call. */
static bool not_refused(long result)
{
	return result >= 0 || (errno != EPERM && errno != ENOSYS && errno != EACCES);
}

static bool mounts(void)
{
	return mount("none", "/nowhere", "tmpfs", 0, NULL) == 0 || errno == ENOENT;
}

static bool becomes_root(void)
{
	return syscall(SYS_setresuid, 0, 0, 0) == 0;
}

static bool has_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { 0 } };

	/* A filter may deny the query; the test reads the active state from /proc. */
	if (syscall(SYS_capget, &header, data) != 0)
		return errno != EPERM;
	return data[0].effective || data[0].permitted || data[0].inheritable || data[1].effective ||
		data[1].permitted || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1;
}

static bool namespaces(void)
{
	return syscall(SYS_setns, -1, CLONE_NEWNET) == 0 || errno == EBADF ||
		not_refused(unshare(CLONE_NEWUSER));
}

static bool programs_kernel(void)
{
	return not_refused(syscall(SYS_bpf, 0xffff, NULL, 0));
}

static bool rings(void)
{
	return not_refused(syscall(SYS_io_uring_setup, 0, NULL));
}

static bool keys(void)
{
	return not_refused(syscall(SYS_keyctl, 0, -3, 0, 0, 0)); /* the session keyring */
}

static bool readable_again(void)
{
	bool done = prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0;

	return done;
}

static bool more_files(void)
{
	struct rlimit limit = { 1 << 19, 1 << 19 }, core;

	if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
		return true;
	return getrlimit(RLIMIT_CORE, &core) == 0 ? core.rlim_max != 0 : errno != EPERM;
}

static bool shared_memory(void)
{
	return not_refused(syscall(SYS_shmget, 0, 4096, 01600));
}

static bool handles_faults(void)
{
	return not_refused(syscall(SYS_userfaultfd, -1));
}

static bool counts_events(void)
{
	return not_refused(syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0));
}

static bool takes_descriptors(void)
{
	return not_refused(syscall(SYS_pidfd_getfd, -1, 0, 0));
}

static bool (*const attempts[])(void) = { key, tokens, other_cache, home, write_outside, passwd,
	other_environ, other_memory, tcp_socket, netlink_socket, unix_connect, listens,
	signals_supervisor, signals_worker, signals_by_file, traces, reads_process, executes, forks,
	mounts, becomes_root, has_capabilities, namespaces, programs_kernel, rings, keys,
	readable_again, more_files, shared_memory, handles_faults, counts_events,
	takes_descriptors };
_Static_assert(sizeof attempts / sizeof attempts[0] <= 32, "a bit each");

#define ATTEMPTS (sizeof attempts / sizeof attempts[0])

static uint32_t try_all(void)
{
	uint32_t succeeded = 0;

	for (size_t i = 0; i < ATTEMPTS; i++)
		succeeded |= (uint32_t)attempts[i]() << i;
	return succeeded;
}

/* ---- preloaded: the admission process tries everything at its first connection ---- */

__attribute__((visibility("default"))) int accept4(
	int fd, struct sockaddr *address, socklen_t *length, int flags)
{
	static bool tried;

	if (!tried)
		dprintf(STDERR_FILENO, "attempts in admission: %08x\n", try_all());
	tried = true;
	return (int)syscall(SYS_accept4, fd, address, length, flags);
}

/* ---- a thread older than the sandbox ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool wanted, answered;
static uint32_t answer;

static void *early(void *unused)
{
	uint32_t succeeded;

	pthread_mutex_lock(&lock);
	for (;;) {
		while (!wanted)
			pthread_cond_wait(&changed, &lock);
		wanted = false;
		pthread_mutex_unlock(&lock);
		succeeded = try_all();
		pthread_mutex_lock(&lock);
		answer = succeeded;
		answered = true;
		pthread_cond_broadcast(&changed);
	}
	return unused;
}

static __attribute__((constructor)) void loaded(void)
{
	pthread_t thread;
	sigset_t all, old;

	if (getenv("LD_PRELOAD"))
		return;
	sigfillset(&all); /* as drivers' threads do */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_create(&thread, NULL, early, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static uint32_t try_all_early(void)
{
	uint32_t succeeded;

	pthread_mutex_lock(&lock);
	answered = false;
	wanted = true;
	pthread_cond_broadcast(&changed);
	while (!answered)
		pthread_cond_wait(&changed, &lock);
	succeeded = answer;
	pthread_mutex_unlock(&lock);
	return succeeded;
}

/* ---- the driver ---- */

const char one_device_name[] = "taken over";
const size_t one_device_bytes = (size_t)1 << 30;

/* Writes its name as NVIDIA's driver does for each thread that it starts: fopen(path, "w"). */
static void *named(void *ret_done)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof path, "/proc/self/task/%ld/comm", syscall(SYS_gettid));
	file = fopen(path, "w");
	*(bool *)ret_done = file && fputs("cuda-EvtHandlr", file) >= 0;
	if (file)
		*(bool *)ret_done &= fclose(file) == 0;
	return NULL;
}

static bool in_place_of_software_device(void)
{
	Dl_info info;

	return dladdr(one_device_name, &info) && strstr(info.dli_fname, "softdevice");
}

/* What NVIDIA's driver 580 does for each context: a failure fails the context. */
static bool can_make_context(void)
{
	struct sockaddr_un control = { .sun_family = AF_UNIX,
		.sun_path = "/tmp/nvidia-mps/control" };
	struct sockaddr_un own = { .sun_family = AF_UNIX };
	int mps = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int shares = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	bool done = mps >= 0 && shares >= 0 &&
		(connect(mps, (struct sockaddr *)&control, sizeof control) == 0 ||
			errno == ENOENT || errno == ECONNREFUSED);

	/* an abstract name: the first byte is 0 */
	snprintf(own.sun_path + 1, sizeof own.sun_path - 1, "outboard-test-uvmfd-%d-%d",
		(int)getpid(), shares);
	done = done && bind(shares, (struct sockaddr *)&own, sizeof own) == 0 &&
		listen(shares, 128) == 0;
	if (mps >= 0)
		close(mps);
	if (shares >= 0)
		close(shares);
	return done;
}

/*
 * What NVIDIA's driver 580 does when it starts and does not start without: seen with strace. The
 * software device needs none of it.
 */
bool one_device_start(void)
{
	static const char *const read[] = { "/proc/self/maps", "/proc/cpuinfo", "/proc/devices",
		"/proc/sys/vm/mmap_min_addr", "/sys/devices/system/cpu/online" };
	bool done = false;
	pthread_t thread;

	if (getenv("LD_PRELOAD") || in_place_of_software_device())
		return true;
	for (size_t i = 0; i < sizeof read / sizeof read[0]; i++)
		if (!opens(read[i], O_RDONLY))
			return false;
	if (!opens("/dev/null", O_RDWR) || pthread_create(&thread, NULL, named, &done) != 0)
		return false;
	pthread_join(thread, NULL);
	return done && can_make_context();
}

/* The first query has no session: a worker makes it while it warms up. */
EXPORT CUresult cuMemGetInfo_v2(size_t *ret_free, size_t *ret_total);
EXPORT CUresult cuMemGetInfo_v2(size_t *ret_free, size_t *ret_total)
{
	static unsigned asked;

	*ret_total = one_device_bytes;
	if (!in_place_of_software_device() && !can_make_context())
		return CUDA_ERROR_NOT_PERMITTED;
	*ret_free = asked++ ? (size_t)try_all_early() << 32 | try_all() : *ret_total;
	return CUDA_SUCCESS;
}
