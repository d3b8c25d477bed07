/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "base/log.h"
#include "server/admission/admission.h"
#include "server/common/options.h"
#include "server/member/member.h"
#include "server/sensors/sensors.h"
#include "server/supervisor/supervisor.h"
#include "server/worker/worker.h"

int main(int argc, char **argv)
{
	static struct obs_options options;
	int status = obs_options_parse(&options, argc, argv);

	if (status)
		return status;
	ob_log_set_name("outboard-server");
	switch (options.mode) {
	case OBS_MODE_SUPERVISOR:
		return obs_super_run(&options);
	case OBS_MODE_WORKER:
		return obs_worker_run(&options);
	case OBS_MODE_ADMISSION:
		return obs_admission_run(&options);
	case OBS_MODE_PROBE:
		return obs_worker_probe(&options);
	case OBS_MODE_SENSORS:
		return obs_sensors_run(&options);
	case OBS_MODE_MEMBER:
		return obs_member_run(&options);
	case OBS_MODE_DONE:
		break;
	}
	return 0;
}
