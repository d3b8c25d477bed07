/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* One session over fake_driver.c, for tests. Each case has its own. */
#ifndef DRIVER_SESSION_H
#define DRIVER_SESSION_H

#include "tests/unit/server/peer.h"

extern struct server server;
extern struct peer peer;

/*
 * Starts the server and the session; lane 0 has context 1. outstanding: of --max-outstanding. grace:
 * seconds; 0: the client cannot resume.
 */
void driver_begin_limited(const char *outstanding, uint32_t grace);
void driver_begin(void);
/* Checks that the server ends with success. */
void driver_end(void);
/* Returns the address. */
uint64_t driver_alloc_plain(uint64_t size);
/* A memset of `size` bytes, which may control the device (fake_driver.h). */
void driver_fill_with(uint16_t lane, uint64_t addr, uint64_t size, uint8_t value);
void driver_fill(uint16_t lane, uint64_t addr, uint64_t size);

#endif
