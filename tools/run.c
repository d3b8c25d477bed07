/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/text.h"
#include "tools/command.h"
#include "tools/compilers.h"
#include "tools/loader.h"
#include "tools/program.h"
#include "tools/reserve.h"
#include "tools/restart.h"
#include "tools/servers.h"
#include "tools/way.h"

#define PATH_BYTES 4096
#define LIBRARY    "libcuda.so.1" /* as programs look for them */
#define MANAGEMENT "libnvidia-ml.so.1"

struct settings {
	const char *server, *pool, *trace, *timeline;
	const char *driver;
	bool direct, stats, sync;
	uint32_t restarts, grace_s;
	struct obx_wish wish;
	struct ob_words command;
};

/* The values of the next two are checked here, before the program starts, and passed on as texts. */
static enum ob_err take_vram(
	void *target, const struct ob_option *option, const char *text, struct ob_cause *ret_cause)
{
	uint64_t bytes;

	(void)option;
	(void)ret_cause;
	*(const char **)target = text;
	return ob_text_parse_size(text, &bytes) && bytes > 0 ? OB_ERR_NONE : OB_ERR_ARGUMENT;
}

static enum ob_err take_share(
	void *target, const struct ob_option *option, const char *text, struct ob_cause *ret_cause)
{
	char *end;
	double share = strtod(text, &end);

	(void)option;
	(void)ret_cause;
	*(const char **)target = text;
	return end != text && !*end && share >= 0.01 && share <= 1 ? OB_ERR_NONE : OB_ERR_ARGUMENT;
}

/* A flag whose variable is 1, as those of the client library are. */
static enum ob_err take_yes(
	void *target, const struct ob_option *option, const char *text, struct ob_cause *ret_cause)
{
	(void)option;
	(void)ret_cause;
	*(bool *)target = !text || strcmp(text, "1") == 0;
	return *(bool *)target || strcmp(text, "0") == 0 ? OB_ERR_NONE : OB_ERR_ARGUMENT;
}

