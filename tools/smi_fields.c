/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The fields of --query-gpu, --query-compute-apps, -q and --json. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "base/json.h"
#include "base/uuid.h"
#include "tools/smi.h"

#define SCHEMA 1 /* of --json: keys may be added, but never change their meaning */

enum form { NUMBER, WATTS, SWITCH, STATE, MODE, TEXT };

struct place {
	const struct obl_view *view;
	uint32_t device;
	const struct obp_load_session *session; /* of a process; else NULL */
};

struct field {
	const char *name, *other; /* the second: NULL, or another name for the same */
	const char *unit;
	enum form form;
	enum obp_fact fact;
	/* TEXT: prints the value; false: not known */
	bool (*print)(const struct place *at, char ret[OBX_SMI_VALUE]);
};

/* ---- values that are no facts ---- */

static const struct obp_load_device *device_of(const struct place *at)
{
	return obl_view_device(at->view, at->device);
}

void obx_smi_bus_id(const struct obp_load_device *device, char ret_text[OBX_SMI_VALUE])
{
	uint64_t domain, bus, slot;

	snprintf(ret_text, OBX_SMI_VALUE, "N/A");
	if (obp_fact_get(&device->facts, OBP_FACT_PCI_DOMAIN, &domain) &&
		obp_fact_get(&device->facts, OBP_FACT_PCI_BUS, &bus) &&
		obp_fact_get(&device->facts, OBP_FACT_PCI_DEVICE, &slot))
		snprintf(ret_text, OBX_SMI_VALUE, "%08X:%02X:%02X.0", (unsigned)domain,
			(unsigned)bus, (unsigned)slot);
}

const char *obx_smi_driver(const struct obl_view *view)
{
	return obl_view_load(view)->nvidia_version[0] ? obl_view_load(view)->nvidia_version
						      : obl_view_load(view)->version;
}

static bool print_time(const struct place *at, char ret[OBX_SMI_VALUE])
{
	struct timespec now;
	struct tm tm;

	(void)at;
	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	strftime(ret, OBX_SMI_VALUE, "%Y/%m/%d %H:%M:%S", &tm);
	snprintf(ret + strlen(ret), 8, ".%03u", (unsigned)(now.tv_nsec / 1000000 % 1000));
	return true;
}

static bool print_name(const struct place *at, char ret[OBX_SMI_VALUE])
{
	snprintf(ret, OBX_SMI_VALUE, "%s", device_of(at)->name);
	return true;
}

static bool print_uuid(const struct place *at, char ret[OBX_SMI_VALUE])
{
	char text[OB_UUID_TEXT];

	ob_uuid_print(device_of(at)->uuid, text);
	snprintf(ret, OBX_SMI_VALUE, "%s", text);
	return true;
}

static bool print_bus_id(const struct place *at, char ret[OBX_SMI_VALUE])
{
	obx_smi_bus_id(device_of(at), ret);
	return ret[0] != 'N';
}

static bool print_driver(const struct place *at, char ret[OBX_SMI_VALUE])
{
	snprintf(ret, OBX_SMI_VALUE, "%s", obx_smi_driver(at->view));
	return true;
}

static bool print_server(const struct place *at, char ret[OBX_SMI_VALUE])
{
	snprintf(ret, OBX_SMI_VALUE, "%s",
		at->view->servers[at->view->order[at->device].server].url_text);
	return true;
}

static bool print_index(const struct place *at, char ret[OBX_SMI_VALUE])
{
	snprintf(ret, OBX_SMI_VALUE, "%u", at->device);
	return true;
}

static bool print_count(const struct place *at, char ret[OBX_SMI_VALUE])
{
	snprintf(ret, OBX_SMI_VALUE, "%u", at->view->n_devices);
	return true;
}

static bool print_capability(const struct place *at, char ret[OBX_SMI_VALUE])
{
	uint32_t capability = device_of(at)->capability;

	snprintf(ret, OBX_SMI_VALUE, "%u.%u", capability / 10, capability % 10);
	return capability != 0;
}

static bool print_units(const struct place *at, char ret[OBX_SMI_VALUE])
{
	snprintf(ret, OBX_SMI_VALUE, "%u", device_of(at)->units);
	return device_of(at)->units != 0;
}

