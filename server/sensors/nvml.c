/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/sensors/nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/nvml_types.h"
#include "base/uuid.h"
#include "protocol/control.h"

typedef int (*fn_u32)(ob_nvml_device_t, uint32_t *);
typedef int (*fn_u32_of)(ob_nvml_device_t, uint32_t, uint32_t *);
typedef int (*fn_u64)(ob_nvml_device_t, uint64_t *);
typedef int (*fn_two)(ob_nvml_device_t, uint32_t *, uint32_t *);
typedef int (*fn_ecc)(ob_nvml_device_t, uint32_t, uint32_t, uint64_t *);

static struct {
	void *library;
	uint32_t n;
	ob_nvml_device_t devices[OBP_DEVICE_MAX];
	uint8_t uuids[OBP_DEVICE_MAX][16]; /* once they were read: a lost device tells it no more */
	uint32_t xids[OBP_DEVICE_MAX];     /* the last that matters; 0: none */
	void *events;                      /* NULL: the library reports none */
	char driver[80];
} nvml;

static void *find(const char *name)
{
	return dlsym(nvml.library, name);
}

/* ---- tables: a function of the library, and the fact that its answer is ---- */

static const struct {
	const char *name;
	enum obp_fact fact;
} numbers[] = {
	{ "nvmlDeviceGetFanSpeed", OBP_FACT_FAN },
	{ "nvmlDeviceGetPowerUsage", OBP_FACT_POWER },
	{ "nvmlDeviceGetPowerManagementLimit", OBP_FACT_POWER_LIMIT },
	{ "nvmlDeviceGetEnforcedPowerLimit", OBP_FACT_POWER_ENFORCED },
	{ "nvmlDeviceGetPowerManagementDefaultLimit", OBP_FACT_POWER_DEFAULT },
	{ "nvmlDeviceGetPerformanceState", OBP_FACT_PERFORMANCE },
	{ "nvmlDeviceGetCurrPcieLinkGeneration", OBP_FACT_PCIE_GENERATION },
	{ "nvmlDeviceGetCurrPcieLinkWidth", OBP_FACT_PCIE_WIDTH },
	{ "nvmlDeviceGetMaxPcieLinkGeneration", OBP_FACT_PCIE_MAX_GENERATION },
	{ "nvmlDeviceGetMaxPcieLinkWidth", OBP_FACT_PCIE_MAX_WIDTH },
	{ "nvmlDeviceGetPcieReplayCounter", OBP_FACT_PCIE_REPLAYS },
	{ "nvmlDeviceGetPersistenceMode", OBP_FACT_PERSISTENCE },
	{ "nvmlDeviceGetComputeMode", OBP_FACT_COMPUTE_MODE },
	{ "nvmlDeviceGetMemoryBusWidth", OBP_FACT_BUS_WIDTH },
	{ "nvmlDeviceGetNumGpuCores", OBP_FACT_CORES },
	{ "nvmlDeviceGetArchitecture", OBP_FACT_ARCHITECTURE },
	{ "nvmlDeviceGetBrand", OBP_FACT_BRAND },
	{ "nvmlDeviceGetMinorNumber", OBP_FACT_NUMBER },
};

