/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * `outboard smi`: the GPUs of the server as nvidia-smi shows those of a machine. It asks the
 * supervisor; sessions are not affected.
 */
#include "tools/smi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "tools/command.h"
#include "tools/screen.h"
#include "tools/way.h"
#include "transport/failure.h"

struct settings {
	const char *server, *gpus, *apps, *format, *device;
	bool list, details, json;
	double every_s;
};

static const struct ob_option options[] = {
	OBX_SERVER_OPTION(struct settings, server),
	{ OB_OPTION("list-gpus", OB_FLAG, struct settings, list), .letter = 'L',
		.help = "one line for each GPU: its name and UUID" },
	{ OB_OPTION("query", OB_FLAG, struct settings, details), .letter = 'q',
		.help = "everything that is known of each GPU" },
	{ OB_OPTION("query-gpu", OB_TEXT, struct settings, gpus), .arg = "FIELDS",
		.takes = "fields with commas between them, for example name,memory.used",
		.help = "these fields of each GPU, with commas between them; -q shows their "
			"names" },
	{ OB_OPTION("query-compute-apps", OB_TEXT, struct settings, apps), .arg = "FIELDS",
		.takes = "fields with commas between them, for example pid,used_memory",
		.help = "the same of each process: pid, process_name, used_memory, gpu_uuid, "
			"gpu_name, gpu_bus_id, timestamp" },
	{ OB_OPTION("format", OB_TEXT, struct settings, format), .arg = "FORMAT",
		.words = "csv|csv,noheader|csv,nounits|csv,noheader,nounits", .fallback = "csv",
		.help = "how the fields are printed: csv, and behind it noheader, nounits" },
	{ OB_OPTION("id", OB_TEXT, struct settings, device), .arg = "N", .letter = 'i',
		.takes = "the number of a GPU", .help = "only this GPU, by its number" },
	{ OB_OPTION("loop", OB_REAL, struct settings, every_s), .arg = "S", .letter = 'l',
		.low = 0.1, .high = 86400, .help = "again every S seconds, until interrupted" },
	{ OB_OPTION("json", OB_FLAG, struct settings, json), .help = "one JSON object" },
	{ 0 },
};

static bool format_read(const char *text, struct obx_smi_style *ret)
{
	*ret = (struct obx_smi_style){ .header = true, .units = true };
	if (!text || !*text)
		return true;
	if (ob_words_find("csv|csv,noheader|csv,nounits|csv,noheader,nounits|csv,nounits,noheader",
		    text) < 0)
		return false;
	ret->header = !strstr(text, "noheader");
	ret->units = !strstr(text, "nounits");
	return true;
}

static int failed(const struct obl_view *view, const struct ob_cause *cause)
{
	char text[OBT_FAILURE_TEXT];

	obl_view_failure_print(view, cause, text, sizeof text);
	fprintf(stderr, "outboard smi: %s\n", text);
	return OBX_EXIT_UNWELL;
}

static void show(const struct settings *s, const struct obl_view *view, uint32_t only,
	struct obx_smi_style style)
{
	if (s->json)
		obx_smi_json(view, only);
	else if (s->list)
		obx_smi_list(view, only);
	else if (s->gpus || s->apps)
		obx_smi_csv(view, only, s->gpus ? s->gpus : s->apps, !s->gpus, style);
	else if (s->details)
		obx_smi_details(view, only);
	else
		obx_smi_table(view, only);
}

static int watch(
	const struct settings *s, struct obl_view *view, uint32_t only, struct obx_smi_style style)
{
	struct obx_screen screen = { .terminal = false };

	if (only != OBX_SMI_ALL && only >= view->n_devices) {
		fprintf(stderr, "outboard smi: there is no GPU %u: the server has %u\n", only,
			view->n_devices);
		return OBX_EXIT_UNWELL;
	}
	show(s, view, only, style);
	style.header = false;
	while (s->every_s > 0) {
		if (fflush(stdout) != 0 || ferror(stdout))
			return OBX_EXIT_UNWELL;
		if (obx_screen_wait(&screen, s->every_s))
			return 0;
		if (obl_view_refresh(view))
			return failed(view, &view->cause);
		show(s, view, only, style);
	}
	return 0;
}

static int smi_main(int argc, char **argv)
{
	static struct obl_view view;
	struct settings s = { 0 };
	struct obl_view_terms terms;
	struct obx_smi_style style;
	struct obx_way way;
	struct ob_cause cause = { .code = OB_ERR_NONE };
	char unknown[64];
	uint64_t only = OBX_SMI_ALL;
	int code = ob_options_parse(&obx_smi_command, &s, argc, argv);

	if (code != OB_OPTIONS_GO)
		return code;
	if (!format_read(s.format, &style))
		return ob_usage_error(&obx_smi_command,
			"--format: '%s' is not csv, with noheader "
			"and nounits behind it",
			s.format);
	if (s.gpus && s.apps)
		return ob_usage_error(&obx_smi_command,
			"--query-gpu and --query-compute-apps: give one of the two");
	if (s.device && !ob_text_parse_number(s.device, 0, OBL_VIEW_DEVICES - 1, &only))
		return ob_usage_error(
			&obx_smi_command, "--id: '%s' is not the number of a GPU", s.device);
	if ((s.gpus && obx_smi_unknown(s.gpus, false, unknown, sizeof unknown)) ||
		(s.apps && obx_smi_unknown(s.apps, true, unknown, sizeof unknown)))
		return ob_usage_error(
			&obx_smi_command, "Field \"%s\" is not a valid field to query", unknown);
	code = obx_way_find(&obx_smi_command, getenv("OUTBOARD_POOL"), s.server, &way);
	if (code != OB_OPTIONS_GO)
		return code;
	if (way.pool)
		return ob_usage_error(&obx_smi_command,
			"it shows the GPUs of a server, or in a program of 'outboard run' those of "
			"its reservation; 'outboard gpu list' shows the pool's");
	terms = obl_view_terms_read(way.server);
	if (obl_view_open(&view, &terms, &cause))
		return cause.code == OB_ERR_URL
			? ob_usage_error(&obx_smi_command, "the server's address '%s': %s",
				  terms.servers, cause.text)
			: failed(&view, &cause);
	code = watch(&s, &view, (uint32_t)only, style);
	obl_view_close(&view);
	return code;
}

const struct ob_command obx_smi_command = {
	.name = "outboard smi",
	.group = OBX_GROUP_REMOTE,
	.summary = "the GPUs of a server, as nvidia-smi shows them",
	.about = "Shows the GPUs that a program would see with this server: memory, use, "
		 "temperature, power and the processes of this machine. What the server does not "
		 "know is N/A. The options are those of nvidia-smi.",
	.options = options,
	.main = smi_main,
};
