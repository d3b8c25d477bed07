/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Slabs: memory of a driver without virtual memory management. */
#include "base/opt.h"
#include "tests/unit/server/driver_session.h"

static uint32_t readable(uint64_t addr, uint64_t size)
{
	struct obp_read_req read = { .src = addr, .size = size };

	peer_call(&peer, 0, OBP_OP_READ, &read, sizeof read);
	return peer_reply(&peer)->result;
}

static uint32_t placed(uint64_t addr, uint64_t size)
{
	struct obp_mem_alloc_req req = { .addr = addr, .size = size };

	peer_call(&peer, 0, OBP_OP_MEM_ALLOC, &req, sizeof req);
	return peer_ping(&peer, 0);
}

static uint32_t freed(uint64_t addr)
{
	struct obp_mem_free_req req = { .addr = addr };

	peer_call(&peer, 0, OBP_OP_MEM_FREE, &req, sizeof req);
	return peer_ping(&peer, 0);
}

/* Also waits for work. */
static uint32_t freed_fenced(uint64_t addr)
{
	struct obp_mem_free_req req = { .addr = addr, .fence = 1 };

	peer_call(&peer, 0, OBP_OP_MEM_FREE, &req, sizeof req);
	return peer_ping(&peer, 0);
}

static uint32_t slab_freed(uint64_t addr)
{
	struct obp_mem_slab_free_req req = { .addr = addr };

	peer_call(&peer, 0, OBP_OP_MEM_SLAB_FREE, &req, sizeof req);
	return peer_ping(&peer, 0);
}

/* Asks for a slab in a context; *ret: where it is. Returns the result. */
static uint32_t slab(uint64_t ctx, uint64_t size, uint64_t least, struct obp_range *ret)
{
	struct obp_mem_slab_req req = { .ctx = ctx, .size = size, .least = least };
	const struct obp_mem_slab_rep *rep;

	peer_call(&peer, 0, OBP_OP_MEM_SLAB, &req, sizeof req);
	peer_reply(&peer);
	rep = (const struct obp_mem_slab_rep *)peer.item.body;
	if (peer.item.reply.result == 0)
		*ret = (struct obp_range){ rep->addr, rep->bytes };
	return peer.item.reply.result;
}

/* Any driver, with the calls for virtual memory management missing, and these faults. */
static void begin_without_vmm(const char *faults)
{
	char all[128];

	if (!ob_opt_on(OB_OPT_GRANT))
		TEST_SKIP("OUTBOARD_OPT turns slabs off");
	snprintf(all, sizeof all, "cuMemAddressReserve:*=801%s", faults);
	server_start_env(&server, NULL, "OUTBOARD_FAULT", all);
	peer_session_slabs(&peer, &server);
	peer_use_context(&peer, 0, 1);
	CHECK(!peer.got.welcome.vmm);
}

