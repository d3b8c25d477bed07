/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Look-ups: cuGetProcAddress, error names, absent calls, private tables, the self-test. */
#include <pthread.h>

#include "front/export_selftest.h"
#include "front.h"
#include "tests/fatbin.h"

static char marks[8];

/*
 * What the private tables find by name: the default stream's number is 1, a stream at 0x5000 has 5,
 * there is no other.
 */
static CUresult stream_get_id(CUstream stream, unsigned long long *id)
{
	CUcontext current;

	OK(obf_cuCtxGetCurrent(&current));
	if (!current)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD &&
		stream != (CUstream)0x5000)
		return CUDA_ERROR_INVALID_HANDLE;
	*id = stream == (CUstream)0x5000 ? 5 : (uintptr_t)stream;
	return CUDA_SUCCESS;
}

static const struct obf_proc procs[] = {
	{ "cuAlpha", &marks[0], 2000, 0 },
	{ "cuAlpha", &marks[1], 3020, 0 },
	{ "cuAlpha", &marks[2], 12000, 0 },
	{ "cuAlpha", &marks[3], 7000, 1 },
	{ "cuBeta", &marks[4], 11030, 0 },
	{ "cuGamma", &marks[5], 0, 0 },
	{ "cuStreamGetId", (void *)stream_get_id, 12000, 0 },
};

static int look(
	const char *name, int version, cuuint64_t flags, CUdriverProcAddressQueryResult want_status)
{
	CUdriverProcAddressQueryResult status;
	void *entry = &status, *again = &status;

	CHECK_INT(obf_cuGetProcAddress_v2(name, &entry, version, flags, &status),
		want_status ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS);
	CHECK_INT(obf_cuGetProcAddress(name, &again, version, flags),
		want_status ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS);
	CHECK(status == want_status && entry == again && (entry == NULL) == (want_status != 0));
	return entry ? (int)((char *)entry - marks) : -1;
}

