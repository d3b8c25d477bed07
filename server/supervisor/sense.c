/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/supervisor/sense.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/terminal.h"

#define OLD_NS     (5 * OB_SECOND) /* a reading of this age is not reported */
#define HANG_NS    (20 * OB_SECOND)
#define TICK_MS    5000
#define DEATHS_MAX 3u /* then it is not started again */
#define STABLE_NS  (60 * OB_SECOND)

static void closed(uv_handle_t *handle)
{
	struct obs_sense *sense = handle->data;

	if (--sense->closes_left == 0 && sense->fd >= 0) {
		close(sense->fd);
		sense->fd = -1;
	}
}

static void exited(uv_process_t *process, int64_t status, int signal)
{
	struct obs_sense *sense = process->data;

	for (uint32_t i = 0; i < sense->n; i++)
		sense->read_ns[i] = 0;
	if (sense->stopping || status || signal)
		sense->deaths =
			ob_clock_ns() - sense->started_ns > STABLE_NS ? 1 : sense->deaths + 1;
	if (signal && !sense->stopping)
		ob_warn("the sensors process was killed by signal %d (%s): temperatures and so on "
			"are not reported for a while",
			signal, strsignal(signal));
	/* it says itself why it cannot use the library, and a further attempt fails likewise */
	if (status == 1)
		sense->deaths = DEATHS_MAX;
	sense->closes_left = 2;
	uv_close((uv_handle_t *)&sense->process, closed);
	uv_close((uv_handle_t *)&sense->channel, closed);
}

static void take(struct obs_sense *sense, struct obs_reading *reading)
{
	uint32_t i = 0;

	while (i < sense->n && memcmp(sense->readings[i].uuid, reading->uuid, 16) != 0)
		i++;
	if (i == OBP_DEVICE_MAX)
		return;
	obp_facts_check(&reading->facts);
	reading->driver[sizeof reading->driver - 1] = '\0';
	reading->driver[ob_text_clean(reading->driver, strlen(reading->driver))] = '\0';
	/* It outlives the process that has seen it. */
	if (i < sense->n && !reading->xid)
		reading->xid = sense->readings[i].xid;
	if (reading->xid && (i >= sense->n || reading->xid != sense->readings[i].xid))
		ob_error(
			"device %u has reported an error of the hardware: Xid %u", i, reading->xid);
	sense->readings[i] = *reading;
	sense->read_ns[i] = ob_clock_ns();
	sense->n = ob_max(sense->n, i + 1);
}

static void readable(uv_poll_t *poll, int status, int events)
{
	struct obs_sense *sense = poll->data;
	struct obs_reading reading;
	ssize_t n;

	(void)status;
	(void)events;
	for (unsigned i = 0; i < OBP_DEVICE_MAX; i++) {
		n = recv(sense->fd, &reading, sizeof reading, MSG_DONTWAIT);
		if (n != sizeof reading)
			break;
		sense->heard_ns = ob_clock_ns();
		take(sense, &reading);
	}
	if (n == sizeof reading || (n < 0 && errno == EAGAIN))
		return;
	uv_poll_stop(poll); /* the exit callback does the rest */
	uv_process_kill(&sense->process, SIGKILL);
}

static void process_start(struct obs_super *super)
{
	struct obs_sense *sense = &super->sense;
	char *args[] = { super->self, (char *)(uintptr_t) "--sensors", (char *)(uintptr_t) "--nvml",
		(char *)(uintptr_t)sense->library, NULL };
	uv_stdio_container_t stdio[4] = { { .flags = UV_IGNORE },
		{ .flags = UV_INHERIT_FD, .data.fd = 1 }, { .flags = UV_INHERIT_FD, .data.fd = 2 },
		{ .flags = UV_INHERIT_FD } };
	uv_process_options_t options = { .exit_cb = exited,
		.file = super->self,
		.args = args,
		.stdio = stdio,
		.stdio_count = 4 };
	int fds[2], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
		return;
	stdio[OBS_READING_FD].data.fd = fds[1];
	sense->process.data = sense->channel.data = sense;
	sense->started_ns = sense->heard_ns = ob_clock_ns();
	err = uv_spawn(&super->loop, &sense->process, &options);
	close(fds[1]);
	if (err) {
		ob_warn("the sensors process cannot be started: %s", uv_strerror(err));
		close(fds[0]);
		sense->deaths++;
		uv_close((uv_handle_t *)&sense->process, NULL);
		return;
	}
	sense->fd = fds[0];
	fcntl(sense->fd, F_SETFL, O_NONBLOCK);
	uv_poll_init(&super->loop, &sense->channel, sense->fd);
	uv_poll_start(&sense->channel, UV_READABLE | UV_DISCONNECT, readable);
}

static void tick(uv_timer_t *timer)
{
	struct obs_super *super = timer->data;
	struct obs_sense *sense = &super->sense;

	if (sense->fd < 0 && sense->closes_left == 0 && sense->deaths < DEATHS_MAX)
		process_start(super);
	else if (sense->fd >= 0 && sense->closes_left == 0 &&
		ob_clock_ns() - sense->heard_ns > HANG_NS) {
		ob_warn("the sensors process hangs in %s: it is killed", sense->library);
		uv_process_kill(&sense->process, SIGKILL);
	}
}

/* False: a driver without a GPU, whose sensors would be another's. */
static bool is_gpu(const char *driver)
{
	return strcmp(driver, "soft") != 0 && strcmp(driver, "null") != 0 &&
		strcmp(driver, OBS_DRIVER_DRYRUN) != 0;
}

void obs_sense_start(struct obs_super *super)
{
	struct obs_sense *sense = &super->sense;
	const char *asked = super->options->nvml;
	bool automatic = strcmp(asked, "auto") == 0;

	sense->fd = -1;
	if (strcmp(asked, "none") == 0 || (automatic && !is_gpu(super->driver)))
		return;
	sense->library = automatic ? OBS_NVML_SYSTEM : asked;
	sense->on = true;
	uv_timer_init(&super->loop, &sense->timer);
	sense->timer.data = super;
	uv_timer_start(&sense->timer, tick, TICK_MS, TICK_MS);
	process_start(super);
}

void obs_sense_stop(struct obs_super *super)
{
	struct obs_sense *sense = &super->sense;

	if (!sense->on || sense->stopping)
		return;
	sense->stopping = true;
	uv_close((uv_handle_t *)&sense->timer, NULL);
	if (sense->fd >= 0 && sense->closes_left == 0)
		uv_process_kill(&sense->process, SIGKILL);
}

uint32_t obs_sense_xid(const struct obs_super *super, const uint8_t uuid[16])
{
	const struct obs_sense *sense = &super->sense;

	for (uint32_t i = 0; i < sense->n; i++)
		if (memcmp(sense->readings[i].uuid, uuid, 16) == 0)
			return sense->readings[i].xid;
	return 0;
}

void obs_sense_merge(const struct obs_super *super, const uint8_t uuid[16], struct obp_facts *facts,
	char ret_version[80])
{
	const struct obs_sense *sense = &super->sense;

	for (uint32_t i = 0; i < sense->n; i++) {
		if (memcmp(sense->readings[i].uuid, uuid, 16) != 0 ||
			ob_clock_ns() - sense->read_ns[i] > OLD_NS)
			continue;
		obp_facts_merge(facts, &sense->readings[i].facts);
		memcpy(ret_version, sense->readings[i].driver, 80);
	}
}
