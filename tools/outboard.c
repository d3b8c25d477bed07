/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "protocol/format.h"
#include "tools/command.h"

#define DEFAULT_SERVER "tcp://127.0.0.1:14800"

static const struct {
	const char *name, *what;
	int (*main)(int argc, char **argv);
} verbs[] = {
	{ "run", "run a CUDA program with the GPUs of a server", obx_run_main },
	{ "check", "is the server there, what does it run, how far away is it, what is wrong", obx_check_main },
	{ "info", "the server's devices", obx_info_main },
	{ "top", "the sessions of a server, refreshed", obx_top_main },
	{ "config", "check a configuration of outboard-server", obx_config_main },
	{ "bench", "measure calls: launch, latency, bandwidth, startup", obx_bench_main },
	{ "token", "make, list and revoke tokens that let clients in", obx_token_main },
	{ "cert", "make a certificate for a tls:// address, show its pin", obx_cert_main },
	{ "kzg", "KZG commitments, proofs, cells of blobs, on this machine", obx_kzg_main },
	{ "msm", "multi-scalar products of files, on this machine", obx_msm_main },
	{ "ntt", "number-theoretic transforms of files, on this machine", obx_ntt_main },
	{ "rqa", "recurrence quantification: one series, sweeps over grids of parameters, plots, a page", obx_rqa_main },
};

const char *obx_server_url(const char *given)
{
	const char *text = given ? given : getenv("OUTBOARD_SERVER");

	return text && *text ? text : DEFAULT_SERVER;
}

bool obx_find_file(const char *name, char *ret_path, size_t size)
{
	static const char *const places[] = { "../lib/outboard", "../client-shim", "../softdevice", "../server", "." };
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	char *slash;

	if (n <= 0)
		return false;
	self[n] = 0;
	slash = strrchr(self, '/');
	if (slash)
		*slash = 0;
	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		char joined[4608];

		snprintf(joined, sizeof joined, "%s/%s/%s", self, places[i], name);
		if (access(joined, R_OK) == 0) {
			char *real = realpath(joined, NULL); /* without "..": it goes into LD_LIBRARY_PATH */
			bool fits = real && strlen(real) < size;

			/* The link's own name matters (libcuda.so.1), its directory is what is made real. */
			if (fits)
				strcpy(ret_path, real);
			free(real);
			return fits;
		}
	}
	fprintf(stderr, "outboard: %s is neither in %s/../lib/outboard nor in a build tree around it; install Outboard or build it with 'ninja'\n",
		name, self);
	return false;
}

int obx_usage_error(const char *verb, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "outboard %s: ", verb);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "; 'outboard %s --help' shows the usage\n", verb);
	return OBX_EXIT_USAGE;
}

static int usage(FILE *out)
{
	fprintf(out, "usage: outboard VERB ...\n\nRun CUDA programs on the GPUs of another machine.\n\n");
	for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
		fprintf(out, "  %-7s %s\n", verbs[i].name, verbs[i].what);
	fprintf(out, "\n'outboard VERB --help' says more. The server is --server URL, else OUTBOARD_SERVER, else %s;\n"
		     "several with commas between them are asked for their load, and the least loaded is taken.\n", DEFAULT_SERVER);
	return out == stdout ? 0 : OBX_EXIT_USAGE;
}

int main(int argc, char **argv)
{
	ob_log_set_name("outboard");
	if (argc < 2)
		return usage(stderr);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0)
		return usage(stdout);
	if (strcmp(argv[1], "--version") == 0) {
		printf("outboard %s, protocol %u\n", OB_VERSION, OBP_VERSION);
		return 0;
	}
	for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
		if (strcmp(argv[1], verbs[i].name) == 0)
			return verbs[i].main(argc - 1, argv + 1);
	fprintf(stderr, "outboard: there is no verb '%s'\n", argv[1]);
	return usage(stderr);
}
