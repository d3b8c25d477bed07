/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "base/text.h"
#include "server/layers.h"

#define FAULT_TEXT_MAX 1024

static struct fault {
	unsigned call;
	uint64_t at;
	CUresult result;
	_Atomic uint64_t seen;
} faults[OBS_FAULTS_MAX];
static size_t n_faults;

static CUresult before(unsigned call)
{
	for (size_t i = 0; i < n_faults; i++)
		if (faults[i].call == call && atomic_fetch_add(&faults[i].seen, 1) + 1 == faults[i].at)
			return faults[i].result;
	return CUDA_SUCCESS;
}

/* "cuMemCreate:3=2" */
static bool parse(char *text)
{
	char *colon = strchr(text, ':'), *equals = colon ? strchr(colon, '=') : NULL;
	struct fault *fault = &faults[n_faults];
	uint64_t code;

	if (!equals || n_faults == OBS_FAULTS_MAX)
		return false;
	*colon = *equals = '\0';
	if (!ob_text_parse_number(colon + 1, 1, UINT32_MAX, &fault->at) || !ob_text_parse_number(equals + 1, 1, 9999, &code))
		return false;
	fault->result = (CUresult)code;
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
	char copy[FAULT_TEXT_MAX], *rest = NULL;

	if (!text || !*text)
		return NULL;
	if (strlen(text) >= sizeof copy) {
		ob_error("OUTBOARD_FAULT is longer than %d characters and is ignored", FAULT_TEXT_MAX - 1);
		return NULL;
	}
	memcpy(copy, text, strlen(text) + 1);
	for (char *one = strtok_r(copy, ",", &rest); one; one = strtok_r(NULL, ",", &rest))
		if (!parse(one))
			ob_error("OUTBOARD_FAULT: \"%s\" is not name:n=code with the name of a driver call", one);
	return n_faults ? &hooks : NULL;
}
