/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The pool as sessions see it: takes their tickets to the server's ledger (reservations.h) and gives
 * them their devices. Loop's thread only. Works without a pool too: then no ticket comes.
 */
#ifndef OBS_LEASE_H
#define OBS_LEASE_H

#include "server/supervisor/super.h"

/*
 * Chooses the server's incarnation and makes the page for admission. Does nothing the second time.
 * False: no memory, or no random bytes; errno.
 */
bool obs_lease_open(struct obs_super *super);
/*
 * Enters the session of handoff->ticket, which admission has checked, and fills in handoff->place.
 * OB_ERR_NONE: *ret is held until obs_lease_drop. Else *ret_cause is for the client, and the refusal
 * is counted.
 */
enum ob_err obs_lease_take(struct obs_super *super, struct obs_handoff *handoff,
	struct obs_reservation **ret, struct ob_cause *ret_cause);
/*
 * A session, or a connection that waits for one, no longer needs the reservation. page: of the
 * worker, whose charges are given back; NULL: it had none. reservation may be NULL.
 */
void obs_lease_drop(struct obs_super *super, struct obs_reservation *reservation,
	const struct obs_stats_page *page);
struct obs_reservation_time obs_lease_now(void);
/* Something is to be reported to the balancers now, not with the next heartbeat. */
void obs_lease_changed(struct obs_super *super);
/* Counts a refusal that admission reports: enum obs_ticket_refusal, unchecked. */
void obs_lease_refused(struct obs_super *super, uint32_t why);

#endif
