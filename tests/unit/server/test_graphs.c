/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Graphs over the null driver: what a client may say of them, and what ends its session. */
#include "tests/unit/server/peer.h"

#define GRAPH 0x3000000000000003ull

static struct server server;
static struct peer peer;

static void begin(void)
{
	server_start(&server, NULL);
	peer_session(&peer, &server);
	peer_use_context(&peer, 0, 1);
}

static void end(void)
{
	peer_close(&peer);
	CHECK_INT(server_stop(&server), 0);
}

static void graph_begin(uint64_t id)
{
	const struct obp_graph_begin_req req = { .graph = id };

	peer_call(&peer, 0, OBP_OP_GRAPH_BEGIN, &req, sizeof req);
}

/* An empty node with one dependency, or with none. */
struct empty {
	struct obp_graph_empty_req req;
	uint32_t deps[2];
};

static struct empty empty_of(uint64_t graph, uint32_t node, uint32_t n_deps, uint32_t dep)
{
	return (struct empty){ .req = { .graph = graph, .node = node, .n_deps = n_deps },
		.deps = { dep } };
}

static void empty_add(uint64_t graph, uint32_t node, uint32_t n_deps, uint32_t dep)
{
	const struct empty body = empty_of(graph, node, n_deps, dep);

	peer_call(&peer, 0, OBP_OP_GRAPH_EMPTY, &body, sizeof body.req + (n_deps ? 8 : 0));
}

static uint32_t make(uint64_t graph, uint32_t nodes)
{
	const struct obp_graph_make_req req = { .graph = graph, .nodes = nodes };

	peer_call(&peer, 0, OBP_OP_GRAPH_MAKE, &req, sizeof req);
	return peer_reply(&peer)->result;
}

static void launch(uint64_t graph)
{
	const struct obp_graph_launch_req req = { .graph = graph };

	peer_call(&peer, 0, OBP_OP_GRAPH_LAUNCH, &req, sizeof req);
}

static void drop(uint64_t graph)
{
	const struct obp_graph_drop_req req = { .graph = graph };

	peer_call(&peer, 0, OBP_OP_GRAPH_DROP, &req, sizeof req);
}

TEST(a_graph_is_made_launched_and_dropped)
{
	begin();
	graph_begin(GRAPH);
	empty_add(GRAPH, 0, 0, 0);
	empty_add(GRAPH, 1, 1, 0);
	CHECK_INT(make(GRAPH, 2), CUDA_SUCCESS);
	launch(GRAPH);
	CHECK_INT(peer_ping(&peer, 0), CUDA_SUCCESS);
	drop(GRAPH);
	drop(GRAPH); /* a client may drop what ended with its context */
	CHECK_INT(peer_ping(&peer, 0), CUDA_SUCCESS);
	launch(GRAPH);
	CHECK_INT(peer_ping(&peer, 0), CUDA_ERROR_INVALID_HANDLE);
	graph_begin(GRAPH);
	CHECK_INT(make(GRAPH, 0), CUDA_SUCCESS);
	end();
}

TEST(a_graph_ends_with_its_context)
{
	const struct obp_ctx_destroy_req req = { .ctx = 1 };

	begin();
	graph_begin(GRAPH);
	CHECK_INT(make(GRAPH, 0), CUDA_SUCCESS);
	peer_call(&peer, 0, OBP_OP_CTX_DESTROY, &req, sizeof req);
	launch(GRAPH);
	CHECK_INT(peer_ping(&peer, 0), CUDA_ERROR_INVALID_HANDLE);
	end();
}

/* An address that is not the session's is an error of the graph, and no later node is added. */
TEST(addresses_outside_of_the_session)
{
	const struct obp_graph_fill_req fill = {
		.graph = GRAPH, .dst = 0x1000, .width = 16, .height = 1, .element = 4, .node = 1
	};
	const struct obp_graph_copy_req copy = { .graph = GRAPH + 1,
		.dst = 0x1000,
		.src = 0x2000,
		.dst_pitch = 64,
		.src_pitch = 64,
		.width = 64,
		.height = 1,
		.depth = 1 };

	begin();
	graph_begin(GRAPH);
	empty_add(GRAPH, 0, 0, 0);
	peer_call(&peer, 0, OBP_OP_GRAPH_FILL, &fill, sizeof fill);
	empty_add(GRAPH, 2, 0, 0);
	CHECK_INT(make(GRAPH, 3), CUDA_ERROR_INVALID_VALUE);
	graph_begin(GRAPH + 1);
	peer_call(&peer, 0, OBP_OP_GRAPH_COPY, &copy, sizeof copy);
	CHECK_INT(make(GRAPH + 1, 1), CUDA_ERROR_INVALID_VALUE);
	end();
}

/* ---- conditions ---- */

static uint64_t condition(uint64_t graph)
{
	const struct obp_graph_condition_req req = { .graph = graph, .start = 1 };

	peer_call(&peer, 0, OBP_OP_GRAPH_CONDITION, &req, sizeof req);
	CHECK_INT(peer_reply(&peer)->result, CUDA_SUCCESS);
	return ((const struct obp_graph_condition_rep *)peer.item.body)->handle;
}

