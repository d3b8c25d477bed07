/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The engine with fake devices that fail on request: retries, breakers, moving work to another
 * device, sharing, cancelling. The fakes do no arithmetic; the test counts how often each item is
 * done.
 */
#include <time.h>

#include "base/clock.h"
#include "compute/engine/engine.h"
#include "tests/test.h"

struct fake {
	_Atomic int failures; /* number of further runs that fail */
	_Atomic int status;   /* the status with which they fail */
	_Atomic int ran, revived;
	_Atomic int millis; /* duration of a run */
	_Atomic int reported;
	const _Atomic int *after; /* a run waits until this is not 0 */
	bool revives;
	unsigned closed;
};

static void fake_close(void *self)
{
	((struct fake *)self)->closed++;
}

static int fake_revive(void *self, struct outboard_error *error)
{
	struct fake *f = self;

	f->revived++;
	return f->revives ? OUTBOARD_OK
			  : obv_fail(error, OUTBOARD_DEVICE, OUTBOARD_NO_ITEM, "still dead");
}

static const struct obv_backend_ops fake_ops = { .close = fake_close, .revive = fake_revive };

struct count_job {
	struct obv_job job;
	_Atomic int *done; /* how often each item was done */
	_Atomic int finished;
	uint64_t bad; /* this item is refused */
};

static _Atomic int meeting; /* devices that have not got a piece yet */

static int count_run(struct obv_job *job, struct obv_piece *piece, struct obv_device *device,
	struct outboard_error *error)
{
	struct count_job *c = (struct count_job *)job;
	struct fake *f = device->backend.self;
	bool goes_on;

	f->ran++;
	if (f->millis)
		let_pass((unsigned)f->millis * 1000, "a run's time");
	if (f->after)
		UNTIL(*f->after != 0);
	if (meeting > 0) {
		meeting--;
		UNTIL(meeting <= 0);
	}
	if (f->failures > 0) {
		f->failures--;
		return obv_fail(error, f->status, OUTBOARD_NO_ITEM, "told to fail");
	}
	for (uint64_t i = piece->first; i < piece->first + piece->count; i++) {
		if (i == c->bad)
			return obv_fail(error, OUTBOARD_ARGUMENT, i, "item %llu is bad",
				(unsigned long long)i);
		c->done[i]++;
	}
	goes_on = obv_job_progress(job, piece->index, 1);
	f->reported++;
	return goes_on ? OUTBOARD_OK : OUTBOARD_CANCELLED;
}

static const struct obv_job_ops count_ops = { .run = count_run };

static struct fake fakes[4];
static _Atomic int done[4096];

static struct outboard *open_fakes(unsigned n, struct outboard_options *o)
{
	struct outboard_options none = { .profile = "" };
	struct obv_backend b[4];
	struct outboard *context = NULL;

	o = o ? o : &none;
	o->profile = "";
	memset(done, 0, sizeof(done));
	for (unsigned i = 0; i < n; i++) {
		b[i] = (struct obv_backend){ .ops = &fake_ops,
			.self = &fakes[i],
			.kind = OUTBOARD_CPU,
			.units = 1,
			.operations = 15 };
		snprintf(b[i].name, sizeof(b[i].name), "fake%u", i);
	}
	CHECK_INT(obv_context_new(o, b, n, &context, NULL), OUTBOARD_OK);
	return context;
}

static int run_items(struct outboard *context, uint64_t items, uint64_t bad,
	const struct outboard_call *call, struct outboard_error *error)
{
	struct count_job *c =
		obv_job_new(context, sizeof(*c), &count_ops, OUTBOARD_OP_KZG, call, error);

	CHECK(c != NULL);
	c->done = done;
	c->bad = bad;
	CHECK_INT(obv_job_cut(&c->job, items, 1, true, 1, 1, error), OUTBOARD_OK);
	return obv_job_submit(&c->job, error);
}

static void pause_over(struct outboard *context, unsigned device)
{
	pthread_mutex_lock(&context->lock);
	context->device[device].breaker.until = 0;
	pthread_mutex_unlock(&context->lock);
}

