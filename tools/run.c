/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "loadbalancer/place.h"
#include "tools/command.h"
#include "tools/loader.h"
#include "tools/program.h"
#include "tools/servers.h"

#define PATH_BYTES 4096
#define LIBRARY    "libcuda.so.1" /* as programs look for it */

static int usage(void)
{
	puts("usage: outboard run [OPTION]... [--] COMMAND [ARG]...\n"
	     "\n"
	     "Runs COMMAND with the server's GPUs. The exit code is COMMAND's own.\n"
	     "\n"
	     "  --server URL   tls://host:port, tcp://host:port, unix:/path, shm:/path (on this "
	     "host, through shared memory), or several\n"
	     "                 with commas: the least loaded is taken\n"
	     "                 (else OUTBOARD_SERVER, else tcp://127.0.0.1:14800)\n"
	     "  --policy NAME  how one of several is chosen: least-load, binpack, spread, "
	     "power-of-two, ...\n"
	     "  --vram SIZE    this much device memory at most; a server must have it free\n"
	     "  --share F      this part of the device's time at most, 0.01 to 1\n"
	     "  --priority P   low, normal or high; a server may allow less\n"
	     "  --direct       no server: the software device inside the program's own process\n"
	     "  --stats        at exit, print calls, round trips, bytes and time to stderr\n"
	     "  --trace FILE   write each call to FILE\n"
	     "  --sync         make every call wait for its result (finds the call that fails)");
	return 0;
}

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
	if (obx_loader_folder(path, LIBRARY, folder, sizeof folder)) {
		snprintf(preload, sizeof preload, "%s/" LIBRARY, folder);
		join("LD_LIBRARY_PATH", folder, true);
	} else if (!takes) {
		fprintf(stderr,
			"outboard run: the loader takes no blank, colon, semicolon or $ in %s, and "
			"no link to it can be made in %s: %s. "
			"Let XDG_RUNTIME_DIR name a folder of yours, or install Outboard "
			"elsewhere\n",
			path, folder, strerror(errno));
		return false;
	}
	if (may_preload)
		join("LD_PRELOAD", takes ? path : preload, false);
	return true;
}

/*
 * AddressSanitizer refuses to start when another library was loaded before its runtime. Our library
 * replaces nothing of the C library, so that check is turned off for programs that the command
 * starts (it may be a shell, make or a test runner), unless the user has set it.
 */
static void sanitizer_allow(void)
{
	const char *old = getenv("ASAN_OPTIONS");

	if (!old || !strstr(old, "verify_asan_link_order"))
		join("ASAN_OPTIONS", "verify_asan_link_order=0", true);
}

/*
 * Sets the loader's variables. Prints a warning for a program that they have no effect on. False:
 * the library was not found, and an error was printed.
 */
static bool prepare(const char *command, const char *file)
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
	sanitizer_allow();
	return use_library(file, kind != OBX_PROGRAM_SANITIZER);
}

/*
 * The client library reads these from its environment. Wrong values are reported here, before the
 * program starts.
 */
static bool wish(int option, const char *text, const char **ret_wanted)
{
	enum obl_policy policy;
	uint64_t bytes;
	double share;
	char *end;

	switch (option) {
	case 'P':
		*ret_wanted = "least-load, round-robin, weighted, least-connections, power-of-two, "
			      "binpack, spread or exclusive";
		setenv("OUTBOARD_POLICY", text, 1);
		return obl_policy_parse(text, &policy);
	case 'v':
		*ret_wanted = "a size such as 4GiB";
		setenv("OUTBOARD_VRAM", text, 1);
		return ob_text_parse_size(text, &bytes) && bytes > 0;
	case 'H':
		*ret_wanted = "a number from 0.01 to 1";
		setenv("OUTBOARD_SHARE", text, 1);
		share = strtod(text, &end);
		return end != text && !*end && share >= 0.01 && share <= 1;
	default:
		*ret_wanted = "low, normal or high";
		setenv("OUTBOARD_PRIORITY", text, 1);
		return strcmp(text, "low") == 0 || strcmp(text, "normal") == 0 ||
			strcmp(text, "high") == 0;
	}
}

int obx_run_main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "server", required_argument, NULL, 's' },
		{ "direct", no_argument, NULL, 'd' },
		{ "stats", no_argument, NULL, 'S' },
		{ "trace", required_argument, NULL, 't' },
		{ "sync", no_argument, NULL, 'y' },
		{ "help", no_argument, NULL, 'h' },
		{ "policy", required_argument, NULL, 'P' },
		{ "vram", required_argument, NULL, 'v' },
		{ "share", required_argument, NULL, 'H' },
		{ "priority", required_argument, NULL, 'p' },
		{ 0 },
	};
	const char *server = NULL, *why = NULL;
	struct ob_cause cause;
	bool direct = false;
	int c;

	while ((c = getopt_long(argc, argv, "+:h", options, NULL)) != -1) {
		switch (c) {
		case 's':
			server = optarg;
			break;
		case 'd':
			direct = true;
			break;
		case 'S':
			setenv("OUTBOARD_STATS", "1", 1);
			break;
		case 't':
			setenv("OUTBOARD_TRACE", optarg, 1);
			break;
		case 'y':
			setenv("OUTBOARD_OPT", "-async", 1);
			break;
		case 'P':
		case 'v':
		case 'H':
		case 'p':
			if (!wish(c, optarg, &why))
				return obx_usage_error("run", "%s takes %s, not '%s'",
					argv[optind - 2], why, optarg);
			break;
		case 'h':
			return usage();
		default:
			return obx_option_wrong("run", c, argv);
		}
	}
	if (optind >= argc)
		return obx_usage_error("run", "a command is missing");
	server = obx_server_url(server);
	if (!direct && !obx_servers_valid(server, &cause))
		return obx_usage_error("run", "the server's address '%s': %s", server, cause.text);
	setenv("OUTBOARD_SERVER", server, 1);
	if (!prepare(argv[optind], direct ? "liboutboard-softdevice.so" : LIBRARY))
		return OBX_EXIT_UNWELL;
	execvp(argv[optind], argv + optind);
	fprintf(stderr, "outboard run: %s: %s\n", argv[optind], strerror(errno));
	return errno == ENOENT ? 127 : 126;
}
