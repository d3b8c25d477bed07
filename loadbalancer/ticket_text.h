/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The text of OUTBOARD_TICKET, which `outboard run --pool` sets for the program and all its
 * processes: pairs of a server's address, one blank and its ticket in hexadecimal, with commas
 * between them,
 *
 *     tls://a.example:14800 4f425431...,tls://b.example:14800 4f425431...
 *
 * loadbalancer/access.h writes it. No state; any thread.
 */
#ifndef OBL_TICKET_TEXT_H
#define OBL_TICKET_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cause.h"
#include "protocol/ticket.h"
#include "transport/url.h"

/*
 * Finds the ticket for a server. list NULL: there is none. OB_ERR_NOT_FOUND: none for this address.
 * OB_ERR_ARGUMENT: *ret_cause says what is wrong with the text. The ticket itself is not looked at.
 */
enum ob_err obl_ticket_find(const char *list, const struct obt_url *url,
	uint8_t ret_ticket[OBP_TICKET_MAX], uint32_t *ret_size, struct ob_cause *ret_cause);
/* What a ticket says. Its signature is not verified: only a server can. False: it says nothing. */
bool obl_ticket_read(const uint8_t *ticket, size_t size, struct obp_ticket *ret);

#endif