static void check_each_once(uint64_t items)
{
	for (uint64_t i = 0; i < items; i++)
		CHECK_INT(done[i], 1);
}

static struct outboard_device device_of(struct outboard *context, unsigned i)
{
	struct outboard_device d;

	CHECK_INT(outboard_device_get(context, i, &d), OUTBOARD_OK);
	return d;
}

TEST(pieces_of_a_batch_run_once_on_several_devices)
{
	struct outboard_options o = { .strategy = OUTBOARD_EQUAL };
	struct outboard *context = open_fakes(3, &o);

	CHECK_INT(run_items(context, 1000, OUTBOARD_NO_ITEM, NULL, NULL), OUTBOARD_OK);
	check_each_once(1000);
	for (unsigned i = 0; i < 3; i++) {
		struct outboard_device d = device_of(context, i);

		CHECK(d.pieces > 0 && d.queued == 0);
	}
	CHECK_INT(run_items(context, 0, OUTBOARD_NO_ITEM, NULL, NULL), OUTBOARD_OK);
	outboard_close(context);
	CHECK_INT(fakes[0].closed + fakes[1].closed + fakes[2].closed, 3);
}

/*
 * Each piece waits until all devices have one. If the devices ran in sequence, it would wait
 * forever.
 */
TEST(devices_work_at_the_same_time)
{
	struct outboard_options o = { .strategy = OUTBOARD_EQUAL };
	struct outboard *context = open_fakes(4, &o);

	meeting = 4;
	CHECK_INT(run_items(context, 4, OUTBOARD_NO_ITEM, NULL, NULL), OUTBOARD_OK);
	CHECK_INT(meeting, 0);
	check_each_once(4);
	outboard_close(context);
}

TEST(a_failure_is_repeated_on_its_device)
{
	struct outboard_options o = { .backoff = 0.001 };
	struct outboard *context = open_fakes(1, &o);
	struct outboard_device d;

	fakes[0].failures = 2;
	fakes[0].status = OUTBOARD_DEVICE;
	CHECK_INT(run_items(context, 1, OUTBOARD_NO_ITEM, NULL, NULL), OUTBOARD_OK);
	check_each_once(1);
	d = device_of(context, 0);
	CHECK_INT(d.failures, 2);
	CHECK_INT(d.retries, 2);
	CHECK_INT(d.breaker, OUTBOARD_CLOSED);
	outboard_close(context);
}

TEST(a_device_that_keeps_failing_hands_over_and_rests)
{
	struct outboard_options o = { .backoff = 0.001,
		.breaker_failures = 3,
		.breaker_pause = 1000,
		.strategy = OUTBOARD_EQUAL };
	struct outboard *context = open_fakes(2, &o);
	struct outboard_ticket *ticket;
	struct outboard_call call = { .ticket = &ticket };
	struct outboard_error attempt;
	struct outboard_device d;

	fakes[0].failures = 1000;
	fakes[0].status = OUTBOARD_DEVICE;
	CHECK_INT(run_items(context, 100, OUTBOARD_NO_ITEM, &call, NULL), OUTBOARD_OK);
	CHECK_INT(outboard_wait(ticket, WAITING_LONG_S, NULL), OUTBOARD_OK);
	check_each_once(100);
	CHECK_INT(outboard_ticket_attempt(ticket, 0, &attempt), OUTBOARD_OK);
	CHECK_INT(attempt.device, 0);
	CHECK_INT(attempt.status, OUTBOARD_DEVICE);
	CHECK_STR(attempt.text, "told to fail");
	CHECK_INT(outboard_ticket_attempt(ticket, 3, &attempt), OUTBOARD_ARGUMENT);
	outboard_ticket_free(ticket);
	d = device_of(context, 0);
	CHECK_INT(d.breaker, OUTBOARD_OPEN);
	CHECK_INT(d.opened, 1);
	CHECK_INT(d.failures, 3);
	CHECK(d.moved_out > 0);
	/* The breaker is open: the device gets no work. */
	fakes[0].ran = 0;
	CHECK_INT(run_items(context, 10, OUTBOARD_NO_ITEM, NULL, NULL), OUTBOARD_OK);
	CHECK_INT(fakes[0].ran, 0);
	/*
	 * After the pause the device gets one piece as a trial. Its revival fails, and another
	 * device does the piece.
	 */
	pause_over(context, 0);
	memset(done, 0, sizeof(done));
	CHECK_INT(run_items(context, 2, OUTBOARD_NO_ITEM, NULL, NULL), OUTBOARD_OK);
	check_each_once(2);
	CHECK_INT(fakes[0].revived, 1);
	CHECK_INT(device_of(context, 0).opened, 2);
	/* The device works again. */
	pause_over(context, 0);
	fakes[0].failures = 0;
	fakes[0].revives = true;
	memset(done, 0, sizeof(done));
	CHECK_INT(run_items(context, 2, OUTBOARD_NO_ITEM, NULL, NULL), OUTBOARD_OK);
	check_each_once(2);
	CHECK_INT(device_of(context, 0).breaker, OUTBOARD_CLOSED);
	outboard_close(context);
}

