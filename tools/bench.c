/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * `outboard bench`: measures the cost of calls through the real client library and of the bare
 * transport in the same run. Rounds of both alternate and medians are printed, so that a machine
 * whose speed drifts favours neither.
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/cuda_types.h"
#include "base/json.h"
#include "base/opt.h"
#include "base/text.h"
#include "tools/bare.h"
#include "tools/command.h"
#include "tools/latency.h"
#include "tools/bandwidth.h"
#include "transport/url.h"

#define ROUNDS_DEFAULT  7
#define ROUNDS_MAX      64
#define LISTEN_DEFAULT  "tcp://127.0.0.1:0"
#define SAMPLES_DEFAULT 1000
#define LAUNCHES        200000
#define PINGS           2000
#define BULK_BYTES      (256u << 20)
#define SMALL_BYTES     4096
#define SMALL_COPIES    50000
#define PAIRS           50000
#define RECORDS         200000
#define SAMPLES_MAX     65536
#define SERVER_START_MS 10000

static const char ptx[] =
	".version 7.0\n.target sm_50\n.address_size 64\n"
	".visible .entry nothing(.param .u64 a, .param .u32 b, .param .u32 c)\n{\n\tret;\n}\n";

static struct driver {
	CUresult (*cuInit)(unsigned);
	CUresult (*cuDevicePrimaryCtxRetain)(CUcontext *, CUdevice);
	CUresult (*cuCtxSetCurrent)(CUcontext);
	CUresult (*cuCtxSynchronize)(void);
	CUresult (*cuModuleLoadData)(CUmodule *, const void *);
	CUresult (*cuModuleGetFunction)(CUfunction *, CUmodule, const char *);
	CUresult (*cuLaunchKernel)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
		unsigned, unsigned, CUstream, void **, void **);
	CUresult (*cuMemAlloc_v2)(CUdeviceptr *, size_t);
	CUresult (*cuMemFree_v2)(CUdeviceptr);
	CUresult (*cuMemcpyHtoD_v2)(CUdeviceptr, const void *, size_t);
	CUresult (*cuMemcpyDtoH_v2)(void *, CUdeviceptr, size_t);
	CUresult (*cuStreamCreate)(CUstream *, unsigned);
	CUresult (*cuStreamDestroy_v2)(CUstream);
	CUresult (*cuEventCreate)(CUevent *, unsigned);
	CUresult (*cuEventRecord)(CUevent, CUstream);
	CUresult (*cuMemGetInfo_v2)(size_t *, size_t *);
} cu;

struct bench {
	const char *server_given, *with, *listen, *what;
	struct ob_words command;
	const char *url_text;
	struct obt_url url;
	bool json;
	struct ob_json array; /* with --json: the rows */
	const char *plot;
	unsigned n_samples;
	void *library;
	int code;
	unsigned rounds;
	pid_t server;
	char server_url[OBT_URL_MAX + 1];
	CUfunction function;
	struct obx_bandwidth bandwidth;
	uint64_t samples[SAMPLES_MAX];
};

/* ---- results ---- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int by_ns(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static double median(double *values, unsigned n)
{
	qsort(values, n, sizeof values[0], by_value);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* bare < 0: no value to compare with. */
static void row(struct bench *b, const char *name, double ours, double bare, const char *unit)
{
	if (b->json) {
		ob_json_break(&b->array);
		ob_json_object(&b->array, NULL);
		ob_json_text(&b->array, "name", name);
		ob_json_double(&b->array, "value", ours, 6);
		ob_json_text(&b->array, "unit", unit);
		if (bare >= 0) {
			ob_json_double(&b->array, "bare", bare, 6);
			ob_json_double(&b->array, "ratio", ours / bare, 4);
		}
		ob_json_end(&b->array);
	} else if (bare >= 0) {
		printf("%-36s %12.3f %-8s bare %10.3f   ratio %.3f\n", name, ours, unit, bare,
			ours / bare);
	} else {
		printf("%-36s %12.3f %-8s\n", name, ours, unit);
	}
	fflush(stdout);
}

/* Prints the error and exits: a benchmark that continued would time the error path. */
static void need(CUresult result, const char *what)
{
	if (result == CUDA_SUCCESS)
		return;
	fprintf(stderr,
		"outboard bench: %s returned CUDA error %d; 'outboard check' tests the server\n",
		what, (int)result);
	exit(OBX_EXIT_UNWELL);
}

