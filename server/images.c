/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/images.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/text.h"
#include "protocol/obp_calls.h"
#include "transport/digest.h"

#define HASH_NAME_SIZE (2 * OBS_SHA256_BYTES + 1)

void obs_images_open(struct obs_images *images, const char *path)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	char chosen[512];
	struct stat st;

	*images = (struct obs_images){ .dir = -1 };
	if (path)
		snprintf(chosen, sizeof chosen, "%s", path);
	else if (runtime && runtime[0] == '/')
		snprintf(chosen, sizeof chosen, "%.400s/outboard-images", runtime);
	else
		snprintf(chosen, sizeof chosen, "/tmp/outboard-images-%u", (unsigned)geteuid());
	if (mkdir(chosen, 0700) != 0 && errno != EEXIST) {
		ob_warn("code images are not kept: %s: %s", chosen, strerror(errno));
		return;
	}
	images->dir = open(chosen, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	/* Others who could write there could not fool us, the hash is checked; but they could fill or empty it. */
	if (images->dir >= 0 && fstat(images->dir, &st) == 0 && st.st_uid == geteuid() && (st.st_mode & 022) == 0)
		return;
	ob_warn("code images are not kept: %s is not a directory of this user alone", chosen);
	if (images->dir >= 0)
		close(images->dir);
	images->dir = -1;
}

static struct obs_image *lookup(struct obs_images *images, const uint8_t *sha256)
{
	for (uint32_t i = 0; i < images->n; i++)
		if (memcmp(images->list[i].sha256, sha256, OBS_SHA256_BYTES) == 0)
			return &images->list[i];
	return NULL;
}

static void image_drop(struct obs_images *images, struct obs_image *image)
{
	images->bytes -= image->size;
	free(image->data);
	*image = images->list[--images->n];
}

static enum ob_err image_add(struct obs_images *images, const uint8_t *sha256, uint64_t size, struct obs_image **ret)
{
	struct obs_image *more;

	if (images->n == OBS_IMAGES_MAX || size > OBS_UPLOADS_BYTES_MAX - images->bytes)
		return OB_ERR_LIMIT;
	if (images->n == images->capacity) {
		uint32_t capacity = images->capacity ? images->capacity * 2 : 16;

		more = realloc(images->list, capacity * sizeof *more);
		if (!more)
			return OB_ERR_NO_MEMORY;
		images->list = more;
		images->capacity = capacity;
	}
	more = &images->list[images->n];
	*more = (struct obs_image){ .size = size, .data = malloc(size + 1) };
	if (!more->data)
		return OB_ERR_NO_MEMORY;
	more->data[size] = '\0';
	memcpy(more->sha256, sha256, OBS_SHA256_BYTES);
	images->n++;
	images->bytes += size;
	*ret = more;
	return OB_ERR_NONE;
}

static bool image_right(const struct obs_image *image)
{
	uint8_t digest[OBT_SHA256_BYTES];

	obt_digest_sha256(image->data, image->size, digest);
	return memcmp(digest, image->sha256, sizeof digest) == 0;
}

