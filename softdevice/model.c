/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Sources: NVIDIA's data sheets (memory bandwidth), the table "Technical Specifications per Compute
 * Capability" of the CUDA C++ Programming Guide (threads, blocks, shared memory), and the output of
 * the sample deviceQuery as users have published it (memory size, clocks, L2 cache, bus width).
 * `tools/dev/gpu-check` prints the attributes of a real device to compare with.
 */
#include "softdevice/model.h"

#include <strings.h>

#include "base/check.h"
#include "base/cuda_types.h"

#define ATTR(name, value)                         \
	{                                         \
		CU_DEVICE_ATTRIBUTE_##name, value \
	}

/* What all of them have and the software device does not. */
#define COMMON                                                                                  \
	ATTR(ECC_ENABLED, 1), ATTR(ASYNC_ENGINE_COUNT, 3), ATTR(CAN_MAP_HOST_MEMORY, 1),        \
		ATTR(MANAGED_MEMORY, 1), ATTR(CONCURRENT_MANAGED_ACCESS, 1),                    \
		ATTR(CAN_USE_STREAM_WAIT_VALUE_NOR, 1), ATTR(CAN_USE_64_BIT_STREAM_MEM_OPS, 1), \
		ATTR(GENERIC_COMPRESSION_SUPPORTED, 1),                                         \
		ATTR(MAX_ACCESS_POLICY_WINDOW_SIZE, 134213632)

#define TURING_AND_LATER                                                  \
	ATTR(GPU_DIRECT_RDMA_SUPPORTED, 1), ATTR(IPC_EVENT_SUPPORTED, 1), \
		ATTR(UNIFIED_FUNCTION_POINTERS, 1)

#define HOPPER_AND_LATER                                               \
	ATTR(CLUSTER_LAUNCH, 1), ATTR(TENSOR_MAP_ACCESS_SUPPORTED, 1), \
		ATTR(MEM_SYNC_DOMAIN_COUNT, 4)

#define SHARED(per_sm_kib)                                              \
	ATTR(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, (per_sm_kib) << 10), \
		ATTR(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, ((per_sm_kib)-1) << 10)

#define CLOCKS(core_mhz, memory_mhz, bus_bits, l2_mib)                                 \
	ATTR(CLOCK_RATE, (core_mhz)*1000), ATTR(MEMORY_CLOCK_RATE, (memory_mhz)*1000), \
		ATTR(GLOBAL_MEMORY_BUS_WIDTH, bus_bits), ATTR(L2_CACHE_SIZE, (l2_mib) << 20)

static const struct obd_model_attr a100[] = {
	COMMON,
	TURING_AND_LATER,
	SHARED(164),
	CLOCKS(1410, 1593, 5120, 40),
	ATTR(MAX_PERSISTING_L2_CACHE_SIZE, 26214400),
};

static const struct obd_model_attr h100[] = {
	COMMON,
	TURING_AND_LATER,
	HOPPER_AND_LATER,
	SHARED(228),
	CLOCKS(1980, 2619, 5120, 50),
	ATTR(MAX_PERSISTING_L2_CACHE_SIZE, 32768000),
};

static const struct obd_model_attr h200[] = {
	COMMON,
	TURING_AND_LATER,
	HOPPER_AND_LATER,
	SHARED(228),
	CLOCKS(1980, 3201, 6144, 60),
	ATTR(MAX_PERSISTING_L2_CACHE_SIZE, 39321600),
};

static const struct obd_model_attr b200[] = {
	COMMON,
	TURING_AND_LATER,
	HOPPER_AND_LATER,
	SHARED(228),
	CLOCKS(1965, 3996, 7680, 126),
	ATTR(MAX_PERSISTING_L2_CACHE_SIZE, 82575360),
};

static const struct obd_model_attr rtx4090[] = {
	COMMON,
	TURING_AND_LATER,
	SHARED(100),
	CLOCKS(2520, 10501, 384, 72),
	ATTR(ECC_ENABLED, 0),
	ATTR(ASYNC_ENGINE_COUNT, 2),
	ATTR(MAX_PERSISTING_L2_CACHE_SIZE, 51904512),
	ATTR(MAX_THREADS_PER_MULTIPROCESSOR, 1536),
	ATTR(MAX_BLOCKS_PER_MULTIPROCESSOR, 24),
	ATTR(SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 64),
};

static const struct obd_model_attr t4[] = {
	COMMON,
	TURING_AND_LATER,
	CLOCKS(1590, 5001, 256, 4),
	ATTR(MAX_THREADS_PER_MULTIPROCESSOR, 1024),
	ATTR(MAX_BLOCKS_PER_MULTIPROCESSOR, 16),
	ATTR(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 64 << 10),
	ATTR(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 64 << 10),
	ATTR(RESERVED_SHARED_MEMORY_PER_BLOCK, 0),
	ATTR(SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 32),
	ATTR(GENERIC_COMPRESSION_SUPPORTED, 0),
	ATTR(MAX_ACCESS_POLICY_WINDOW_SIZE, 0),
};

#define MODEL(model_id, model_name, capability, units, mib, gb_per_s)                            \
	{                                                                                        \
		.id = #model_id, .name = model_name, .cc = capability, .sms = units,             \
		.memory = (uint64_t)(mib) << 20, .bandwidth = (gb_per_s)*1e9, .attrs = model_id, \
		.n_attrs = ob_count(model_id)                                                    \
	}

static const struct obd_model models[] = {
	MODEL(h100, "NVIDIA H100 80GB HBM3", 90, 132, 81088, 3352.0),
	MODEL(a100, "NVIDIA A100-SXM4-80GB", 80, 108, 81152, 2039.0),
	MODEL(b200, "NVIDIA B200", 100, 148, 182632, 7700.0),
	MODEL(h200, "NVIDIA H200", 90, 132, 143156, 4800.0),
	MODEL(rtx4090, "NVIDIA GeForce RTX 4090", 89, 128, 24080, 1008.0),
	MODEL(t4, "Tesla T4", 75, 40, 14912, 320.0),
};

const struct obd_model *obd_model_find(const char *id)
{
	for (size_t i = 0; i < ob_count(models); i++)
		if (strcasecmp(id, models[i].id) == 0)
			return &models[i];
	return NULL;
}

const char *obd_model_list(void)
{
	return "a100, b200, h100, h200, rtx4090 or t4";
}
