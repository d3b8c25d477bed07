/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/sensors/sensors.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "base/log.h"
#include "server/sensors/nvml.h"

/* False: the supervisor has ended. A full channel is no error: it takes the next reading. */
static bool tell(const struct obs_reading *reading)
{
	return send(OBS_READING_FD, reading, sizeof *reading, MSG_DONTWAIT | MSG_NOSIGNAL) ==
		sizeof *reading ||
		errno == EAGAIN || errno == ENOBUFS;
}

int obs_sensors_run(const struct obs_options *options)
{
	struct pollfd channel = { .fd = OBS_READING_FD };
	struct obs_reading reading;
	struct ob_cause cause;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	ob_log_set_name("outboard-server[sensors]");
	fcntl(OBS_READING_FD, F_SETFD, FD_CLOEXEC);
	if (obs_nvml_open(options->nvml, &cause)) {
		ob_info("no temperatures, power and clocks of the GPUs: %s", cause.text);
		return 1;
	}
	do {
		for (uint32_t i = 0; i < obs_nvml_count(); i++)
			if (obs_nvml_read(i, &reading) && !tell(&reading))
				return 0;
	} while (poll(&channel, 1, OBS_READING_MS) == 0);
	return 0;
}
