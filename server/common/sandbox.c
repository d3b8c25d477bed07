/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/common/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "base/text.h"
#include "protocol/obp_calls.h"
#include "server/common/stats_page.h"
#include "server/common/cache.h"
#include "server/common/limits.h"
#include "server/common/sandbox_landlock.h"
#include "server/common/sandbox_seccomp.h"
#include "server/common/threads_all.h"

/*
 * Memory outside of every session's budget: what a driver takes for each further context. Generous,
 * because exceeding it fails the driver.
 */
#define DRIVER_DATA (2ull << 30)
#define OWN_DATA    (64ull << 20)
/* threads besides those of lanes: loop, executors, stripes, joining connections */
#define OWN_THREADS 40u

static struct {
	bool active[OBS_PARTS], wanted[OBS_PARTS];
	char detail[OBS_PARTS][64];
	bool soft;
	int statm; /* /proc/self/statm */
} state;

static const char *const part_names[OBS_PARTS] = { "privileges", "user", "files", "network",
	"system calls", "limits" };
static const char *const mode_names[] = { "auto", "strict", "off" };

/* ---- the plan ---- */

bool obs_sandbox_mode_parse(const char *text, enum obs_sandbox_mode *ret)
{
	for (unsigned i = 0; i < ob_count(mode_names); i++)
		if (strcmp(text, mode_names[i]) == 0) {
			*ret = (enum obs_sandbox_mode)i;
			return true;
		}
	return false;
}

const char *obs_sandbox_mode_name(enum obs_sandbox_mode mode)
{
	return mode_names[mode];
}

/*
 * A user id that nobody has, other than `taken`, and different for servers with different cache
 * directories. The hash is FNV-1a of 32 bits. It never changes: files in the cache directory belong
 * to the user.
 */
static uid_t user_dynamic(const char *salt, uid_t taken)
{
	const unsigned n = OBS_USER_LAST - OBS_USER_FIRST + 1;
	uint32_t hash = 2166136261u;
	uid_t uid = OBS_USER_FIRST;

	for (; salt && *salt; salt++)
		hash = (hash ^ (uint8_t)*salt) * 16777619u;
	for (unsigned i = 0; i < n; i++) {
		uid = OBS_USER_FIRST + (hash + i) % n;
		if (uid != taken && !getpwuid(uid) && !getgrgid(uid))
			break;
	}
	return uid;
}

static enum ob_err user_choose(
	struct obs_sandbox_plan *plan, const char *salt, struct ob_cause *ret_cause)
{
	const struct passwd *entry;
	uint64_t uid;

	if (geteuid() != 0)
		return !plan->user ? OB_ERR_NONE
				   : ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
					     "--worker-user needs a server that is started as "
					     "root");
	entry = getpwnam(plan->user ? plan->user : "outboard");
	if (entry) {
		plan->uid = entry->pw_uid;
		plan->gid = entry->pw_gid;
	} else if (plan->user && ob_text_parse_number(plan->user, 1, UINT32_MAX - 1, &uid)) {
		plan->uid = plan->gid = (uid_t)uid;
	} else if (plan->user) {
		return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
			"--worker-user %s: there is no such user; make it, or name a number",
			plan->user);
	} else {
		plan->uid = plan->gid = user_dynamic(salt, 0);
	}
	/*
	 * Not the workers' user: processes of one user can affect each other, and admission holds
	 * the TLS key.
	 */
	plan->admission_uid = user_dynamic(salt, plan->uid);
	if (plan->uid == 0)
		return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
			"--worker-user root: name a user with fewer rights for the workers");
	return OB_ERR_NONE;
}

enum ob_err obs_sandbox_prepare(
	struct obs_sandbox_plan *plan, const char *salt, struct ob_cause *ret_cause)
{
	const char *missing = NULL;
	enum ob_err err;