static const struct ob_option options[] = {
	OBX_SERVER_OPTION(struct settings, server),
	OBX_POOL_OPTION(struct settings, pool),
	{ OB_OPTION("policy", OB_WORD, struct settings, wish.policy), .arg = "NAME",
		.words = "least-load|round-robin|weighted|least-connections|power-of-two|binpack|"
			 "spread|exclusive",
		.help = "how one of several servers is chosen: least-load, round-robin, weighted, "
			"least-connections, power-of-two, binpack, spread or exclusive",
		.environment = "OUTBOARD_POLICY", .fallback = "least-load" },
	{ OB_OPTION("vram", OB_PARSED, struct settings, wish.vram), .arg = "SIZE",
		.environment = "OUTBOARD_VRAM", .take = take_vram, .takes = "a size such as 4GiB",
		.help = "use at most this much device memory; a server must have it free" },
	{ OB_OPTION("share", OB_PARSED, struct settings, wish.share), .arg = "F",
		.environment = "OUTBOARD_SHARE", .take = take_share,
		.takes = "a number from 0.01 to 1",
		.help = "use at most this part of the device's time, 0.01 to 1" },
	{ OB_OPTION("priority", OB_WORD, struct settings, wish.priority), .arg = "P",
		.environment = "OUTBOARD_PRIORITY", .words = "low|normal|high",
		.help = "low, normal or high; a server may allow less" },
	{ OB_OPTION("gpus", OB_NUMBER, struct settings, wish.gpus), .arg = "N", .min = 1,
		.max = OBP_POOL_GPUS_MAX, .environment = "OUTBOARD_GPUS", .fallback = "1",
		.help = "with a pool: how many GPUs" },
	{ OB_OPTION("where", OB_TEXT, struct settings, wish.where), .arg = "SELECTOR",
		.environment = "OUTBOARD_WHERE",
		.help = "with a pool: only GPUs and servers of these labels, such as "
			"model=H100,zone!=b" },
	{ OB_OPTION("exclusive", OB_PARSED, struct settings, wish.exclusive),
		.environment = "OUTBOARD_EXCLUSIVE", .take = take_yes, .takes = "0 or 1",
		.help = "with a pool: nobody else on the GPUs" },
	{ OB_OPTION("one-server", OB_PARSED, struct settings, wish.one_server),
		.environment = "OUTBOARD_ONE_SERVER", .take = take_yes, .takes = "0 or 1",
		.help = "with a pool: all GPUs of one server" },
	{ OB_OPTION("apart", OB_TEXT, struct settings, wish.apart), .arg = "WORD",
		.environment = "OUTBOARD_APART",
		.help = "with a pool: on no server that runs another program of the same WORD" },
	{ OB_OPTION("wait-for", OB_NUMBER, struct settings, wish.wait_s), .arg = "SECONDS",
		.max = OBX_WAIT_MAX, .environment = "OUTBOARD_WAIT", .fallback = "0",
		.help = "with a pool: how long to wait until the GPUs are free" },
	{ OB_OPTION("hold", OB_NUMBER, struct settings, wish.hold_s), .arg = "SECONDS", .min = 1,
		.max = OBX_WAIT_MAX, .environment = "OUTBOARD_HOLD", .fallback = OB_VALUE_TEXT(10),
		.help = "with a pool: how long the reservation lasts while no process of the "
			"program uses it" },
	{ OB_OPTION("restartable", OB_FLAG, struct settings, wish.restartable),
		.help = "with a pool: the program may be ended and started again on another "
			"server, if the pool's load should be balanced" },
	{ OB_OPTION("restarts", OB_NUMBER, struct settings, restarts), .arg = "N", .min = 1,
		.max = OBX_RESTARTS_MAX, .fallback = OB_VALUE_TEXT(16),
		.help = "with --restartable: how often it is started again at most" },
	{ OB_OPTION("grace", OB_NUMBER, struct settings, grace_s), .arg = "SECONDS", .min = 1,
		.max = OBX_RESTART_GRACE_MAX, .fallback = OB_VALUE_TEXT(10),
		.help = "with --restartable: how long it may take to end after SIGTERM, before it "
			"is killed" },
	{ OB_OPTION("direct", OB_FLAG, struct settings, direct),
		.help = "use no server, but the software device inside the program's own process" },
	{ OB_OPTION("driver", OB_WORD, struct settings, driver), .arg = "WHICH",
		.words = "soft|dryrun",
		.help = "with --direct. soft: kernels run on the CPU. dryrun: the device pretends "
			"to be the GPU that OUTBOARD_DRYRUN names (h100) and executes no kernel",
		.fallback = "soft" },
	{ OB_OPTION("stats", OB_FLAG, struct settings, stats),
		.help = "at exit, print calls, round trips, bytes, and which calls waited longest, "
			"to stderr" },
	{ OB_OPTION("trace", OB_FILE, struct settings, trace), .arg = "FILE",
		.help = "write each call to FILE" },
	{ OB_OPTION("timeline", OB_FILE, struct settings, timeline), .arg = "FILE",
		.help = "write what client, wire, server and device did, and when, to FILE, "
			"which ui.perfetto.dev opens" },
	{ OB_OPTION("sync", OB_FLAG, struct settings, sync),
		.help = "make every call wait for its result, which shows the call that fails" },
	{ 0 },
};

static const struct ob_operand operands[] = {
	{ .name = "COMMAND",
		.kind = OB_OPERAND_REST,
		.file = true,
		.offset = offsetof(struct settings, command) },
	{ 0 },
};

/* Adds a value to a variable, separated by a colon, before or after its present value. */
static void join(const char *name, const char *value, bool before)
{
	const char *old = getenv(name);
	char *joined = NULL;

	if (!old || !*old) {
		setenv(name, value, 1);
		return;
	}
	if (asprintf(&joined, "%s:%s", before ? value : old, before ? old : value) > 0)
		setenv(name, joined, 1);
	free(joined);
}

/*
 * libnvidia-ml.so.1, which lies next to libcuda.so.1, through a link where that folder is not in
 * LD_LIBRARY_PATH. It is not preloaded: few programs need it, and those that bring their own
 * library of this name keep it.
 */
static void use_management(void)
{
	char path[PATH_BYTES], folder[PATH_BYTES];

	if (obx_look_for_file(MANAGEMENT, path, sizeof path) &&
		obx_loader_folder(path, MANAGEMENT, folder, sizeof folder))
		join("LD_LIBRARY_PATH", folder, true);
}