static const struct {
	const char *name;
	uint32_t of;
	enum obp_fact fact;
} chosen[] = {
	{ "nvmlDeviceGetTemperature", 0, OBP_FACT_TEMPERATURE },
	{ "nvmlDeviceGetTemperatureThreshold", 0, OBP_FACT_TEMPERATURE_SHUTDOWN },
	{ "nvmlDeviceGetTemperatureThreshold", 1, OBP_FACT_TEMPERATURE_SLOWDOWN },
	{ "nvmlDeviceGetTemperatureThreshold", 2, OBP_FACT_TEMPERATURE_MEMORY_MAX },
	{ "nvmlDeviceGetTemperatureThreshold", 3, OBP_FACT_TEMPERATURE_GPU_MAX },
	{ "nvmlDeviceGetClockInfo", OB_NVML_CLOCK_GRAPHICS, OBP_FACT_CLOCK_GRAPHICS },
	{ "nvmlDeviceGetClockInfo", OB_NVML_CLOCK_SM, OBP_FACT_CLOCK_SM },
	{ "nvmlDeviceGetClockInfo", OB_NVML_CLOCK_MEMORY, OBP_FACT_CLOCK_MEMORY },
	{ "nvmlDeviceGetClockInfo", OB_NVML_CLOCK_VIDEO, OBP_FACT_CLOCK_VIDEO },
	{ "nvmlDeviceGetMaxClockInfo", OB_NVML_CLOCK_GRAPHICS, OBP_FACT_CLOCK_MAX_GRAPHICS },
	{ "nvmlDeviceGetMaxClockInfo", OB_NVML_CLOCK_SM, OBP_FACT_CLOCK_MAX_SM },
	{ "nvmlDeviceGetMaxClockInfo", OB_NVML_CLOCK_MEMORY, OBP_FACT_CLOCK_MAX_MEMORY },
	{ "nvmlDeviceGetMaxClockInfo", OB_NVML_CLOCK_VIDEO, OBP_FACT_CLOCK_MAX_VIDEO },
	{ "nvmlDeviceGetApplicationsClock", OB_NVML_CLOCK_GRAPHICS, OBP_FACT_CLOCK_APP_GRAPHICS },
	{ "nvmlDeviceGetApplicationsClock", OB_NVML_CLOCK_MEMORY, OBP_FACT_CLOCK_APP_MEMORY },
};

static const struct {
	const char *name;
	enum obp_fact first, second;
} pairs[] = {
	{ "nvmlDeviceGetPowerManagementLimitConstraints", OBP_FACT_POWER_MIN, OBP_FACT_POWER_MAX },
	{ "nvmlDeviceGetEccMode", OBP_FACT_ECC, OBP_FACT_ECC_PENDING },
	{ "nvmlDeviceGetMigMode", OBP_FACT_MIG, OBP_FACT_MIG_PENDING },
	/* the second is the period of sampling */
	{ "nvmlDeviceGetEncoderUtilization", OBP_FACT_USE_ENCODER, OBP_FACT_COUNT },
	{ "nvmlDeviceGetDecoderUtilization", OBP_FACT_USE_DECODER, OBP_FACT_COUNT },
};

static void numbers_read(ob_nvml_device_t device, struct obp_facts *ret)
{
	uint32_t a, b;
	uint64_t wide;

	for (size_t i = 0; i < ob_count(numbers); i++) {
		fn_u32 fn = (fn_u32)find(numbers[i].name);

		if (fn && fn(device, &a) == OB_NVML_OK)
			obp_fact_set(ret, numbers[i].fact, a);
	}
	for (size_t i = 0; i < ob_count(chosen); i++) {
		fn_u32_of fn = (fn_u32_of)find(chosen[i].name);

		if (fn && fn(device, chosen[i].of, &a) == OB_NVML_OK)
			obp_fact_set(ret, chosen[i].fact, a);
	}
	for (size_t i = 0; i < ob_count(pairs); i++) {
		fn_two fn = (fn_two)find(pairs[i].name);

		if (!fn || fn(device, &a, &b) != OB_NVML_OK)
			continue;
		obp_fact_set(ret, pairs[i].first, a);
		if (pairs[i].second != OBP_FACT_COUNT)
			obp_fact_set(ret, pairs[i].second, b);
	}
	if (find("nvmlDeviceGetTotalEnergyConsumption") &&
		((fn_u64)find("nvmlDeviceGetTotalEnergyConsumption"))(device, &wide) == OB_NVML_OK)
		obp_fact_set(ret, OBP_FACT_ENERGY, wide);
	if (find("nvmlDeviceGetCurrentClocksThrottleReasons") &&
		((fn_u64)find("nvmlDeviceGetCurrentClocksThrottleReasons"))(device, &wide) ==
			OB_NVML_OK)
		obp_fact_set(ret, OBP_FACT_CLOCK_REASONS, wide);
	/* volatile counts: since the last reset */
	for (uint32_t kind = 0; kind < 2; kind++) {
		fn_ecc fn = (fn_ecc)find("nvmlDeviceGetTotalEccErrors");

		if (fn && fn(device, kind, 0, &wide) == OB_NVML_OK)
			obp_fact_set(ret, kind ? OBP_FACT_ECC_UNCORRECTED : OBP_FACT_ECC_CORRECTED,
				wide);
	}
}

