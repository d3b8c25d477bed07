/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What the admission process has to know of the pool to which the server belongs: the server's name
 * there, its incarnation, and the public keys of the balancers. Memory shared by the supervisor,
 * which alone writes, and the admission process, which maps it read-only: a restarted admission
 * process knows every key at once. Keys are only added: a ticket stays valid when its balancer is
 * gone. One thread in each process.
 */
#ifndef OBS_POOL_PAGE_H
#define OBS_POOL_PAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/ticket.h"
#include "server/common/routes.h"
#include "transport/sign.h"

#define OBS_POOL_KEYS_MAX 64u /* keys of balancers since the server's start */

/* Why a ticket, or a client without one, was refused. */
#define OBS_TICKET_REFUSALS(X)        \
	X(NONE, "none")               \
	X(FORM, "form")               \
	X(SIGNATURE, "signature")     \
	X(SERVER, "server")           \
	X(INCARNATION, "incarnation") \
	X(FUTURE, "future")           \
	X(EXPIRED, "expired")         \
	X(ENDED, "ended")             \
	X(VOID, "void")               \
	X(OTHER, "other_ticket")      \
	X(DEVICES, "devices") X(ROOM, "room") X(CLOSED, "closed") X(LIMIT, "limit")
enum obs_ticket_refusal {
#define X(name, text) OBS_TICKET_##name,
	OBS_TICKET_REFUSALS(X)
#undef X
		OBS_TICKET_REFUSAL_COUNT
};

/* "signature" */
const char *obs_ticket_refusal_name(enum obs_ticket_refusal refusal);

struct obs_pool_page {
	/* Set before the first admission process starts. */
	bool on;     /* the server belongs to a pool */
	bool direct; /* sessions without a ticket are taken from everywhere */
	char server[OBP_POOL_NAME_MAX];
	uint64_t incarnation;
	/* release: the keys below it are complete */
	_Atomic uint32_t n_keys;
	uint8_t keys[OBS_POOL_KEYS_MAX][OBT_SIGN_KEY_BYTES];
	/* seconds that the balancer's clock was ahead of this server's when it registered */
	_Atomic int64_t ahead_s[OBS_POOL_KEYS_MAX];
};

/* Supervisor. *ret_fd is for admission processes: it cannot be written through. NULL: errno. */
struct obs_pool_page *obs_pool_page_new(int *ret_fd);
/*
 * Supervisor: enters the key of a balancer, or the new difference of the clocks. False: there is no
 * room for another key.
 */
bool obs_pool_page_add(
	struct obs_pool_page *page, const uint8_t key[OBT_SIGN_KEY_BYTES], int64_t ahead_s);
/* Admission process: maps OBS_POOL_PAGE_FD and closes it. NULL: errno. */
const struct obs_pool_page *obs_pool_page_adopt(void);

#endif
