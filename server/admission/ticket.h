/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Checks the ticket of a hello (docs/adr/0046-pool.md): who has signed it, which server and which
 * incarnation of it it is for, and that it is not from the future. Whether it has expired, and
 * whether the devices have room, only counts for the first session of its reservation: the
 * supervisor knows that (server/supervisor/reservations.h). Admission process; no state.
 */
#ifndef OBS_TICKET_H
#define OBS_TICKET_H

#include <stddef.h>
#include <stdint.h>

#include "base/cause.h"
#include "server/common/identity.h"
#include "server/common/pool_page.h"

/*
 * now_s: seconds since 1970. *ret_ahead_s: how much the balancer's clock was ahead of this
 * server's. OB_ERR_DENIED, _PROTOCOL: *ret_cause is for the client, *ret_why for
 * the counters.
 */
enum ob_err obs_ticket_check(const struct obs_pool_page *page, const uint8_t *sealed, size_t size,
	uint64_t now_s, struct obp_ticket *ret, int64_t *ret_ahead_s,
	enum obs_ticket_refusal *ret_why, struct ob_cause *ret_cause);
/* Makes the client the ticket's tenant. Its limits become those of the ticket where they are lower. */
void obs_ticket_identify(const struct obp_ticket *ticket, struct obs_identity *identity);

#endif