static void conditional_add(uint64_t graph, uint32_t node, uint64_t handle, uint32_t bodies)
{
	const struct obp_graph_conditional_req req = {
		.graph = graph, .handle = handle, .node = node, .type = 2, .bodies = bodies
	};

	peer_call(&peer, 0, OBP_OP_GRAPH_CONDITIONAL, &req, sizeof req);
}

static void body_enter(uint64_t graph, uint32_t node, uint32_t branch)
{
	const struct obp_graph_body_req req = { .graph = graph, .node = node, .branch = branch };

	peer_call(&peer, 0, OBP_OP_GRAPH_BODY, &req, sizeof req);
}

TEST(bodies_are_filled_one_after_the_other)
{
	uint64_t handle;

	begin();
	graph_begin(GRAPH);
	handle = condition(GRAPH);
	empty_add(GRAPH, 0, 0, 0);
	conditional_add(GRAPH, 1, handle, 2);
	body_enter(GRAPH, 1, 0);
	empty_add(GRAPH, 2, 0, 0);
	empty_add(GRAPH, 3, 1, 2);
	body_enter(GRAPH, 1, 1);
	empty_add(GRAPH, 4, 0, 0);
	CHECK_INT(make(GRAPH, 5), CUDA_SUCCESS);
	launch(GRAPH);
	CHECK_INT(peer_ping(&peer, 0), CUDA_SUCCESS);
	condition(GRAPH); /* of a graph that is made: for its next executable graph */
	drop(GRAPH);
	CHECK_INT(peer_ping(&peer, 0), CUDA_SUCCESS);
	end();
}

TEST(more_conditions_than_a_graph_may_have)
{
	const struct obp_graph_condition_req req = { .graph = GRAPH };

	begin();
	graph_begin(GRAPH);
	for (uint32_t i = 0; i < OBP_GRAPH_CONDITIONS_MAX; i++)
		condition(GRAPH);
	peer_call(&peer, 0, OBP_OP_GRAPH_CONDITION, &req, sizeof req);
	CHECK_INT(peer_reply(&peer)->result, CUDA_ERROR_OUT_OF_MEMORY);
	end();
}

/* A graph needs no context, but its nodes and conditions do. */
TEST(nodes_without_a_context)
{
	struct obp_graph_condition_req condition_req = { .graph = GRAPH };
	struct obp_graph_fill_req fill = { .graph = GRAPH, .width = 16, .height = 1, .element = 4 };
	struct obp_graph_copy_req copy = { .graph = GRAPH + 1,
		.dst_pitch = 64,
		.src_pitch = 64,
		.width = 64,
		.height = 1,
		.depth = 1 };
	const struct obp_mem_alloc_plain_req alloc = { .size = 4096 };

	begin();
	peer_call(&peer, 0, OBP_OP_MEM_ALLOC_PLAIN, &alloc, sizeof alloc);
	CHECK_INT(peer_reply(&peer)->result, CUDA_SUCCESS);
	fill.dst = copy.dst = copy.src =
		((const struct obp_mem_alloc_plain_rep *)peer.item.body)->addr;
	peer_use_context(&peer, 0, 0);
	graph_begin(GRAPH);
	peer_call(&peer, 0, OBP_OP_GRAPH_CONDITION, &condition_req, sizeof condition_req);
	CHECK_INT(peer_reply(&peer)->result, CUDA_ERROR_INVALID_CONTEXT);
	peer_call(&peer, 0, OBP_OP_GRAPH_FILL, &fill, sizeof fill);
	CHECK_INT(make(GRAPH, 1), CUDA_ERROR_INVALID_CONTEXT);
	graph_begin(GRAPH + 1);
	peer_call(&peer, 0, OBP_OP_GRAPH_COPY, &copy, sizeof copy);
	CHECK_INT(make(GRAPH + 1, 1), CUDA_ERROR_INVALID_CONTEXT);
	end();
}

/* ---- what ends the session ---- */

/* A conditional node of a graph with one condition, or with none. */
static void fatal_conditional(bool known, uint64_t handle, uint32_t bodies)
{
	struct obp_graph_conditional_req req = {
		.graph = GRAPH, .handle = handle, .bodies = bodies
	};

	begin();
	graph_begin(GRAPH);
	if (known)
		req.handle += condition(GRAPH);
	peer_call_fatal(&peer, OBP_OP_GRAPH_CONDITIONAL, &req, sizeof req);
	CHECK(bodies > OBP_GRAPH_BODIES_MAX || strstr(peer.got.text, "conditional"));
	end();
}

TEST(conditional_nodes_with_foreign_handles)
{
	fatal_conditional(false, 0, 1);
	fatal_conditional(true, 8, 1);
	fatal_conditional(true, 0, 0);
	fatal_conditional(true, 0, OBP_GRAPH_BODIES_MAX + 1);
}