/* Answers that are structures. */
static void structs_read(ob_nvml_device_t device, struct obp_facts *ret)
{
	struct ob_nvml_memory_v2 v2 = { .version = OB_NVML_VERSION(struct ob_nvml_memory_v2, 2) };
	struct ob_nvml_memory v1;
	struct ob_nvml_bar1 bar1;
	struct ob_nvml_use use;
	struct ob_nvml_pci pci;
	int (*fn)(ob_nvml_device_t, void *);

	fn = (int (*)(ob_nvml_device_t, void *))find("nvmlDeviceGetMemoryInfo_v2");
	if (fn && fn(device, &v2) == OB_NVML_OK) {
		obp_fact_set(ret, OBP_FACT_MEMORY_TOTAL, v2.total);
		obp_fact_set(ret, OBP_FACT_MEMORY_RESERVED, v2.reserved);
		obp_fact_set(ret, OBP_FACT_MEMORY_USED, v2.used);
	} else {
		fn = (int (*)(ob_nvml_device_t, void *))find("nvmlDeviceGetMemoryInfo");
		if (fn && fn(device, &v1) == OB_NVML_OK) {
			obp_fact_set(ret, OBP_FACT_MEMORY_TOTAL, v1.total);
			obp_fact_set(ret, OBP_FACT_MEMORY_USED, v1.used);
		}
	}
	fn = (int (*)(ob_nvml_device_t, void *))find("nvmlDeviceGetBAR1MemoryInfo");
	if (fn && fn(device, &bar1) == OB_NVML_OK) {
		obp_fact_set(ret, OBP_FACT_BAR1_TOTAL, bar1.total);
		obp_fact_set(ret, OBP_FACT_BAR1_USED, bar1.used);
	}
	fn = (int (*)(ob_nvml_device_t, void *))find("nvmlDeviceGetUtilizationRates");
	if (fn && fn(device, &use) == OB_NVML_OK) {
		obp_fact_set(ret, OBP_FACT_USE_GPU, use.gpu);
		obp_fact_set(ret, OBP_FACT_USE_MEMORY, use.memory);
	}
	fn = (int (*)(ob_nvml_device_t, void *))find("nvmlDeviceGetPciInfo_v3");
	if (fn && fn(device, &pci) == OB_NVML_OK) {
		obp_fact_set(ret, OBP_FACT_PCI_DOMAIN, pci.domain);
		obp_fact_set(ret, OBP_FACT_PCI_BUS, pci.bus);
		obp_fact_set(ret, OBP_FACT_PCI_DEVICE, pci.device);
		obp_fact_set(ret, OBP_FACT_PCI_ID, pci.id);
		obp_fact_set(ret, OBP_FACT_PCI_SUBSYSTEM, pci.subsystem);
	}
}

/* Reads "GPU-xxxxxxxx-xxxx-..." */
static bool uuid_read(ob_nvml_device_t device, uint8_t ret_uuid[16])
{
	int (*fn)(ob_nvml_device_t, char *, uint32_t) =
		(int (*)(ob_nvml_device_t, char *, uint32_t))find("nvmlDeviceGetUUID");
	char text[96] = "";

	return fn && fn(device, text, sizeof text - 1) == OB_NVML_OK &&
		ob_uuid_parse(text, ret_uuid);
}

/* ---- errors of the hardware ---- */

#define EVENT_XID  8u /* nvmlEventTypeXidCriticalError */
#define EVENTS_MAX 64 /* read at a time */

/*
 * Those after which the device computes wrongly or not at all, from NVIDIA's catalogue: others, such
 * as 13 and 31, are faults of programs.
 */