/*
 * LD_LIBRARY_PATH begins with the library's directory, for programs that open the file by its name.
 * LD_PRELOAD is for programs that set their own LD_LIBRARY_PATH or RUNPATH: because of the
 * library's SONAME, glibc returns it for a later dlopen("libcuda.so.1"). Where the variables cannot
 * hold the path, or the file has another name, a link is used.
 */
static bool use_library(const char *file, bool may_preload)
{
	char path[PATH_BYTES], folder[PATH_BYTES], preload[2 * PATH_BYTES];
	bool takes;

	if (!obx_find_file(file, path, sizeof path))
		return false;
	takes = obx_loader_takes(path);
	if (takes && strcmp(file, LIBRARY) == 0) {
		if (may_preload)
			/* libraries that the user preloads stay first */
			join("LD_PRELOAD", path, false);
		*strrchr(path, '/') = 0;
		join("LD_LIBRARY_PATH", path, true);
		return true;
	}
	use_management();
	if (obx_loader_folder(path, LIBRARY, folder, sizeof folder)) {
		snprintf(preload, sizeof preload, "%s/" LIBRARY, folder);
		join("LD_LIBRARY_PATH", folder, true);
	} else if (!takes) {
		fprintf(stderr,
			"outboard run: the dynamic loader accepts no blank, colon, semicolon or $ "
			"in a path, "
			"and %s has one. A link to it cannot be made in %s: %s. Set "
			"XDG_RUNTIME_DIR to a folder of yours, or install Outboard elsewhere\n",
			path, folder, strerror(errno));
		return false;
	}
	if (may_preload)
		join("LD_PRELOAD", takes ? path : preload, false);
	return true;
}

/*
 * Preloads a library that replaces functions of the C library, the driver or CUDA's compilers
 * (client-shim/files, client-shim/compilers), unless the variable is 0. Most programs run without it too, so it is no error if that is not possible.
 */
static void use_replacements(const char *library, const char *variable)
{
	const char *wanted = getenv(variable);
	char path[PATH_BYTES];

	if (wanted && strcmp(wanted, "0") == 0)
		return;
	if (obx_look_for_file(library, path, sizeof path) && obx_loader_takes(path))
		join("LD_PRELOAD", path, false);
}

/*
 * AddressSanitizer refuses to start when another library was loaded before its runtime. Our libraries
 * call the next function of each name that they replace, which is the sanitizer's. So that check is
 * turned off for programs that the command starts (it may be a shell, make or a test runner), unless
 * the user has set it.
 */
static void sanitizer_allow(void)
{
	const char *old = getenv("ASAN_OPTIONS");

	if (!old || !strstr(old, "verify_asan_link_order"))
		join("ASAN_OPTIONS", "verify_asan_link_order=0", true);
}

/*
 * Sets the loader's variables. Prints a warning for a program that they have no effect on. ptx_only:
 * the capability of a device that runs PTX only, else 0. False: the library was not found, and an
 * error was printed.
 */
static bool prepare(const char *command, const char *file, unsigned ptx_only)
{
	char path[OBX_PROGRAM_PATH];
	enum obx_program kind = obx_program_look(command, path);

	switch (kind) {
	case OBX_PROGRAM_STATIC:
		fprintf(stderr,
			"outboard run: %s is linked statically and loads no library: it gets no "
			"GPU from here, only programs that it starts do. "
			"Link it dynamically; NVIDIA's runtime may stay static\n",
			path);
		break;
	case OBX_PROGRAM_MUSL:
		fprintf(stderr,
			"outboard run: %s is built for the musl C library, and CUDA's libraries "
			"for glibc: it gets no GPU and runs without. "
			"Build it on a system with glibc, or run it in a container with one\n",
			path);
		return true;
	case OBX_PROGRAM_NARROW:
		fprintf(stderr,
			"outboard run: %s is a 32-bit program, and CUDA's driver has 64 bits: it "
			"gets no GPU and runs without. Build it for 64 "
			"bits\n",
			path);
		return true;
	default:
		break;
	}
	if (ptx_only)
		obx_compilers_set(ptx_only);
	sanitizer_allow();
	/* before libcuda.so.1, of which it replaces a function */
	if (ptx_only && kind != OBX_PROGRAM_SANITIZER)
		use_replacements("liboutboard-compilers.so", "OUTBOARD_COMPILERS");
	if (!use_library(file, kind != OBX_PROGRAM_SANITIZER))
		return false;
	if (kind == OBX_PROGRAM_SANITIZER)
		return true;
	use_replacements("liboutboard-files.so", "OUTBOARD_DEVICE_FILES");
	/* In one process a program's memory is never protected. */
	if (strcmp(file, LIBRARY) == 0)
		use_replacements("liboutboard-buffers.so", "OUTBOARD_BUFFERS");
	return true;
}

