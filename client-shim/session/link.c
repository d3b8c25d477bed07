/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/session/link.h"

#include "base/log.h"
#include "base/opt.h"
#include "client-shim/session/server.h"

struct memory_state {
	bool kept;
	char key[OBT_LINK_KEY_MAX];
	struct obt_link_memory recalled;
};

static OBC_PER_SERVER struct memory_state memory_first;
#define memory OBC_HERE(memory_first)

void obc_link_begin(const struct obt_url *url, const struct obt_stream *stream)
{
	struct ob_cause cause;

	obc_link_forget();
	if (!ob_opt_on(OB_OPT_LINKMEMORY) || !obt_link_key(url, stream, memory.key))
		return;
	memory.kept = true;
	if (obt_link_read(memory.key, &memory.recalled, &cause))
		ob_debug("nothing is remembered of the link: %s", cause.text);
}

bool obc_link_kept(void)
{
	return memory.kept;
}

const struct obt_link_memory *obc_link_recalled(void)
{
	return &memory.recalled;
}

void obc_link_end(const struct obt_link_memory *learned)
{
	struct obt_link_memory now = memory.recalled;
	struct ob_cause cause;
	bool any = false;

#define X(member, name, min, max)             \
	if (learned->member) {                \
		now.member = learned->member; \
		any = true;                   \
	}
	OBT_LINK_LIST(X)
#undef X
	if (memory.kept && any && obt_link_write(memory.key, &now, &cause))
		ob_debug("what was measured of the link is not kept: %s", cause.text);
}

void obc_link_forget(void)
{
	memory.kept = false;
	memory.recalled = (struct obt_link_memory){ 0 };
}