/* ---- setup ---- */

/*
 * Starts a server for this run only and reads its address from the line it prints. The server gets
 * SIGTERM when this process has ended: the client library sends its goodbye at exit, after any
 * handler of this file could stop the server.
 */
static bool server_start(struct bench *b, const char *driver, const char *listen)
{
	char path[4096], line[1024];
	int fds[2];
	FILE *in;

	if (!obx_find_file("outboard-server", path, sizeof path) || pipe(fds))
		return false;
	b->server = fork();
	if (b->server == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		dup2(fds[1], STDERR_FILENO);
		close(fds[0]);
		execl(path, path, "--listen", listen, "--driver", driver, (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	in = fdopen(fds[0], "r");
	alarm(SERVER_START_MS / 1000);
	while (in && fgets(line, sizeof line, in)) {
		char *at = strstr(line, "listening on ");

		if (at) {
			alarm(0);
			at[strcspn(at, "\n")] = 0;
			snprintf(b->server_url, sizeof b->server_url, "%.*s", OBT_URL_MAX,
				at + strlen("listening on "));
			b->url_text = b->server_url;
			return true;
		}
		fputs(line, stderr);
	}
	fprintf(stderr, "outboard bench: the server did not start\n");
	return false;
}

static bool library_open(struct bench *b)
{
	char path[4096];
	void *library;

	if (!obx_find_file("libcuda.so.1", path, sizeof path))
		return false;
	b->library = library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		fprintf(stderr, "outboard bench: %s\n", dlerror());
		return false;
	}
#define LOAD(name)                                                                     \
	do {                                                                           \
		*(void **)&cu.name = dlsym(library, #name);                            \
		if (!cu.name) {                                                        \
			fprintf(stderr, "outboard bench: %s lacks %s\n", path, #name); \
			return false;                                                  \
		}                                                                      \
	} while (0)
	LOAD(cuInit);
	LOAD(cuDevicePrimaryCtxRetain);
	LOAD(cuCtxSetCurrent);
	LOAD(cuCtxSynchronize);
	LOAD(cuModuleLoadData);
	LOAD(cuModuleGetFunction);
	LOAD(cuLaunchKernel);
	LOAD(cuMemAlloc_v2);
	LOAD(cuMemFree_v2);
	LOAD(cuMemcpyHtoD_v2);
	LOAD(cuMemcpyDtoH_v2);
	LOAD(cuStreamCreate);
	LOAD(cuStreamDestroy_v2);
	LOAD(cuEventCreate);
	LOAD(cuEventRecord);
	LOAD(cuMemGetInfo_v2);
#undef LOAD
	return true;
}

static void session_open(struct bench *b)
{
	CUmodule module;
	CUcontext ctx;

	need(cu.cuInit(0), "cuInit");
	need(cu.cuDevicePrimaryCtxRetain(&ctx, 0), "cuDevicePrimaryCtxRetain");
	need(cu.cuCtxSetCurrent(ctx), "cuCtxSetCurrent");
	need(cu.cuModuleLoadData(&module, ptx), "cuModuleLoadData");
	need(cu.cuModuleGetFunction(&b->function, module, "nothing"), "cuModuleGetFunction");
	need(cu.cuCtxSynchronize(), "cuCtxSynchronize");
}

static void launch(struct bench *b)
{
	CUdeviceptr a = 0;
	unsigned n = 1, m = 2;
	void *params[] = { &a, &n, &m };

	need(cu.cuLaunchKernel(b->function, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL),
		"cuLaunchKernel");
}

/* ---- the measurements ---- */

/*
 * Processor time of this thread. Wall time would include waiting for a core on a machine with fewer
 * cores than busy threads.
 */
static uint64_t thread_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * OB_SECOND + (uint64_t)ts.tv_nsec;
}

static void bench_launch(struct bench *b)
{
	double issue[ROUNDS_MAX], cpu[ROUNDS_MAX], rate[ROUNDS_MAX];

	for (unsigned r = 0; r < b->rounds; r++) {
		uint64_t began = ob_clock_ns(), worked = thread_ns(), issued;

		for (int i = 0; i < LAUNCHES; i++)
			launch(b);
		issued = ob_clock_ns() - began;
		cpu[r] = (double)(thread_ns() - worked) / LAUNCHES;
		need(cu.cuCtxSynchronize(), "cuCtxSynchronize");
		issue[r] = (double)issued / LAUNCHES;
		rate[r] = LAUNCHES / ((double)(ob_clock_ns() - began) / 1e9) / 1e6;
	}
	row(b, "launch: caller's time", median(issue, b->rounds), -1, "ns");
	row(b, "launch: caller's processor time", median(cpu, b->rounds), -1, "ns");
	row(b, "launch: executed by the server", median(rate, b->rounds), -1, "M/s");
}

static void bench_latency(struct bench *b)
{
	bool spin = ob_opt_on(OB_OPT_SPIN);
	double ours50[ROUNDS_MAX], ours99[ROUNDS_MAX], bare50[ROUNDS_MAX], bare99[ROUNDS_MAX];
	struct obx_bare bare;

	if (!obx_bare_open(&bare, &b->url, spin)) {
		fprintf(stderr, "outboard bench: no bare connection: %s\n", strerror(errno));
		exit(OBX_EXIT_UNWELL);
	}
	for (unsigned r = 0; r < b->rounds; r++) {
		for (int i = 0; i < PINGS; i++)
			b->samples[i] = obx_bare_ping(&bare);
		qsort(b->samples, PINGS, sizeof b->samples[0], by_ns);
		bare50[r] = (double)b->samples[PINGS / 2] / 1e3;
		bare99[r] = (double)b->samples[PINGS * 99 / 100] / 1e3;
		for (int i = 0; i < PINGS; i++) {
			uint64_t began = ob_clock_ns();
			size_t left, total;

			/*
			 * A call that only the server can answer, and in which no driver waits for
			 * a device.
			 */
			need(cu.cuMemGetInfo_v2(&left, &total), "cuMemGetInfo");
			b->samples[i] = ob_clock_ns() - began;
		}
		qsort(b->samples, PINGS, sizeof b->samples[0], by_ns);
		ours50[r] = (double)b->samples[PINGS / 2] / 1e3;
		ours99[r] = (double)b->samples[PINGS * 99 / 100] / 1e3;
	}
	obx_bare_close(&bare);
	row(b, spin ? "sync call, spinning: median" : "sync call, sleeping: median",
		median(ours50, b->rounds), median(bare50, b->rounds), "us");
	row(b, spin ? "sync call, spinning: 99%" : "sync call, sleeping: 99%",
		median(ours99, b->rounds), median(bare99, b->rounds), "us");
	b->code |= obx_latency_run(
		b->library, &b->url, b->n_samples, b->json ? &b->array : NULL, b->plot);
}

static void bench_bulk(struct bench *b, CUdeviceptr device, uint8_t *host)
{
	double up[ROUNDS_MAX], down[ROUNDS_MAX], bare_up[ROUNDS_MAX], bare_down[ROUNDS_MAX];
	struct obx_bare bare;

	if (!obx_bare_open(&bare, &b->url, false))
		exit(OBX_EXIT_UNWELL);
	for (unsigned r = 0; r < b->rounds; r++) {
		uint64_t began;

		bare_up[r] = BULK_BYTES / (double)obx_bare_send(&bare, host, BULK_BYTES);
		began = ob_clock_ns();
		need(cu.cuMemcpyHtoD_v2(device, host, BULK_BYTES), "cuMemcpyHtoD");
		need(cu.cuCtxSynchronize(), "cuCtxSynchronize");
		up[r] = BULK_BYTES / (double)(ob_clock_ns() - began);
		bare_down[r] = BULK_BYTES / (double)obx_bare_receive(&bare, host, BULK_BYTES);
		began = ob_clock_ns();
		need(cu.cuMemcpyDtoH_v2(host, device, BULK_BYTES), "cuMemcpyDtoH");
		down[r] = BULK_BYTES / (double)(ob_clock_ns() - began);
	}
	obx_bare_close(&bare);
	row(b, "HtoD 256 MiB, pageable", median(up, b->rounds), median(bare_up, b->rounds), "GB/s");
	row(b, "DtoH 256 MiB, pageable", median(down, b->rounds), median(bare_down, b->rounds),
		"GB/s");
}

/* Millions of calls per second, measured until the server has executed them. */
static double rate_of(struct bench *b, void (*call)(void *user), void *user, unsigned calls)
{
	double rate[ROUNDS_MAX];

	for (unsigned r = 0; r < b->rounds; r++) {
		uint64_t began = ob_clock_ns();

		for (unsigned i = 0; i < calls; i++)
			call(user);
		need(cu.cuCtxSynchronize(), "cuCtxSynchronize");
		rate[r] = calls / ((double)(ob_clock_ns() - began) / 1e9) / 1e6;
	}
	return median(rate, b->rounds);
}

struct small {
	CUdeviceptr device;
	uint8_t *host;
	CUevent event;
};

static void call_small(void *user)
{
	struct small *s = user;

	need(cu.cuMemcpyHtoD_v2(s->device, s->host, SMALL_BYTES), "cuMemcpyHtoD");
}

static void call_pair(void *user)
{
	CUdeviceptr p;

	(void)user;
	need(cu.cuMemAlloc_v2(&p, 1 << 20), "cuMemAlloc");
	need(cu.cuMemFree_v2(p), "cuMemFree");
}

static void call_stream(void *user)
{
	CUstream s;

	(void)user;
	need(cu.cuStreamCreate(&s, 0), "cuStreamCreate");
	need(cu.cuStreamDestroy_v2(s), "cuStreamDestroy");
}

static void call_event(void *user)
{
	struct small *s = user;

	need(cu.cuEventRecord(s->event, NULL), "cuEventRecord");
}

static void bench_bandwidth(struct bench *b)
{
	struct small s = { .host = malloc(BULK_BYTES) };

	if (!s.host)
		need(CUDA_ERROR_OUT_OF_MEMORY, "malloc");
	for (size_t i = 0; i < BULK_BYTES; i += 8)
		*(uint64_t *)(s.host + i) = i * 0x9e3779b97f4a7c15ull;
	need(cu.cuMemAlloc_v2(&s.device, BULK_BYTES), "cuMemAlloc");
	bench_bulk(b, s.device, s.host);
	b->code |= obx_bandwidth_run(
		&b->bandwidth, &b->url, b->rounds, b->json ? &b->array : NULL, b->plot);
	obx_bandwidth_stop(&b->bandwidth);
	row(b, "HtoD 4 KiB", rate_of(b, call_small, &s, SMALL_COPIES), -1, "M/s");
	need(cu.cuMemFree_v2(s.device), "cuMemFree");
	free(s.host);
}

static void bench_objects(struct bench *b)
{
	struct small s = { 0 };

	need(cu.cuEventCreate(&s.event, 2), "cuEventCreate");
	row(b, "alloc + free", rate_of(b, call_pair, &s, PAIRS), -1, "M/s");
	row(b, "stream create + destroy", rate_of(b, call_stream, &s, PAIRS), -1, "M/s");
	row(b, "event record", rate_of(b, call_event, &s, RECORDS), -1, "M/s");
}

/* Times whole processes under `outboard run`. */
static void bench_startup(struct bench *b, char **command)
{
	double took[ROUNDS_MAX];

	for (unsigned r = 0; r < b->rounds; r++) {
		uint64_t began = ob_clock_ns();
		int status = 0;
		pid_t pid = fork();

		if (pid == 0) {
			char self[4096], **argv = calloc(64, sizeof *argv);
			ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
			int k = 0;

			self[ob_max(n, 0)] = 0;
			argv[k++] = self;
			argv[k++] = "run";
			argv[k++] = "--server";
			argv[k++] = (char *)b->url_text;
			argv[k++] = "--";
			for (int i = 0; command[i] && k < 63; i++)
				argv[k++] = command[i];
			if (!freopen("/dev/null", "w", stdout))
				_exit(126);
			execv(self, argv);
			_exit(127);
		}
		waitpid(pid, &status, 0);
		took[r] = (double)(ob_clock_ns() - began) / 1e6;
		if (!WIFEXITED(status) || WEXITSTATUS(status)) {
			fprintf(stderr, "outboard bench: %s failed\n", command[0]);
			exit(OBX_EXIT_UNWELL);
		}
	}
	row(b, "program, start to end", median(took, b->rounds), -1, "ms");
}

/*
 * cuMemGetInfo stands for a call that only the server can answer: the client library in this
 * process must not answer it from what it knows.
 */
static void local_off(void)
{
	const char *opt = getenv("OUTBOARD_OPT");
	char text[1024];

	snprintf(text, sizeof text, "%s%s-local", opt ? opt : "", opt && *opt ? "," : "");
	setenv("OUTBOARD_OPT", text, 1);
}

static int measure(struct bench *b, const char *what, char **command)
{
	bool all = strcmp(what, "all") == 0, bandwidth = all || strcmp(what, "bandwidth") == 0;
	struct ob_cause cause;

	if (obt_url_parse(b->url_text, &b->url, &cause))
		return ob_usage_error(&obx_bench_command, "the server's address '%s': %s",
			b->url_text, cause.text);
	setenv("OUTBOARD_SERVER", b->url_text, 1);
	local_off();
	if (b->json) {
		ob_json_begin(&b->array, stdout, OB_JSON_SPACED);
		ob_json_array(&b->array, NULL);
	}
	if (strcmp(what, "startup") == 0) {
		bench_startup(b, command);
	} else {
		/* The child processes must start before this process has a session. */
		if ((bandwidth && !obx_bandwidth_start(&b->bandwidth)) || !library_open(b))
			return OBX_EXIT_UNWELL;
		session_open(b);
		if (all || strcmp(what, "launch") == 0)
			bench_launch(b);
		if (all || strcmp(what, "latency") == 0)
			bench_latency(b);
		if (bandwidth)
			bench_bandwidth(b);
		if (all || strcmp(what, "objects") == 0)
			bench_objects(b);
	}
	if (b->json) {
		ob_json_end(&b->array);
		putchar('\n');
	}
	return b->code;
}

static const struct ob_option options[] = {
	OBX_SERVER_OPTION(struct bench, server_given),
	{ OB_OPTION("with", OB_TEXT, struct bench, with), .arg = "DRIVER",
		.words = "null|soft|auto|gpu",
		.help = "start a server for this run: null (the wire alone), soft, auto, gpu, or "
			"the path of a libcuda.so.1" },
	{ OB_OPTION("listen", OB_TEXT, struct bench, listen), .arg = "URL",
		.fallback = LISTEN_DEFAULT, .help = "where that server listens" },
	{ OB_OPTION("rounds", OB_NUMBER, struct bench, rounds), .arg = "N", .min = 1,
		.max = ROUNDS_MAX, .fallback = "7", .help = "print medians of N rounds" },
	{ OB_OPTION("json", OB_FLAG, struct bench, json), .help = "print one JSON array" },
	{ OB_OPTION("plot", OB_FILE, struct bench, plot), .arg = "FILE",
		.help = "latency and bandwidth: write a plot (SVG)" },
	{ OB_OPTION("samples", OB_NUMBER, struct bench, n_samples), .arg = "N", .min = 100,
		.max = OBX_LATENCY_SAMPLES_MAX, .fallback = "1000",
		.help = "latency: calls of each class" },
	{ 0 },
};

static const struct ob_operand operands[] = {
	{ .name = "WHAT",
		.words = "launch|latency|bandwidth|objects|all|startup",
		.what = "thing to measure called",
		.offset = offsetof(struct bench, what),
		.missing =
			"say what is to be measured: launch, latency, bandwidth, objects, all or "
			"startup" },
	{ .name = "COMMAND", .kind = OB_OPERAND_REST, .offset = offsetof(struct bench, command) },
	{ 0 },
};

static int bench_main(int argc, char **argv)
{
	static struct bench b = {
		.rounds = ROUNDS_DEFAULT, .n_samples = SAMPLES_DEFAULT, .listen = LISTEN_DEFAULT
	};
	int code = ob_options_parse(&obx_bench_command, &b, argc, argv);

	if (code != OB_OPTIONS_GO)
		return code;
	if (strcmp(b.what, "startup") == 0 && !b.command.n)
		return ob_usage_error(&obx_bench_command, "startup needs a command");
	b.url_text = obx_server_url(b.server_given);
	if (b.with && !server_start(&b, b.with, b.listen))
		return OBX_EXIT_UNWELL;
	return measure(&b, b.what, b.command.list);
}

const struct ob_command obx_bench_command = {
	.name = "outboard bench",
	.group = OBX_GROUP_REMOTE,
	.summary = "measure the cost of launches, calls, copies and starts",
	.usage = "launch|latency|bandwidth|objects|all [OPTION]...\n"
		 "startup [OPTION]... -- COMMAND [ARG]...",
	.about = "Measures the cost of calls through the client library; startup: the time of a "
		 "whole program under 'outboard run'. 'bare' is the same kind of connection on "
		 "this machine without Outboard, measured in turn with it.",
	.notes = "OUTBOARD_OPT=-spin lets both sides sleep instead of spin.",
	.options = options,
	.operands = operands,
	.main = bench_main,
};
