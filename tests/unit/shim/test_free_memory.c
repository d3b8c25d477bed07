/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* obc_free_memory: when an answer of the server may be used again. Time is the test's. */
#include "client-shim/session/free_memory.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/opt.h"
#include "client-shim/session/log.h"
#include "tests/test.h"

#define GIB (1ull << 30)

static _Atomic uint64_t now;
static uint64_t others;
static CUresult alive;

uint64_t __wrap_ob_clock_ns(void);
uint64_t __wrap_ob_clock_ns(void)
{
	return now;
}

uint64_t obc_log_others(const uint16_t *opcodes, size_t n)
{
	CHECK(opcodes && n);
	return others;
}

CUresult obc_log_alive(void)
{
	return alive;
}

static void begin(void)
{
	const struct obp_welcome welcome = { .free_memory = true, .n_devices = 2 };

	ob_opt_set(OB_OPT_LOCAL, true);
	obc_free_memory_forget();
	obc_free_memory_offered(&welcome);
	now = 1000 * OB_SECOND;
	others = 10;
	alive = CUDA_SUCCESS;
}

/* A call of the program, which takes 1 ms if the server must be asked. True: it must. */
static bool call(uint32_t device, uint64_t server_free, uint64_t number)
{
	struct obc_free_memory_mark mark;
	uint64_t bytes_free, total;

	if (obc_free_memory_get(device, &bytes_free, &total, &mark)) {
		CHECK_INT(bytes_free, server_free);
		CHECK_INT(total, 8 * GIB);
		return false;
	}
	now += OB_MS;
	obc_free_memory_put(device, &mark, server_free, 8 * GIB, number);
	return true;
}

/* The control thread asks for one device if it is time to. Returns the question's value, or 0. */
static uint64_t question(uint32_t device)
{
	uint64_t value, wait;
	uint32_t which;

	if (!obc_free_memory_due(now, &which, &value, &wait))
		return 0;
	CHECK_INT(which, device);
	return value;
}

static bool answer(uint32_t device, uint64_t value, uint64_t bytes_free, uint64_t received)
{
	const struct obp_message message = { .type = OBP_MSG_MEMORY,
		.value = value,
		.code = device,
		.received = received,
		.free_bytes = bytes_free,
		.total_bytes = 8 * GIB };

	return obc_free_memory_answer(&message);
}

TEST(an_answer_is_used_for_half_a_second)
{
	begin();
	CHECK(call(0, GIB, 5));
	for (uint64_t t = 1000 * OB_SECOND; t < 1000 * OB_SECOND + OBC_FREE_MEMORY_NS;
		t += 7 * OB_MS) {
		now = ob_clock_ns() > t ? ob_clock_ns() : t;
		CHECK(!call(0, GIB, 0));
	}
	now = 1000 * OB_SECOND + OBC_FREE_MEMORY_NS - 1;
	CHECK(!call(0, GIB, 0));
	now++; /* counted from before the call, not from its reply */
	CHECK(call(0, 2 * GIB, 6));
	CHECK(!call(0, 2 * GIB, 0));
	CHECK(call(1, 3 * GIB, 7)); /* another device */
	CHECK(!call(1, 3 * GIB, 0) && !call(0, 2 * GIB, 0));
}

TEST(a_change_of_this_process_ends_it)
{
	begin();
	CHECK(call(0, GIB, 5));
	others++;
	CHECK(call(0, 2 * GIB, 7));
	CHECK(!call(0, 2 * GIB, 0));
}

/* A thread's change while another thread's call is under way. */
TEST(a_change_during_the_call)
{
	struct obc_free_memory_mark mark;
	uint64_t bytes_free, total;

	begin();
	CHECK(!obc_free_memory_get(0, &bytes_free, &total, &mark));
	others++;
	obc_free_memory_put(0, &mark, GIB, 8 * GIB, 5);
	CHECK(call(0, 2 * GIB, 6));
}

/* Of two calls at the same time the earlier one's answer may be put last. */
TEST(an_older_answer_replaces_no_newer_one)
{
	struct obc_free_memory_mark first, second;
	uint64_t bytes_free, total;

	begin();
	CHECK(!obc_free_memory_get(0, &bytes_free, &total, &first));
	now += OB_MS;
	CHECK(!obc_free_memory_get(0, &bytes_free, &total, &second));
	obc_free_memory_put(0, &second, 2 * GIB, 8 * GIB, 6);
	obc_free_memory_put(0, &first, GIB, 8 * GIB, 5);
	CHECK(!call(0, 2 * GIB, 0));
}

TEST(one_call_asks_nothing)
{
	begin();
	CHECK(call(0, GIB, 5));
	CHECK(!question(0));
	now += OBC_FREE_MEMORY_LOOP_NS;
	CHECK(call(0, GIB, 6)); /* too late to be a loop */
	CHECK(!question(0));
}

TEST(a_loop_makes_one_round_trip)
{
	unsigned trips = 0;

	begin();
	for (unsigned i = 0; i < 100000; i++) {
		uint64_t value = question(0);

		if (value)
			CHECK(answer(0, value, GIB, 5));
		trips += call(0, GIB, 5);
		now += OB_MS;
	}
	CHECK_INT(trips, 1);
}

