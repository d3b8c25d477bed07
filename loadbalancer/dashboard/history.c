/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/dashboard/history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/uuid.h"

#define NONE       UINT16_MAX /* nothing was reported */
#define POOL_WATTS 100u       /* unit of the power of the pool, so that it fits 16 bits */

enum series { BUSY, MEMORY, POWER, CELSIUS, SERIES };

/* per mille, per mille of the memory, watts, degrees */
static const char *const names[SERIES] = { "utilization", "memory", "power", "temperature" };

struct obl_track {
	uint8_t uuid[16];
	uint32_t begun; /* points so far, at most OBL_HISTORY_POINTS */
	uint32_t next;  /* place of the next point */
	uint32_t quiet; /* points since it was last seen */
	/* Of the looks since the last point: sums, and the highest temperature. */
	uint64_t sum[SERIES];
	uint32_t looks[SERIES];
	uint16_t points[OBL_HISTORY_POINTS][SERIES];
};

void obl_history_init(struct obl_history *history, uint32_t look_ms)
{
	memset(history, 0, sizeof *history);
	history->look_ms = look_ms ? look_ms : OBL_HISTORY_LOOK_MS;
	history->pool = calloc(1, sizeof *history->pool);
}

void obl_history_fini(struct obl_history *history)
{
	for (uint32_t i = 0; i < history->n; i++)
		free(history->tracks[i]);
	free(history->tracks);
	free(history->pool);
	memset(history, 0, sizeof *history);
}

/* ---- tracks ---- */