static bool print_mib(uint64_t bytes, char ret[OBX_SMI_VALUE])
{
	snprintf(ret, OBX_SMI_VALUE, "%llu", (unsigned long long)(bytes >> 20));
	return true;
}

#define MEMORY(which)                                                              \
	static bool print_##which(const struct place *at, char ret[OBX_SMI_VALUE]) \
	{                                                                          \
		struct obl_view_memory memory;                                     \
                                                                                   \
		obl_view_memory(at->view, at->device, &memory);                    \
		return print_mib(memory.which, ret);                               \
	}
MEMORY(total)
MEMORY(reserved)
MEMORY(used)
MEMORY(free)

static bool print_pid(const struct place *at, char ret[OBX_SMI_VALUE])
{
	snprintf(ret, OBX_SMI_VALUE, "%llu", (unsigned long long)at->session->pid);
	return true;
}

static bool print_program(const struct place *at, char ret[OBX_SMI_VALUE])
{
	snprintf(ret, OBX_SMI_VALUE, "%s", at->session->program);
	return true;
}

static bool print_process_memory(const struct place *at, char ret[OBX_SMI_VALUE])
{
	return print_mib(obl_view_used(at->view, at->session, at->device), ret);
}

/* ---- the fields ---- */

/* clang-format off */
#define OF(name, other, unit, form, fact) { name, other, unit, form, OBP_FACT_##fact, NULL }
#define TELLS(name, other, unit, print)   { name, other, unit, TEXT, OBP_FACT_COUNT, print }
static const struct field devices[] = {
	TELLS("timestamp", NULL, NULL, print_time),
	TELLS("index", NULL, NULL, print_index),
	TELLS("name", "gpu_name", NULL, print_name),
	TELLS("uuid", "gpu_uuid", NULL, print_uuid),
	TELLS("server", NULL, NULL, print_server),
	TELLS("count", NULL, NULL, print_count),
	TELLS("driver_version", NULL, NULL, print_driver),
	TELLS("pci.bus_id", "gpu_bus_id", NULL, print_bus_id),
	TELLS("compute_cap", NULL, NULL, print_capability),
	TELLS("multiprocessors", NULL, NULL, print_units),
	TELLS("memory.total", NULL, "MiB", print_total),
	TELLS("memory.reserved", NULL, "MiB", print_reserved),
	TELLS("memory.used", NULL, "MiB", print_used),
	TELLS("memory.free", NULL, "MiB", print_free),
	OF("utilization.gpu", NULL, "%", NUMBER, USE_GPU),
	OF("utilization.memory", NULL, "%", NUMBER, USE_MEMORY),
	OF("utilization.encoder", NULL, "%", NUMBER, USE_ENCODER),
	OF("utilization.decoder", NULL, "%", NUMBER, USE_DECODER),
	OF("temperature.gpu", NULL, NULL, NUMBER, TEMPERATURE),
	OF("fan.speed", NULL, "%", NUMBER, FAN),
	OF("pstate", NULL, NULL, STATE, PERFORMANCE),
	OF("power.draw", "power.draw.instant", "W", WATTS, POWER),
	OF("power.limit", NULL, "W", WATTS, POWER_LIMIT),
	OF("enforced.power.limit", NULL, "W", WATTS, POWER_ENFORCED),
	OF("power.default_limit", NULL, "W", WATTS, POWER_DEFAULT),
	OF("power.min_limit", NULL, "W", WATTS, POWER_MIN),
	OF("power.max_limit", NULL, "W", WATTS, POWER_MAX),
	OF("clocks.gr", "clocks.current.graphics", "MHz", NUMBER, CLOCK_GRAPHICS),
	OF("clocks.sm", "clocks.current.sm", "MHz", NUMBER, CLOCK_SM),
	OF("clocks.mem", "clocks.current.memory", "MHz", NUMBER, CLOCK_MEMORY),
	OF("clocks.video", "clocks.current.video", "MHz", NUMBER, CLOCK_VIDEO),
	OF("clocks.max.gr", "clocks.max.graphics", "MHz", NUMBER, CLOCK_MAX_GRAPHICS),
	OF("clocks.max.sm", NULL, "MHz", NUMBER, CLOCK_MAX_SM),
	OF("clocks.max.mem", "clocks.max.memory", "MHz", NUMBER, CLOCK_MAX_MEMORY),
	OF("pcie.link.gen.current", "pcie.link.gen.gpucurrent", NULL, NUMBER, PCIE_GENERATION),
	OF("pcie.link.gen.max", NULL, NULL, NUMBER, PCIE_MAX_GENERATION),
	OF("pcie.link.width.current", NULL, NULL, NUMBER, PCIE_WIDTH),
	OF("pcie.link.width.max", NULL, NULL, NUMBER, PCIE_MAX_WIDTH),
	OF("ecc.mode.current", NULL, NULL, SWITCH, ECC),
	OF("ecc.mode.pending", NULL, NULL, SWITCH, ECC_PENDING),
	OF("ecc.errors.corrected.volatile.total", NULL, NULL, NUMBER, ECC_CORRECTED),
	OF("ecc.errors.uncorrected.volatile.total", NULL, NULL, NUMBER, ECC_UNCORRECTED),
	OF("persistence_mode", NULL, NULL, SWITCH, PERSISTENCE),
	OF("compute_mode", NULL, NULL, MODE, COMPUTE_MODE),
	OF("mig.mode.current", NULL, NULL, SWITCH, MIG),
	OF("mig.mode.pending", NULL, NULL, SWITCH, MIG_PENDING),
};
static const struct field processes[] = {
	TELLS("timestamp", NULL, NULL, print_time),
	TELLS("gpu_name", NULL, NULL, print_name),
	TELLS("gpu_bus_id", NULL, NULL, print_bus_id),
	TELLS("gpu_uuid", NULL, NULL, print_uuid),
	TELLS("pid", NULL, NULL, print_pid),
	TELLS("process_name", "name", NULL, print_program),
	TELLS("used_gpu_memory", "used_memory", "MiB", print_process_memory),
};
/* clang-format on */

