/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "base/log.h"
#include "loadbalancer/balancer/balancer.h"

int main(int argc, char **argv)
{
	static struct obl_settings settings;
	int status = obl_settings_parse(&settings, argc, argv);

	if (status || settings.done)
		return status;
	ob_log_set_name("outboard-balancer");
	ob_log_set_level((enum ob_log_level)settings.log_level);
	return obl_balancer_run(&settings);
}
