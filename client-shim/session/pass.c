/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/session/pass.h"

#include "client-shim/session/pool.h"
#include "loadbalancer/ticket_text.h"
#include "transport/path.h"

_Static_assert(OBP_HELLO_TICKET == OBP_TICKET_MAX, "a hello has room for every ticket");

enum ob_err obc_pass_show(const struct obt_stream *stream, const struct obt_url *url,
	struct obp_hello *hello, struct ob_cause *ret_cause)
{
	enum ob_err err = obl_ticket_find(
		obc_pool_tickets(), url, hello->ticket, &hello->ticket_size, ret_cause);

	if (err == OB_ERR_NOT_FOUND)
		return OB_ERR_NONE;
	if (err || stream->tls || obt_path_local(stream))
		return err;
	hello->ticket_size = 0;
	return ob_cause_set(ret_cause, OB_ERR_DENIED,
		"it is another machine and not tls://: OUTBOARD_TICKET is not sent there in clear");
}
