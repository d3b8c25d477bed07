/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/layers/fault.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"

#define FAULT_TEXT_MAX 1024
/* upper limit of a hold, in case the test that asked for it has died */
#define HOLD_NS        (120 * OB_SECOND)
#define HOLD_LOOK_NS   (2 * OB_MS)

static char fault_text[FAULT_TEXT_MAX];

static struct fault {
	unsigned call;
	uint64_t at; /* number of the call; 0: every one */
	CUresult result;
	bool hold;
	/* the hold ends when this file exists; NULL: only with the time. In fault_text */
	const char *until;
	_Atomic uint64_t seen;
} faults[OBS_FAULTS_MAX];
static size_t n_faults;

static void hold(const struct fault *fault)
{
	uint64_t end = ob_clock_ns() + HOLD_NS;

	ob_warn("fault: call %llu of %s is held", (unsigned long long)fault->at,
		obs_driver_names[fault->call]);
	while (ob_clock_ns() < end && !(fault->until && access(fault->until, F_OK) == 0))
		nanosleep(&(struct timespec){ .tv_nsec = HOLD_LOOK_NS }, NULL);
	ob_warn("fault: call %llu of %s continues", (unsigned long long)fault->at,
		obs_driver_names[fault->call]);
}

static CUresult before(unsigned call)
{
	for (size_t i = 0; i < n_faults; i++) {
		if (faults[i].call != call ||
			(faults[i].at && atomic_fetch_add(&faults[i].seen, 1) + 1 != faults[i].at))
			continue;
		if (!faults[i].hold)
			return faults[i].result;
		hold(&faults[i]);
	}
	return CUDA_SUCCESS;
}

/* "2", "hold", "hold@/tmp/go" */
static bool parse_what(char *text, struct fault *ret)
{
	uint64_t code;

	if (strncmp(text, "hold", 4) == 0 && (!text[4] || (text[4] == '@' && text[5]))) {
		ret->hold = true;
		ret->until = text[4] ? text + 5 : NULL;
		return true;
	}
	if (!ob_text_parse_number(text, 1, 9999, &code))
		return false;
	ret->result = (CUresult)code;
	return true;
}

/* "cuMemCreate:3=2", "cuMemCreate:*=2" */
static bool parse(char *text)
{
	char *colon = strchr(text, ':'), *equals = colon ? strchr(colon, '=') : NULL;
	struct fault *fault = &faults[n_faults];

	if (!equals || n_faults == OBS_FAULTS_MAX)
		return false;
	*colon = *equals = '\0';
	if ((strcmp(colon + 1, "*") != 0 &&
		    !ob_text_parse_number(colon + 1, 1, UINT32_MAX, &fault->at)) ||
		!parse_what(equals + 1, fault))
		return false;
	for (fault->call = 0; fault->call < OBS_DRIVER_CALLS; fault->call++)
		if (strcmp(obs_driver_names[fault->call], text) == 0) {
			n_faults++;
			return true;
		}
	return false;
}

const struct obs_layer_hooks *obs_fault_open(void)
{
	static const struct obs_layer_hooks hooks = { .before = before };
	const char *text = getenv("OUTBOARD_FAULT");
	char *rest = NULL;

	if (!text || !*text)
		return NULL;
	if (strlen(text) >= sizeof fault_text) {
		ob_error("OUTBOARD_FAULT is longer than %d characters and is ignored",
			FAULT_TEXT_MAX - 1);
		return NULL;
	}
	memcpy(fault_text, text, strlen(text) + 1);
	for (char *one = strtok_r(fault_text, ",", &rest); one; one = strtok_r(NULL, ",", &rest))
		if (!parse(one))
			ob_error("OUTBOARD_FAULT: \"%s\" is not name:n=code or name:n=hold with "
				 "the name of a driver call",
				one);
	return n_faults ? &hooks : NULL;
}
