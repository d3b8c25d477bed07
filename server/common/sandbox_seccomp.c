/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/common/sandbox_seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "base/cleanup.h"

#define FILTER_BYTES_MAX ((size_t)64 << 10)

/* Denied to every driver, whatever its arguments, with EPERM. */
/* clang-format off */
static const char *const denied[] = {
	/* running programs, creating and tracing processes */
	"execve", "execveat", "fork", "vfork", "ptrace", "process_vm_readv", "process_vm_writev",
	"process_madvise", "process_mrelease", "kcmp", "pidfd_getfd", "pidfd_send_signal",
	"rt_sigqueueinfo", "rt_tgsigqueueinfo", "tkill", "migrate_pages",
	/*
	 * new connections: sockets are passed to it. NVIDIA's driver binds an abstract Unix socket for
	 * each context and listens on it; sockets of other families cannot be made, Landlock denies
	 * names in the file system, and nothing can be accepted
	 */
	"accept", "accept4",
	/* users and capabilities */
	"setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid", "setfsuid",
	"setfsgid", "setgroups", "capset", "chown", "fchown", "lchown", "fchownat", "mknod",
	"mknodat",
	/* mounts and namespaces */
	"mount", "umount2", "move_mount", "open_tree", "fsopen", "fsmount", "fsconfig", "fspick",
	"mount_setattr", "pivot_root", "chroot", "unshare", "setns", "open_by_handle_at",
	"name_to_handle_at", "fanotify_init", "fanotify_mark", "quotactl", "quotactl_fd", "acct",
	/* the machine */
	"init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot",
	"swapon", "swapoff", "settimeofday", "clock_settime", "clock_adjtime", "adjtimex",
	"sethostname", "setdomainname", "iopl", "ioperm", "syslog", "vhangup", "nfsservctl",
	/* large kernel subsystems that no driver needs */
	"bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter",
	"io_uring_register", "keyctl", "add_key", "request_key", "lookup_dcookie",
	"personality", "seccomp", "uselib", "ustat", "sysfs", "modify_ldt", "vm86", "vm86old",
	/* memory and queues that other processes can find by a number or a name */
	"shmget", "shmat", "shmdt", "shmctl", "semget", "semop", "semctl",
	"semtimedop", "msgget", "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink",
};
/* clang-format on */

/*
 * All calls that the server and the software device use, with any arguments. add_conditions_soft
 * has those that depend on arguments.
 */
/* clang-format off */
static const char *const allowed[] = {
	"read", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev", "recvfrom",
	"recvmsg", "recvmmsg", "sendto", "sendmsg", "sendmmsg", "poll", "ppoll", "select",
	"pselect6", "epoll_wait", "epoll_pwait", "epoll_ctl", "epoll_create1", "eventfd2", "pipe2",
	"shutdown", "getsockname", "getpeername", "getsockopt", "setsockopt", "close",
	"close_range", "dup", "dup2", "dup3", "lseek", "_llseek", "fstat", "fstat64", "newfstatat",
	"fstatat64", "statx", "stat", "lstat", "fstatfs", "fstatfs64", "ftruncate", "ftruncate64",
	"fallocate", "flock", "open", "openat", "openat2", "access", "faccessat", "faccessat2",
	"readlink", "readlinkat", "getdents64", "mkdirat", "unlink", "unlinkat", "renameat",
	"renameat2", "utimensat", "utime", "umask", "fsync", "fdatasync", "getcwd", "memfd_create",
	"munmap", "mremap", "brk", "madvise", "msync", "mincore", "membarrier", "mlock", "munlock",
	"futex", "futex_waitv", "set_robust_list", "get_robust_list", "rseq", "set_tid_address",
	"exit", "exit_group", "sched_yield", "sched_getaffinity", "sched_getparam",
	"sched_getscheduler", "sched_get_priority_max", "sched_get_priority_min", "gettid",
	"getpid", "getppid", "getuid", "geteuid", "getgid", "getegid", "getcpu", "rt_sigaction",
	"rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "rt_sigtimedwait", "rt_sigsuspend",
	"sigaltstack", "pause", "restart_syscall", "clock_gettime", "clock_getres",
	"clock_nanosleep", "nanosleep", "gettimeofday", "time", "times", "getitimer", "setitimer",
	"alarm", "timerfd_create", "timerfd_settime", "getrandom", "getrusage", "sysinfo", "uname",
	"getrlimit", "ugetrlimit", "arch_prctl", "pidfd_open",
};
/* clang-format on */