/* Finds the field that a piece of "a,b,c" names; NULL: none. */
static const struct field *find(const char *name, size_t n, bool apps)
{
	const struct field *table = apps ? processes : devices;
	size_t count = apps ? ob_count(processes) : ob_count(devices);

	for (size_t i = 0; i < count; i++)
		for (unsigned other = 0; other < 2; other++) {
			const char *has = other ? table[i].other : table[i].name;

			if (has && strlen(has) == n && memcmp(has, name, n) == 0)
				return &table[i];
		}
	return NULL;
}

/* Blanks around names are allowed. */
static size_t piece(const char **text)
{
	size_t n;

	*text += strspn(*text, " ");
	n = strcspn(*text, ",");
	while (n && (*text)[n - 1] == ' ')
		n--;
	return n;
}

static const char *after(const char *text)
{
	text += strcspn(text, ",");
	return *text ? text + 1 : text;
}

const char *obx_smi_unknown(const char *fields, bool apps, char *ret_name, size_t size)
{
	do {
		size_t n = piece(&fields);

		if (!find(fields, n, apps)) {
			snprintf(ret_name, size, "%.*s", (int)n, fields);
			return ret_name;
		}
		fields = after(fields);
	} while (*fields);
	return NULL;
}

static bool value(const struct field *field, const struct place *at, char ret[OBX_SMI_VALUE])
{
	static const char *const modes[] = { "Default", "Exclusive_Thread", "Prohibited",
		"Exclusive_Process" };
	uint64_t number;

	if (field->form == TEXT)
		return field->print(at, ret);
	if (!obp_fact_get(&device_of(at)->facts, field->fact, &number))
		return false;
	if (field->form == WATTS)
		snprintf(ret, OBX_SMI_VALUE, "%.2f", (double)number / 1000);
	else if (field->form == SWITCH)
		snprintf(ret, OBX_SMI_VALUE, "%s", number ? "Enabled" : "Disabled");
	else if (field->form == STATE)
		snprintf(ret, OBX_SMI_VALUE, "P%u", (unsigned)number);
	else if (field->form == MODE)
		snprintf(ret, OBX_SMI_VALUE, "%s", modes[number & 3]);
	else
		snprintf(ret, OBX_SMI_VALUE, "%llu", (unsigned long long)number);
	return true;
}

/* ---- CSV ---- */

