/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Prints behaviour of a CUDA driver that no manual describes: sizes of the private tables, results
 * of the runtime's hooks, bytes of the self-test, addresses that can be reserved, error codes of
 * wrong calls. Each run answers one question, because some questions may crash the process.
 *
 *     gpu-facts [-l LIBRARY] tables|hooks|selftest|reserve|streams|attributes|cases|error CASE|slot TABLE N WAY
 *
 * Every line is "name: answer". Exit status 0: answered (also "refused"), 1: an answer differs from
 * what this project assumes, 2: wrong use or no driver.
 */
#include <dlfcn.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/text.h"
#include "client-shim/session/session.h"
#include "tests/gpu/facts.h"

#define TABLE_WORDS   512u /* read at most */
#define BARE_WORDS    40u  /* read from a table without a size */
#define SLOT_BYTES    4096u
#define ATTRIBUTE_MAX 200
#define SECONDS_MAX   20

struct gpu_driver cu;

static const struct table {
	const char *name;
	CUuuid id;
	bool sized; /* word 0 is the size */
} tables[] = {
	{ "interface", { "\x6b\xd5\xfb\x6c\x5b\xf4\xe7\x4a\x89\x87\xd9\x39\x12\xfd\x9d\xf9" },
		true },
	{ "hooks", { "\xa0\x94\x79\x8c\x2e\x74\x2e\x74\x93\xf2\x08\x00\x20\x0c\x0a\x66" }, true },
	{ "tls", { "\x42\xd8\x5a\x81\x23\xf6\xcb\x47\x82\x98\xf6\xe7\x8a\x3a\xec\xdc" }, true },
	{ "storage", { "\xc6\x93\x33\x6e\x11\x21\xdf\x11\xa8\xc3\x68\xf3\x55\xd8\x95\x93" },
		false },
	{ "checks", { "\x26\x3e\x88\x60\x7c\xd2\x61\x43\x92\xf6\xbb\xd5\x00\x6d\xfa\x7e" }, true },
	{ "integrity", { "\xd4\x08\x20\x55\xbd\xe6\x70\x4b\x8d\x34\xba\x12\x3c\x66\xe1\xf2" },
		true },
	{ "requirements", { "\xf8\xcf\xf9\x51\x21\x46\x8b\x4e\xb9\xe2\xfb\x46\x9e\x7c\x0d\xd9" },
		false },
	{ "context", { "\x21\x31\x8c\x60\x97\x14\x32\x48\x8c\xa6\x41\xff\x73\x24\xc8\xf2" }, true },
	{ "function", { "\x6e\x16\x3f\xbe\xb9\x58\x44\x4d\x83\x5c\xe1\x82\xaf\xf1\x99\x1e" },
		true },
	{ "bypass", { "\x0c\xa5\x0b\x8c\x10\x04\x92\x9a\x89\xa7\xd0\xdf\x10\xe7\x72\x86" }, true },
	{ "heap", { "\x19\x5b\xcb\xf4\xd6\x7d\x02\x4a\xac\xc5\x1d\x29\xce\xa6\x31\xae" }, true },
	{ "extended", { "\xb1\x05\x41\xe1\xf7\xc7\xc7\x4a\x9f\x64\xf2\x23\xbe\x99\xf1\xe2" },
		true },
	{ "cupti", { "\x2c\x8e\x0a\xd8\x07\x10\xab\x4e\x90\xdd\x54\x71\x9f\xe5\xf7\x4b" }, true },
};

/* Reads memory of this process. Returns false if it is not mapped. */
static bool peek(const void *at, void *ret, size_t size)
{
	struct iovec here = { ret, size }, there = { (void *)(uintptr_t)at, size };

	return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)size;
}

/* Prints a word of a table: a number, or an address as shared object and offset. */
static void word_print(unsigned at, uintptr_t word)
{
	const char *slash;
	Dl_info info;

	if (word < 1 << 16 || !dladdr((void *)word, &info) || !info.dli_fname) {
		printf(" [%u]=%#lx", at, (unsigned long)word);
		return;
	}
	slash = strrchr(info.dli_fname, '/');
	printf(" [%u]=%s+%#lx", at, slash ? slash + 1 : info.dli_fname,
		(unsigned long)(word - (uintptr_t)info.dli_fbase));
}

