/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tools/latency.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/opt.h"
#include "protocol/obp_calls.h"
#include "tools/bare.h"
#include "tools/command.h"
#include "tools/plot.h"

#define SMALL_BYTES 4096u
/*
 * samples of each class per round; classes alternate, so that a machine whose speed drifts favours
 * none
 */
#define ROUND       100u
/* parts are averaged over this percentage of the samples on each side of the median */
#define BAND        3u

static const char ptx[] =
	".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry nothing()\n{\n\tret;\n}\n";

/*
 * The client library's private table. Its layout is that of client-shim/session/times.h, which tools
 * may not include.
 */
struct times_table {
	uint64_t size;
	CUresult (*on)(int on);
	void (*last)(uint64_t *ret_sent_ns, uint64_t *ret_received_ns, uint64_t *ret_number);
	CUresult (*server)(uint64_t first, uint32_t *ret_count, uint64_t *ret_times);
};

static struct {
	CUresult (*cuCtxGetDevice)(CUdevice *);
	CUresult (*cuCtxSynchronize)(void);
	CUresult (*cuMemGetInfo_v2)(size_t *, size_t *);
	CUresult (*cuMemAlloc_v2)(CUdeviceptr *, size_t);
	CUresult (*cuMemFree_v2)(CUdeviceptr);
	CUresult (*cuMemcpyDtoH_v2)(void *, CUdeviceptr, size_t);
	CUresult (*cuMemcpyHtoD_v2)(CUdeviceptr, const void *, size_t);
	CUresult (*cuMemsetD32Async)(CUdeviceptr, unsigned, size_t, CUstream);
	CUresult (*cuModuleLoadData)(CUmodule *, const void *);
	CUresult (*cuModuleGetFunction)(CUfunction *, CUmodule, const char *);
	CUresult (*cuLaunchKernel)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
		unsigned, unsigned, CUstream, void **, void **);
	CUresult (*cuGetExportTable)(const void **, const CUuuid *);
} cu;

static CUdeviceptr memory;
static CUfunction function;
static uint8_t host[SMALL_BYTES];

static CUresult call_local(void)
{
	CUdevice device;

	return cu.cuCtxGetDevice(&device);
}

static CUresult call_async(void)
{
	return cu.cuMemsetD32Async(memory, 7, 1, NULL);
}

static CUresult call_sync(void)
{
	size_t left, total;

	return cu.cuMemGetInfo_v2(&left, &total);
}

static CUresult call_read(void)
{
	return cu.cuMemcpyDtoH_v2(host, memory, sizeof host);
}

static CUresult call_write(void)
{
	CUresult result = cu.cuMemcpyHtoD_v2(memory, host, sizeof host);

	return result == CUDA_SUCCESS ? cu.cuCtxSynchronize() : result;
}

static CUresult call_launch(void)
{
	CUresult result = cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);

	return result == CUDA_SUCCESS ? cu.cuCtxSynchronize() : result;
}

enum kind { LOCAL, ASYNC, REMOTE };

static const struct class
{
	const char *name, *what;
	CUresult (*call)(void);
	enum kind kind;
} classes[] = {
	{ "local", "cuCtxGetDevice", call_local, LOCAL },
	{ "async", "cuMemsetD32Async, the caller's time", call_async, ASYNC },
	{ "sync", "cuMemGetInfo", call_sync, REMOTE },
	{ "bulk read", "cuMemcpyDtoH of 4 KiB", call_read, REMOTE },
	{ "bulk write", "cuMemcpyHtoD of 4 KiB + cuCtxSynchronize", call_write, REMOTE },
	{ "launch+sync", "an empty kernel + cuCtxSynchronize", call_launch, REMOTE },
};

#define CLASSES ob_count(classes)

struct sample {
	/* ns; waited: from sending the frame to receiving the reply */
	uint64_t whole, client, waited;
	uint64_t first, last; /* records of this call */
	uint64_t queue, driver;
};

static struct sample samples[CLASSES][OBX_LATENCY_SAMPLES_MAX];
static uint64_t pings[OBX_LATENCY_SAMPLES_MAX];
static const struct times_table *times;

static bool failed(CUresult result, const char *what)
{
	if (result != CUDA_SUCCESS)
		fprintf(stderr,
			"outboard bench: %s returned CUDA error %d; 'outboard check' tests the "
			"server\n",
			what, (int)result);
	return result != CUDA_SUCCESS;
}