/* The admission process: accepting connections, the channel, passed descriptors, memory. */
/* clang-format off */
static const char *const admitted[] = {
	"read", "write", "readv", "writev", "recvfrom", "recvmsg", "sendto", "sendmsg", "accept",
	"accept4", "shutdown", "getsockname", "getpeername", "getsockopt", "setsockopt", "close",
	"lseek", "_llseek", "fstat", "fstat64", "newfstatat", "fstatat64", "statx", "poll", "ppoll",
	"epoll_create1", "eventfd2", "pipe2", "epoll_wait", "epoll_pwait", "epoll_pwait2",
	"epoll_ctl", "munmap", "mremap", "brk", "madvise", "futex", "set_robust_list", "rseq",
	"exit", "exit_group", "sched_yield", "gettid", "getpid", "getppid", "rt_sigaction",
	"rt_sigprocmask", "rt_sigreturn", "sigaltstack", "restart_syscall", "clock_gettime",
	"clock_getres", "clock_nanosleep", "nanosleep", "gettimeofday", "time", "getrandom",
	"getrusage", "sysinfo", "uname",
};
/* clang-format on */

static struct sock_fprog filter;

bool obs_seccomp_available(void)
{
	uint32_t action = SECCOMP_RET_ERRNO;

	return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

/* A call unknown to this version of libseccomp or to this processor needs no rule. */
static bool add_all(scmp_filter_ctx ctx, uint32_t action, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int call = seccomp_syscall_resolve_name(names[i]);
		int err = call == __NR_SCMP_ERROR ? 0 : seccomp_rule_add(ctx, action, call, 0);

		if (err && err != -EDOM && err != -EOPNOTSUPP) {
			errno = -err;
			return false;
		}
	}
	return true;
}

/*
 * The macros SCMP_A0 etc. leave a field out, which clang warns of. Masked comparisons: a is the
 * mask, b the value.
 */
static struct scmp_arg_cmp argument(unsigned number, enum scmp_compare op, uint64_t a, uint64_t b)
{
	return (struct scmp_arg_cmp){ .arg = number, .op = op, .datum_a = a, .datum_b = b };
}

static bool add_if(
	scmp_filter_ctx ctx, uint32_t action, const char *name, struct scmp_arg_cmp condition)
{
	int call = seccomp_syscall_resolve_name(name);
	int err = call == __NR_SCMP_ERROR
		? 0
		: seccomp_rule_add_array(ctx, action, call, 1, &condition);

	if (err && err != -EDOM && err != -EOPNOTSUPP) {
		errno = -err;
		return false;
	}
	return true;
}

/*
 * clone3 takes its flags in memory, which a filter cannot read. Without it the C library uses
 * clone.
 */
static bool add_no_clone3(scmp_filter_ctx ctx)
{
	static const char *const name[] = { "clone3" };

	return add_all(ctx, SCMP_ACT_ERRNO(ENOSYS), name, 1);
}

/*
 * F_SETOWN and F_SETSIG make the kernel send any signal, SIGKILL included, to a process of this
 * user when data arrives. Landlock denies that only from version 6 on.
 */
static const int signalling[] = { F_SETOWN, F_SETOWN_EX, F_SETSIG };
static const int harmless[] = { F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_SETFL,
	F_GETLK, F_SETLK, F_SETLKW, F_OFD_GETLK, F_OFD_SETLK, F_ADD_SEALS, F_GET_SEALS };