static bool xid_matters(uint64_t xid)
{
	static const uint8_t list[] = {
		48,  /* double bit ECC error */
		62,  /* halt of an internal processor */
		64,  /* a row of memory cannot be remapped */
		74,  /* NVLink error */
		79,  /* fallen off the bus */
		95,  /* uncontained ECC error */
		119, /* the device's own processor does not answer */
		120, /* error of the device's own processor */
		140, /* unrecovered ECC error */
	};

	return xid <= UINT8_MAX && memchr(list, (int)xid, sizeof list);
}

static void events_open(void)
{
	int (*create)(void **) = (int (*)(void **))find("nvmlEventSetCreate");
	int (*watch)(ob_nvml_device_t, uint64_t, void *) =
		(int (*)(ob_nvml_device_t, uint64_t, void *))find("nvmlDeviceRegisterEvents");

	if (!create || !watch || create(&nvml.events) != OB_NVML_OK)
		nvml.events = NULL;
	for (uint32_t i = 0; nvml.events && i < nvml.n; i++)
		if (nvml.devices[i])
			watch(nvml.devices[i], EVENT_XID, nvml.events);
}

static void events_read(void)
{
	int (*next)(void *, struct ob_nvml_event *, uint32_t) =
		(int (*)(void *, struct ob_nvml_event *, uint32_t))find("nvmlEventSetWait_v2");
	struct ob_nvml_event event = { .type = 0 };

	for (int n = 0;
		nvml.events && next && n < EVENTS_MAX && next(nvml.events, &event, 0) == OB_NVML_OK;
		n++)
		for (uint32_t i = 0; i < nvml.n; i++)
			if (event.type == EVENT_XID && event.device == nvml.devices[i] &&
				xid_matters(event.data))
				nvml.xids[i] = (uint32_t)event.data;
}

bool obs_nvml_read(uint32_t index, struct obs_reading *ret)
{
	static const uint8_t none[16];

	*ret = (struct obs_reading){ .facts.known = 0 };
	events_read();
	ret->xid = nvml.xids[index];
	if (nvml.devices[index] && uuid_read(nvml.devices[index], ret->uuid)) {
		memcpy(nvml.uuids[index], ret->uuid, sizeof ret->uuid);
	} else {
		memcpy(ret->uuid, nvml.uuids[index], sizeof ret->uuid);
		return ret->xid && memcmp(ret->uuid, none, sizeof none) != 0;
	}
	memcpy(ret->driver, nvml.driver, sizeof ret->driver);
	numbers_read(nvml.devices[index], &ret->facts);
	structs_read(nvml.devices[index], &ret->facts);
	return true;
}

uint32_t obs_nvml_count(void)
{
	return nvml.n;
}

enum ob_err obs_nvml_open(const char *path, struct ob_cause *ret_cause)
{
	int (*init)(void), (*count)(uint32_t *), (*handle)(uint32_t, ob_nvml_device_t *),
		(*version)(char *, uint32_t), result;

	nvml.library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!nvml.library)
		return ob_cause_set(ret_cause, OB_ERR_DRIVER, "%s", dlerror());
	init = (int (*)(void))find("nvmlInit_v2");
	count = (int (*)(uint32_t *))find("nvmlDeviceGetCount_v2");
	handle = (int (*)(uint32_t, ob_nvml_device_t *))find("nvmlDeviceGetHandleByIndex_v2");
	version = (int (*)(char *, uint32_t))find("nvmlSystemGetDriverVersion");
	if (!init || !count || !handle)
		return ob_cause_set(ret_cause, OB_ERR_DRIVER, "%s lacks nvmlInit_v2", path);
	result = init();
	if (result != OB_NVML_OK)
		return ob_cause_set(
			ret_cause, OB_ERR_DRIVER, "nvmlInit of %s answers %d", path, result);
	if (count(&nvml.n) != OB_NVML_OK)
		nvml.n = 0;
	nvml.n = ob_min(nvml.n, OBP_DEVICE_MAX);
	for (uint32_t i = 0; i < nvml.n; i++)
		if (handle(i, &nvml.devices[i]) != OB_NVML_OK)
			nvml.devices[i] = NULL;
	if (version && version(nvml.driver, sizeof nvml.driver - 1) != OB_NVML_OK)
		nvml.driver[0] = '\0';
	events_open();
	return OB_ERR_NONE;
}