	if (plan->mode == OBS_SANDBOX_OFF) {
		ob_warn("the sandbox is off (--sandbox off): a client that takes over a worker has "
			"this server's rights");
		return OB_ERR_NONE;
	}
	err = user_choose(plan, salt, ret_cause);
	if (err)
		return err;
	if (!obs_landlock_version())
		missing = "Landlock (Linux 5.13 or later with landlock among the security modules, "
			  "see /sys/kernel/security/lsm)";
	else if (!obs_seccomp_available())
		missing = "seccomp filters (CONFIG_SECCOMP_FILTER)";
	if (missing && plan->mode == OBS_SANDBOX_STRICT)
		return ob_cause_set(ret_cause, OB_ERR_UNSUPPORTED,
			"--sandbox strict: this kernel lacks %s; with --sandbox auto the server "
			"starts without",
			missing);
	if (missing)
		ob_warn("the sandbox of workers is incomplete: this kernel lacks %s", missing);
	return OB_ERR_NONE;
}

/* ---- parts ---- */

/*
 * Records whether one part succeeded; errno says why it did not. OB_ERR_UNSUPPORTED: it is missing,
 * and the mode is strict.
 */
static enum ob_err part_set(const struct obs_sandbox_plan *plan, enum obs_sandbox_part part,
	bool active, struct ob_cause *ret_cause)
{
	int system = errno;

	state.wanted[part] = true;
	state.active[part] = active;
	if (active)
		return OB_ERR_NONE;
	snprintf(state.detail[part], sizeof state.detail[part], "%s", strerror(system));
	if (plan->mode != OBS_SANDBOX_STRICT)
		return OB_ERR_NONE;
	return ob_cause_set_system(ret_cause, OB_ERR_UNSUPPORTED, system,
		"--sandbox strict: the worker's sandbox lacks %s", part_names[part]);
}

static bool has_capability(unsigned capability)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { 0 } };

	return syscall(SYS_capget, &header, data) == 0 &&
		data[capability / 32].effective >> capability % 32 & 1;
}

static bool capabilities_drop(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct none[2] = { { 0 } };

	return syscall(SYS_capset, &header, none) == 0;
}

