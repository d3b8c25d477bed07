/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The table and the list of `outboard smi`, in the widths of nvidia-smi. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/uuid.h"
#include "tools/smi.h"

#define WIDE 89u /* between the outer bars */

#define RULE_WIDE                                                                                 \
	"+--------------------------------------------------------------------------------------" \
	"---+"
#define RULE_CELLS                                                                                \
	"+-----------------------------------------+------------------------+-------------------" \
	"---+"

/* Copies a text, cut to `width` columns and marked by "..." if it is longer. */
static const char *cut(const char *text, size_t width, char ret[OBX_SMI_VALUE])
{
	snprintf(ret, OBX_SMI_VALUE, "%s", text);
	if (strlen(ret) > width)
		snprintf(ret + width - 3, 4, "...");
	return ret;
}

/* Prints a line across the whole table. */
static void wide(const char *text)
{
	char line[OBX_SMI_VALUE];

	printf("|%-*s|\n", (int)WIDE, cut(text, WIDE, line));
}

/* A number with its unit, or "N/A". */
static const char *number(const struct obp_facts *facts, enum obp_fact fact, uint64_t divisor,
	const char *unit, char ret[32])
{
	uint64_t value;

	if (obp_fact_get(facts, fact, &value))
		snprintf(ret, 32, "%llu%s", (unsigned long long)(value / divisor), unit);
	else
		snprintf(ret, 32, "N/A");
	return ret;
}

static const char *word(
	const struct obp_facts *facts, enum obp_fact fact, const char *off, const char *on)
{
	uint64_t value;

	if (!obp_fact_get(facts, fact, &value))
		return "N/A";
	return value ? on : off;
}

static const char *mode(const struct obp_facts *facts)
{
	static const char *const names[] = { "Default", "E. Thread", "Prohibited", "E. Process" };
	uint64_t value;

	return obp_fact_get(facts, OBP_FACT_COMPUTE_MODE, &value) ? names[value & 3] : "N/A";
}

static void device_print(const struct obl_view *view, uint32_t place)
{
	const struct obp_load_device *device = obl_view_device(view, place);
	const struct obp_facts *facts = &device->facts;
	char name[OBX_SMI_VALUE], bus[OBX_SMI_VALUE], fan[32], heat[32],
		state[40] = "N/A", power[32], limit[32], errors[32], use[32], usage[80];
	struct obl_view_memory memory;
	uint64_t performance;

	obx_smi_bus_id(device, bus);
	obl_view_memory(view, place, &memory);
	if (obp_fact_get(facts, OBP_FACT_PERFORMANCE, &performance))
		snprintf(state, sizeof state, "P%u", (unsigned)performance);
	snprintf(usage, sizeof usage, "%lluMiB / %6lluMiB",
		(unsigned long long)(memory.total - memory.free) >> 20,
		(unsigned long long)memory.total >> 20);
	printf("| %3u  %-29s%-4s  | %18.18s Off | %20s |\n", place, cut(device->name, 28, name),
		word(facts, OBP_FACT_PERSISTENCE, "Off", "On"), bus,
		number(facts, OBP_FACT_ECC_UNCORRECTED, 1, "", errors));
	printf("| %-4.4s %4.4s   %4.4s     %8.8s / %-8.8s| %22.22s | %7.7s  %11.11s |\n",
		number(facts, OBP_FACT_FAN, 1, "%", fan),
		number(facts, OBP_FACT_TEMPERATURE, 1, "C", heat), state,
		number(facts, OBP_FACT_POWER, 1000, "W", power),
		number(facts, OBP_FACT_POWER_ENFORCED, 1000, "W", limit), usage,
		number(facts, OBP_FACT_USE_GPU, 1, "%", use), mode(facts));
	printf("|                                         |                        | %20s |\n",
		word(facts, OBP_FACT_MIG, "Disabled", "Enabled"));
	puts(RULE_CELLS);
}

static void head_print(const struct obl_view *view)
{
	const struct obp_load *load = obl_view_load(view);
	char line[OBX_SMI_VALUE], cuda[32] = "N/A", when[64] = "";
	time_t now = time(NULL);
	struct tm tm;

	if (localtime_r(&now, &tm))
		strftime(when, sizeof when, "%a %b %e %H:%M:%S %Y", &tm);
	if (load->cuda_version)
		snprintf(cuda, sizeof cuda, "%u.%u", load->cuda_version / 1000,
			load->cuda_version % 1000 / 10);
	puts(when);
	puts(RULE_WIDE);
	snprintf(line, sizeof line,
		" OUTBOARD-SMI %-18.18s  Driver Version: %-15.15s  CUDA Version: %s", OB_VERSION,
		obx_smi_driver(view), cuda);
	wide(line);
	snprintf(line, sizeof line, " Server: %.120s%s", obl_view_name(view),
		load->draining ? " (shutting down)" : "");
	wide(line);
	puts("|-----------------------------------------+------------------------+-----------------"
	     "--"
	     "---+");
	puts("| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile "
	     "Uncorr. "
	     "ECC |");
	puts("| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  "
	     "Compute "
	     "M. |");
	puts("|                                         |                        |               "
	     "MIG "
	     "M. |");
	puts("|=========================================+========================+================="
	     "="
	     "====|");
}

static void processes_print(const struct obl_view *view, uint32_t only)
{
	bool any = false;

	puts(RULE_WIDE);
	wide(" Processes:");
	wide("  GPU   GI   CI              PID   Type   Process name                        GPU "
	     "Memory");
	wide("        ID   ID                                                               Usage");
	puts("|==================================================================================="
	     "======|");
	for (uint32_t i = 0; i < view->n_devices; i++)
		for (uint32_t s = 0; s < view->n_sessions; s++) {
			const struct obp_load_session *session = obl_view_session(view, s);
			uint64_t used = obl_view_used(view, session, i);
			char line[OBX_SMI_VALUE], name[OBX_SMI_VALUE];

			if (!used || (only != OBX_SMI_ALL && only != i))
				continue;
			snprintf(line, sizeof line,
				"  %3u   N/A  N/A  %15llu      C   %-32s %9lluMiB", i,
				(unsigned long long)session->pid, cut(session->program, 32, name),
				(unsigned long long)used >> 20);
			wide(line);
			any = true;
		}
	if (!any)
		wide("  No running processes found");
	puts(RULE_WIDE);
}

void obx_smi_table(const struct obl_view *view, uint32_t only)
{
	head_print(view);
	for (uint32_t i = 0; i < view->n_devices; i++)
		if (only == OBX_SMI_ALL || only == i)
			device_print(view, i);
	if (!view->n_devices) {
		wide("  The server knows no devices yet");
		puts(RULE_WIDE);
	}
	putchar('\n');
	processes_print(view, only);
}

void obx_smi_list(const struct obl_view *view, uint32_t only)
{
	char uuid[OB_UUID_TEXT];

	for (uint32_t i = 0; i < view->n_devices; i++) {
		if (only != OBX_SMI_ALL && only != i)
			continue;
		ob_uuid_print(obl_view_device(view, i)->uuid, uuid);
		printf("GPU %u: %s (UUID: %s)\n", i, obl_view_device(view, i)->name, uuid);
	}
}