TEST(all_devices_failing_are_all_named)
{
	struct outboard_options o = { .backoff = 0.001, .retries = 1 };
	struct outboard *context = open_fakes(2, &o);
	struct outboard_error error;

	fakes[0].failures = 1000;
	fakes[0].status = OUTBOARD_DEVICE;
	fakes[1].failures = 1000;
	fakes[1].status = OUTBOARD_NO_MEMORY;
	CHECK(run_items(context, 1, OUTBOARD_NO_ITEM, NULL, &error) != OUTBOARD_OK);
	CHECK(strstr(error.text, "told to fail") != NULL);
	CHECK(strstr(error.text, "no other device is left") != NULL);
	CHECK(device_of(context, 0).failures >= 1 && device_of(context, 1).failures == 1);
	outboard_close(context);
}

TEST(out_of_memory_goes_elsewhere_and_opens_no_breaker)
{
	struct outboard *context = open_fakes(2, NULL);
	struct outboard_call call = { .strategy = OUTBOARD_EQUAL + 1 };

	fakes[0].failures = 1000;
	fakes[0].status = OUTBOARD_NO_MEMORY;
	CHECK_INT(run_items(context, 50, OUTBOARD_NO_ITEM, &call, NULL), OUTBOARD_OK);
	check_each_once(50);
	CHECK_INT(device_of(context, 0).opened, 0);
	outboard_close(context);
}

TEST(a_mistake_of_the_caller_is_told_of_the_first_item)
{
	struct outboard_options o = { .strategy = OUTBOARD_EQUAL };
	struct outboard *context = open_fakes(3, &o);
	struct outboard_error error;

	for (unsigned round = 0; round < 20; round++) {
		CHECK_INT(run_items(context, 300, 7, NULL, &error), OUTBOARD_ARGUMENT);
		CHECK_INT(error.item, 7);
		CHECK_STR(error.text, "item 7 is bad");
	}
	CHECK_INT(device_of(context, 0).failures, 0);
	outboard_close(context);
}

TEST(queued_work_moves_from_hot_to_cold)
{
	struct outboard_options o = { .strategy = OUTBOARD_SINGLE, .balance_horizon = 0.5 };
	struct outboard *context = open_fakes(2, &o);
	struct outboard_ticket *ticket[40];
	unsigned moved = 0;

	/*
	 * All tickets are for device 0 at first, which waits until the other device has done
	 * something.
	 */
	fakes[0].after = &fakes[1].ran;
	for (unsigned i = 0; i < 40; i++) {
		struct outboard_call call = { .ticket = &ticket[i] };
		struct count_job *c =
			obv_job_new(context, sizeof(*c), &count_ops, OUTBOARD_OP_KZG, &call, NULL);

		CHECK(c && obv_job_pieces(&c->job, 1));
		c->done = done + i;
		c->bad = OUTBOARD_NO_ITEM;
		c->job.pieces[0].count = 1;
		c->job.pieces[0].size = c->job.pieces[0].times = 1;
		c->job.pieces[0].device = 0;
		CHECK_INT(obv_job_submit(&c->job, NULL), OUTBOARD_OK);
	}
	for (unsigned i = 0; i < 40; i++) {
		CHECK_INT(outboard_wait(ticket[i], WAITING_LONG_S, NULL), OUTBOARD_OK);
		outboard_ticket_free(ticket[i]);
		CHECK_INT(done[i], 1);
	}
	moved = (unsigned)device_of(context, 1).moved_in;
	CHECK(moved > 0);
	CHECK_INT(device_of(context, 0).moved_out, moved);
	CHECK_INT(device_of(context, 1).pieces + device_of(context, 0).pieces, 40);
	outboard_close(context);
}

