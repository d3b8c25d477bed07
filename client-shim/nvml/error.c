/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "base/check.h"
#include "client-shim/nvml/nvml_calls.h"

static const char *const texts[] = {
	[OB_NVML_OK] = "Success",
	[OB_NVML_UNINITIALIZED] = "Uninitialized",
	[OB_NVML_INVALID_ARGUMENT] = "Invalid Argument",
	[OB_NVML_NOT_SUPPORTED] = "Not Supported",
	[OB_NVML_NO_PERMISSION] = "Insufficient Permissions",
	[OB_NVML_ALREADY_INITIALIZED] = "Already Initialized",
	[OB_NVML_NOT_FOUND] = "Not Found",
	[OB_NVML_INSUFFICIENT_SIZE] = "Insufficient Size",
	[OB_NVML_INSUFFICIENT_POWER] = "Insufficient External Power",
	[OB_NVML_DRIVER_NOT_LOADED] = "Driver Not Loaded",
	[OB_NVML_TIMEOUT] = "Timeout",
	[OB_NVML_IRQ_ISSUE] = "Interrupt Request Issue",
	[OB_NVML_LIBRARY_NOT_FOUND] = "Library Not Found",
	[OB_NVML_FUNCTION_NOT_FOUND] = "Function Not Found",
	[OB_NVML_CORRUPTED_INFOROM] = "Corrupted infoROM",
	[OB_NVML_GPU_IS_LOST] = "GPU is lost",
	[OB_NVML_RESET_REQUIRED] = "GPU requires restart",
	[OB_NVML_OPERATING_SYSTEM] = "The operating system has blocked the request.",
	[OB_NVML_LIB_RM_VERSION_MISMATCH] = "RM has detected an NVML/RM version mismatch.",
	[OB_NVML_IN_USE] = "In use by another client",
	[OB_NVML_MEMORY] = "Insufficient Memory",
	[OB_NVML_NO_DATA] = "No data",
	[OB_NVML_VGPU_ECC_NOT_SUPPORTED] = "ECC is not supported with vGPU",
	[OB_NVML_INSUFFICIENT_RESOURCES] = "Insufficient resources",
	[OB_NVML_FREQ_NOT_SUPPORTED] = "Requested frequency is not supported",
	[OB_NVML_ARGUMENT_VERSION_MISMATCH] = "Argument version mismatch",
	[OB_NVML_DEPRECATED] = "Deprecated",
	[OB_NVML_NOT_READY] = "Not ready",
	[OB_NVML_GPU_NOT_FOUND] = "GPU not found",
	[OB_NVML_INVALID_STATE] = "Invalid state",
	[OB_NVML_RESET_TYPE_NOT_SUPPORTED] = "Reset type not supported",
};

const char *obc_nvmlErrorString(uint32_t result)
{
	return result < ob_count(texts) && texts[result] ? texts[result] : "Unknown Error";
}