TEST(slabs)
{
	struct obp_range first, more = { 0 };

	begin_without_vmm("");
	CHECK_INT(peer.got.welcome.slabs, OBP_SLAB_MAX);
	first = peer.got.welcome.devices[0].range;
	CHECK_INT(peer.got.welcome.devices[0].grant, first.size);
	CHECK(first.base && first.size >= 32 << 20);
	CHECK_INT(placed(first.base, 1000), 0);
	CHECK_INT(readable(first.base + 999, 1), 0);
	CHECK_INT(readable(first.base, 1025), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(freed(first.base), 0);
	CHECK_INT(readable(first.base, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(slab(1, OBP_SLAB_MAX, 1000, &more), 0);
	CHECK_INT(more.size, OBP_SLAB_MAX);
	CHECK_INT(placed(more.base, more.size), 0);
	CHECK_INT(readable(more.base + more.size - 1, 1), 0);
	/* A slab is returned with all that is in it, and its context takes the others with it. */
	CHECK_INT(slab_freed(more.base), 0);
	CHECK_INT(readable(more.base, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(placed(first.base, 1000), 0);
	peer_call(&peer, 0, OBP_OP_CTX_DESTROY, &(struct obp_ctx_destroy_req){ .ctx = 1 },
		sizeof(struct obp_ctx_destroy_req));
	CHECK_INT(readable(first.base, 1), CUDA_ERROR_INVALID_VALUE);
	driver_end();
}

TEST(slabs_and_a_hostile_client)
{
	struct obp_range first, more;
	uint64_t end_of;

	begin_without_vmm("");
	first = peer.got.welcome.devices[0].range;
	end_of = first.base + first.size;
	CHECK_INT(placed(first.base + 512, 512), 0);
	CHECK_INT(placed(first.base, 513), CUDA_ERROR_INVALID_VALUE); /* reaches into the first */
	CHECK_INT(placed(first.base + 1, 16), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(placed(end_of - 512, 513), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(placed(end_of, 512), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(placed(0, 512), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(readable(first.base, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(readable(first.base + 512, first.size), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(freed(first.base), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(freed(first.base + 513), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(slab_freed(first.base + 512), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(slab_freed(0), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(slab(1, 0, 0, &more), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(slab(1, 1000, 0, &more), CUDA_ERROR_INVALID_VALUE); /* no whole page */
	CHECK_INT(slab(1, OBP_SLAB_PAGE, OBP_SLAB_PAGE + 1, &more), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(readable(first.base + 512, 512), 0);
	peer_call_fatal(&peer, OBP_OP_MEM_SLAB,
		&(struct obp_mem_slab_req){ .ctx = 99, .size = OBP_SLAB_PAGE },
		sizeof(struct obp_mem_slab_req));
	driver_end();
	begin_without_vmm("");
	peer_call_fatal(&peer, OBP_OP_MEM_SLAB,
		&(struct obp_mem_slab_req){ .ctx = 1, .size = OBP_SLAB_MAX + OBP_SLAB_PAGE },
		sizeof(struct obp_mem_slab_req));
	driver_end();
}

/* A slab is returned as a whole only, so most of the device stays outside slabs. */
TEST(slabs_take_a_quarter_of_the_device)
{
	uint64_t total, all, small = 2 * OBP_SLAB_PAGE;
	struct obp_range more = { 0 };
	uint32_t result;

	begin_without_vmm("");
	total = peer.got.welcome.devices[0].total_mem;
	all = peer.got.welcome.devices[0].range.size;
	/* the last ones are smaller than what is asked for */
	while ((result = slab(1, OBP_SLAB_MAX, OBP_SLAB_PAGE, &more)) == 0)
		all += more.size;
	CHECK_INT(result, CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_INT(all, total / 4);
	CHECK_INT(slab_freed(more.base), 0);
	all -= more.size;
	CHECK_INT(slab(1, small, small, &more), 0);
	CHECK_INT(more.size, small);
	CHECK_INT(slab(1, total / 4 - all, total / 4 - all, &more), CUDA_ERROR_OUT_OF_MEMORY);
	/* a single allocation is none of a slab */
	CHECK(driver_alloc_plain(total / 4) != 0);
	driver_end();
}

/* As cuMemFree does for an allocation of its own: work in both contexts may use the memory. */
TEST(a_free_waits_for_the_slab_s_context)
{
	uint64_t first;

	begin_without_vmm(",cuCtxSynchronize:2=700,cuCtxSynchronize:3=719");
	first = peer.got.welcome.devices[0].range.base;
	CHECK_INT(placed(first, 512), 0);
	CHECK_INT(freed_fenced(first), 0); /* the first wait; they are the same context */
	CHECK_INT(placed(first, 512), 0);
	peer_call(&peer, 0, OBP_OP_CTX_CREATE, &(struct obp_ctx_create_req){ .ctx = 1000 },
		sizeof(struct obp_ctx_create_req));
	peer_use_context(&peer, 0, 1000);
	CHECK_INT(freed_fenced(first), 700);
	driver_end();
	begin_without_vmm(",cuCtxSynchronize:2=700");
	first = peer.got.welcome.devices[0].range.base;
	peer_call(&peer, 0, OBP_OP_CTX_CREATE, &(struct obp_ctx_create_req){ .ctx = 1000 },
		sizeof(struct obp_ctx_create_req));
	peer_use_context(&peer, 0, 1000);
	CHECK_INT(placed(first, 512), 0);
	CHECK_INT(freed_fenced(first), 700); /* one wait in each context */
	driver_end();
}

/* A client that does not know slabs gets none; one with a range needs none. */
TEST(slabs_that_nobody_wants)
{
	struct obp_range more;

	server_start_env(&server, NULL, "OUTBOARD_FAULT", "cuMemAddressReserve:*=801");
	peer_session(&peer, &server);
	CHECK_INT(peer.got.welcome.slabs, 0);
	CHECK_INT(peer.got.welcome.devices[0].range.size, 0);
	CHECK_INT(slab(1, OBP_SLAB_PAGE, 1, &more), CUDA_ERROR_NOT_SUPPORTED);
	driver_end();
	server_start(&server, NULL);
	peer_session_slabs(&peer, &server);
	CHECK(peer.got.welcome.vmm);
	CHECK_INT(slab(1, OBP_SLAB_PAGE, 1, &more), CUDA_ERROR_NOT_SUPPORTED);
	driver_end();
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