static void csv_header(const char *fields, bool apps, bool units)
{
	const char *comma = "";

	do {
		size_t n = piece(&fields);
		const struct field *field = find(fields, n, apps);

		printf("%s%.*s", comma, (int)n, fields);
		if (field->unit && units)
			printf(" [%s]", field->unit);
		comma = ", ";
		fields = after(fields);
	} while (*fields);
	putchar('\n');
}

static void csv_line(const struct place *at, const char *fields, bool apps, bool units)
{
	const char *comma = "";

	do {
		size_t n = piece(&fields);
		const struct field *field = find(fields, n, apps);
		char text[OBX_SMI_VALUE];
		bool known = value(field, at, text);

		printf("%s%s", comma, known ? text : "[N/A]");
		if (known && field->unit && units)
			printf(" %s", field->unit);
		comma = ", ";
		fields = after(fields);
	} while (*fields);
	putchar('\n');
}

void obx_smi_csv(const struct obl_view *view, uint32_t only, const char *fields, bool apps,
	struct obx_smi_style style)
{
	if (style.header)
		csv_header(fields, apps, true);
	for (uint32_t i = 0; i < view->n_devices; i++) {
		struct place at = { view, i, NULL };

		if (only != OBX_SMI_ALL && only != i)
			continue;
		if (!apps)
			csv_line(&at, fields, false, style.units);
		for (uint32_t s = 0; apps && s < view->n_sessions; s++) {
			at.session = obl_view_session(view, s);
			if (obl_view_used(view, at.session, i))
				csv_line(&at, fields, true, style.units);
		}
	}
}

/* ---- details ---- */

void obx_smi_details(const struct obl_view *view, uint32_t only)
{
	for (uint32_t i = 0; i < view->n_devices; i++) {
		const struct place at = { view, i, NULL };
		char text[OBX_SMI_VALUE];

		if (only != OBX_SMI_ALL && only != i)
			continue;
		obx_smi_bus_id(obl_view_device(view, i), text);
		printf("\nGPU %s\n", text);
		for (size_t f = 0; f < ob_count(devices); f++) {
			bool known = value(&devices[f], &at, text);

			printf("    %-40s : %s%s%s\n", devices[f].name, known ? text : "N/A",
				known && devices[f].unit ? " " : "",
				known && devices[f].unit ? devices[f].unit : "");
		}
	}
}

static void json_fields(
	struct ob_json *json, const struct field *table, size_t n, const struct place *at)
{
	char text[OBX_SMI_VALUE];

	for (size_t f = 0; f < n; f++) {
		const struct field *field = &table[f];
		bool known = value(field, at, text);
		bool number = field->form == NUMBER || field->form == WATTS || field->unit ||
			field->print == print_index || field->print == print_count ||
			field->print == print_units || field->print == print_pid;

		if (!known)
			ob_json_null(json, field->name);
		else if (number)
			ob_json_raw(json, field->name, text);
		else
			ob_json_text(json, field->name, text);
	}
}

void obx_smi_json(const struct obl_view *view, uint32_t only)
{
	struct ob_json json;

	ob_json_begin(&json, stdout, OB_JSON_SPACED);
	ob_json_object(&json, NULL);
	ob_json_uint(&json, "schema", SCHEMA);
	ob_json_text(&json, "server", obl_view_name(view));
	ob_json_uint(&json, "cuda_version", obl_view_load(view)->cuda_version);
	ob_json_array(&json, "devices");
	for (uint32_t i = 0; i < view->n_devices; i++) {
		struct place at = { view, i, NULL };

		if (only != OBX_SMI_ALL && only != i)
			continue;
		ob_json_break(&json);
		ob_json_object(&json, NULL);
		json_fields(&json, devices, ob_count(devices), &at);
		ob_json_array(&json, "processes");
		for (uint32_t s = 0; s < view->n_sessions; s++) {
			at.session = obl_view_session(view, s);
			if (!obl_view_used(view, at.session, i))
				continue;
			ob_json_object(&json, NULL);
			json_fields(&json, processes, ob_count(processes), &at);
			ob_json_end(&json);
		}
		ob_json_end(&json);
		ob_json_end(&json);
	}
	ob_json_end(&json);
	ob_json_end(&json);
	putchar('\n');
}
