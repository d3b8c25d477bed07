/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A GPU as a device of the service: whatever the CUDA driver API shows, be it a card here, one over
 * the wire, or the software device. Any thread.
 */
#ifndef OBV_DEVICE_GPU_H
#define OBV_DEVICE_GPU_H

#include "compute/engine/device.h"

/*
 * Devices of the driver library (NULL: libcuda.so.1); 0 with the error filled where there is none.
 */
unsigned obv_device_gpu_count(const char *driver, struct outboard_error *error);
/*
 * memory: bytes that may be kept there; 0: what is free. keep: what is measured of it may be
 * measured unasked, and is kept on disk.
 */
int obv_device_gpu_open(const char *driver, unsigned ordinal, uint64_t memory, bool keep,
	struct obv_backend *ret_backend, struct outboard_error *error);

#endif
