/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The names of the device runtime, which nvcc links from libcudadevrt: launches by device code,
 * streams, events, copies.
 */
#ifndef OBD_CORE_DEVICE_RT_H
#define OBD_CORE_DEVICE_RT_H

#include <stdbool.h>

#include "softdevice/core/code.h"

/* The function of this name; OBD_BUILTIN_NONE: the engine has none. Any thread. */
enum obd_builtin obd_device_rt_find(const char *name);
/* Does a name belong to graphs that device code launches or changes? They are not supported. */
bool obd_device_rt_is_graph(const char *name);

#endif
