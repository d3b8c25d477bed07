/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The arithmetic of ledgers and of tenants' usage. Pure functions on plain data; any thread.
 *
 * A device that is reserved exclusively counts as reserved completely. Amounts saturate: an error
 * of accounting can neither become a huge amount nor a negative one.
 */
#ifndef OBL_LEDGER_H
#define OBL_LEDGER_H

#include "loadbalancer/balancer/values.h"

/* An empty ledger of the server's devices. */
void obl_ledger_begin(
	const struct obl_known_server *server, uint64_t fence, struct obl_ledger *ret);
/* Takes over what is reserved on devices that both have. */
void obl_ledger_carry(struct obl_ledger *ledger, const struct obl_ledger *from);
/*
 * Adds a part of a reservation and increases the fence. False: a device is not in the ledger, or
 * does not have what is reserved; the ledger is undefined then.
 */
bool obl_ledger_add(struct obl_ledger *ledger, const struct obl_reservation *reservation,
	const struct obl_holding *part);
/*
 * Takes a part back and increases the fence. A part of another incarnation is not in the ledger,
 * which is unchanged then: false.
 */
bool obl_ledger_subtract(struct obl_ledger *ledger, const struct obl_reservation *reservation,
	const struct obl_holding *part);
/*
 * Adds a part without asking whether it fits and without a new fence, if it is of the ledger's
 * incarnation: for sums.
 */
void obl_ledger_count(struct obl_ledger *ledger, const struct obl_reservation *reservation,
	const struct obl_holding *part);
/* The device with this UUID; NULL: none. */
struct obl_ledger_device *obl_ledger_device(struct obl_ledger *ledger, const uint8_t uuid[16]);

/* What a part counts in its tenant's usage; `sessions` is 0, or 1 with `whole`. */
struct obl_usage obl_usage_of_part(
	const struct obl_reservation *reservation, const struct obl_holding *part, bool whole);
/* What is left of the reservation counts: all parts, and one session. */
struct obl_usage obl_usage_of_reservation(const struct obl_reservation *reservation);
/* Removes a part by its index. */
void obl_reservation_drop(struct obl_reservation *reservation, uint32_t part);

#endif