/* Once a second is a loop too: the questions continue between the calls. */
TEST(a_slow_loop_makes_two_round_trips)
{
	unsigned trips = 0, questions = 0;

	begin();
	for (unsigned i = 0; i < 20; i++) {
		trips += call(0, GIB, 5);
		for (uint64_t end = now + OB_SECOND; now < end; now += 10 * OB_MS) {
			uint64_t value = question(0);

			questions += value != 0;
			if (value)
				CHECK(answer(0, value, GIB, 5));
		}
	}
	CHECK_INT(trips, 2);
	CHECK(questions >= 80 && questions <= 105);
}

TEST(questions_end_with_the_loop)
{
	uint64_t value, wait;
	uint32_t device;

	begin();
	CHECK(call(0, GIB, 5) && !call(0, GIB, 0));
	CHECK(question(0));
	CHECK(!obc_free_memory_due(now, &device, &value, &wait));
	CHECK_INT(wait, OBC_FREE_MEMORY_ASK_NS);
	now += OBC_FREE_MEMORY_ASK_NS;
	CHECK(question(0));
	now += OBC_FREE_MEMORY_LOOP_NS;
	CHECK(!obc_free_memory_due(now, &device, &value, &wait));
	CHECK(wait == OB_NEVER);
}

TEST(another_process_is_seen)
{
	uint64_t value;

	begin();
	CHECK(call(0, GIB, 5) && !call(0, GIB, 0));
	value = question(0);
	CHECK(answer(0, value, 3 * GIB, 5));
	CHECK(!call(0, 3 * GIB, 0));
	/* The age of an answer counts from its question, however late it is read. */
	now = value + OBC_FREE_MEMORY_NS - 1;
	CHECK(!call(0, 3 * GIB, 0));
	now++;
	CHECK(call(0, GIB, 6));
}

/* Answers that were read before, or during, a change of this process. */
TEST(answers_that_race_with_changes)
{
	uint64_t value;

	begin();
	CHECK(call(0, GIB, 5) && !call(0, GIB, 0));
	value = question(0);
	others++; /* an allocation, then the answer from before it */
	CHECK(answer(0, value, 4 * GIB, 5));
	CHECK(call(0, 2 * GIB, 7) && !call(0, 2 * GIB, 0));
	/* a question from before the call: older than what is known */
	CHECK(answer(0, value, 4 * GIB, 7));
	CHECK(!call(0, 2 * GIB, 0));
	now += OBC_FREE_MEMORY_ASK_NS;
	value = question(0);
	CHECK(value && answer(0, value, 4 * GIB, 6)); /* before the call had been accepted */
	CHECK(!call(0, 2 * GIB, 0));
	CHECK(answer(0, value, 4 * GIB, 7));
	CHECK(!call(0, 4 * GIB, 0));
	CHECK(answer(0, value, 5 * GIB, 7)); /* repeated */
	CHECK(!call(0, 4 * GIB, 0));
}

TEST(answers_without_a_question)
{
	uint64_t value;

	begin();
	CHECK(!answer(0, 1, GIB, 5));
	CHECK(call(0, GIB, 5) && !call(0, GIB, 0));
	CHECK(!answer(0, now, GIB, 5));
	value = question(0);
	CHECK(!answer(0, value + 1, GIB, 5));
	CHECK(!answer(0, 0, GIB, 5));
	CHECK(!answer(1, value, GIB, 5));
	CHECK(!answer(2, value, GIB, 5)); /* there are two devices */
	CHECK(!answer(UINT32_MAX, value, GIB, 5));
	CHECK(answer(0, value, GIB, 5));
}

static void never(const struct obp_welcome *welcome)
{
	obc_free_memory_forget();
	obc_free_memory_offered(welcome);
	for (uint64_t i = 0; i < 5; i++)
		CHECK(call(0, GIB, 5 + i));
	CHECK(!question(0) && !answer(0, 1, GIB, 5));
}

TEST(the_server_must_offer_it)
{
	begin();
	never(&(struct obp_welcome){ .n_devices = 2 });
}

TEST(it_can_be_switched_off)
{
	begin();
	ob_opt_set(OB_OPT_LOCAL, false);
	never(&(struct obp_welcome){ .n_devices = 2, .free_memory = true });
}

TEST(a_lost_session_is_told)
{
	struct obc_free_memory_mark mark;
	uint64_t bytes_free, total;

	begin();
	CHECK(call(0, GIB, 5) && !call(0, GIB, 0));
	alive = CUDA_ERROR_UNKNOWN;
	CHECK(!obc_free_memory_get(0, &bytes_free, &total, &mark));
}

static _Atomic bool stop;

static void *caller(void *unused)
{
	struct obc_free_memory_mark mark;
	uint64_t bytes_free, total;

	while (!stop)
		if (obc_free_memory_get(0, &bytes_free, &total, &mark))
			CHECK(bytes_free * 2 == total);
	return unused;
}

/* What was written together is read together. */
TEST(threads_that_read_and_write)
{
	struct obc_free_memory_mark mark = { .others = 10 };
	pthread_t threads[3];

	begin();
	for (int i = 0; i < 3; i++)
		CHECK(pthread_create(&threads[i], NULL, caller, NULL) == 0);
	for (uint64_t i = 1; i < 200000 / TEST_SLOWER; i++) {
		mark.now = ++now;
		obc_free_memory_put(0, &mark, i, 2 * i, 5);
	}
	stop = true;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
