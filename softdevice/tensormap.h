/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * cuTensorMap*: checks the arguments as the CUDA driver API documents for cuTensorMapEncode*, and
 * writes an obd_tensor_map. Plain functions; any thread.
 */
#ifndef OBD_TENSORMAP_H
#define OBD_TENSORMAP_H

#include "softdevice/core/tensor_map.h"

#endif