static bool add_fcntl_soft(scmp_filter_ctx ctx)
{
	bool ok = true;

	for (size_t i = 0; ok && i < ob_count(harmless); i++)
		ok = add_if(ctx, SCMP_ACT_ALLOW, "fcntl",
			argument(1, SCMP_CMP_EQ, (uint64_t)harmless[i], 0));
	return ok;
}

/* The kernel uses only the low 32 bits of an int argument: the filter must ignore the others. */
static bool add_fcntl_driver(scmp_filter_ctx ctx)
{
	const uint32_t no = SCMP_ACT_ERRNO(EPERM);
	bool ok = true;

	for (size_t i = 0; ok && i < ob_count(signalling); i++)
		ok = add_if(ctx, no, "fcntl",
			argument(1, SCMP_CMP_MASKED_EQ, UINT32_MAX, (uint64_t)signalling[i]));
	return ok &&
		add_if(ctx, no, "ioctl", argument(1, SCMP_CMP_MASKED_EQ, UINT32_MAX, FIOSETOWN)) &&
		add_if(ctx, no, "ioctl", argument(1, SCMP_CMP_MASKED_EQ, UINT32_MAX, SIOCSPGRP));
}

/* Signals to this process only; threads but no processes; no further executable memory. */
static bool add_conditions_soft(scmp_filter_ctx ctx)
{
	const uint64_t me = (uint64_t)getpid();

	return add_no_clone3(ctx) && add_fcntl_soft(ctx) &&
		add_if(ctx, SCMP_ACT_ALLOW, "tgkill", argument(0, SCMP_CMP_EQ, me, 0)) &&
		add_if(ctx, SCMP_ACT_ALLOW, "prctl", argument(0, SCMP_CMP_EQ, PR_SET_NAME, 0)) &&
		add_if(ctx, SCMP_ACT_ALLOW, "prctl", argument(0, SCMP_CMP_EQ, PR_GET_NAME, 0)) &&
		add_if(ctx, SCMP_ACT_ALLOW, "kill", argument(0, SCMP_CMP_EQ, me, 0)) &&
		add_if(ctx, SCMP_ACT_ALLOW, "prlimit64", argument(0, SCMP_CMP_EQ, 0, 0)) &&
		add_if(ctx, SCMP_ACT_ALLOW, "sched_setaffinity", argument(0, SCMP_CMP_EQ, 0, 0)) &&
		add_if(ctx, SCMP_ACT_ALLOW, "clone",
			argument(0, SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD)) &&
		add_if(ctx, SCMP_ACT_ALLOW, "mmap",
			argument(2, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0)) &&
		add_if(ctx, SCMP_ACT_ALLOW, "mprotect",
			argument(2, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
}

/* What libuv needs for non-blocking sockets, and abort(). */
static bool add_conditions_admission(scmp_filter_ctx ctx)
{
	return add_no_clone3(ctx) && add_fcntl_soft(ctx) &&
		add_if(ctx, SCMP_ACT_ALLOW, "tgkill",
			argument(0, SCMP_CMP_EQ, (uint64_t)getpid(), 0)) &&
		add_if(ctx, SCMP_ACT_ALLOW, "ioctl",
			argument(1, SCMP_CMP_MASKED_EQ, UINT32_MAX, FIONBIO)) &&
		add_if(ctx, SCMP_ACT_ALLOW, "mmap",
			argument(2, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0)) &&
		add_if(ctx, SCMP_ACT_ALLOW, "mprotect",
			argument(2, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
}

#define MPS_FOLDER "/tmp/nvidia-mps"

/*
 * For each context NVIDIA's driver connects to MPS's control process: where there is none, it must
 * be told just that, because any other error fails the context. connect() could also redirect a
 * connected socket.
 */
static bool add_connect(scmp_filter_ctx ctx)
{
	static const char *const name[] = { "connect" };
	struct stat folder;
	/* anybody may make a folder in /tmp: only root's counts */
	bool mps = lstat(MPS_FOLDER, &folder) == 0 && S_ISDIR(folder.st_mode) &&
		folder.st_uid == 0 && access(MPS_FOLDER "/control", F_OK) == 0;

	return getenv("CUDA_MPS_PIPE_DIRECTORY") || mps ||
		add_all(ctx, SCMP_ACT_ERRNO(ENOENT), name, 1);
}

static bool add_conditions_driver(scmp_filter_ctx ctx)
{
	const uint32_t no = SCMP_ACT_ERRNO(EPERM);
	const uint64_t me = (uint64_t)getpid();

	return add_no_clone3(ctx) && add_connect(ctx) && add_fcntl_driver(ctx) &&
		add_if(ctx, no, "prctl",
			argument(0, SCMP_CMP_MASKED_EQ, UINT32_MAX, PR_SET_DUMPABLE)) &&
		add_if(ctx, no, "tgkill", argument(0, SCMP_CMP_NE, me, 0)) &&
		add_if(ctx, no, "kill", argument(0, SCMP_CMP_NE, me, 0)) &&
		add_if(ctx, no, "prlimit64", argument(0, SCMP_CMP_NE, 0, 0)) &&
		add_if(ctx, no, "move_pages", argument(0, SCMP_CMP_NE, 0, 0)) &&
		add_if(ctx, no, "clone", argument(0, SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0)) &&
		add_if(ctx, no, "socket", argument(0, SCMP_CMP_NE, AF_UNIX, 0)) &&
		add_if(ctx, no, "socketpair", argument(0, SCMP_CMP_NE, AF_UNIX, 0)) &&
		add_if(ctx, no, "ioctl", argument(1, SCMP_CMP_MASKED_EQ, UINT32_MAX, TIOCSTI)) &&
		/* TIOCLINUX */
		add_if(ctx, no, "ioctl", argument(1, SCMP_CMP_MASKED_EQ, UINT32_MAX, 0x541c));
}

/* Exports the filter's program from libseccomp. */
static bool export(scmp_filter_ctx ctx)
{
	OB_CLEANUP(ob_closep) int fd = memfd_create("filter", MFD_CLOEXEC);
	ssize_t size;

	if (fd < 0 || seccomp_export_bpf(ctx, fd) != 0)
		return false;
	filter.filter = malloc(FILTER_BYTES_MAX);
	size = filter.filter ? pread(fd, filter.filter, FILTER_BYTES_MAX, 0) : -1;
	if (size <= 0 || (size_t)size == FILTER_BYTES_MAX)
		return false;
	filter.len = (unsigned short)((size_t)size / sizeof *filter.filter);
	return true;
}

bool obs_seccomp_build(enum obs_seccomp_profile profile)
{
	scmp_filter_ctx ctx = seccomp_init(
		profile == OBS_SECCOMP_DRIVER ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO(EPERM));
	bool ok;

	if (!ctx)
		return false;
	/* A binary tree: the cost does not grow with the number of rules. */
	seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	/* Calls of another architecture's table, such as the 32-bit one. */
	ok = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(EPERM)) == 0;
	if (profile == OBS_SECCOMP_SOFT)
		ok = ok && add_all(ctx, SCMP_ACT_ALLOW, allowed, ob_count(allowed)) &&
			add_conditions_soft(ctx);
	else if (profile == OBS_SECCOMP_ADMISSION)
		ok = ok && add_all(ctx, SCMP_ACT_ALLOW, admitted, ob_count(admitted)) &&
			add_conditions_admission(ctx);
	else
		ok = ok && add_all(ctx, SCMP_ACT_ERRNO(EPERM), denied, ob_count(denied)) &&
			add_conditions_driver(ctx);
	ok = ok && export(ctx);
	seccomp_release(ctx);
	return ok;
}

bool obs_seccomp_enforce(void)
{
	long result;

	if (!filter.len) {
		errno = EINVAL;
		return false;
	}
	result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter);
	if (result > 0)
		errno = EBUSY; /* a thread already has a filter of its own */
	return result == 0;
}
