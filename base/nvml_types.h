/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Types and constants of NVML's C interface, as its public documentation describes them: what our
 * libnvidia-ml.so.1 answers, and what the server asks of NVIDIA's. Versioned structures carry
 * their size and version in the first word (OB_NVML_VERSION). Plain data.
 */
#ifndef OB_NVML_TYPES_H
#define OB_NVML_TYPES_H

#include <stdint.h>

enum ob_nvml_return {
	OB_NVML_OK,
	OB_NVML_UNINITIALIZED,
	OB_NVML_INVALID_ARGUMENT,
	OB_NVML_NOT_SUPPORTED,
	OB_NVML_NO_PERMISSION,
	OB_NVML_ALREADY_INITIALIZED,
	OB_NVML_NOT_FOUND,
	OB_NVML_INSUFFICIENT_SIZE,
	OB_NVML_INSUFFICIENT_POWER,
	OB_NVML_DRIVER_NOT_LOADED,
	OB_NVML_TIMEOUT,
	OB_NVML_IRQ_ISSUE,
	OB_NVML_LIBRARY_NOT_FOUND,
	OB_NVML_FUNCTION_NOT_FOUND,
	OB_NVML_CORRUPTED_INFOROM,
	OB_NVML_GPU_IS_LOST,
	OB_NVML_RESET_REQUIRED,
	OB_NVML_OPERATING_SYSTEM,
	OB_NVML_LIB_RM_VERSION_MISMATCH,
	OB_NVML_IN_USE,
	OB_NVML_MEMORY,
	OB_NVML_NO_DATA,
	OB_NVML_VGPU_ECC_NOT_SUPPORTED,
	OB_NVML_INSUFFICIENT_RESOURCES,
	OB_NVML_FREQ_NOT_SUPPORTED,
	OB_NVML_ARGUMENT_VERSION_MISMATCH,
	OB_NVML_DEPRECATED,
	OB_NVML_NOT_READY,
	OB_NVML_GPU_NOT_FOUND,
	OB_NVML_INVALID_STATE,
	OB_NVML_RESET_TYPE_NOT_SUPPORTED,
	OB_NVML_UNKNOWN = 999
};

/* The first word of a versioned structure. */
#define OB_NVML_VERSION(type, number) ((uint32_t)sizeof(type) | (uint32_t)(number) << 24)

/* flags of nvmlInitWithFlags */
#define OB_NVML_INIT_NO_GPUS   1u
#define OB_NVML_INIT_NO_ATTACH 2u

enum { OB_NVML_CLOCK_GRAPHICS, OB_NVML_CLOCK_SM, OB_NVML_CLOCK_MEMORY, OB_NVML_CLOCK_VIDEO };
enum { OB_NVML_CLOCK_NOW, OB_NVML_CLOCK_TARGET, OB_NVML_CLOCK_DEFAULT, OB_NVML_CLOCK_BOOST };
enum { OB_NVML_UUID_ASCII = 1, OB_NVML_UUID_BINARY = 2 };
/* peer access by which way, and whether it is possible */
enum {
	OB_NVML_P2P_READ,
	OB_NVML_P2P_WRITE,
	OB_NVML_P2P_NVLINK,
	OB_NVML_P2P_ATOMICS,
	OB_NVML_P2P_PCI,
	OB_NVML_P2P_COUNT
};
enum {
	OB_NVML_P2P_OK = 0,
	OB_NVML_P2P_CHIPSET = 1,
	OB_NVML_P2P_NOT_SUPPORTED = 5,
	OB_NVML_P2P_UNKNOWN = 6
};
enum { OB_NVML_TOPOLOGY_INTERNAL = 0, OB_NVML_TOPOLOGY_NODE = 40, OB_NVML_TOPOLOGY_SYSTEM = 50 };

#define OB_NVML_NOT_AVAILABLE UINT64_MAX /* a process's memory that is not known */
#define OB_NVML_NO_INSTANCE   UINT32_MAX /* not on a MIG instance */
#define OB_NVML_BUS_ID_OLD    16
#define OB_NVML_BUS_ID        32
#define OB_NVML_VALUE_U32     1u
#define OB_NVML_VALUE_U64     3u
#define OB_NVML_UUID_TEXT     41 /* "GPU-" and 36 characters, NUL included */

typedef struct ob_nvml_device *ob_nvml_device_t; /* never dereferenced by a program */

struct ob_nvml_memory {
	uint64_t total, free, used;
};

struct ob_nvml_memory_v2 {
	uint32_t version;
	uint64_t total, reserved, free, used;
};

struct ob_nvml_bar1 {
	uint64_t total, free, used;
};

struct ob_nvml_use {
	uint32_t gpu, memory;
};

/* Also the layout of nvmlDeviceGetPciInfo_v2's; the first version ends before `subsystem`. */
struct ob_nvml_pci_v2 {
	char bus_id[OB_NVML_BUS_ID_OLD];
	uint32_t domain, bus, device, id, subsystem, reserved[4];
};

struct ob_nvml_pci {
	char bus_id_old[OB_NVML_BUS_ID_OLD];
	uint32_t domain, bus, device, id, subsystem;
	char bus_id[OB_NVML_BUS_ID];
};

struct ob_nvml_pci_ext {
	uint32_t version, domain, bus, device, id, subsystem, base_class, sub_class;
	char bus_id[OB_NVML_BUS_ID];
};

struct ob_nvml_process_v1 {
	uint32_t pid;
	uint64_t memory;
};

struct ob_nvml_process {
	uint32_t pid;
	uint64_t memory;
	uint32_t gpu_instance, compute_instance;
};

struct ob_nvml_process_detail {
	uint32_t pid;
	uint64_t memory;
	uint32_t gpu_instance, compute_instance;
	uint64_t protected_memory;
};

struct ob_nvml_process_list {
	uint32_t version, mode, n;
	struct ob_nvml_process_detail *list;
};

struct ob_nvml_temperature {
	uint32_t version, sensor;
	int32_t celsius;
};

struct ob_nvml_uuid {
	uint32_t version, type;
	union {
		char text[OB_NVML_UUID_TEXT];
		uint8_t bytes[16];
	};
};

struct ob_nvml_field {
	uint32_t id, scope;
	int64_t time_us, latency_us;
	uint32_t type, result;
	union {
		double real;
		uint32_t u32;
		uint64_t u64;
	};
};

struct ob_nvml_attributes {
	uint32_t multiprocessors, copy_engines, decoders, encoders, jpeg, ofa, gpu_slices,
		compute_slices;
	uint64_t memory_mib;
};

struct ob_nvml_event {
	ob_nvml_device_t device;
	uint64_t type, data;
	uint32_t gpu_instance, compute_instance;
};

_Static_assert(sizeof(struct ob_nvml_memory_v2) == 0x28, "NVML's layout");
_Static_assert(sizeof(struct ob_nvml_pci) == 68, "NVML's layout");
_Static_assert(sizeof(struct ob_nvml_pci_ext) == 0x40, "NVML's layout");
_Static_assert(sizeof(struct ob_nvml_process) == 24, "NVML's layout");
_Static_assert(sizeof(struct ob_nvml_process_list) == 0x18, "NVML's layout");
_Static_assert(sizeof(struct ob_nvml_temperature) == 12, "NVML's layout");
_Static_assert(sizeof(struct ob_nvml_uuid) == 0x34, "NVML's layout");
_Static_assert(sizeof(struct ob_nvml_field) == 40, "NVML's layout");

#endif