/* Entered after the conditional node `node` of a graph with one, which has two bodies. */
static void fatal_body(uint32_t node, uint32_t branch)
{
	const struct obp_graph_body_req req = { .graph = GRAPH, .node = node, .branch = branch };

	begin();
	graph_begin(GRAPH);
	empty_add(GRAPH, 0, 0, 0);
	conditional_add(GRAPH, 1, condition(GRAPH), 2);
	peer_call_fatal(&peer, OBP_OP_GRAPH_BODY, &req, sizeof req);
	CHECK(strstr(peer.got.text, "no such body"));
	end();
}

TEST(bodies_that_do_not_exist)
{
	fatal_body(0, 0);
	fatal_body(1, 2);
	fatal_body(2, 0);
	fatal_body(UINT32_MAX, 0);
}

TEST(dependencies_between_bodies)
{
	const struct empty outside = empty_of(GRAPH, 3, 1, 0), beside = empty_of(GRAPH, 3, 1, 2);

	for (int i = 0; i < 2; i++) {
		begin();
		graph_begin(GRAPH);
		empty_add(GRAPH, 0, 0, 0);
		conditional_add(GRAPH, 1, condition(GRAPH), 2);
		body_enter(GRAPH, 1, 0);
		empty_add(GRAPH, 2, 0, 0);
		body_enter(GRAPH, 1, 1);
		peer_call_fatal(
			&peer, OBP_OP_GRAPH_EMPTY, i ? &beside : &outside, sizeof beside.req + 8);
		end();
	}
}

static void fatal_empty(uint32_t before, uint32_t node, uint32_t n_deps, uint32_t dep)
{
	const struct empty body = empty_of(GRAPH, node, n_deps, dep);

	begin();
	graph_begin(GRAPH);
	for (uint32_t i = 0; i < before; i++)
		empty_add(GRAPH, i, 0, 0);
	peer_call_fatal(&peer, OBP_OP_GRAPH_EMPTY, &body, sizeof body.req + (n_deps ? 8 : 0));
	end();
}

TEST(nodes_out_of_order)
{
	fatal_empty(0, 1, 0, 0);
	fatal_empty(2, 1, 0, 0);
	fatal_empty(0, UINT32_MAX, 0, 0);
}

TEST(dependencies_on_later_nodes)
{
	fatal_empty(0, 0, 1, 0);
	fatal_empty(2, 2, 1, 2);
	fatal_empty(2, 2, 1, UINT32_MAX);
}

TEST(more_dependencies_than_a_record_may_have)
{
	fatal_empty(1, 1, OBP_GRAPH_DEPS_MAX + 1, 0);
}

TEST(an_id_that_is_in_use)
{
	const struct obp_graph_begin_req req = { .graph = GRAPH };
	const struct obp_graph_begin_req far = { .graph = 0x30000000ffffffffull };

	begin();
	graph_begin(GRAPH);
	peer_call_fatal(&peer, OBP_OP_GRAPH_BEGIN, &req, sizeof req);
	end();
	begin();
	peer_call_fatal(&peer, OBP_OP_GRAPH_BEGIN, &far, sizeof far);
	end();
}

TEST(the_wrong_number_of_nodes)
{
	const struct obp_graph_make_req req = { .graph = GRAPH, .nodes = 2 };

	begin();
	graph_begin(GRAPH);
	empty_add(GRAPH, 0, 0, 0);
	peer_call_fatal(&peer, OBP_OP_GRAPH_MAKE, &req, sizeof req);
	end();
}

TEST(made_twice_or_launched_before)
{
	const struct obp_graph_make_req again = { .graph = GRAPH };
	const struct obp_graph_launch_req early = { .graph = GRAPH };

	begin();
	graph_begin(GRAPH);
	CHECK_INT(make(GRAPH, 0), CUDA_SUCCESS);
	peer_call_fatal(&peer, OBP_OP_GRAPH_MAKE, &again, sizeof again);
	end();
	begin();
	graph_begin(GRAPH);
	peer_call_fatal(&peer, OBP_OP_GRAPH_LAUNCH, &early, sizeof early);
	end();
}

TEST(changes_of_nodes_that_do_not_exist)
{
	const struct obp_graph_enable_req enable = { .graph = GRAPH, .node = 0 };
	const struct obp_graph_fill_req fill = {
		.graph = GRAPH, .dst = 0x1000, .width = 16, .height = 1, .element = 4, .node = 0
	};
	const struct obp_graph_depend_req depend = { .graph = GRAPH, .node = 0 };

	begin();
	graph_begin(GRAPH);
	empty_add(GRAPH, 0, 0, 0);
	CHECK_INT(make(GRAPH, 1), CUDA_SUCCESS);
	peer_call_fatal(&peer, OBP_OP_GRAPH_ENABLE, &enable, sizeof enable); /* an empty one */
	end();
	begin();
	graph_begin(GRAPH);
	empty_add(GRAPH, 0, 0, 0);
	CHECK_INT(make(GRAPH, 1), CUDA_SUCCESS);
	peer_call_fatal(&peer, OBP_OP_GRAPH_FILL, &fill, sizeof fill); /* of another kind */
	end();
	begin();
	graph_begin(GRAPH);
	peer_call_fatal(&peer, OBP_OP_GRAPH_DEPEND, &depend, sizeof depend);
	end();
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