TEST(proc_address)
{
	void *entry;

	fake_attach(procs, sizeof procs / sizeof procs[0]);
	CHECK(look("cuAlpha", 2000, 0, 0) == 0);
	CHECK(look("cuAlpha", 3019, 0, 0) == 0);
	CHECK(look("cuAlpha", 3020, 1, 0) == 1);
	CHECK(look("cuAlpha", 13000, 0, 0) == 2);
	CHECK(look("cuAlpha", 13000, 2, 0) == 3);
	look("cuAlpha", 1000, 0, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
	look("cuAlpha", 6000, 2, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
	CHECK(look("cuBeta", 12000, 2, 0) == 4);
	CHECK(look("cuGamma", 0, 0, 0) == 5);
	look("", 0, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	look("cuAlp", 13000, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	look("cuZeta", 13000, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	CHECK_INT(obf_cuGetProcAddress(NULL, &entry, 13000, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(obf_cuGetProcAddress("cuBeta", NULL, 13000, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(obf_cuGetProcAddress("cuBeta", &entry, 13000, 4), CUDA_ERROR_INVALID_VALUE);
}

TEST(errors)
{
	const char *text;

	OK(obf_cuGetErrorName(CUDA_SUCCESS, &text));
	CHECK(strcmp(text, "CUDA_SUCCESS") == 0);
	OK(obf_cuGetErrorName((CUresult)916, &text));
	CHECK(strcmp(text, "CUDA_ERROR_KEY_ROTATION") == 0);
	OK(obf_cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
	CHECK(strcmp(text, "out of memory") == 0);
	CHECK_INT(obf_cuGetErrorName((CUresult)12345, &text), CUDA_ERROR_INVALID_VALUE);
	CHECK(text == NULL);
	CHECK_INT(obf_cuGetErrorString(CUDA_SUCCESS, NULL), CUDA_ERROR_INVALID_VALUE);
}

TEST(absent_is_said_once)
{
	static const char name[] = "cuNothing";
	int ends[2], lines = 0;
	char text[1024];
	ssize_t n;

	OK(pipe(ends));
	CHECK(dup2(ends[1], STDERR_FILENO) >= 0 && close(ends[1]) == 0);
	for (int i = 0; i < 3; i++)
		CHECK_INT(obf_absent(name, "a reason"), CUDA_ERROR_NOT_SUPPORTED);
	n = read(ends[0], text, sizeof text - 1);
	close(ends[0]);
	for (ssize_t i = 0; i < n; i++)
		lines += text[i] == '\n';
	CHECK(n > 0 && lines == 1);
	text[n] = 0;
	CHECK(strstr(text, "cuNothing") && strstr(text, "a reason"));
}

static const struct {
	CUuuid id;
	size_t words; /* 0: no size word */
} tables[] = {
	{ { "\x6b\xd5\xfb\x6c\x5b\xf4\xe7\x4a\x89\x87\xd9\x39\x12\xfd\x9d\xf9" }, 13 },
	{ { "\xa0\x94\x79\x8c\x2e\x74\x2e\x74\x93\xf2\x08\x00\x20\x0c\x0a\x66" }, 7 },
	{ { "\x42\xd8\x5a\x81\x23\xf6\xcb\x47\x82\x98\xf6\xe7\x8a\x3a\xec\xdc" }, 4 },
	{ { "\xc6\x93\x33\x6e\x11\x21\xdf\x11\xa8\xc3\x68\xf3\x55\xd8\x95\x93" }, 0 },
	{ { "\x26\x3e\x88\x60\x7c\xd2\x61\x43\x92\xf6\xbb\xd5\x00\x6d\xfa\x7e" }, 4 },
	{ { "\xd4\x08\x20\x55\xbd\xe6\x70\x4b\x8d\x34\xba\x12\x3c\x66\xe1\xf2" }, 3 },
	{ { "\x21\x31\x8c\x60\x97\x14\x32\x48\x8c\xa6\x41\xff\x73\x24\xc8\xf2" }, 95 },
	{ { "\x6e\x16\x3f\xbe\xb9\x58\x44\x4d\x83\x5c\xe1\x82\xaf\xf1\x99\x1e" }, 64 },
};

typedef CUresult (*slot)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

static slot slot_at(const CUuuid *id, size_t n)
{
	const void *table, *again;
	slot got;

	OK(obf_cuGetExportTable(&table, id));
	OK(obf_cuGetExportTable(&again, id));
	CHECK(table == again);
	memcpy(&got, (const char *)table + n * sizeof(void *), sizeof got);
	return got;
}

TEST(private_tables)
{
	static const CUuuid unknown = { "no such table..." };
	const void *table = &unknown;
	unsigned long long id;
	CUcontext ctx = begin(), current = NULL;
	uint32_t flag = 7;
	void *words;
	size_t count;

	for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++) {
		if (tables[t].words)
			CHECK((size_t)slot_at(&tables[t].id, 0) ==
				tables[t].words * sizeof(void *));
		for (size_t n = 1; n < tables[t].words; n++)
			CHECK(slot_at(&tables[t].id, n) != NULL);
	}
	CHECK_INT(obf_cuGetExportTable(&table, &unknown), CUDA_ERROR_INVALID_VALUE);
	CHECK(table == NULL);
	/* Slots that nobody knows answer, and do nothing. */
	CHECK_INT(slot_at(&tables[6].id, 94)(1, 2, 3, 4, 5, 6), CUDA_ERROR_NOT_SUPPORTED);
	CHECK_INT(slot_at(&tables[7].id, 1)(1, 2, 3, 4, 5, 6), CUDA_ERROR_NOT_SUPPORTED);
	CHECK_INT(slot_at(&tables[0].id, 3)(1, 2, 3, 4, 5, 6), CUDA_ERROR_NOT_SUPPORTED);
	OK(slot_at(&tables[2].id, 2)((uintptr_t)&current, 0, 0, 0, 0, 0));
	CHECK(current == ctx);
	OK(slot_at(&tables[4].id, 2)((uintptr_t)ctx, (uintptr_t)&flag, 0, 0, 0, 0));
	CHECK(flag == 0);
	OK(slot_at(&tables[6].id, 4)((uintptr_t)ctx, (uintptr_t)&id, 0, 0, 0, 0));
	CHECK(id == obf_ctx_primary(0)->id);
	slot_at(&tables[1].id, 2)((uintptr_t)&words, (uintptr_t)&count, 0, 0, 0, 0);
	CHECK(count >= 1024 && ((uint32_t *)words)[count - 1] == 0);
	slot_at(&tables[1].id, 6)((uintptr_t)&words, (uintptr_t)&count, 0, 0, 0, 0);
	CHECK(count >= 14 && ((void **)words)[count - 1] == NULL);
}

/* The driver's object behind a stream, and its number. */
TEST(private_streams)
{
	CUcontext ctx, current;
	CUstream got = NULL;
	unsigned long long id = 0;
	slot object, number;

	fake_attach(procs, sizeof procs / sizeof procs[0]);
	OK(obf_cuInit(0));
	OK(obf_cuCtxCreate_v2(&ctx, 0, 0));
	object = slot_at(&tables[6].id, 51);
	number = slot_at(&tables[6].id, 39);
	OK(object((uintptr_t)ctx, 0, (uintptr_t)&got, 0, 0, 0));
	CHECK(got == CU_STREAM_LEGACY);
	OK(object((uintptr_t)ctx, 0, (uintptr_t)&got, 1, 0, 0));
	CHECK(got == CU_STREAM_PER_THREAD);
	OK(object((uintptr_t)ctx, 0x5000, (uintptr_t)&got, 0, 0, 0));
	CHECK(got == (CUstream)0x5000);
	OK(number((uintptr_t)ctx, (uintptr_t)got, (uintptr_t)&id, 0, 0, 0));
	CHECK(id == 5);
	/* the context that is named counts, whichever is current */
	OK(obf_cuCtxPopCurrent_v2(NULL));
	OK(number((uintptr_t)ctx, (uintptr_t)got, (uintptr_t)&id, 0, 0, 0));
	OK(obf_cuCtxGetCurrent(&current));
	CHECK(current == NULL);
	got = NULL;
	CHECK_INT(object((uintptr_t)ctx, 0x6000, (uintptr_t)&got, 0, 0, 0),
		CUDA_ERROR_INVALID_HANDLE);
	CHECK_INT(
		number((uintptr_t)ctx, 0x6000, (uintptr_t)&id, 0, 0, 0), CUDA_ERROR_INVALID_HANDLE);
	CHECK_INT(object(0x1234, 0, (uintptr_t)&got, 0, 0, 0), CUDA_ERROR_INVALID_CONTEXT);
	CHECK_INT(object((uintptr_t)ctx, 0, 0, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(number((uintptr_t)ctx, 0, (uintptr_t)&id, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK(got == NULL && id == 5);
}

static int shown;

static void show(void *user, CUfunction function, void *owner)
{
	const char *name;

	(void)owner;
	OK(obf_cuFuncGetName(&name, function));
	CHECK(user == &shown);
	shown++;
}

TEST(private_modules)
{
	void *fatbin = fatbin_new(FATBIN_PTX, 75, ptx_text, sizeof ptx_text);
	struct {
		uint32_t magic, version;
		void *data, *more;
	} wrapper = { 0x466243b1, 1, fatbin, NULL };
	CUmodule module;
	CUcontext ctx = begin();

	OK(slot_at(&tables[0].id, 6)((uintptr_t)&module, (uintptr_t)&wrapper, 0, 0, 0, 0));
	CHECK_INT(slot_at(&tables[7].id, 7)((uintptr_t)ctx, (uintptr_t)module, (uintptr_t)show,
			  (uintptr_t)&shown, 0, 0),
		1);
	CHECK(shown == 3);
	slot_at(&tables[0].id, 7)((uintptr_t)&wrapper, 0, 0, 0, 0, 0);
	OK(obf_cuModuleUnload(module));
	OK(slot_at(&tables[0].id, 8)((uintptr_t)fatbin, (uintptr_t)&module, 0, 0, 0, 0));
	OK(obf_cuModuleUnload(module));
	CHECK_INT(slot_at(&tables[0].id, 6)((uintptr_t)&module, (uintptr_t)&wrapper, 1, 0, 0, 0),
		CUDA_ERROR_NOT_SUPPORTED);
	free(fatbin);
}

#if OBF_SELFTEST
static void hmac(const void *data, size_t size, const char *want)
{
	uint8_t got[OBF_SELFTEST_SIZE];
	char text[2 * sizeof got + 1];

	obf_selftest_hmac(data, size, got);
	for (size_t i = 0; i < sizeof got; i++)
		snprintf(text + 2 * i, 3, "%02x", got[i]);
	CHECK(strcmp(text, want) == 0);
}

TEST(self_test_vectors)
{
	struct __attribute__((packed)) {
		uint32_t driver, version, pid, thread;
		uint64_t a, b, c, seconds;
		uint8_t uuid[16];
		int32_t domain, bus, device;
	} message = { 13000, 13002, 1234, 0x11223344, 0x1000, 0x2000, 0x3000, 1700000000, { 0 }, 0,
		3, 0 };
	static const uint8_t zeros[76];

	for (int i = 0; i < 16; i++)
		message.uuid[i] = (uint8_t)i;
	CHECK(sizeof message == 76);
	hmac("", 0, "f66b07aba4a875ea140c2cc013a41c6a");
	hmac(zeros, sizeof zeros, "760b83c33516941255ca2c5411588edc");
	hmac(&message, sizeof message, "7bf3611669cf0d4f0b344dd91c721d9e");
}

/* The whole answer: the same message put together here. */
TEST(self_test_answer)
{
	uint8_t got[16], want[16];
	struct __attribute__((packed)) {
		uint32_t driver, version, pid, thread;
		uint64_t interface, check, entry, seconds;
		struct __attribute__((packed)) {
			uint8_t uuid[16];
			int32_t domain, bus, device;
		} device[2];
	} message = { .driver = 13000,
		.version = 12042,
		.pid = (uint32_t)getpid(),
		.thread = (uint32_t)(uintptr_t)pthread_self(),
		.seconds = 77 };
	const void *table;
	slot check;

	begin();
	OK(obf_cuGetExportTable(&table, &tables[0].id));
	message.interface = (uintptr_t)table;
	OK(obf_cuGetExportTable(&table, &tables[5].id));
	message.check = (uintptr_t)table;
	check = slot_at(&tables[5].id, 1);
	message.entry = (uintptr_t)check;
	for (int i = 0; i < 2; i++) {
		for (int k = 0; k < 16; k++)
			message.device[i].uuid[k] = (uint8_t)(16 * i + k);
		message.device[i].domain = 1;
		message.device[i].bus = 0x1a + i;
		message.device[i].device = 3;
	}
	obf_selftest_hmac(&message, sizeof message, want);
	OK(check(12042, 77, (uintptr_t)got, 0, 0, 0));
	CHECK(memcmp(got, want, sizeof got) == 0);
	OK(check(12040, 77, (uintptr_t)got, 0, 0, 0));
	CHECK(got[0] == 0x5c && got[7] == 0x33);
	OK(check(12041, 77, (uintptr_t)got, 0, 0, 0));
	CHECK(got[7] == 0x18);
}
#endif

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