static bool read_all(int fd, uint8_t *data, uint64_t size)
{
	while (size > 0) {
		ssize_t n = read(fd, data, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		data += n;
		size -= (uint64_t)n;
	}
	return true;
}

static bool write_all(int fd, const uint8_t *data, uint64_t size)
{
	while (size > 0) {
		ssize_t n = write(fd, data, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		data += n;
		size -= (uint64_t)n;
	}
	return true;
}

/* From the directory into memory; a file that is not what its name says is removed. */
static struct obs_image *image_fetch(struct obs_images *images, const uint8_t *sha256)
{
	OB_CLEANUP(ob_closep) int fd = -1;
	struct obs_image *image;
	char name[HASH_NAME_SIZE];
	struct stat st;

	if (images->dir < 0)
		return NULL;
	ob_text_hex(sha256, OBS_SHA256_BYTES, name);
	fd = openat(images->dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size <= 0 || st.st_size > (off_t)OBP_IMAGE_MAX)
		return NULL;
	if (image_add(images, sha256, (uint64_t)st.st_size, &image) != OB_ERR_NONE)
		return NULL;
	if (!read_all(fd, image->data, image->size) || !image_right(image)) {
		ob_warn("the kept code image %s is damaged and is removed", name);
		image_drop(images, image);
		unlinkat(images->dir, name, 0);
		return NULL;
	}
	futimens(fd, NULL); /* used now: the last to be thrown away */
	image->filled = image->size;
	image->whole = true;
	return image;
}

const struct obs_image *obs_images_find(struct obs_images *images, const uint8_t sha256[OBS_SHA256_BYTES])
{
	struct obs_image *image = lookup(images, sha256);

	if (image)
		return image->whole ? image : NULL;
	return image_fetch(images, sha256);
}

/* Removes the file that was not used for longest until `room` more bytes fit. */
static void store_shrink(struct obs_images *images, uint64_t room)
{
	for (;;) {
		char oldest[HASH_NAME_SIZE] = "";
		struct timespec oldest_time = { 0 };
		uint64_t bytes = 0, files = 0;
		struct dirent *entry;
		struct stat st;
		DIR *dir;
		int fd = dup(images->dir);

		dir = fd >= 0 ? fdopendir(fd) : NULL;
		if (!dir) {
			if (fd >= 0)
				close(fd);
			return;
		}
		rewinddir(dir);
		while ((entry = readdir(dir)) != NULL) {
			if (fstatat(images->dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
				continue;
			bytes += (uint64_t)st.st_size;
			files++;
			if (strlen(entry->d_name) < sizeof oldest && (!oldest[0] || st.st_mtim.tv_sec < oldest_time.tv_sec)) {
				snprintf(oldest, sizeof oldest, "%.64s", entry->d_name);
				oldest_time = st.st_mtim;
			}
		}
		closedir(dir);
		if ((bytes + room <= OBS_STORE_BYTES_MAX && files < OBS_STORE_FILES_MAX) || !oldest[0])
			return;
		if (unlinkat(images->dir, oldest, 0) != 0)
			return;
	}
}

static void store(struct obs_images *images, const struct obs_image *image)
{
	char name[HASH_NAME_SIZE], temporary[64];
	bool written;
	int fd;

	if (images->dir < 0)
		return;
	store_shrink(images, image->size);
	ob_text_hex(image->sha256, OBS_SHA256_BYTES, name);
	snprintf(temporary, sizeof temporary, "new-%d", (int)getpid());
	unlinkat(images->dir, temporary, 0);
	fd = openat(images->dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	written = write_all(fd, image->data, image->size);
	close(fd);
	if (!written || renameat(images->dir, temporary, images->dir, name) != 0)
		unlinkat(images->dir, temporary, 0); /* kept in this session's memory only */
}

enum ob_err obs_images_put(struct obs_images *images, const uint8_t sha256[OBS_SHA256_BYTES], uint64_t total, uint64_t offset,
	const void *data, uint64_t size)
{
	struct obs_image *image = lookup(images, sha256);
	enum ob_err err;

	if (image && image->whole)
		return OB_ERR_NONE; /* two threads found it missing at the same time */
	if (total == 0 || total > OBP_IMAGE_MAX || size > total || offset > total - size)
		return OB_ERR_PROTOCOL;
	if (!image) {
		err = image_add(images, sha256, total, &image);
		if (err)
			return err;
	}
	if (image->size != total || offset > image->filled)
		return OB_ERR_PROTOCOL;
	if (offset < image->filled) /* another thread uploads the same one, a piece ahead of this */
		return offset + size <= image->filled ? OB_ERR_NONE : OB_ERR_PROTOCOL;
	memcpy(image->data + offset, data, size);
	image->filled += size;
	if (image->filled < total)
		return OB_ERR_NONE;
	if (!image_right(image))
		return OB_ERR_PROTOCOL;
	image->whole = true;
	store(images, image);
	return OB_ERR_NONE;
}
