/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/session/times.h"

#include <string.h>

#include "base/clock.h"
#include "client-shim/session/server.h"
#include "protocol/obc_calls.h"

_Atomic bool obc_times_on;
static OBC_PER_SERVER bool offered_first;
#define offered OBC_HERE(offered_first)
static OBC_PER_SERVER _Atomic uint64_t sent_ns_first, received_ns_first, sent_number_first;
#define sent_ns     OBC_HERE(sent_ns_first)
#define received_ns OBC_HERE(received_ns_first)
#define sent_number OBC_HERE(sent_number_first)

void obc_times_offered(bool server_can)
{
	offered = server_can;
}

void obc_times_sent(uint64_t number)
{
	atomic_store_explicit(&sent_ns, ob_clock_ns(), memory_order_relaxed);
	atomic_store_explicit(&sent_number, number, memory_order_relaxed);
}

void obc_times_received(void)
{
	atomic_store_explicit(&received_ns, ob_clock_ns(), memory_order_relaxed);
}

static CUresult times_switch(int on)
{
	if (!offered)
		return CUDA_ERROR_NOT_SUPPORTED;
	obc_times_on = on != 0;
	return obc_call_op_times_switch(on != 0);
}

static void times_last(uint64_t *ret_sent_ns, uint64_t *ret_received_ns, uint64_t *ret_number)
{
	*ret_sent_ns = atomic_load_explicit(&sent_ns, memory_order_relaxed);
	*ret_received_ns = atomic_load_explicit(&received_ns, memory_order_relaxed);
	*ret_number = atomic_load_explicit(&sent_number, memory_order_relaxed);
}

static CUresult times_server(uint64_t first, uint32_t *ret_count, uint64_t *ret_times)
{
	return offered ? obc_call_op_times_read(first, ret_count, ret_times)
		       : CUDA_ERROR_NOT_SUPPORTED;
}

const void *obc_times_table(const CUuuid *id)
{
	static const struct obc_times_calls calls = { sizeof calls, times_switch, times_last,
		times_server };

	return memcmp(id->bytes, OBC_TIMES_ID, sizeof id->bytes) == 0 ? &calls : NULL;
}

_Static_assert(sizeof OBC_TIMES_ID == sizeof(CUuuid) + 1, "an id is sixteen bytes");