static bool open_calls(void *library)
{
	const void *table = NULL;
	CUmodule module;
	CUuuid id;

#define LOAD(name)                                                                               \
	do {                                                                                     \
		*(void **)&cu.name = dlsym(library, #name);                                      \
		if (!cu.name) {                                                                  \
			fprintf(stderr, "outboard bench: the client library lacks %s\n", #name); \
			return false;                                                            \
		}                                                                                \
	} while (0)
	LOAD(cuCtxGetDevice);
	LOAD(cuCtxSynchronize);
	LOAD(cuMemGetInfo_v2);
	LOAD(cuMemAlloc_v2);
	LOAD(cuMemFree_v2);
	LOAD(cuMemcpyDtoH_v2);
	LOAD(cuMemcpyHtoD_v2);
	LOAD(cuMemsetD32Async);
	LOAD(cuModuleLoadData);
	LOAD(cuModuleGetFunction);
	LOAD(cuLaunchKernel);
	LOAD(cuGetExportTable);
#undef LOAD
	if (failed(cu.cuMemAlloc_v2(&memory, SMALL_BYTES), "cuMemAlloc") ||
		failed(cu.cuModuleLoadData(&module, ptx), "cuModuleLoadData") ||
		failed(cu.cuModuleGetFunction(&function, module, "nothing"), "cuModuleGetFunction"))
		return false;
	memcpy(id.bytes, "outboard-latency", sizeof id.bytes);
	if (cu.cuGetExportTable(&table, &id) == CUDA_SUCCESS && table)
		times = table;
	if (times && (times->size < sizeof *times || times->on(1) != CUDA_SUCCESS))
		times = NULL;
	if (!times)
		fprintf(stderr,
			"outboard bench: this server does not report times: the parts of a call "
			"are not shown\n");
	return true;
}

/* ---- taking samples ---- */

static bool sample_take(const struct class *class, struct sample *s)
{
	uint64_t sent = 0, received = 0, before = 0, began, ended, unused;
	CUresult result;

	*s = (struct sample){ .whole = 0 };
	if (times)
		times->last(&unused, &unused, &before);
	began = ob_clock_ns();
	result = class->call();
	ended = ob_clock_ns();
	if (failed(result, class->what))
		return false;
	s->whole = s->client = ended - began;
	if (class->kind == ASYNC)
		/* its pending work must not count in the next sample */
		return !failed(cu.cuCtxSynchronize(), "cuCtxSynchronize");
	if (!times || class->kind == LOCAL)
		return true;
	times->last(&sent, &received, &s->last);
	if (sent < began || received < sent || received > ended || s->last <= before)
		return true; /* the sender thread sent the record first: this sample is not split */
	s->first = before + 1;
	s->waited = received - sent;
	s->client = s->whole - s->waited;
	return true;
}

static bool nonsense(const char *what)
{
	fprintf(stderr,
		"outboard bench: the server broke the protocol: it sent %s; install the same "
		"release on both sides\n",
		what);
	return false;
}

/*
 * Fetches the server's times of the records of this round's samples. The query makes records too,
 * with higher numbers.
 */
static bool server_read(struct sample *from, unsigned n)
{
	uint64_t numbers[5 * OBP_TIMES_MAX], at = 0;
	uint32_t count;
	unsigned i = 0;

	while (i < n && !from[i].last)
		i++;
	if (i < n)
		at = from[i].first;
	while (i < n) {
		if (failed(times->server(at, &count, numbers), "reading the server's times"))
			return false;
		if (count == 0)
			return true;
		if (count > OBP_TIMES_MAX)
			return nonsense("more times than were asked for");
		for (uint32_t k = 0; k < count; k++) {
			const uint64_t *t = &numbers[5 * k];

			/*
			 * The numbers must increase, so that the loop ends whatever the server
			 * answers.
			 */
			if (t[0] < at || t[0] == UINT64_MAX)
				return nonsense("the times of records that were not asked for");
			while (i < n && (!from[i].last || from[i].last < t[0]))
				i++;
			if (i < n && t[0] >= from[i].first) {
				/*
				 * The records of one call travel in one frame: the first record's
				 * waiting time counts for all of them.
				 */
				from[i].queue += t[0] == from[i].first ? t[1] : 0;
				from[i].queue += t[2] - ob_min(t[3], t[2]);
				from[i].driver += t[3];
			}
			at = t[0] + 1;
		}
	}
	return true;
}

static bool samples_take(const struct obt_url *url, unsigned n)
{
	struct obx_bare bare;
	bool ok = true;

	if (!obx_bare_open(&bare, url, ob_opt_on(OB_OPT_SPIN))) {
		fprintf(stderr, "outboard bench: no bare connection: %s\n", strerror(errno));
		return false;
	}
	for (unsigned at = 0; ok && at < n; at += ROUND) {
		for (unsigned i = at; i < at + ROUND; i++)
			pings[i] = obx_bare_ping(&bare);
		for (unsigned c = 0; ok && c < CLASSES; c++) {
			for (unsigned i = at; ok && i < at + ROUND; i++)
				ok = sample_take(&classes[c], &samples[c][i]);
			if (ok && times && classes[c].kind == REMOTE)
				ok = server_read(&samples[c][at], ROUND);
		}
	}
	obx_bare_close(&bare);
	return ok;
}

/* ---- summing up ---- */

static int by_whole(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;

	return (x->whole > y->whole) - (x->whole < y->whole);
}

static int by_ns(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void bucket(struct obx_latency_row *row, uint64_t ns)
{
	unsigned b = 0;

	while (b + 1 < OBX_LATENCY_BUCKETS && ns >= 64ull << (b + 1))
		b++;
	row->histogram[b]++;
}

static double us(uint64_t ns)
{
	return (double)ns / 1e3;
}

static void row_fill(
	struct obx_latency_row *row, const struct class *class, struct sample *s, unsigned n)
{
	unsigned split = 0;

	*row = (struct obx_latency_row){ .name = class->name, .what = class->what, .samples = n };
	qsort(s, n, sizeof *s, by_whole);
	row->p50 = us(s[n / 2].whole);
	row->p90 = us(s[n * 90 / 100].whole);
	row->p99 = us(s[n * 99 / 100].whole);
	row->max = us(s[n - 1].whole);
	for (unsigned i = 0; i < n; i++)
		bucket(row, s[i].whole);
	for (unsigned i = n * (50 - BAND) / 100; i < n * (50 + BAND) / 100; i++) {
		uint64_t server = s[i].queue + s[i].driver;

		if (!s[i].last || s[i].driver + s[i].queue == 0)
			continue;
		split++;
		row->part[OBX_CLIENT] += us(s[i].client);
		row->part[OBX_WIRE] += us(s[i].waited - ob_min(server, s[i].waited));
		row->part[OBX_QUEUE] += us(s[i].queue);
		row->part[OBX_DRIVER] += us(s[i].driver);
	}
	row->split = split > 0;
	for (unsigned p = 0; p < OBX_PARTS; p++)
		row->part[p] = split ? row->part[p] / split : p == OBX_CLIENT ? row->p50 : 0;
}

static void bare_fill(struct obx_latency_row *row, unsigned n)
{
	*row = (struct obx_latency_row){
		.name = "bare", .what = "64 bytes there and back, without Outboard", .samples = n
	};
	qsort(pings, n, sizeof pings[0], by_ns);
	row->p50 = us(pings[n / 2]);
	row->p90 = us(pings[n * 90 / 100]);
	row->p99 = us(pings[n * 99 / 100]);
	row->max = us(pings[n - 1]);
	row->part[OBX_WIRE] = row->p50;
	for (unsigned i = 0; i < n; i++)
		bucket(row, pings[i]);
}

/*
 * For calls that wait for the server, which dominate a program's run time: prints where most of the
 * time goes and what would reduce it.
 */
static void sentence_make(const struct obx_latency_row *sync, const struct obx_latency_row *bare,
	char *ret, size_t size)
{
	static const char *const where[OBX_PARTS] = { "in the client library",
		"on the wire and in both kernels' sockets", "in the server before the driver",
		"in the driver" };
	static const char *const help[OBX_PARTS] = {
		"look at what else runs on the client's cores",
		"a nearer server, a Unix socket on one host, or fewer calls that wait would help",
		"look at what else runs on the server's cores",
		"only a faster driver or device would help",
	};
	double whole = 1e-9;
	unsigned most = 0;
	char ping[128];

	if (!sync->split) {
		snprintf(ret, size,
			"A call that waits takes %.1f us; this server does not report where it "
			"goes.",
			sync->p50);
		return;
	}
	for (unsigned p = 1; p < OBX_PARTS; p++)
		if (sync->part[p] > sync->part[most])
			most = p;
	for (unsigned p = 0; p < OBX_PARTS; p++)
		whole += sync->part[p];
	snprintf(ping, sizeof ping, ", where a bare round trip takes %.1f us%s", bare->p50,
		bare->p50 > whole ? " (both of its ends poll: other work takes their cores)" : "");
	snprintf(ret, size,
		"Of the %.1f us of a call that waits, %.1f us (%.0f %%) are spent %s%s: %s.", whole,
		sync->part[most], 100 * sync->part[most] / whole, where[most],
		most == OBX_WIRE ? ping : "", help[most]);
}

/* ---- printing ---- */

static const char *const part_names[OBX_PARTS] = { "client", "wire", "queue", "driver" };

static void json_row(struct ob_json *json, const struct obx_latency_row *row)
{
	ob_json_break(json);
	ob_json_object(json, NULL);
	ob_json_textf(json, "name", "latency: %s", row->name);
	ob_json_text(json, "call", row->what);
	ob_json_text(json, "unit", "us");
	ob_json_uint(json, "samples", row->samples);
	ob_json_fixed(json, "p50", row->p50, 3);
	ob_json_fixed(json, "p90", row->p90, 3);
	ob_json_fixed(json, "p99", row->p99, 3);
	ob_json_fixed(json, "max", row->max, 3);
	ob_json_bool(json, "split", row->split);
	for (unsigned p = 0; p < OBX_PARTS; p++)
		ob_json_fixed(json, part_names[p], row->part[p], 3);
	ob_json_array(json, "histogram");
	for (unsigned b = 0; b < OBX_LATENCY_BUCKETS; b++)
		ob_json_uint(json, NULL, row->histogram[b]);
	ob_json_end(json);
	ob_json_end(json);
}

static void json_rows(
	struct ob_json *json, const struct obx_latency_row *rows, unsigned n, const char *sentence)
{
	for (unsigned i = 0; i < n; i++)
		json_row(json, &rows[i]);
	ob_json_break(json);
	ob_json_object(json, NULL);
	ob_json_text(json, "name", "latency: verdict");
	ob_json_text(json, "text", sentence);
	ob_json_end(json);
}

static void text_histogram(const struct obx_latency_row *row)
{
	static const char *const bars[] = { " ", "\u2581", "\u2582", "\u2583", "\u2584", "\u2585",
		"\u2586", "\u2587", "\u2588" };
	unsigned top = 1;

	for (unsigned b = 0; b < OBX_LATENCY_BUCKETS; b++)
		top = ob_max(top, row->histogram[b]);
	for (unsigned b = 0; b < OBX_LATENCY_BUCKETS; b++)
		fputs(bars[row->histogram[b] ? 1 + row->histogram[b] * 7 / top : 0], stdout);
}

static void text_rows(const struct obx_latency_row *rows, unsigned n)
{
	printf("\n%-12s %9s %9s %9s %10s   %8s %8s %8s %8s   64 ns ... powers of two ... 0.5 s\n",
		"us", "p50", "p90", "p99", "max", "client", "wire", "queue", "driver");
	for (unsigned i = 0; i < n; i++) {
		const struct obx_latency_row *row = &rows[i];

		printf("%-12s %9.2f %9.2f %9.2f %10.2f  ", row->name, row->p50, row->p90, row->p99,
			row->max);
		for (unsigned p = 0; p < OBX_PARTS; p++)
			if (row->split)
				printf(" %8.2f", row->part[p]);
			else
				printf(" %8s", "");
		printf("   ");
		text_histogram(row);
		printf("\n");
	}
}

int obx_latency_run(void *library, const struct obt_url *url, unsigned n, struct ob_json *json,
	const char *plot)
{
	struct obx_latency_row rows[CLASSES + 1];
	char sentence[512];

	n = ob_min((n + ROUND - 1) / ROUND * ROUND, OBX_LATENCY_SAMPLES_MAX);
	if (!open_calls(library) || !samples_take(url, n))
		return OBX_EXIT_UNWELL;
	if (times)
		times->on(0);
	for (unsigned c = 0; c < CLASSES; c++)
		row_fill(&rows[c], &classes[c], samples[c], n);
	bare_fill(&rows[CLASSES], n);
	sentence_make(&rows[2], &rows[CLASSES], sentence, sizeof sentence);
	if (json) {
		json_rows(json, rows, CLASSES + 1, sentence);
	} else {
		text_rows(rows, CLASSES + 1);
		printf("\n%s\n", sentence);
	}
	if (plot && !obx_plot_latency(plot, rows, CLASSES + 1, sentence)) {
		fprintf(stderr, "outboard bench: %s: %s\n", plot, strerror(errno));
		return OBX_EXIT_UNWELL;
	}
	return 0;
}