/* The index of this UUID, or where it would be inserted. */
static uint32_t place_of(const struct obl_history *history, const uint8_t uuid[16])
{
	uint32_t low = 0, high = history->n;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (memcmp(history->tracks[middle]->uuid, uuid, 16) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct obl_track *track_find(const struct obl_history *history, const uint8_t uuid[16])
{
	uint32_t at = place_of(history, uuid);

	return at < history->n && memcmp(history->tracks[at]->uuid, uuid, 16) == 0
		? history->tracks[at]
		: NULL;
}

static struct obl_track *track_add(struct obl_history *history, const uint8_t uuid[16])
{
	uint32_t at = place_of(history, uuid);
	struct obl_track *track;

	if (history->n == OBL_HISTORY_GPUS_MAX)
		return NULL;
	if (history->n == history->room) {
		uint32_t room = history->room ? 2 * history->room : 64;
		struct obl_track **more =
			realloc(history->tracks, room * sizeof(struct obl_track *));

		if (!more)
			return NULL;
		history->tracks = more;
		history->room = room;
	}
	track = calloc(1, sizeof *track);
	if (!track)
		return NULL;
	memcpy(track->uuid, uuid, 16);
	memmove(history->tracks + at + 1, history->tracks + at,
		(history->n - at) * sizeof(struct obl_track *));
	history->tracks[at] = track;
	history->n++;
	return track;
}

static void reading_add(struct obl_track *track, enum series series, uint64_t value)
{
	if (value >= NONE)
		value = NONE - 1;
	if (series == CELSIUS) { /* the highest */
		track->sum[CELSIUS] = value > track->sum[CELSIUS] ? value : track->sum[CELSIUS];
		track->looks[CELSIUS] = 1;
		return;
	}
	track->sum[series] += value;
	track->looks[series]++;
}

struct pool_sums {
	struct obl_history *history;
	uint64_t busy, n_busy, used, total, watts;
	uint32_t celsius;
	bool any_power, any_celsius;
};

static void readings_add(struct obl_track *track, const struct obl_seen_gpu *gpu)
{
	if (gpu->known >> OBL_READ_BUSY & 1)
		reading_add(track, BUSY, gpu->busy);
	if (gpu->known >> OBL_READ_USED & 1 && gpu->total)
		reading_add(
			track, MEMORY, (uint64_t)(1000.0 * (double)gpu->used / (double)gpu->total));
	if (gpu->known >> OBL_READ_POWER & 1)
		reading_add(track, POWER, gpu->milliwatts / 1000);
	if (gpu->known >> OBL_READ_CELSIUS & 1)
		reading_add(track, CELSIUS, gpu->celsius);
}

static void sums_add(struct pool_sums *sums, const struct obl_seen_gpu *gpu)
{
	if (gpu->known >> OBL_READ_BUSY & 1) {
		sums->busy += gpu->busy;
		sums->n_busy++;
	}
	if (gpu->known >> OBL_READ_USED & 1) {
		sums->used += gpu->used;
		sums->total += gpu->total;
	}
	if (gpu->known >> OBL_READ_POWER & 1) {
		sums->watts += gpu->milliwatts / 1000;
		sums->any_power = true;
	}
	if (gpu->known >> OBL_READ_CELSIUS & 1) {
		sums->celsius = gpu->celsius > sums->celsius ? gpu->celsius : sums->celsius;
		sums->any_celsius = true;
	}
}

static void gpu_seen(void *to, const struct obl_seen_gpu *gpu)
{
	struct pool_sums *sums = to;
	struct obl_track *track = track_find(sums->history, gpu->uuid);

	sums_add(sums, gpu);
	if (!track)
		track = track_add(sums->history, gpu->uuid);
	if (!track)
		return;
	track->quiet = 0;
	readings_add(track, gpu);
}

static void point_make(struct obl_track *track)
{
	uint16_t *point = track->points[track->next];

	for (unsigned s = 0; s < SERIES; s++)
		point[s] = track->looks[s] ? (uint16_t)(track->sum[s] / track->looks[s]) : NONE;
	memset(track->sum, 0, sizeof track->sum);
	memset(track->looks, 0, sizeof track->looks);
	track->next = (track->next + 1) % OBL_HISTORY_POINTS;
	track->begun += track->begun < OBL_HISTORY_POINTS;
	track->quiet++;
}

void obl_history_look(struct obl_history *history, const struct obl_source *source)
{
	struct pool_sums sums = { .history = history };
	uint32_t kept = 0;

	if (!history->pool)
		return;
	source->refresh(source->user);
	source->gpus(source->user, gpu_seen, &sums);
	if (sums.n_busy)
		reading_add(history->pool, BUSY, sums.busy / sums.n_busy);
	if (sums.total)
		reading_add(history->pool, MEMORY,
			(uint64_t)(1000.0 * (double)sums.used / (double)sums.total));
	if (sums.any_power)
		reading_add(history->pool, POWER, sums.watts / POOL_WATTS);
	if (sums.any_celsius)
		reading_add(history->pool, CELSIUS, sums.celsius);
	if (++history->looks < OBL_HISTORY_LOOKS)
		return;
	history->looks = 0;
	point_make(history->pool);
	for (uint32_t i = 0; i < history->n; i++) {
		struct obl_track *track = history->tracks[i];

		point_make(track);
		if (track->quiet > OBL_HISTORY_POINTS)
			free(track);
		else
			history->tracks[kept++] = track;
	}
	history->n = kept;
}

/* ---- the document ---- */

static void point_write(struct ob_json *json, enum series series, uint16_t value, bool pool)
{
	if (value == NONE)
		ob_json_null(json, NULL);
	else if (series == BUSY || series == MEMORY)
		ob_json_fixed(json, NULL, value / 1000.0, 3);
	else
		ob_json_uint(json, NULL, series == POWER && pool ? value * POOL_WATTS : value);
}

static void track_write(
	struct ob_json *json, const char *key, const struct obl_track *track, bool pool)
{
	uint32_t first = (track->next + OBL_HISTORY_POINTS - track->begun) % OBL_HISTORY_POINTS;

	ob_json_object(json, key);
	for (unsigned s = 0; s < SERIES; s++) {
		ob_json_array(json, names[s]);
		for (uint32_t i = 0; i < track->begun; i++)
			point_write(
				json, s, track->points[(first + i) % OBL_HISTORY_POINTS][s], pool);
		ob_json_end(json);
	}
	ob_json_end(json);
}

static void gpus_write(struct ob_json *json, const struct obl_history *history,
	const uint8_t (*uuids)[16], unsigned n)
{
	ob_json_object(json, "gpus");
	for (unsigned i = 0; i < n; i++) {
		const struct obl_track *track = track_find(history, uuids[i]);
		char key[OB_UUID_TEXT];

		if (!track)
			continue;
		ob_uuid_print(uuids[i], key);
		track_write(json, key, track, false);
	}
	ob_json_end(json);
}

bool obl_history_document(const struct obl_history *history, const uint8_t (*uuids)[16], unsigned n,
	char **ret_text, size_t *ret_size)
{
	struct ob_json json;
	char *text = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);
	bool failed;

	if (!file)
		return false;
	ob_json_begin(&json, file, OB_JSON_COMPACT);
	ob_json_object(&json, NULL);
	ob_json_uint(&json, "schema", 1);
	ob_json_double(&json, "step_s", history->look_ms * OBL_HISTORY_LOOKS / 1000.0, 0);
	if (n)
		gpus_write(&json, history, uuids, n);
	else if (history->pool)
		track_write(&json, "pool", history->pool, true);
	ob_json_end(&json);
	failed = ferror(file);
	if (fclose(file) != 0 || failed) {
		free(text);
		return false;
	}
	*ret_text = text;
	*ret_size = size;
	return true;
}