static const struct table *table_named(const char *name)
{
	for (size_t i = 0; i < ob_count(tables); i++)
		if (strcmp(tables[i].name, name) == 0)
			return &tables[i];
	fprintf(stderr, "gpu-facts: there is no table called '%s'\n", name);
	exit(2);
}

static const uintptr_t *table_get(const char *name)
{
	const void *words = NULL;

	return cu.cuGetExportTable(&words, &table_named(name)->id) ? NULL : words;
}

static int tables_print(void)
{
	for (size_t i = 0; i < ob_count(tables); i++) {
		const struct table *t = &tables[i];
		const void *words = NULL;
		CUresult result = cu.cuGetExportTable(&words, &t->id);
		uintptr_t first = 0, word;
		unsigned n = BARE_WORDS, set = 0;

		if (result || !words) {
			printf("table %s: refused with %d\n", t->name, (int)result);
			continue;
		}
		if (!peek(words, &first, sizeof first)) {
			printf("table %s: cannot be read\n", t->name);
			continue;
		}
		if (t->sized && first % sizeof word == 0 && first / sizeof word <= TABLE_WORDS) {
			n = (unsigned)(first / sizeof word);
			printf("table %s: size word %#lx, %u words;", t->name, (unsigned long)first,
				n);
		} else {
			printf("table %s: %s;", t->name,
				t->sized ? "its first word is no size" : "its first words");
		}
		for (unsigned w = 0;
			w < n && peek((const uintptr_t *)words + w, &word, sizeof word); w++) {
			set += word != 0;
			if (n <= BARE_WORDS || word == 0)
				word_print(w, word);
			if (!t->sized && strcmp(t->name, "storage") == 0 && word == 0)
				break;
		}
		printf("; %u are not 0\n", set);
	}
	return 0;
}

static int hooks_print(void)
{
	const uintptr_t *words = table_get("hooks");

	for (unsigned slot = 2; words && slot <= 6; slot += 4) {
		uint32_t *buffer = NULL;
		size_t count = 0;
		unsigned set = 0, width = slot == 2 ? sizeof(uint32_t) : sizeof(void *);
		uint64_t value;

		((void (*)(uint32_t **, size_t *))words[slot])(&buffer, &count);
		for (size_t i = 0; buffer && i < count && i < 1 << 16; i++) {
			value = 0;
			set += peek((const char *)buffer + i * width, &value, width) && value;
		}
		printf("hooks slot %u: %s, count %zu, %u entries are not 0\n", slot,
			buffer ? "an array" : "no array", count, set);
	}
	if (!words)
		puts("hooks: the table is refused");
	return 0;
}

#if OBF_SELFTEST
#include "front/export_selftest.h"

static struct obf_device devices[OBF_DEVICE_MAX];

static int selftest(void)
{
	static const unsigned versions[] = { 13000, 13001, 13002, 12080, 12081, 12082, 11080, 11081,
		11082 };
	static const int pci[] = { 50, 33, 34 }; /* domain, bus, device */
	const uintptr_t *interface = table_get("interface"), *check = table_get("integrity");
	struct obf_selftest t = { .seconds = (uint64_t)time(NULL),
		.devices = devices,
		.interface_table = interface,
		.check_table = check };
	int count = 0, differ = 0;

	if (!interface || !check || cu.cuDeviceGetCount(&count) ||
		cu.cuDriverGetVersion(&t.driver_version)) {
		puts("self-test: the tables are refused");
		return 1;
	}
	t.check_entry = (const void *)check[1];
	t.n_devices = count < (int)OBF_DEVICE_MAX ? count : (int)OBF_DEVICE_MAX;
	for (int d = 0; d < t.n_devices; d++) {
		cu.cuDeviceGetUuid_v2(&devices[d].uuid, d);
		for (size_t i = 0; i < ob_count(pci); i++)
			devices[d].attr_known[pci[i]] =
				cu.cuDeviceGetAttribute(&devices[d].attr[pci[i]],
					(CUdevice_attribute)pci[i], d) == CUDA_SUCCESS;
	}
	for (size_t i = 0; i < ob_count(versions); i++) {
		uint8_t theirs[OBF_SELFTEST_SIZE] = { 0 }, ours[OBF_SELFTEST_SIZE] = { 0 };
		char text[2 * OBF_SELFTEST_SIZE + 1];
		CUresult result;

		t.version = versions[i];
		result = ((CUresult(*)(uint32_t, uint64_t, uint8_t *))check[1])(
			t.version, t.seconds, theirs);
		obf_selftest_answer(&t, ours);
		ob_text_hex(theirs, sizeof theirs, text);
		printf("self-test %u: %d, %s: %s\n", versions[i], (int)result, text,
			memcmp(ours, theirs, sizeof ours) == 0 ? "as computed" : "NOT as computed");
		differ |= memcmp(ours, theirs, sizeof ours) != 0;
	}
	return differ;
}
#else
static int selftest(void)
{
	puts("self-test: this build leaves it out (-Dselftest=false)");
	return 0;
}
#endif