struct told {
	_Atomic int progress, finished, status;
	double last;
	bool stop;
};

static int on_progress(void *arg, double share)
{
	struct told *t = arg;

	if (share < t->last)
		t->status = -1;
	t->last = share;
	t->progress++;
	return t->stop;
}

static void on_finished(void *arg, int status, const struct outboard_error *error)
{
	struct told *t = arg;

	t->finished++;
	t->status = status;
	if ((status == OUTBOARD_OK) != (error == NULL))
		t->status = -2;
}

TEST(callbacks_come_in_order_and_end)
{
	struct outboard *context = open_fakes(2, NULL);
	struct told t = { 0 };
	struct outboard_call call = { .progress = on_progress,
		.finished = on_finished,
		.arg = &t,
		.strategy = OUTBOARD_EQUAL + 1 };

	/*
	 * otherwise both devices may report at the end, which gives only one call of the callback
	 */
	fakes[0].after = &fakes[1].reported;
	CHECK_INT(run_items(context, 64, OUTBOARD_NO_ITEM, &call, NULL), OUTBOARD_OK);
	CHECK(t.progress >= 2 && t.last == 1);
	CHECK_INT(t.finished, 1);
	CHECK_INT(t.status, OUTBOARD_OK);
	t = (struct told){ .stop = true };
	fakes[1].reported = 0;
	CHECK_INT(run_items(context, 64, OUTBOARD_NO_ITEM, &call, NULL), OUTBOARD_CANCELLED);
	CHECK_INT(t.finished, 1);
	CHECK_INT(t.status, OUTBOARD_CANCELLED);
	outboard_close(context);
}

TEST(cancelling_drops_what_is_queued)
{
	struct outboard *context = open_fakes(1, NULL);
	struct outboard_ticket *a, *b;
	struct outboard_call call = { .ticket = &a }, other = { .ticket = &b };
	struct outboard_error error;
	_Atomic int gate = 0;

	fakes[0].after = &gate;
	CHECK_INT(run_items(context, 1, OUTBOARD_NO_ITEM, &call, NULL), OUTBOARD_OK);
	CHECK_INT(run_items(context, 1000, OUTBOARD_NO_ITEM, &other, NULL), OUTBOARD_OK);
	CHECK_INT(outboard_wait(b, 0, &error), OUTBOARD_TIMEOUT);
	CHECK_INT(outboard_wait(b, 0.02, &error), OUTBOARD_TIMEOUT);
	CHECK_INT(outboard_poll(b, NULL), 0);
	outboard_cancel(b);
	CHECK_INT(outboard_wait(b, 0, &error), OUTBOARD_CANCELLED);
	CHECK_INT(error.status, OUTBOARD_CANCELLED);
	gate = 1;
	CHECK_INT(outboard_wait(a, WAITING_LONG_S, NULL), OUTBOARD_OK);
	outboard_ticket_free(a);
	outboard_ticket_free(b);
	/* Freeing a ticket cancels its call. */
	CHECK_INT(run_items(context, 1000, OUTBOARD_NO_ITEM, &other, NULL), OUTBOARD_OK);
	outboard_ticket_free(b);
	outboard_close(context);
}

