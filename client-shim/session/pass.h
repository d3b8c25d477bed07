/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The tickets of OUTBOARD_TICKET, which `outboard run --pool` sets for the program and all its
 * processes: pairs of a server's address, one blank and its ticket in hexadecimal, with commas
 * between them,
 *
 *     tls://a.example:14800 4f425431...,tls://b.example:14800 4f425431...
 *
 * The address is as in OUTBOARD_SERVER, letter for letter. No state; any thread.
 */
#ifndef OBC_PASS_H
#define OBC_PASS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cause.h"
#include "protocol/control.h"
#include "transport/stream.h"

/*
 * Finds the ticket for the server at this address. list: the text of OUTBOARD_TICKET; NULL: there is
 * none. OB_ERR_NOT_FOUND: none for this address. OB_ERR_ARGUMENT: *ret_cause says what is wrong with
 * it.
 */
enum ob_err obc_pass_find(const char *list, const char *url, uint8_t ret_ticket[OBP_HELLO_TICKET],
	uint32_t *ret_size, struct ob_cause *ret_cause);
/*
 * Puts the ticket for this server, if there is one, into a hello on this stream. OB_ERR_DENIED: the
 * stream would carry it in clear to another machine. OB_ERR_ARGUMENT as above.
 */
enum ob_err obc_pass_show(const struct obt_stream *stream, const char *url, struct obp_hello *hello,
	struct ob_cause *ret_cause);

#endif