static int reserve(void)
{
	static const struct obp_range places[] = { OBC_RANGE_PLACES };
	int got = 0;

	for (size_t i = 0; i < ob_count(places); i++) {
		CUdeviceptr p = 0;
		CUresult result =
			cu.cuMemAddressReserve(&p, places[i].size, 2 << 20, places[i].base, 0);

		printf("reserve %#lx: %d, at %#llx: %s\n", (unsigned long)places[i].base,
			(int)result, p,
			!result && p == places[i].base ? "as proposed" : "elsewhere");
		got |= !result && p == places[i].base;
		if (!result)
			cu.cuMemAddressFree(p, places[i].size);
	}
	return !got;
}

static int attributes(void)
{
	CUuuid uuid = { { 0 } };
	char name[256] = "", text[2 * sizeof uuid + 1];
	int version = 0, value;
	size_t bytes = 0;

	cu.cuDriverGetVersion(&version);
	cu.cuDeviceGetName(name, sizeof name, 0);
	cu.cuDeviceGetUuid_v2(&uuid, 0);
	cu.cuDeviceTotalMem_v2(&bytes, 0);
	ob_text_hex(&uuid, sizeof uuid, text);
	printf("driver version: %d\nname: %s\nuuid: %s\nmemory: %zu\n", version, name, text, bytes);
	for (int a = 1; a <= ATTRIBUTE_MAX; a++) {
		CUresult result = cu.cuDeviceGetAttribute(&value, (CUdevice_attribute)a, 0);

		if (result == CUDA_SUCCESS)
			printf("attribute %d: %d\n", a, value);
		else if (result != CUDA_ERROR_INVALID_VALUE)
			printf("attribute %d: error %d\n", a, (int)result);
	}
	return 0;
}

/*
 * Calls a slot of unknown purpose with pointers to memory that it may write. Prints what it
 * returned and how many bytes it wrote.
 */
static int slot_call(const char *name, const char *number, const char *way)
{
	static unsigned char buffers[3][SLOT_BYTES];
	const uintptr_t *words = table_get(name);
	uint64_t slot, result;
	CUcontext context = gpu_context();
	unsigned changed[3] = { 0 };
	uint64_t (*function)(
		const void *, const void *, const void *, const void *, uintptr_t, uintptr_t);

	if (!ob_text_parse_number(number, 1, TABLE_WORDS, &slot)) {
		fprintf(stderr, "gpu-facts: '%s' is no slot\n", number);
		return 2;
	}
	if (!words || slot >= words[0] / sizeof *words || !words[slot]) {
		printf("slot %s[%s]: there is none\n", name, number);
		return 0;
	}
	function = (__typeof__(function))words[slot];
	result = strcmp(way, "out") == 0
		? function(buffers[0], context, buffers[1], buffers[2], 0, 0)
		: function(context, buffers[0], buffers[1], buffers[2], 0, 0);
	for (unsigned b = 0; b < 3; b++)
		for (unsigned i = 0; i < SLOT_BYTES; i++)
			if (buffers[b][i])
				changed[b] = i + 1;
	printf("slot %s[%s], %s: returned %#lx; wrote up to %u, %u, %u bytes; the first words %#lx "
	       "%#lx\n",
		name, number, strcmp(way, "out") == 0 ? "out first" : "context first",
		(unsigned long)result, changed[0], changed[1], changed[2],
		*(unsigned long *)buffers[0], *(unsigned long *)(buffers[0] + 8));
	return 0;
}

