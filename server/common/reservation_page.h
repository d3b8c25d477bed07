/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The reservation page: memory that the workers of one reservation share, so that the program's
 * processes together use no more device memory than was reserved. The supervisor creates it and
 * gives each worker a descriptor. Numbers are atomic; each is an independent counter.
 *
 * Every worker of the reservation may write it, and a client that has taken over its worker may
 * write anything. That changes what the reservation's own sessions can allocate, up to the limit of
 * each session, and nothing else: the supervisor reads no number of it, and each session is also
 * charged on its own stats page.
 */
#ifndef OBS_RESERVATION_PAGE_H
#define OBS_RESERVATION_PAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "protocol/control.h"

struct obs_reservation_page {
	/* bytes charged on each device, in the order of the ticket */
	_Atomic uint64_t used[OBP_DEVICE_MAX];
};

/* This worker's page; NULL: its session has no ticket. */
extern struct obs_reservation_page *obs_reservation_page;

/* Worker: maps the page and closes the descriptor. False: it is none. */
bool obs_reservation_page_adopt(int fd);
/* Supervisor: creates a page. NULL: no memory. *ret_fd is the caller's. */
struct obs_reservation_page *obs_reservation_page_new(int *ret_fd);
void obs_reservation_page_free(struct obs_reservation_page *page);

#endif
