/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/command/rqa/store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "compute/command/rqa/table.h"

#define MAGIC    "OBXRQA2\n"
#define HEAD_MAX (1u << 30)
#define ALIGN    4096u

struct obx_store {
	char path[PATH_MAX];
	int fd, lock;
	uint64_t slots, start; /* start: position of slot 0 in the file */
	size_t slot_bytes;
	uint32_t rows, measures, modes, tau_count;
	uint64_t files;
	/* read by other threads while rows arrive; a mark is set after its slot was written */
	_Atomic uint8_t *marks;
	const char *map; /* mapping of the whole file, made when the first row is requested */
};

/* A head as stored in a file. Strings and lists follow each other, each preceded by its count. */
struct head {
	struct ob_buf bytes;
	size_t at;
	struct obx_store_key key;
	struct obx_grid grid;
	char **modes, **files;
	uint64_t *hashes;
	unsigned *measures;
	char *settings;
};

static void put_list(struct ob_buf *buf, const void *data, uint64_t count, size_t size)
{
	ob_buf_append(buf, &count, sizeof count);
	ob_buf_append(buf, data, count * size);
}

static bool print_head(const struct obx_store_key *key, struct ob_buf *buf, struct obx_error *error)
{
	const struct obx_grid *g = key->grid;
	uint64_t total = 0, check;
	size_t place;

	ob_buf_append(buf, MAGIC, 8);
	place = buf->size;
	ob_buf_append(buf, &total, sizeof total);
	put_list(buf, key->settings, strlen(key->settings) + 1, 1);
	put_list(buf, g->m, g->m_count, sizeof *g->m);
	put_list(buf, g->tau, g->tau_count, sizeof *g->tau);
	put_list(buf, g->eps, g->eps_count, sizeof *g->eps);
	put_list(buf, g->lmin, g->lmin_count, sizeof *g->lmin);
	put_list(buf, key->measures, key->measure_count, sizeof *key->measures);
	put_list(buf, &key->mode_count, 1, sizeof key->mode_count);
	for (uint32_t i = 0; i < key->mode_count; i++)
		put_list(buf, key->modes[i], strlen(key->modes[i]) + 1, 1);
	put_list(buf, key->hashes, key->file_count, sizeof *key->hashes);
	for (uint64_t i = 0; i < key->file_count; i++)
		put_list(buf, key->files[i], strlen(key->files[i]) + 1, 1);
	if (buf->failed)
		return obx_error_set(error, "out of memory for the state of the sweep");
	total = buf->size + sizeof check;
	memcpy(buf->data + place, &total, sizeof total);
	check = ob_hash(OB_HASH_START, buf->data, buf->size);
	ob_buf_append(buf, &check, sizeof check);
	return buf->failed ? obx_error_set(error, "out of memory for the state of the sweep")
			   : true;
}

static bool pread_all(int fd, void *data, size_t size, uint64_t at)
{
	while (size) {
		ssize_t n = pread(fd, data, size, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			if (n == 0)
				errno = 0;
			return false;
		}
		data = (char *)data + n;
		size -= (size_t)n;
		at += (uint64_t)n;
	}
	return true;
}

