/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Calls every function that libnvidia-ml.so.1 answers, with right and wrong arguments, and prints
 * one line for each call: name, what was tried, result, values. tests/e2e/nvml.py compares what it
 * prints forwarded and direct.
 *
 *     nvml             all of it
 *     nvml hold MIB    allocates memory with CUDA, prints the processes, waits for a line, frees
 *     nvml dynamic     prints the results of two calls that ask the server, a line apart
 *     nvml init        prints the result of nvmlInit and its time in milliseconds
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/cuda_types.h"
#include "base/nvml_types.h"

static void *library;
static ob_nvml_device_t device;

typedef int (*fn)(void);

static void *find(const char *name)
{
	void *f = dlsym(library, name);

	if (!f) {
		printf("%s is missing\n", name);
		exit(2);
	}
	return f;
}

/* Calls a function with these argument types and prints "NAME CASE RESULT". */
#define CALL(name, what, types, ...)                                    \
	__extension__({                                                 \
		int result_ = ((int(*) types)find(#name))(__VA_ARGS__); \
		printf(#name " %s %d", what, result_);                  \
		result_;                                                \
	})

static void end(void)
{
	putchar('\n');
}

/* ---- one kind of function after the other ---- */

#define DEV ob_nvml_device_t

/* A function that tells one number of a device: right, without a place for it, of no device. */
static void number(const char *name, unsigned bytes)
{
	int (*f)(DEV, void *) = (int (*)(DEV, void *))find(name);
	uint64_t value = 0;
	int result = f(device, &value);

	printf("%s number %d", name, result);
	if (result == OB_NVML_OK)
		printf(" %llu", (unsigned long long)(bytes == 4 ? (value & UINT32_MAX) : value));
	printf(" %d", f(device, NULL));
	printf(" %d\n", f((DEV)&value, &value));
}

static void pair(const char *name)
{
	int (*f)(DEV, void *, void *) = (int (*)(DEV, void *, void *))find(name);
	uint32_t a = 0, b = 0;
	int result = f(device, &a, &b);

	printf("%s pair %d", name, result);
	if (result == OB_NVML_OK && !strstr(name, "coder"))
		printf(" %u %u", a, b);
	printf(" %d %d\n", f(device, NULL, &b), f(device, &a, NULL));
}

/* A text of the device or, without one, of the system. */
static void text(const char *name, bool of_device)
{
	int (*f)(DEV, char *, uint32_t) = (int (*)(DEV, char *, uint32_t))find(name);
	int (*g)(char *, uint32_t) = (int (*)(char *, uint32_t))find(name);
	char value[128] = "";
	int result = of_device ? f(device, value, sizeof value) : g(value, sizeof value);

	printf("%s text %d '%s'", name, result, value);
	printf(" %d", of_device ? f(device, value, 1) : g(value, 1));
	printf(" %d\n", of_device ? f(device, NULL, 10) : g(NULL, 10));
}

static void before(void)
{
	uint32_t n;

	CALL(nvmlDeviceGetCount_v2, "before", (uint32_t *), &n);
	end();
	CALL(nvmlShutdown, "before", (void), );
	end();
	CALL(nvmlDeviceSetPersistenceMode, "before", (DEV, uint32_t), NULL, 0);
	end();
	CALL(nvmlDeviceGetVbiosVersion, "before", (DEV, char *, uint32_t), NULL, NULL, 0);
	end();
	CALL(nvmlEventSetFree, "before", (void *), NULL);
	end();
	CALL(nvmlInitWithFlags, "wrong", (uint32_t), 1u << 30);
	end();
}

static void beginnings(void)
{
	uint32_t n = 0;

	CALL(nvmlInit, "first", (void), );
	end();
	CALL(nvmlInit_v2, "second", (void), );
	end();
	CALL(nvmlInitWithFlags, "third", (uint32_t), 1);
	end();
	CALL(nvmlShutdown, "third", (void), );
	end();
	CALL(nvmlShutdown, "second", (void), );
	end();
	CALL(nvmlDeviceGetCount, "after two", (uint32_t *), &n);
	printf(" %u\n", n);
	for (uint32_t i = 0; i <= 30; i++)
		printf("nvmlErrorString %u '%s'\n", i,
			((const char *(*)(uint32_t))find("nvmlErrorString"))(i));
	printf("nvmlErrorString 77 '%s'\n",
		((const char *(*)(uint32_t))find("nvmlErrorString"))(77));
}

static void system_calls(void)
{
	char name[64] = "";
	uint32_t n = 9;
	int32_t version = 0;

	text("nvmlSystemGetDriverVersion", false);
	text("nvmlSystemGetNVMLVersion", false);
	CALL(nvmlSystemGetCudaDriverVersion, "out", (int32_t *), &version);
	printf(" %d\n", version);
	CALL(nvmlSystemGetCudaDriverVersion_v2, "out", (int32_t *), &version);
	printf(" %d\n", version);
	CALL(nvmlSystemGetProcessName, "own", (uint32_t, char *, uint32_t), (uint32_t)getpid(),
		name, sizeof name);
	printf(" %s\n", strstr(name, "nvml") || strlen(name) == sizeof name - 1 ? "named" : name);
	CALL(nvmlSystemGetProcessName, "none", (uint32_t, char *, uint32_t), UINT32_MAX, name,
		sizeof name);
	end();
	CALL(nvmlSystemGetHicVersion, "none", (uint32_t *, void *), &n, NULL);
	printf(" %u\n", n);
	CALL(nvmlUnitGetCount, "none", (uint32_t *), &n);
	printf(" %u\n", n);
	CALL(nvmlGetExcludedDeviceCount, "none", (uint32_t *), &n);
	printf(" %u\n", n);
}

static void handles(void)
{
	struct ob_nvml_uuid by = { .version = OB_NVML_VERSION(struct ob_nvml_uuid, 1), .type = 1 };
	DEV same = NULL;
	struct ob_nvml_pci pci;
	char uuid[96] = "";

	CALL(nvmlDeviceGetHandleByIndex, "0", (uint32_t, DEV *), 0, &same);
	end();
	CALL(nvmlDeviceGetHandleByIndex_v2, "0", (uint32_t, DEV *), 0, &device);
	printf(" %d\n", same == device);
	CALL(nvmlDeviceGetHandleByIndex_v2, "99", (uint32_t, DEV *), 99, &same);
	end();
	((int (*)(DEV, char *, uint32_t))find("nvmlDeviceGetUUID"))(device, uuid, sizeof uuid);
	CALL(nvmlDeviceGetHandleByUUID, "own", (const char *, DEV *), uuid, &same);
	printf(" %d\n", same == device);
	CALL(nvmlDeviceGetHandleByUUID, "none", (const char *, DEV *), "GPU-1", &same);
	end();
	memcpy(by.text, uuid, sizeof by.text);
	CALL(nvmlDeviceGetHandleByUUIDV, "text", (void *, DEV *), &by, &same);
	printf(" %d\n", same == device);
	by.type = 7;
	CALL(nvmlDeviceGetHandleByUUIDV, "type", (void *, DEV *), &by, &same);
	end();
	by.version++;
	CALL(nvmlDeviceGetHandleByUUIDV, "version", (void *, DEV *), &by, &same);
	end();
	if (((int (*)(DEV, void *))find("nvmlDeviceGetPciInfo_v3"))(device, &pci) == OB_NVML_OK) {
		CALL(nvmlDeviceGetHandleByPciBusId, "old", (const char *, DEV *), pci.bus_id_old,
			&same);
		printf(" %d\n", same == device);
		CALL(nvmlDeviceGetHandleByPciBusId_v2, "new", (const char *, DEV *), pci.bus_id,
			&same);
		printf(" %d\n", same == device);
	}
	CALL(nvmlDeviceGetHandleByPciBusId_v2, "none", (const char *, DEV *), "0000:01:1f.0",
		&same);
	end();
	CALL(nvmlDeviceGetHandleByPciBusId_v2, "wrong", (const char *, DEV *), "x", &same);
	end();
	CALL(nvmlDeviceGetHandleBySerial, "none", (const char *, DEV *), "1", &same);
	end();
}

static void device_calls(void)
{
	struct ob_nvml_pci pci = { .domain = 0 };
	struct ob_nvml_pci_v2 old;
	struct ob_nvml_pci_ext ext = { .version = OB_NVML_VERSION(struct ob_nvml_pci_ext, 1) };
	struct ob_nvml_attributes attributes;
	uint32_t value, n = 4;
	int32_t major = 0, minor = 0;
	DEV near[4];

	text("nvmlDeviceGetName", true);
	text("nvmlDeviceGetUUID", true);
	for (const char *const *name = (const char *const[]){ "nvmlDeviceGetIndex",
		     "nvmlDeviceGetArchitecture", "nvmlDeviceGetBrand",
		     "nvmlDeviceGetMultiGpuBoard", "nvmlDeviceIsMigDeviceHandle",
		     "nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetVirtualizationMode",
		     "nvmlDeviceGetDisplayMode", "nvmlDeviceGetDisplayActive",
		     "nvmlDeviceGetMinorNumber", "nvmlDeviceGetFanSpeed", "nvmlDeviceGetPowerUsage",
		     "nvmlDeviceGetPowerManagementLimit", "nvmlDeviceGetEnforcedPowerLimit",
		     "nvmlDeviceGetPowerManagementDefaultLimit", "nvmlDeviceGetPerformanceState",
		     "nvmlDeviceGetPowerState", "nvmlDeviceGetCurrPcieLinkGeneration",
		     "nvmlDeviceGetCurrPcieLinkWidth", "nvmlDeviceGetMaxPcieLinkGeneration",
		     "nvmlDeviceGetMaxPcieLinkWidth", "nvmlDeviceGetPcieReplayCounter",
		     "nvmlDeviceGetPersistenceMode", "nvmlDeviceGetComputeMode",
		     "nvmlDeviceGetMemoryBusWidth", "nvmlDeviceGetNumGpuCores", NULL };
		*name; name++)
		number(*name, 4);
	number("nvmlDeviceGetTotalEnergyConsumption", 8);
	number("nvmlDeviceGetCurrentClocksThrottleReasons", 8);
	number("nvmlDeviceGetCurrentClocksEventReasons", 8);
	number("nvmlDeviceGetSupportedEventTypes", 8);
	pair("nvmlDeviceGetPowerManagementLimitConstraints");
	pair("nvmlDeviceGetEccMode");
	pair("nvmlDeviceGetMigMode");
	pair("nvmlDeviceGetEncoderUtilization");
	pair("nvmlDeviceGetDecoderUtilization");
	CALL(nvmlDeviceGetCudaComputeCapability, "out", (DEV, int32_t *, int32_t *), device, &major,
		&minor);
	printf(" %d.%d\n", major, minor);
	CALL(nvmlDeviceGetAttributes, "out", (DEV, void *), device, &attributes);
	printf(" %u\n", attributes.multiprocessors);
	CALL(nvmlDeviceGetAttributes_v2, "out", (DEV, void *), device, &attributes);
	printf(" %llu\n", (unsigned long long)attributes.memory_mib);
	CALL(nvmlDeviceGetPciInfo_v3, "out", (DEV, void *), device, &pci);
	printf(" %s %s %u\n", pci.bus_id, pci.bus_id_old, pci.bus);
	memset(&old, 0x55, sizeof old);
	CALL(nvmlDeviceGetPciInfo, "out", (DEV, void *), device, &old);
	printf(" %s %x\n", old.bus_id, old.subsystem); /* the last is beyond the structure */
	CALL(nvmlDeviceGetPciInfo_v2, "out", (DEV, void *), device, &old);
	printf(" %s %x\n", old.bus_id, old.subsystem);
	CALL(nvmlDeviceGetPciInfoExt, "out", (DEV, void *), device, &ext);
	printf(" %s\n", ext.bus_id);
	ext.version = 5;
	CALL(nvmlDeviceGetPciInfoExt, "version", (DEV, void *), device, &ext);
	end();
	CALL(nvmlDeviceOnSameBoard, "self", (DEV, DEV, int32_t *), device, device, &major);
	printf(" %d\n", major);
	CALL(nvmlDeviceOnSameBoard, "none", (DEV, DEV, int32_t *), device, NULL, &major);
	end();
	CALL(nvmlDeviceGetTopologyCommonAncestor, "self", (DEV, DEV, uint32_t *), device, device,
		&value);
	printf(" %u\n", value);
	CALL(nvmlDeviceGetTopologyNearestGpus, "system", (DEV, uint32_t, uint32_t *, DEV *), device,
		50, &n, near);
	printf(" %u\n", n);
	CALL(nvmlDeviceGetP2PStatus, "self", (DEV, DEV, uint32_t, uint32_t *), device, device, 0,
		&value);
	printf(" %u\n", value);
}

static void sensors(void)
{
	struct ob_nvml_temperature t = { OB_NVML_VERSION(struct ob_nvml_temperature, 1), 0, 0 };
	struct ob_nvml_field fields[3] = { { .id = 186 }, { .id = 999 }, { .id = 83 } };
	struct ob_nvml_use use;
	struct ob_nvml_bar1 bar1;
	uint32_t value = 0;
	uint64_t wide;
	int result;

	for (uint32_t i = 0; i < 5; i++) {
		CALL(nvmlDeviceGetClockInfo, "type", (DEV, uint32_t, uint32_t *), device, i,
			&value);
		end();
		if (CALL(nvmlDeviceGetMaxClockInfo, "type", (DEV, uint32_t, uint32_t *), device, i,
			    &value) == OB_NVML_OK)
			printf(" %u", value);
		end();
		CALL(nvmlDeviceGetApplicationsClock, "type", (DEV, uint32_t, uint32_t *), device, i,
			&value);
		end();
		CALL(nvmlDeviceGetClock, "id", (DEV, uint32_t, uint32_t, uint32_t *), device, 0, i,
			&value);
		end();
		CALL(nvmlDeviceGetTemperatureThreshold, "type", (DEV, uint32_t, uint32_t *), device,
			2 * i, &value);
		end();
	}
	result = CALL(
		nvmlDeviceGetTemperature, "gpu", (DEV, uint32_t, uint32_t *), device, 0, &value);
	printf(result ? "\n" : " %u\n", value);
	CALL(nvmlDeviceGetTemperature, "sensor", (DEV, uint32_t, uint32_t *), device, 9, &value);
	end();
	CALL(nvmlDeviceGetTemperatureV, "gpu", (DEV, void *), device, &t);
	printf(" %d\n", t.celsius);
	t.version = 0;
	CALL(nvmlDeviceGetTemperatureV, "version", (DEV, void *), device, &t);
	end();
	CALL(nvmlDeviceGetTotalEccErrors, "kind", (DEV, uint32_t, uint32_t, uint64_t *), device, 0,
		0, &wide);
	end();
	CALL(nvmlDeviceGetTotalEccErrors, "wrong", (DEV, uint32_t, uint32_t, uint64_t *), device, 5,
		0, &wide);
	end();
	CALL(nvmlDeviceGetBAR1MemoryInfo, "out", (DEV, void *), device, &bar1);
	end();
	/* the software device of a server has a use, the one in this process has not */
	result = ((int (*)(DEV, void *))find("nvmlDeviceGetUtilizationRates"))(device, &use);
	printf("nvmlDeviceGetUtilizationRates out %s\n",
		result == OB_NVML_NOT_SUPPORTED || (!result && use.gpu <= 100) ? "right" : "wrong");
	CALL(nvmlDeviceGetFieldValues, "three", (DEV, int32_t, void *), device, 3, fields);
	printf(" %u %u %u\n", fields[0].result, fields[1].result, fields[2].result);
	CALL(nvmlDeviceGetFieldValues, "none", (DEV, int32_t, void *), device, 0, fields);
	end();
}

static void memory(void)
{
	struct ob_nvml_memory v1 = { 0 };
	struct ob_nvml_memory_v2 v2 = { .version = OB_NVML_VERSION(struct ob_nvml_memory_v2, 2) };

	CALL(nvmlDeviceGetMemoryInfo, "out", (DEV, void *), device, &v1);
	printf(" %llu %d\n", (unsigned long long)v1.total, v1.free + v1.used == v1.total);
	CALL(nvmlDeviceGetMemoryInfo_v2, "out", (DEV, void *), device, &v2);
	printf(" %llu %d\n", (unsigned long long)v2.total,
		v2.free + v2.used + v2.reserved == v2.total);
	v2.version = OB_NVML_VERSION(struct ob_nvml_memory_v2, 3);
	CALL(nvmlDeviceGetMemoryInfo_v2, "version", (DEV, void *), device, &v2);
	end();
}

static void processes(void)
{
	static const char *const names[] = { "nvmlDeviceGetComputeRunningProcesses",
		"nvmlDeviceGetComputeRunningProcesses_v2",
		"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses",
		"nvmlDeviceGetGraphicsRunningProcesses_v2",
		"nvmlDeviceGetGraphicsRunningProcesses_v3",
		"nvmlDeviceGetMPSComputeRunningProcesses",
		"nvmlDeviceGetMPSComputeRunningProcesses_v2",
		"nvmlDeviceGetMPSComputeRunningProcesses_v3" };
	struct ob_nvml_process_detail details[8];
	struct ob_nvml_process_list list = { OB_NVML_VERSION(struct ob_nvml_process_list, 1), 0, 8,
		details };
	bool own = false;

	for (size_t i = 0; i < ob_count(names); i++) {
		int (*f)(DEV, uint32_t *, void *) =
			(int (*)(DEV, uint32_t *, void *))find(names[i]);
		/* the largest of the structures; the first version has no instances */
		struct ob_nvml_process found[16];
		uint32_t n = 0, asked = 16;
		size_t size =
			strchr(names[i], '_') ? sizeof *found : sizeof(struct ob_nvml_process_v1);
		int first = f(device, &n, NULL), second = f(device, &asked, found);

		printf("%s %d %d %d", names[i], first, second, n == asked);
		for (uint32_t p = 0; !second && p < asked; p++) {
			const struct ob_nvml_process *at =
				(const void *)((const char *)found + p * size);

			if (at->pid == (uint32_t)getpid())
				printf(" own %d", at->memory >= 1u << 20);
		}
		end();
	}
	CALL(nvmlDeviceGetRunningProcessDetailList, "compute", (DEV, void *), device, &list);
	for (uint32_t i = 0; i < list.n && i < 8; i++)
		own = own || details[i].pid == (uint32_t)getpid();
	printf(" %s\n", own ? "own" : "others");
	list.mode = 3;
	CALL(nvmlDeviceGetRunningProcessDetailList, "mode", (DEV, void *), device, &list);
	end();
	list.version = 1;
	CALL(nvmlDeviceGetRunningProcessDetailList, "version", (DEV, void *), device, &list);
	end();
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void events(void)
{
	struct ob_nvml_event event;
	void *set = NULL;
	double began;

	CALL(nvmlEventSetCreate, "new", (void **), &set);
	printf(" %d\n", set != NULL);
	CALL(nvmlDeviceRegisterEvents, "none", (DEV, uint64_t, void *), device, 0, set);
	end();
	CALL(nvmlDeviceRegisterEvents, "xid", (DEV, uint64_t, void *), device, 8, set);
	end();
	CALL(nvmlDeviceRegisterEvents, "set", (DEV, uint64_t, void *), device, 0, &event);
	end();
	began = now_ms();
	CALL(nvmlEventSetWait_v2, "times out", (void *, void *, uint32_t), set, &event, 200);
	printf(" %d\n", now_ms() - began >= 199);
	CALL(nvmlEventSetWait, "at once", (void *, void *, uint32_t), set, &event, 0);
	end();
	CALL(nvmlEventSetWait_v2, "set", (void *, void *, uint32_t), &event, &event, 0);
	end();
	CALL(nvmlEventSetFree, "it", (void *), set);
	end();
	CALL(nvmlEventSetFree, "again", (void *), set);
	end();
}

static void others(void)
{
	CALL(nvmlDeviceGetVbiosVersion, "absent", (DEV, char *, uint32_t), device, NULL, 0);
	end();
	CALL(nvmlDeviceSetPersistenceMode, "denied", (DEV, uint32_t), device, 1);
	end();
	CALL(nvmlDeviceGetHandleByIndex_v2, "no place", (uint32_t, DEV *), 0, NULL);
	end();
	CALL(nvmlShutdown, "last", (void), );
	end();
	CALL(nvmlDeviceGetIndex, "after", (DEV, uint32_t *), device, &(uint32_t){ 0 });
	end();
	CALL(nvmlShutdown, "after", (void), );
	end();
}

/* ---- the other ways to run ---- */

static int hold(uint64_t mib)
{
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
	CUresult (*init)(unsigned), (*retain)(CUcontext *, CUdevice), (*set)(CUcontext),
		(*alloc)(CUdeviceptr *, size_t);
	CUcontext context;
	CUdeviceptr at;
	char line[16];

	*(void **)&init = dlsym(cuda, "cuInit");
	*(void **)&retain = dlsym(cuda, "cuDevicePrimaryCtxRetain");
	*(void **)&set = dlsym(cuda, "cuCtxSetCurrent");
	*(void **)&alloc = dlsym(cuda, "cuMemAlloc_v2");
	if (init(0) || retain(&context, 0) || set(context) || alloc(&at, mib << 20))
		return 2;
	/* the worker's counters are on the server when it has answered a call */
	((CUresult(*)(void))dlsym(cuda, "cuCtxSynchronize"))();
	if (((fn)find("nvmlInit_v2"))() ||
		((int (*)(uint32_t, DEV *))find("nvmlDeviceGetHandleByIndex_v2"))(0, &device))
		return 3;
	processes();
	memory();
	puts("holding");
	fflush(stdout);
	return fgets(line, sizeof line, stdin) ? 0 : 4;
}

static int dynamic(void)
{
	int (*info)(DEV, void *) = (int (*)(DEV, void *))find("nvmlDeviceGetMemoryInfo");
	struct ob_nvml_memory m;
	char line[16];

	if (((fn)find("nvmlInit_v2"))() ||
		((int (*)(uint32_t, DEV *))find("nvmlDeviceGetHandleByIndex_v2"))(0, &device))
		return 3;
	printf("%d\n", info(device, &m));
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		double began = now_ms();
		int result = info(device, &m);

		printf("%d %.0f\n", result, now_ms() - began);
		fflush(stdout);
	}
	return 0;
}

/* Access between the first two devices, in both directions, by each way and by one that does not exist. */
static int peers(void)
{
	int (*status)(DEV, DEV, uint32_t, uint32_t *) =
		(int (*)(DEV, DEV, uint32_t, uint32_t *))find("nvmlDeviceGetP2PStatus");
	int (*by_index)(uint32_t, DEV *) =
		(int (*)(uint32_t, DEV *))find("nvmlDeviceGetHandleByIndex_v2");
	DEV devices[2];

	if (((fn)find("nvmlInit_v2"))() != OB_NVML_OK)
		return 1;
	for (uint32_t i = 0; i < 2; i++)
		if (by_index(i, &devices[i]) != OB_NVML_OK)
			return 1;
	for (uint32_t from = 0; from < 2; from++)
		for (uint32_t to = 0; to < 2; to++) {
			printf("%u %u:", from, to);
			for (uint32_t way = 0; way <= OB_NVML_P2P_COUNT; way++) {
				uint32_t value = 99;
				int result = status(devices[from], devices[to], way, &value);

				printf(" %d/%u", result, value);
			}
			end();
		}
	return 0;
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "";
	double began = now_ms();

	library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 2;
	}
	if (strcmp(way, "hold") == 0)
		return hold(argc > 2 ? strtoull(argv[2], NULL, 10) : 1);
	if (strcmp(way, "peers") == 0)
		return peers();
	if (strcmp(way, "dynamic") == 0)
		return dynamic();
	if (strcmp(way, "init") == 0) {
		int result = ((fn)find("nvmlInit_v2"))();

		printf("%d %.0f\n", result, now_ms() - began);
		return 0;
	}
	before();
	beginnings();
	system_calls();
	handles();
	device_calls();
	sensors();
	memory();
	processes();
	events();
	others();
	return 0;
}
