/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A GPU as a device of the engine: any device of the CUDA driver API, be it a card in this machine,
 * a card behind a server or the software device. Any thread.
 */
#ifndef OBV_DEVICE_GPU_H
#define OBV_DEVICE_GPU_H

#include "compute/engine/device.h"

/*
 * The number of devices of the driver library (NULL: libcuda.so.1); 0, with the error filled, if
 * there are none.
 */
unsigned obv_device_gpu_count(const char *driver, struct outboard_error *error);
/*
 * memory: most bytes to keep on the device; 0: all free memory. keep: the device may be measured
 * during ordinary calls, and its profile is stored on disk.
 */
int obv_device_gpu_open(const char *driver, unsigned ordinal, uint64_t memory, bool keep,
	struct obv_backend *ret_backend, struct outboard_error *error);

#endif