static bool pwrite_all(int fd, const void *data, size_t size, uint64_t at)
{
	while (size) {
		ssize_t n = pwrite(fd, data, size, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		data = (const char *)data + n;
		size -= (size_t)n;
		at += (uint64_t)n;
	}
	return true;
}

/* Reads the head of a file; false: there is none, or it is incomplete. */
static bool read_head(int fd, struct ob_buf *buf)
{
	uint64_t total, check;
	char start[16];

	if (!pread_all(fd, start, sizeof start, 0) || memcmp(start, MAGIC, 8) != 0)
		return false;
	memcpy(&total, start + 8, sizeof total);
	if (total < 64 || total > HEAD_MAX || !ob_buf_extend(buf, total) ||
		!pread_all(fd, buf->data, total, 0))
		return false;
	memcpy(&check, buf->data + total - sizeof check, sizeof check);
	return check == ob_hash(OB_HASH_START, buf->data, total - sizeof check);
}

/*
 * The checksum of the head was verified, so counts are as they were written. NULL only at the end
 * of a shorter head that another version wrote.
 */
static void *get_list(struct head *h, uint64_t *ret_count, size_t size)
{
	uint64_t count;
	void *data;

	if (h->at + sizeof count > h->bytes.size)
		return NULL;
	memcpy(&count, h->bytes.data + h->at, sizeof count);
	h->at += sizeof count;
	if (count > (h->bytes.size - h->at) / size)
		return NULL;
	data = malloc(count * size + 1); /* a copy: the bytes in the head are not aligned */
	if (data)
		memcpy(data, h->bytes.data + h->at, count * size);
	h->at += count * size;
	*ret_count = count;
	return data;
}

static bool parse_head(struct head *h)
{
	uint64_t n = 0, count = 0;
	uint32_t *modes;

	h->at = 16;
	h->settings = get_list(h, &n, 1);
	h->grid.m = get_list(h, &n, sizeof *h->grid.m);
	h->grid.m_count = (uint32_t)n;
	h->grid.tau = get_list(h, &n, sizeof *h->grid.tau);
	h->grid.tau_count = (uint32_t)n;
	h->grid.eps = get_list(h, &n, sizeof *h->grid.eps);
	h->grid.eps_count = (uint32_t)n;
	h->grid.lmin = get_list(h, &n, sizeof *h->grid.lmin);
	h->grid.lmin_count = (uint32_t)n;
	h->measures = get_list(h, &n, sizeof *h->measures);
	h->key.measure_count = (uint32_t)n;
	modes = get_list(h, &n, sizeof *modes);
	if (!h->settings || !h->grid.m || !h->grid.tau || !h->grid.eps || !h->grid.lmin ||
		!h->measures || !modes) {
		free(modes);
		return false;
	}
	h->key.mode_count = *modes;
	free(modes);
	h->modes = calloc(h->key.mode_count + 1, sizeof *h->modes);
	for (uint32_t i = 0; h->modes && i < h->key.mode_count; i++)
		if (!(h->modes[i] = get_list(h, &n, 1)))
			return false;
	h->hashes = get_list(h, &count, sizeof *h->hashes);
	h->key.file_count = h->hashes ? count : 0;
	h->files = calloc(h->key.file_count + 1, sizeof *h->files);
	for (uint64_t i = 0; h->files && i < h->key.file_count; i++)
		if (!(h->files[i] = get_list(h, &n, 1)))
			return false;
	h->key.grid = &h->grid;
	return h->modes && h->hashes && h->files;
}

static void head_fini(struct head *h)
{
	for (uint32_t i = 0; h->modes && i < h->key.mode_count; i++)
		free(h->modes[i]);
	for (uint64_t i = 0; h->files && i < h->key.file_count; i++)
		free(h->files[i]);
	free(h->modes);
	free(h->files);
	free(h->hashes);
	free(h->measures);
	free(h->settings);
	obx_grid_fini(&h->grid);
	ob_buf_fini(&h->bytes);
}

/* ---- slots ---- */

/* offsets of check, reason, status and values */
/* all are multiples of eight, so that values are aligned in memory and in a mapping */
#define SLOT_REASON sizeof(uint64_t)
#define SLOT_STATUS (SLOT_REASON + OBX_REASON_MAX)

static size_t status_bytes(uint32_t rows)
{
	return (rows + 7u) & ~7u;
}

static void layout(struct obx_store *s, const struct obx_store_key *key, uint64_t head_bytes)
{
	s->rows = key->grid->eps_count * key->grid->lmin_count;
	s->measures = key->measure_count;
	s->modes = key->mode_count;
	s->files = key->file_count;
	s->tau_count = key->grid->tau_count;
	s->slots = (uint64_t)key->grid->m_count * s->tau_count * s->files * s->modes;
	s->slot_bytes =
		SLOT_STATUS + status_bytes(s->rows) + sizeof(double) * s->rows * s->measures;
	s->start = (head_bytes + ALIGN - 1) / ALIGN * ALIGN;
	_Static_assert(SLOT_STATUS % 8 == 0, "values would not be aligned");
}

uint64_t obx_store_slot(const struct obx_store *s, uint32_t m_index, uint32_t tau_index,
	uint64_t file, uint32_t mode)
{
	return (((uint64_t)m_index * s->tau_count + tau_index) * s->files + file) * s->modes + mode;
}

uint32_t obx_store_rows(const struct obx_store *s)
{
	return s->rows;
}

const _Atomic uint8_t *obx_store_marks(const struct obx_store *s)
{
	return s->marks;
}

bool obx_group_init(struct obx_group *group, const struct obx_store *s)
{
	memset(group, 0, sizeof *group);
	group->memory = calloc(1, s->slot_bytes);
	if (!group->memory)
		return false;
	group->reason = (char *)group->memory + SLOT_REASON;
	group->status = (uint8_t *)group->memory + SLOT_STATUS;
	group->values =
		(double *)(void *)((char *)group->memory + SLOT_STATUS + status_bytes(s->rows));
	return true;
}

void obx_group_fini(struct obx_group *group)
{
	free(group->memory);
	group->memory = NULL;
}

/*
 * The slot's number is the seed, so that a slot at a wrong position is detected. Never 0, which is
 * the check of a hole in the file.
 */
static uint64_t slot_check(uint64_t slot, const void *memory, size_t size)
{
	uint64_t check;

	return ob_hash_words(OB_HASH_START ^ slot, (const char *)memory + sizeof check,
		       size - sizeof check) |
		1;
}

static uint8_t mark_of(const struct obx_store *s, const struct obx_group *group)
{
	for (uint32_t i = 0; i < s->rows; i++)
		if (group->status[i] != OBK_RQA_OK)
			return OBX_MARK_FAILED;
	return OBX_MARK_DONE;
}

bool obx_store_put(
	struct obx_store *s, uint64_t slot, struct obx_group *group, struct obx_error *error)
{
	uint64_t check = slot_check(slot, group->memory, s->slot_bytes);

	memcpy(group->memory, &check, sizeof check);
	if (!pwrite_all(s->fd, group->memory, s->slot_bytes, s->start + slot * s->slot_bytes))
		return obx_error_set(error,
			"%s cannot be written: %s; make room on the disk and run the same command "
			"again, it goes on where it stopped",
			s->path, strerror(errno));
	s->marks[slot] = mark_of(s, group);
	return true;
}

static bool get_slot(const struct obx_store *s, int fd, uint64_t slot, struct obx_group *group)
{
	uint64_t check;

	if (!pread_all(fd, group->memory, s->slot_bytes, s->start + slot * s->slot_bytes))
		return false;
	memcpy(&check, group->memory, sizeof check);
	return check && check == slot_check(slot, group->memory, s->slot_bytes);
}

bool obx_store_get(
	const struct obx_store *s, uint64_t slot, struct obx_group *group, struct obx_error *error)
{
	error->text[0] = 0;
	if (s->marks[slot] == OBX_MARK_NONE)
		return false;
	if (get_slot(s, s->fd, slot, group))
		return true;
	return obx_error_set(
		error, "%s was changed by someone else; run the sweep again with --fresh", s->path);
}

const double *obx_store_row(struct obx_store *s, uint64_t slot, uint32_t row, uint8_t *ret_status)
{
	const char *at;

	if (s->marks[slot] == OBX_MARK_NONE)
		return NULL;
	if (!s->map) {
		void *map = mmap(
			NULL, s->start + s->slots * s->slot_bytes, PROT_READ, MAP_SHARED, s->fd, 0);

		if (map == MAP_FAILED)
			return NULL;
		s->map = map;
	}
	at = s->map + s->start + slot * s->slot_bytes + SLOT_STATUS;
	*ret_status = (uint8_t)at[row];
	return (const double *)(const void *)(at + status_bytes(s->rows)) +
		(size_t)row * s->measures;
}

/* ---- opening ---- */

static int find_text(char **have, uint64_t count, const char *text)
{
	for (uint64_t i = 0; i < count; i++)
		if (strcmp(have[i], text) == 0)
			return (int)i;
	return -1;
}

static int find_whole(const uint32_t *have, uint32_t count, uint32_t value)
{
	for (uint32_t i = 0; i < count; i++)
		if (have[i] == value)
			return (int)i;
	return -1;
}

/* Finds the row of the old grid for each row of the new one; false: one does not exist. */
static bool map_rows(const struct obx_grid *new, const struct obx_grid *old, uint32_t *ret_map)
{
	for (uint32_t e = 0; e < new->eps_count; e++)
		for (uint32_t l = 0; l < new->lmin_count; l++) {
			int lmin = find_whole(old->lmin, old->lmin_count, new->lmin[l]), eps = -1;

			for (uint32_t i = 0; i < old->eps_count; i++)
				if (old->eps[i] == new->eps[e])
					eps = (int)i;
			if (lmin < 0 || eps < 0)
				return false;
			ret_map[e * new->lmin_count + l] =
				(uint32_t)eps * old->lmin_count + (uint32_t)lmin;
		}
	return true;
}

/* Copies the old state's slots of this (file, mode) to the new one. */
static bool take_over(struct obx_store *s, const struct obx_store_key *key, uint64_t file,
	uint32_t mode, const struct obx_store *old, int old_fd, const struct head *h,
	const uint64_t place[2], const uint32_t *map, struct obx_group groups[2],
	struct obx_error *error)
{
	const struct obx_grid *g = key->grid;

	for (uint32_t m = 0; m < g->m_count; m++)
		for (uint32_t t = 0; t < g->tau_count; t++) {
			int om = find_whole(h->grid.m, h->grid.m_count, g->m[m]),
			    ot = find_whole(h->grid.tau, h->grid.tau_count, g->tau[t]);
			struct obx_group *from = &groups[0], *to = &groups[1];

			if (om < 0 || ot < 0 ||
				!get_slot(old, old_fd,
					obx_store_slot(old, (uint32_t)om, (uint32_t)ot, place[0],
						(uint32_t)place[1]),
					from))
				continue;
			memcpy(to->reason, from->reason, OBX_REASON_MAX);
			for (uint32_t i = 0; i < s->rows; i++) {
				to->status[i] = from->status[map[i]];
				memcpy(to->values + (size_t)i * s->measures,
					from->values + (size_t)map[i] * s->measures,
					s->measures * sizeof(double));
			}
			if (!obx_store_put(s, obx_store_slot(s, m, t, file, mode), to, error))
				return false;
		}
	return true;
}

static bool import(struct obx_store *s, const struct obx_store_key *key,
	const struct obx_store *old, int old_fd, const struct head *h, struct obx_error *error)
{
	OB_CLEANUP(ob_freep) uint32_t *map = malloc(s->rows * sizeof *map);
	struct obx_group groups[2] = { { 0 }, { 0 } };
	bool good = map && obx_group_init(&groups[0], old) && obx_group_init(&groups[1], s);
	uint64_t next = 0; /* both lists are sorted */

	if (!good)
		obx_error_set(error, "out of memory for the state of the sweep");
	else if (!map_rows(key->grid, &h->grid, map))
		/*
		 * with new thresholds everything is counted again, which takes little more time
		 * than counting only the new ones
		 */
		goto out;
	for (uint64_t f = 0; good && f < key->file_count; f++) {
		while (next < h->key.file_count && strcmp(h->files[next], key->files[f]) < 0)
			next++;
		if (next == h->key.file_count || strcmp(h->files[next], key->files[f]) != 0 ||
			h->hashes[next] != key->hashes[f])
			continue;
		for (uint32_t mode = 0; good && mode < key->mode_count; mode++) {
			int at = find_text(h->modes, h->key.mode_count, key->modes[mode]);
			uint64_t place[2] = { next, (uint64_t)at };

			if (at >= 0)
				good = take_over(
					s, key, f, mode, old, old_fd, h, place, map, groups, error);
		}
	}
out:
	obx_group_fini(&groups[0]);
	obx_group_fini(&groups[1]);
	return good;
}

static bool enough_room(const struct obx_store *s, const char *out, struct obx_error *error)
{
	struct statvfs vfs;
	double need = (double)s->slots * (double)s->slot_bytes, have;

	if (s->slots > OBX_STORE_SLOTS_MAX)
		return obx_error_set(error,
			"the sweep has %llu (file, mode, m, tau) groups, more than the %u allowed; "
			"take a smaller grid or fewer files",
			(unsigned long long)s->slots, OBX_STORE_SLOTS_MAX);
	if (statvfs(out, &vfs) != 0)
		return true; /* some file systems do not report it */
	have = (double)vfs.f_bavail * (double)vfs.f_frsize;
	return need <= have ? true
			    : obx_error_set(error,
				      "the sweep needs %.1f GiB in %s for its state, but only %.1f "
				      "GiB are free; take a smaller "
				      "grid, fewer measures, or another --out",
				      need / (1 << 30), out, have / (1 << 30));
}

/*
 * Creates a new state with the matching slots of an old one (fd >= 0); renames it when it is
 * complete.
 */
static bool create(struct obx_store *s, const char *out, const struct obx_store_key *key,
	const struct ob_buf *head, int old_fd, const struct obx_store *old,
	const struct head *old_head, struct obx_error *error)
{
	char part[PATH_MAX + 8];

	if (!enough_room(s, out, error))
		return false;
	snprintf(part, sizeof part, "%s.part", s->path);
	s->fd = open(part, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (s->fd < 0 || !pwrite_all(s->fd, head->data, head->size, 0))
		return obx_error_set(error,
			"%s cannot be written: %s; make room or name another place with --out",
			s->path, strerror(errno));
	if (old_fd >= 0 && !import(s, key, old, old_fd, old_head, error))
		return false;
	if (ftruncate(s->fd, (off_t)(s->start + s->slots * s->slot_bytes)) != 0 ||
		rename(part, s->path) != 0)
		return obx_error_set(error,
			"%s cannot be written: %s; make room or name another place with --out",
			s->path, strerror(errno));
	return true;
}

static bool scan(struct obx_store *s, struct obx_error *error)
{
	struct obx_group group;
	uint64_t at = 0;

	if (!obx_group_init(&group, s))
		return obx_error_set(error, "out of memory for the state of the sweep");
	while (at < s->slots) {
		/* Skip holes. */
		off_t data = lseek(s->fd, (off_t)(s->start + at * s->slot_bytes), SEEK_DATA);

		if (data < 0)
			break;
		if ((uint64_t)data > s->start + at * s->slot_bytes)
			at = ((uint64_t)data - s->start) / s->slot_bytes;
		if (at >= s->slots)
			break;
		s->marks[at] = get_slot(s, s->fd, at, &group) ? mark_of(s, &group) : OBX_MARK_NONE;
		at++;
	}
	obx_group_fini(&group);
	return true;
}

static bool open_state(struct obx_store *s, const char *out, const struct obx_store_key *key,
	const struct ob_buf *head, bool fresh, struct obx_error *error)
{
	OB_CLEANUP(ob_closep) int old_fd = fresh ? -1 : open(s->path, O_RDWR | O_CLOEXEC);
	OB_CLEANUP(head_fini) struct head h = { 0 };
	struct obx_store old = { 0 };

	ob_buf_init(&h.bytes, HEAD_MAX);
	if (old_fd < 0)
		return create(s, out, key, head, -1, NULL, NULL, error);
	if (!read_head(old_fd, &h.bytes) || !parse_head(&h))
		return obx_error_set(error,
			"%s is damaged or of another version; start over with --fresh, or name "
			"another place with --out",
			s->path);
	if (h.bytes.size == head->size && memcmp(h.bytes.data, head->data, head->size) == 0) {
		s->fd = old_fd;
		old_fd = -1;
		return scan(s, error);
	}
	if (strcmp(h.settings, key->settings) != 0 || h.key.measure_count != key->measure_count ||
		memcmp(h.measures, key->measures, key->measure_count * sizeof *key->measures) != 0)
		return obx_error_set(error,
			"%s holds a sweep with other options or measures; name another place with "
			"--out, or start over with --fresh",
			out);
	layout(&old, &h.key, h.bytes.size);
	return create(s, out, key, head, old_fd, &old, &h, error);
}

bool obx_store_open(const char *out, const struct obx_store_key *key, bool fresh,
	struct obx_store **ret_store, struct obx_error *error)
{
	struct obx_store *s = calloc(1, sizeof *s);
	char lock[PATH_MAX + 16];
	struct ob_buf head;
	bool good = false;

	ob_buf_init(&head, HEAD_MAX);
	if (!s) {
		obx_error_set(error, "out of memory for the state of the sweep");
		goto out;
	}
	s->fd = s->lock = -1;
	if (snprintf(s->path, sizeof s->path, "%s/%s", out, OBX_STORE_NAME) >=
		(int)sizeof s->path) {
		obx_error_set(error, "the name of the output folder is too long");
		goto out;
	}
	snprintf(lock, sizeof lock, "%s/.sweep.lock", out);
	s->lock = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (s->lock < 0) {
		obx_error_set(error, "%s cannot be written: %s; name another place with --out", out,
			strerror(errno));
		goto out;
	}
	if (flock(s->lock, LOCK_EX | LOCK_NB) != 0) {
		obx_error_set(error,
			"another sweep is writing to %s; wait for it or name another place with "
			"--out",
			out);
		goto out;
	}
	if (!print_head(key, &head, error))
		goto out;
	layout(s, key, head.size);
	s->marks = calloc(s->slots <= OBX_STORE_SLOTS_MAX ? s->slots : 1, 1);
	if (!s->marks) {
		obx_error_set(error, "out of memory for the state of the sweep");
		goto out;
	}
	good = open_state(s, out, key, &head, fresh, error);
out:
	ob_buf_fini(&head);
	if (good)
		*ret_store = s;
	else
		obx_store_free(s);
	return good;
}

void obx_store_free(struct obx_store *s)
{
	if (!s)
		return;
	if (s->map)
		munmap((void *)(uintptr_t)s->map, s->start + s->slots * s->slot_bytes);
	if (s->fd >= 0)
		close(s->fd);
	if (s->lock >= 0)
		close(s->lock);
	free(s->marks);
	free(s);
}
