/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A program with a ticket for its server (OUTBOARD_TICKET, client-shim/session/pass.h) finds the
 * devices of the ticket alone through NVML too. The server tells its load to whoever can connect, so
 * the list is narrowed here. No state; any thread.
 */
#ifndef OBC_NARROW_H
#define OBC_NARROW_H

#include "protocol/load.h"

/* Leaves the devices of the ticket for this address. Without a ticket nothing changes. */
void obc_nvml_narrow(const char *url, struct obp_load *load);
/* Leaves the devices for which bit n of `kept` is set, in their order. */
void obc_nvml_keep(uint32_t kept, struct obp_load *load);

#endif
