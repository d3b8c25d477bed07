/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A ticket: a balancer's statement that a reservation may use devices of one server
 * (docs/adr/0046-pool.md). This is the statement alone, one msgpack map; transport/sign.h signs it.
 * Unknown keys are skipped. No state; any thread.
 */
#ifndef OBP_TICKET_H
#define OBP_TICKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "protocol/control.h"

#define OBP_RESERVATION_BYTES 16u /* of a reservation's id: random, made by the client */
#define OBP_POOL_NAME_MAX     64u /* bytes of a server's, tenant's or balancer's name, NUL included */
#define OBP_TICKET_BODY_MAX   1024u /* bytes of the map */
/* bytes of a signed ticket: transport/sign.h adds a mark and the signature */
#define OBP_TICKET_MAX        (OBP_TICKET_BODY_MAX + 80u)
#define OBP_TICKET_SKEW_S \
	30u /* difference of the clocks of balancer and server that is tolerated */

/*
 * In a refusal of a ticket: the reservation has ended by itself, and the client may ask the pool for
 * another one.
 */
#define OBP_POOL_ASK_AGAIN "ask the pool again"

struct obp_ticket {
	uint8_t reservation[OBP_RESERVATION_BYTES];
	char server[OBP_POOL_NAME_MAX];
	uint64_t incarnation; /* of the server: another one refuses the ticket */
	/* increases with each transaction on the server's ledger */
	uint64_t fence;
	char tenant[OBP_POOL_NAME_MAX];
	uint64_t issued, expires; /* seconds since 1970; `expires` is for the first session only */
	uint32_t linger_s; /* the reservation ends when it has had no session for this long */
	uint64_t memory;   /* bytes on each device; 0: all that a session may use */
	uint32_t share;    /* of each device's time, in millionths; OBP_SHARE_ALL: all */
	uint32_t priority; /* 1 low, 2 normal, 3 high */
	bool exclusive;    /* nobody else may use the devices */
	uint32_t n_devices;
	uint8_t devices[OBP_DEVICE_MAX][16]; /* UUIDs, in the order that the program sees */
};

/* Appends the map. False: the buffer is full. */
bool obp_ticket_encode(const struct obp_ticket *ticket, struct ob_buf *body);
/* OB_ERR_PROTOCOL: not such a map, a value out of bounds, no device, or an essential key is missing. */
enum ob_err obp_ticket_decode(const void *body, size_t size, struct obp_ticket *ret);

#endif
