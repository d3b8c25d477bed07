/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "base/spin.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/opt.h"

#define CREDIT_MAX 16
#define PATH_BYTES 512u

static _Atomic unsigned cores_now; /* 0: not read yet */
static _Atomic unsigned quota_cores = UINT32_MAX;

/* ---- cores ---- */

static bool file_read(const char *path, char *ret, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, ret, size - 1) : -1;

	if (fd >= 0)
		close(fd);
	if (n < 0)
		return false;
	ret[n] = '\0';
	return true;
}

/* Whole cores of a quota of `quota` us in each `period` us; at least 1. */
static unsigned quota_whole(long long quota, long long period)
{
	if (quota <= 0 || period <= 0 || quota / period > 4096)
		return UINT32_MAX;
	return quota < period ? 1u : (unsigned)(quota / period);
}

/* The quota of one cgroup, version 2 (cpu.max) or 1 (cpu.cfs_*_us). UINT32_MAX: none. */
static unsigned quota_of(const char *folder)
{
	char path[PATH_BYTES + 32], text[64];
	long long quota, period;

	snprintf(path, sizeof path, "%s/cpu.max", folder);
	if (file_read(path, text, sizeof text))
		return sscanf(text, "%lld %lld", &quota, &period) == 2 ? quota_whole(quota, period)
								       : UINT32_MAX;
	snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
	if (!file_read(path, text, sizeof text) || sscanf(text, "%lld", &quota) != 1)
		return UINT32_MAX;
	snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
	if (!file_read(path, text, sizeof text) || sscanf(text, "%lld", &period) != 1)
		return UINT32_MAX;
	return quota_whole(quota, period);
}

/* The lowest quota of the cgroup `group` below `root` and of the groups that contain it. */
static unsigned quota_above(const char *root, char *group)
{
	char folder[PATH_BYTES];
	unsigned least = UINT32_MAX;

	for (;;) {
		char *end = strrchr(group, '/');

		snprintf(folder, sizeof folder, "%s%s", root, group);
		least = ob_min(least, quota_of(folder));
		if (!end)
			return least;
		*end = '\0';
	}
}

static unsigned quota_read(void)
{
	char text[4096], *line, *save = NULL;
	unsigned least = UINT32_MAX;

	if (!file_read("/proc/self/cgroup", text, sizeof text))
		return least;
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *names = strchr(line, ':'), *group = names ? strchr(names + 1, ':') : NULL;

		if (!group || strlen(group) >= PATH_BYTES - 64)
			continue;
		*group++ = '\0';
		if (!names[1])
			least = ob_min(least, quota_above("/sys/fs/cgroup", group));
		else if (strstr(names + 1, "cpu") && !strstr(names + 1, "cpuset"))
			least = ob_min(least, quota_above("/sys/fs/cgroup/cpu", group));
	}
	return least;
}

static unsigned mask_cores(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof set, &set) == 0
		? (unsigned)ob_max(CPU_COUNT(&set), 1)
		: (unsigned)ob_max(sysconf(_SC_NPROCESSORS_ONLN), 1l);
}

void ob_spin_refresh(void)
{
	if (!atomic_load_explicit(&cores_now, memory_order_acquire))
		atomic_store(&quota_cores, quota_read());
	atomic_store_explicit(
		&cores_now, ob_min(mask_cores(), atomic_load(&quota_cores)), memory_order_release);
}

unsigned ob_spin_cores(void)
{
	unsigned cores = atomic_load_explicit(&cores_now, memory_order_relaxed);

	if (ob_unlikely(!cores)) {
		ob_spin_refresh();
		cores = atomic_load_explicit(&cores_now, memory_order_relaxed);
	}
	return cores;
}

void ob_spin_set_cores(unsigned cores)
{
	atomic_store_explicit(&cores_now, cores, memory_order_release);
}

/* ---- waits ---- */

uint64_t ob_spin_budget(const struct ob_spin *spin, uint64_t bytes)
{
	return spin->credit > 0 && ob_spin_cores() > 1 && ob_opt_on(OB_OPT_SPIN)
		? ob_spin_limit(bytes)
		: 0;
}

void ob_spin_learn(struct ob_spin *spin, uint64_t waited_ns, uint64_t bytes)
{
	spin->credit += waited_ns < ob_spin_limit(bytes) ? 1 : -2;
	spin->credit = ob_min(ob_max(spin->credit, -CREDIT_MAX), CREDIT_MAX);
	if (spin->credit > 0) {
		spin->skipped = 0;
	} else if (++spin->skipped == OB_SPIN_PROBE) {
		spin->skipped = 0;
		spin->credit = 1;
	}
}