/* Passes an option on to the client library, which reads its environment. */
static void pass(const char *variable, const char *value)
{
	if (value)
		setenv(variable, value, 1);
}

/* False: the file cannot be created, and an error was printed. The library writes it at the end. */
static bool timeline_ready(const char *path)
{
	/* Does not block on a pipe without a reader. */
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0644);

	if (fd < 0)
		fprintf(stderr,
			"outboard run: --timeline: cannot create %s: %s. Name a file in a folder "
			"that you may write to\n",
			path, strerror(errno));
	else
		close(fd);
	return fd >= 0;
}

/*
 * What only a pool can fulfil. NULL: nothing of it was asked for on the command line. Variables may be
 * there for other programs.
 */
static const char *pool_only(void)
{
	static const char *const names[] = { "exclusive", "one-server", "apart", "hold",
		"restartable", "gpus", "where", "wait-for" };

	for (size_t i = 0; i < ob_count(names); i++)
		if (ob_options_given(names[i]))
			return names[i];
	return NULL;
}

/* Checks options that exclude each other. Returns OB_OPTIONS_GO or the exit code. */
static int settings_check(const struct settings *s)
{
	if (!s->command.n)
		return ob_usage_error(&obx_run_command, "a command is missing");
	if (s->direct && s->timeline)
		return ob_usage_error(&obx_run_command,
			"--timeline shows client and server, and --direct uses no server: leave "
			"one of the two out");
	if (!s->wish.restartable && (s->restarts || s->grace_s))
		return ob_usage_error(&obx_run_command,
			"%s is for programs that may be started again: add --restartable",
			s->restarts ? "--restarts" : "--grace");
	if (!s->direct && s->driver)
		return ob_usage_error(&obx_run_command,
			"--driver is for --direct; a server has its own: outboard-server --driver "
			"%s",
			s->driver);
	if (s->direct && pool_only())
		return ob_usage_error(&obx_run_command,
			"--%s is for a pool, and --direct uses none: leave one of the two out",
			pool_only());
	return OB_OPTIONS_GO;
}

/* Finds out where the GPUs come from. Returns OB_OPTIONS_GO or the exit code. */
static int way_find(const struct settings *s, struct obx_way *way)
{
	struct ob_cause cause;
	int code = obx_way_find(&obx_run_command, s->pool, s->server, way);

	if (code != OB_OPTIONS_GO || way->pool)
		return code;
	if (!way->reserved && pool_only())
		return ob_usage_error(&obx_run_command,
			"--%s needs a pool: name one with --pool, or log in with 'outboard login'",
			pool_only());
	if (!obx_servers_valid(way->server, &cause))
		return ob_usage_error(
			&obx_run_command, "the server's address '%s': %s", way->server, cause.text);
	return OB_OPTIONS_GO;
}