static bool privileges_end(void)
{
	bool ok = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;

	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	for (unsigned i = 0;
		ok && has_capability(CAP_SETPCAP) && prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
		ok = prctl(PR_CAPBSET_DROP, i, 0, 0, 0) == 0;
	return ok;
}

static void limit_set(int which, uint64_t value)
{
	struct rlimit limit;

	if (getrlimit((__rlimit_resource_t)which, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max = ob_min((uint64_t)limit.rlim_max, value);
	setrlimit((__rlimit_resource_t)which, &limit);
}

enum ob_err obs_sandbox_begin(const struct obs_sandbox_plan *plan, struct ob_cause *ret_cause)
{
	if (plan->mode == OBS_SANDBOX_OFF)
		return OB_ERR_NONE;
	umask(077);
	limit_set(RLIMIT_CORE, 0);
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	/*
	 * Close descriptors that the server inherited, except the log, the channel and the stats
	 * page.
	 */
	syscall(SYS_close_range, 5u, ~0u, 0u);
	state.statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	if (!obs_threads_open() || state.statm < 0)
		ob_warn("sandbox: /proc is not mounted: restrictions cannot be applied to threads "
			"that already run");
	if (has_capability(CAP_SYS_ADMIN)) {
		state.wanted[OBS_PART_NETWORK] = true;
		state.active[OBS_PART_NETWORK] = unshare(CLONE_NEWNET | CLONE_NEWIPC) == 0;
		snprintf(state.detail[OBS_PART_NETWORK], sizeof state.detail[0], "%s",
			state.active[OBS_PART_NETWORK] ? "namespace" : strerror(errno));
	}
	return part_set(plan, OBS_PART_PRIVILEGES, privileges_end(), ret_cause);
}

/* ---- the user, before the driver starts ---- */

static bool user_become(uid_t uid, gid_t gid)
{
	const struct passwd *entry = getpwuid(uid);
	bool grouped = entry ? initgroups(entry->pw_name, gid) == 0 : setgroups(0, NULL) == 0;

	if (!grouped || setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0)
		return false;
	/* The kernel resets both when the user changes. */
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(state.detail[OBS_PART_USER], sizeof state.detail[0], "%s",
		entry ? entry->pw_name : "");
	if (!entry)
		snprintf(state.detail[OBS_PART_USER], sizeof state.detail[0], "%u", uid);
	return true;
}

/*
 * all: in all threads, and finally; else in this only thread, and so that the tenant's folder can
 * still be created.
 */
static bool files_confine(const char *file, int writable, bool all)
{
	int rules = obs_landlock_new(file, writable, !all);
	bool ok;

	if (rules < 0)
		return false;
	ok = all ? obs_threads_all(obs_landlock_enforce, rules) : obs_landlock_enforce(rules);
	close(rules);
	return ok;
}

/* The plan's user, without capabilities. */
static enum ob_err user_set(const struct obs_sandbox_plan *plan, struct ob_cause *ret_cause)
{
	enum ob_err err = OB_ERR_NONE;

	if (plan->uid)
		err = part_set(plan, OBS_PART_USER, user_become(plan->uid, plan->gid), ret_cause);
	if (!err && !capabilities_drop())
		err = part_set(plan, OBS_PART_PRIVILEGES, false, ret_cause);
	return err;
}

enum ob_err obs_sandbox_enter(const struct obs_sandbox_plan *plan, const struct obs_cache *cache,
	const char *file, struct ob_cause *ret_cause)
{
	enum ob_err err;

	if (plan->mode == OBS_SANDBOX_OFF)
		return OB_ERR_NONE;
	state.soft = !file;
	/* The driver's own cache of compiled code would be shared by all tenants. */
	setenv("CUDA_CACHE_DISABLE", "1", 0);
	err = user_set(plan, ret_cause);
	if (!err)
		err = part_set(
			plan, OBS_PART_FILES, files_confine(file, cache->top, false), ret_cause);
	if (err)
		return err;
	snprintf(state.detail[OBS_PART_FILES], sizeof state.detail[0], "%s%d",
		state.active[OBS_PART_FILES] ? "Landlock " : "Landlock, ", obs_landlock_version());
	return part_set(plan, OBS_PART_CALLS,
		obs_seccomp_build(file ? OBS_SECCOMP_DRIVER : OBS_SECCOMP_SOFT), ret_cause);
}

/* ---- when the client is known ---- */

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static uint64_t data_now(void)
{
	unsigned long pages;
	char text[128];
	ssize_t n = pread(state.statm, text, sizeof text - 1, 0);

	if (n <= 0)
		return 0;
	text[n] = '\0';
	/* The sixth number: pages of data and stack. */
	return sscanf(text, "%*u %*u %*u %*u %*u %lu", &pages) == 1
		? pages * (uint64_t)sysconf(_SC_PAGESIZE)
		: 0;
}
#endif

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/* Without virtual memory management the software device's memory is private memory of the worker. */
static uint64_t driver_data(void)
{
	uint64_t bytes = 0;

	if (!state.soft)
		return DRIVER_DATA;
	for (uint32_t i = 0; i < obs_stats_page->n_devices; i++)
		bytes += obs_stats_page->devices[i].total;
	return bytes;
}
#endif

/*
 * The kernel's limit behind the budget. RLIMIT_DATA counts private writable memory, which RLIMIT_AS
 * and cgroups do not separate from the rest: reserved address space and mapped devices are not
 * counted. A sanitizer's shadow memory would be.
 */
static void data_limit(const struct obs_limits *limits)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	(void)limits;
#else
	uint64_t now = data_now();

	if (now && limits->host_memory)
		limit_set(RLIMIT_DATA,
			now + limits->host_memory +
				(1 + OBS_ASIDE_MAX) * (uint64_t)OBS_THREAD_STACK +
				OWN_THREADS * (8ull << 20) + OWN_DATA + driver_data());
#endif
}

static void limits_set(const struct obs_limits *limits)
{
	uint64_t largest = OBP_IMAGE_MAX;

	signal(SIGXFSZ, SIG_IGN);
	limit_set(RLIMIT_NOFILE, OBS_FILES_MAX);
	/*
	 * The software device's memory is a file; the largest other file that a worker writes is an
	 * image.
	 */
	for (uint32_t i = 0; i < obs_stats_page->n_devices; i++)
		largest = ob_max(largest, obs_stats_page->devices[i].total);
	limit_set(RLIMIT_FSIZE, largest);
	data_limit(limits);
	state.wanted[OBS_PART_LIMITS] = state.active[OBS_PART_LIMITS] = true;
}

enum ob_err obs_sandbox_session(const struct obs_sandbox_plan *plan, const struct obs_cache *cache,
	const struct obs_limits *limits, const char *file, struct ob_cause *ret_cause)
{
	enum ob_err err = OB_ERR_NONE;

	if (plan->mode == OBS_SANDBOX_OFF)
		return OB_ERR_NONE;
	limits_set(limits);
	if (state.active[OBS_PART_FILES])
		err = part_set(
			plan, OBS_PART_FILES, files_confine(file, cache->dir, true), ret_cause);
	if (!err && state.active[OBS_PART_CALLS])
		err = part_set(plan, OBS_PART_CALLS, obs_seccomp_enforce(), ret_cause);
	return err;
}

/* ---- the admission process ---- */

static void admission_limits(uint64_t memory)
{
	limit_set(RLIMIT_CORE, 0);
	limit_set(RLIMIT_NPROC, 0);
	limit_set(RLIMIT_MEMLOCK, 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	uint64_t now = data_now();

	if (now)
		limit_set(RLIMIT_DATA, now + memory);
#else
	(void)memory;
#endif
	state.wanted[OBS_PART_LIMITS] = state.active[OBS_PART_LIMITS] = true;
}

/* No file at all. */
static enum ob_err files_end(const struct obs_sandbox_plan *plan, struct ob_cause *ret_cause)
{
	int rules = obs_landlock_none();
	bool confined = rules >= 0 && obs_landlock_enforce(rules);
	enum ob_err err;

	if (rules >= 0)
		close(rules);
	err = part_set(plan, OBS_PART_FILES, confined, ret_cause);
	if (!err)
		snprintf(state.detail[OBS_PART_FILES], sizeof state.detail[0], "none, %s%d",
			confined ? "Landlock " : "Landlock, ", obs_landlock_version());
	return err;
}

enum ob_err obs_sandbox_admission(
	const struct obs_sandbox_plan *plan, uint64_t memory, struct ob_cause *ret_cause)
{
	enum ob_err err;

	if (plan->mode == OBS_SANDBOX_OFF)
		return OB_ERR_NONE;
	umask(077);
	tzset(); /* reads the time zone file for the log */
	state.statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	err = part_set(plan, OBS_PART_PRIVILEGES, privileges_end(), ret_cause);
	if (!err)
		err = user_set(plan, ret_cause);
	if (err)
		return err;
	admission_limits(memory);
	close(state.statm);
	err = files_end(plan, ret_cause);
	if (err)
		return err;
	return part_set(plan, OBS_PART_CALLS,
		obs_seccomp_build(OBS_SECCOMP_ADMISSION) && obs_seccomp_enforce(), ret_cause);
}

/* ---- description ---- */

static void parts_list(char text[OBS_SANDBOX_TEXT], bool active, const char *lead)
{
	for (unsigned i = 0; i < OBS_PARTS; i++) {
		const char *detail = state.detail[i];
		size_t n = strlen(text);

		if (!state.wanted[i] || state.active[i] != active)
			continue;
		snprintf(text + n, OBS_SANDBOX_TEXT - n, detail[0] ? "%s%s (%s)" : "%s%s",
			n ? lead : "", part_names[i], detail);
		lead = ", ";
	}
}

void obs_sandbox_describe(char ret_text[OBS_SANDBOX_TEXT])
{
	ret_text[0] = '\0';
	parts_list(ret_text, true, ", ");
	parts_list(ret_text, false, "; missing: ");
	if (!ret_text[0])
		snprintf(ret_text, OBS_SANDBOX_TEXT, "off");
}
