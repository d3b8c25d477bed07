/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/common/sandbox_landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "base/cleanup.h"

/*
 * The kernel's interface up to version 6, with the names of linux/landlock.h. The headers of Debian
 * 12 end at version 2.
 */
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule       445
#define SYS_landlock_restrict_self  446
#endif
#define CREATE_RULESET_VERSION          1u
#define RULE_PATH_BENEATH               1
#define ACCESS_FS_WRITE_FILE            (1ull << 1)
#define ACCESS_FS_READ_FILE             (1ull << 2)
#define ACCESS_FS_READ_DIR              (1ull << 3)
#define ACCESS_FS_REMOVE_FILE           (1ull << 5)
#define ACCESS_FS_MAKE_DIR              (1ull << 7)
#define ACCESS_FS_MAKE_REG              (1ull << 8)
#define ACCESS_FS_TRUNCATE              (1ull << 14)
#define ACCESS_FS_IOCTL_DEV             (1ull << 15)
#define ACCESS_NET_BIND_AND_CONNECT_TCP 3ull
#define SCOPE_ABSTRACT_UNIX_AND_SIGNAL  3ull

struct ruleset_attr {
	uint64_t fs, net, scoped;
};

struct path_beneath_attr {
	uint64_t access;
	int32_t parent;
} __attribute__((packed));

/* Rights below a path. All other file access is denied. */
#define LOOK   (ACCESS_FS_READ_FILE | ACCESS_FS_READ_DIR)
#define DEVICE (ACCESS_FS_READ_FILE | ACCESS_FS_WRITE_FILE | ACCESS_FS_IOCTL_DEV)
#define KEEP                                                                        \
	(LOOK | ACCESS_FS_WRITE_FILE | ACCESS_FS_REMOVE_FILE | ACCESS_FS_MAKE_REG | \
		ACCESS_FS_TRUNCATE)

enum who { ANY_DRIVER, REAL_DRIVER };

/* Paths that do not exist are skipped. Patterns are expanded when the rule set is made. */
static const struct place {
	const char *pattern;
	uint64_t access;
	enum who who;
} places[] = {
	{ "/sys/devices/system/cpu", LOOK, ANY_DRIVER }, /* malloc reads the number of processors */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	/* sanitizers read their own maps */
	{ "/proc/self", LOOK, ANY_DRIVER },
#endif
	/* libraries that a driver loads later, such as its compiler */
	{ "/lib", LOOK, REAL_DRIVER },
	{ "/lib64", LOOK, REAL_DRIVER },
	{ "/usr/lib", LOOK, REAL_DRIVER },
	{ "/usr/lib64", LOOK, REAL_DRIVER },
	{ "/usr/local/lib", LOOK, REAL_DRIVER },
	{ "/usr/local/nvidia", LOOK, REAL_DRIVER },
	{ "/usr/local/cuda*", LOOK, REAL_DRIVER },
	{ "/usr/share/nvidia", LOOK, REAL_DRIVER },
	{ "/etc/ld.so.cache", ACCESS_FS_READ_FILE, REAL_DRIVER },
	{ "/etc/nvidia*", LOOK, REAL_DRIVER },
	{ "/dev/nvidia*", DEVICE | ACCESS_FS_READ_DIR, REAL_DRIVER },
	{ "/dev/dri", DEVICE | ACCESS_FS_READ_DIR, REAL_DRIVER },
	{ "/dev/null", DEVICE, REAL_DRIVER },
	{ "/dev/zero", DEVICE, REAL_DRIVER },
	{ "/dev/urandom", ACCESS_FS_READ_FILE, REAL_DRIVER },
	{ "/proc/driver/nvidia*", LOOK, REAL_DRIVER },
	/* NVIDIA's driver names its threads with fopen(".../comm", "w"), and fails if it cannot */
	{ "/proc/self", LOOK | ACCESS_FS_WRITE_FILE | ACCESS_FS_TRUNCATE, REAL_DRIVER },
	{ "/proc/devices", ACCESS_FS_READ_FILE, REAL_DRIVER },
	{ "/proc/modules", ACCESS_FS_READ_FILE, REAL_DRIVER },
	{ "/proc/meminfo", ACCESS_FS_READ_FILE, REAL_DRIVER },
	{ "/proc/cpuinfo", ACCESS_FS_READ_FILE, REAL_DRIVER },
	{ "/proc/stat", ACCESS_FS_READ_FILE, REAL_DRIVER },
	{ "/proc/version", ACCESS_FS_READ_FILE, REAL_DRIVER },
	{ "/proc/sys/vm", LOOK, REAL_DRIVER },
	{ "/proc/sys/kernel", LOOK, REAL_DRIVER },
	{ "/sys/devices", LOOK, REAL_DRIVER }, /* topology */
	{ "/sys/bus", LOOK, REAL_DRIVER },
	{ "/sys/class", LOOK, REAL_DRIVER },
	{ "/sys/module", LOOK, REAL_DRIVER },
	{ "/sys/kernel/mm", LOOK, REAL_DRIVER },
	{ "/sys/fs/cgroup", LOOK, REAL_DRIVER },
};

