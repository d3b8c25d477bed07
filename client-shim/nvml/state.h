/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The state of libnvidia-ml.so.1: how often NVML is initialised, and the view of the server's
 * devices (loadbalancer/view.h). One lock covers all of it: a call that asks the server holds up
 * the others, for at most the time-out. Any thread.
 */
#ifndef OBC_NVML_STATE_H
#define OBC_NVML_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/nvml_types.h"
#include "loadbalancer/view.h"

/* Takes the lock. OB_NVML_OK: obc_nvml_leave must follow; else the lock is not held. */
int obc_nvml_enter(bool fresh);
/* Releases the lock and returns `result`. */
int obc_nvml_leave(int result);

/* ---- with the lock held ---- */

/* False: not a device's handle. */
bool obc_nvml_place(ob_nvml_device_t device, uint32_t *ret_place);
ob_nvml_device_t obc_nvml_handle(uint32_t place);
const struct obl_view *obc_nvml_view(void);
const struct obp_load_device *obc_nvml_device(uint32_t place);
/* OB_NVML_NOT_SUPPORTED: the server does not know it, or it does not fit. */
int obc_nvml_fact(uint32_t place, enum obp_fact fact, uint64_t *ret_value);
int obc_nvml_fact32(uint32_t place, enum obp_fact fact, uint32_t *ret_value);

/* A text into a program's buffer. OB_NVML_INSUFFICIENT_SIZE: it does not fit. */
int obc_nvml_text(const char *text, char *buffer, uint32_t size);

/* ---- without the lock ---- */

/* Functions without an answer; OB_NVML_UNINITIALIZED comes first. */
int obc_nvml_absent(const char *name);
int obc_nvml_denied(const char *name);

#endif