/* Sets the variables that the client library reads, other than those of a reservation. */
static void settings_pass(const struct settings *s, const struct obx_way *way)
{
	if (s->driver && strcmp(s->driver, "dryrun") == 0)
		setenv("OUTBOARD_DRYRUN", "h100", 0);
	else if (s->direct)
		unsetenv("OUTBOARD_DRYRUN");
	/*
	 * The library must not ask a pool when a server was named. A ticket for this server may stay.
	 */
	if (!s->direct && !way->pool && !way->reserved)
		unsetenv("OUTBOARD_POOL");
	pass("OUTBOARD_SERVER", way->server);
	pass("OUTBOARD_POLICY", s->wish.policy);
	pass("OUTBOARD_VRAM", s->wish.vram);
	pass("OUTBOARD_SHARE", s->wish.share);
	pass("OUTBOARD_PRIORITY", s->wish.priority);
	pass("OUTBOARD_STATS", s->stats ? "1" : NULL);
	pass("OUTBOARD_TRACE", s->trace);
	pass("OUTBOARD_TIMELINE", s->timeline);
	pass("OUTBOARD_OPT", s->sync ? "-async" : NULL);
	if (s->direct)
		setenv("OUTBOARD_DIRECT", "1", 1);
	else
		unsetenv("OUTBOARD_DIRECT");
}

/* Replaces this process by the command. Returns the exit code if that is not possible. */
static int start(char **command)
{
	int code;

	execvp(command[0], command);
	code = errno == ENOENT ? 127 : 126;
	if (code == 127 && !strchr(command[0], '/'))
		fprintf(stderr,
			"outboard run: %s: not found in PATH; for a program in this directory "
			"write ./%s\n",
			command[0], command[0]);
	else
		fprintf(stderr, "outboard run: %s: %s\n", command[0], strerror(errno));
	return code;
}

/* What is needed for starting the command. */
struct begin {
	const struct settings *settings;
	const struct obx_way *way;
	const struct obx_reservation *reservation;
};

/* Sets the environment and replaces this process. Returns the exit code if that is not possible. */
static int begin(void *user)
{
	const struct begin *b = user;
	const struct settings *s = b->settings;

	settings_pass(s, b->way);
	if (!prepare(s->command.list[0], s->direct ? "liboutboard-softdevice.so" : LIBRARY,
		    obx_compilers_ptx(b->way->pool ? b->reservation->servers : b->way->server)))
		return OBX_EXIT_UNWELL;
	if (b->way->pool && !s->wish.restartable)
		obx_reserve_interrupted(b->reservation);
	return start(s->command.list);
}

static int run_main(int argc, char **argv)
{
	struct settings s = { 0 };
	struct obx_way way = { .pool = NULL };
	struct obx_reservation reservation = { .servers = NULL };
	struct begin what = { &s, &way, &reservation };
	struct obx_restart restart = {
		.way = &way, .wish = &s.wish, .begin = begin, .user = &what
	};
	int code = ob_options_parse(&obx_run_command, &s, argc, argv);

	if (code == OB_OPTIONS_GO)
		code = settings_check(&s);
	if (code == OB_OPTIONS_GO && !s.direct)
		code = way_find(&s, &way);
	if (code != OB_OPTIONS_GO)
		return code;
	if (s.timeline && !timeline_ready(s.timeline))
		return OBX_EXIT_UNWELL;
	if (way.pool && s.wish.restartable) {
		restart.program = s.command.list[0];
		restart.restarts = s.restarts ? s.restarts : OBX_RESTARTS;
		restart.grace_s = s.grace_s ? s.grace_s : OBX_RESTART_GRACE;
		restart.environment = obx_environment_save();
		if (!restart.environment)
			return OBX_EXIT_UNWELL;
	}
	if (way.pool) {
		code = obx_reserve(&way, &s.wish, s.command.list[0], &reservation);
		if (code)
			return code;
	}
	if (way.pool && s.wish.restartable)
		return obx_restart_run(&restart, &reservation);
	code = begin(&what);
	if (way.pool)
		obx_reserve_back(&reservation);
	return code;
}

const struct ob_command obx_run_command = {
	.name = "outboard run",
	.group = OBX_GROUP_REMOTE,
	.summary = "run a CUDA program with the GPUs of a server or a pool",
	.about = "Runs COMMAND with the GPUs of a server. Of several servers, with commas between "
		 "them, the least loaded is taken. With a pool, GPUs are reserved first. The exit "
		 "code is COMMAND's own.\n\nIf the pool gives no GPUs, COMMAND is not started, and "
		 "the exit code is 69: no server of the pool can ever fulfil the request; 75: not "
		 "now, or no balancer answers; 77: not allowed; 64: the request is wrong; 70: the "
		 "pool is faulty.",
	.options = options,
	.operands = operands,
	.main = run_main,
};