/*
 * Calls slots 51 and 39 of the context table as cuBLASLt does. They return the driver's internal
 * object for a stream, and the number of that object, which must be that of cuStreamGetId.
 */
static int streams_print(void)
{
	const uintptr_t *words = table_get("context");
	CUcontext context = gpu_context();
	CUstream made = NULL;
	bool same = true;

	if (!words || words[0] / sizeof *words <= 51) {
		puts("stream objects: there is no such table, or it is short");
		return 0;
	}
	if (cu.cuStreamCreate(&made, 0))
		return 2;
	for (unsigned i = 0; i < 3; i++) {
		CUstream stream = i == 0 ? NULL : i == 1 ? made : CU_STREAM_PER_THREAD;
		const char *name = i == 0 ? "the default one"
			: i == 1          ? "a new one"
					  : "the thread's";
		unsigned long long want = 0, got = 0;
		void *object = NULL;
		CUresult first = ((CUresult(*)(CUcontext, CUstream, void **, int))words[51])(
			context, stream, &object, i == 2);
		CUresult second = first
			? CUDA_ERROR_UNKNOWN
			: ((CUresult(*)(CUcontext, void *, unsigned long long *))words[39])(
				  context, object, &got);
		CUresult third = cu.cuStreamGetId(stream, &want);

		printf("stream object, %s: slot 51 gives %d, %s; slot 39 %d, %llu; cuStreamGetId "
		       "%d, %llu\n",
			name, (int)first,
			object == (void *)stream ? "the handle"
				: object         ? "something else"
						 : "NULL",
			(int)second, got, (int)third, want);
		same = same && !first && !second && !third && got == want;
	}
	return same ? 0 : 1;
}

CUcontext gpu_context(void)
{
	CUcontext context = NULL;

	if (cu.cuDevicePrimaryCtxRetain(&context, 0) || cu.cuCtxSetCurrent(context)) {
		fprintf(stderr, "gpu-facts: device 0 gives no context\n");
		exit(2);
	}
	return context;
}

static void open_driver(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	CUresult result;

	if (!library) {
		fprintf(stderr, "gpu-facts: %s\n", dlerror());
		exit(2);
	}
#define GPU_LOOK_UP(name, args)                                           \
	*(void **)&cu.name = dlsym(library, #name);                       \
	if (!cu.name) {                                                   \
		fprintf(stderr, "gpu-facts: %s lacks %s\n", path, #name); \
		exit(2);                                                  \
	}
	GPU_CALLS(GPU_LOOK_UP)
#undef GPU_LOOK_UP
	result = cu.cuInit(0);
	if (result) {
		fprintf(stderr, "gpu-facts: %s: cuInit returned %d\n", path, (int)result);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	const char *path = "libcuda.so.1", *what;
	int c;

	while ((c = getopt(argc, argv, "+l:")) != -1)
		if (c == 'l')
			path = optarg;
		else
			return 2;
	argv += optind;
	argc -= optind;
	what = argc ? argv[0] : "";
	setvbuf(stdout, NULL, _IOLBF, 0); /* lines printed before a crash are not lost */
	alarm(SECONDS_MAX);
	if (strcmp(what, "cases") == 0)
		return errors_list();
	open_driver(path);
	if (strcmp(what, "tables") == 0)
		return tables_print();
	if (strcmp(what, "hooks") == 0)
		return hooks_print();
	if (strcmp(what, "selftest") == 0)
		return selftest();
	if (strcmp(what, "reserve") == 0)
		return reserve();
	if (strcmp(what, "streams") == 0)
		return streams_print();
	if (strcmp(what, "attributes") == 0)
		return attributes();
	if (strcmp(what, "error") == 0 && argc == 2)
		return errors_run(argv[1]);
	if (strcmp(what, "slot") == 0 && argc == 4)
		return slot_call(argv[1], argv[2], argv[3]);
	fprintf(stderr,
		"gpu-facts [-l LIBRARY] "
		"tables|hooks|selftest|reserve|streams|attributes|cases|error CASE|slot TABLE N "
		"context|out\n");
	return 2;
}