TEST(a_time_out_ends_a_call)
{
	struct outboard *context = open_fakes(1, NULL);
	struct outboard_call call = { .timeout = 0.1 };
	struct outboard_error error;
	uint64_t start = ob_clock_ns();

	fakes[0].millis = 30;
	call.strategy = OUTBOARD_SINGLE + 1;
	CHECK_INT(run_items(context, 4000, OUTBOARD_NO_ITEM, &call, &error), OUTBOARD_TIMEOUT);
	CHECK(strstr(error.text, "0.1 seconds") != NULL);
	CHECK(ob_clock_ns() - start < WAITING_LONG_S * OB_SECOND);
	outboard_close(context);
}

TEST(closing_cancels_and_waits)
{
	struct outboard *context = open_fakes(2, NULL);
	struct outboard_ticket *tickets[20];

	fakes[0].millis = fakes[1].millis = 20;
	for (unsigned i = 0; i < 20; i++) {
		struct outboard_call call = { .ticket = &tickets[i] };

		CHECK_INT(run_items(context, 100, OUTBOARD_NO_ITEM, &call, NULL), OUTBOARD_OK);
	}
	outboard_close(context);
	for (unsigned i = 0; i < 20; i++) {
		CHECK_INT(outboard_poll(tickets[i], NULL), 1);
		outboard_ticket_free(tickets[i]);
	}
	CHECK_INT(fakes[0].closed + fakes[1].closed, 2);
}

static void *caller(void *arg)
{
	struct outboard *context = arg;

	for (unsigned i = 0; i < 30; i++) {
		struct outboard_ticket *ticket;
		struct outboard_call call = { .ticket = &ticket, .strategy = i % 5 + 1 };

		if (run_items(context, 1 + i % 7, OUTBOARD_NO_ITEM, &call, NULL) != OUTBOARD_OK)
			continue;
		if (i % 3 == 0)
			outboard_cancel(ticket);
		else if (i % 3 == 1)
			outboard_wait(ticket, -1, NULL);
		outboard_ticket_free(ticket);
	}
	return NULL;
}

TEST(many_threads_call_at_once)
{
	struct outboard_options o = { .backoff = 0.0001, .breaker_pause = 0.001 };
	struct outboard *context = open_fakes(3, &o);
	pthread_t threads[6];

	fakes[1].failures = 40;
	fakes[1].status = OUTBOARD_DEVICE;
	fakes[1].revives = true;
	for (unsigned i = 0; i < 6; i++)
		CHECK_INT(pthread_create(&threads[i], NULL, caller, context), 0);
	for (unsigned i = 0; i < 6; i++) {
		struct outboard_device d;

		outboard_device_get(context, i % 3, &d);
		outboard_set_strategy(context, i % 5);
		pthread_join(threads[i], NULL);
	}
	outboard_close(context);
}

TEST(a_descriptor_tells_the_end)
{
	struct outboard *context = open_fakes(1, NULL);
	struct outboard_ticket *ticket;
	struct outboard_call call = { .ticket = &ticket };
	_Atomic int gate = 0;
	uint64_t value = 0;
	int fd;

	fakes[0].after = &gate;
	CHECK_INT(run_items(context, 1, OUTBOARD_NO_ITEM, &call, NULL), OUTBOARD_OK);
	fd = outboard_ticket_fd(ticket);
	CHECK(fd >= 0 && outboard_ticket_fd(ticket) == fd);
	CHECK(read(fd, &value, sizeof(value)) < 0);
	gate = 1;
	CHECK_INT(outboard_wait(ticket, -1, NULL), OUTBOARD_OK);
	CHECK(read(fd, &value, sizeof(value)) == sizeof(value) && value == 1);
	outboard_ticket_free(ticket);
	CHECK_INT(run_items(context, 1, OUTBOARD_NO_ITEM, &call, NULL), OUTBOARD_OK);
	CHECK_INT(outboard_wait(ticket, -1, NULL), OUTBOARD_OK);
	CHECK(read(outboard_ticket_fd(ticket), &value, sizeof(value)) == sizeof(value));
	outboard_ticket_free(ticket);
	outboard_close(context);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