/* The rights that this version of the interface knows. Unknown ones must not be named. */
static uint64_t files_known(int version)
{
	static const unsigned rights[] = { 0, 13, 14, 15, 15, 16 }; /* by version */

	return (1ull << rights[ob_min((unsigned)version, (unsigned)ob_count(rights) - 1)]) - 1;
}

int obs_landlock_version(void)
{
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_RULESET_VERSION);

	return version > 0 ? (int)version : 0;
}

static bool allow(int rules, int at, uint64_t access)
{
	struct path_beneath_attr rule = { .access = access & files_known(obs_landlock_version()),
		.parent = at };
	struct stat st;

	if (fstat(at, &st) != 0)
		return false;
	if (!S_ISDIR(st.st_mode)) /* only these apply to a file */
		rule.access &= ACCESS_FS_READ_FILE | ACCESS_FS_WRITE_FILE | ACCESS_FS_TRUNCATE |
			ACCESS_FS_IOCTL_DEV;
	return syscall(SYS_landlock_add_rule, rules, RULE_PATH_BENEATH, &rule, 0) == 0;
}

static bool allow_path(int rules, const char *path, uint64_t access)
{
	OB_CLEANUP(ob_closep) int at = open(path, O_PATH | O_CLOEXEC);

	return at < 0 || allow(rules, at, access);
}

static bool allow_pattern(int rules, const char *pattern, uint64_t access)
{
	bool ok = true;
	glob_t found;

	if (!strchr(pattern, '*'))
		return allow_path(rules, pattern, access);
	if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0)
		return true;
	for (size_t i = 0; ok && i < found.gl_pathc; i++)
		ok = allow_path(rules, found.gl_pathv[i], access);
	globfree(&found);
	return ok;
}

/* The folder of the driver's library: its other libraries are there. */
static bool allow_folder_of(int rules, const char *file)
{
	char folder[1024];
	char *slash;

	if (snprintf(folder, sizeof folder, "%s", file) >= (int)sizeof folder)
		return true;
	slash = strrchr(folder, '/');
	if (!slash || slash == folder)
		return true; /* found in the system's folders by the loader */
	*slash = '\0';
	return allow_path(rules, folder, LOOK);
}

int obs_landlock_none(void)
{
	int version = obs_landlock_version();
	struct ruleset_attr attr = { .fs = files_known(version),
		.net = ACCESS_NET_BIND_AND_CONNECT_TCP,
		.scoped = SCOPE_ABSTRACT_UNIX_AND_SIGNAL };
	size_t size = version >= 6 ? sizeof attr
		: version >= 4     ? 2 * sizeof(uint64_t)
				   : sizeof(uint64_t);

	if (version == 0) {
		errno = EOPNOTSUPP;
		return -1;
	}
	return (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
}

int obs_landlock_new(const char *file, int writable, bool early)
{
	int rules = obs_landlock_none(), cause;
	bool ok;

	if (rules < 0)
		return -1;
	ok = writable < 0 || allow(rules, writable, KEEP | (early ? ACCESS_FS_MAKE_DIR : 0));
	ok = ok && (!early || allow_path(rules, "/proc", LOOK));
	for (size_t i = 0; ok && i < ob_count(places); i++)
		if (file || places[i].who == ANY_DRIVER)
			ok = allow_pattern(rules, places[i].pattern, places[i].access);
	ok = ok && (!file || allow_folder_of(rules, file));
	if (ok)
		return rules;
	cause = errno;
	close(rules);
	errno = cause;
	return -1;
}

/* Sanitizers have threads of their own, in which instrumented code cannot run. */
__attribute__((no_sanitize("address", "thread"))) bool obs_landlock_enforce(int rules)
{
	return syscall(SYS_landlock_restrict_self, rules, 0) == 0;
}
