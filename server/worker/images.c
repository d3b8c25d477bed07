/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/images.h"

#include <stdlib.h>
#include <string.h>

#include "protocol/obp_calls.h"
#include "server/layers/hold.h"
#include "server/layers/quota.h"
#include "transport/digest.h"

static struct obs_image **bucket_of(struct obs_images *images, const uint8_t *sha256)
{
	uint32_t bits;

	memcpy(&bits, sha256, sizeof bits);
	return &images->buckets[bits % OBS_IMAGES_BUCKETS];
}

static struct obs_image *lookup(struct obs_images *images, const uint8_t *sha256)
{
	struct obs_image *image = *bucket_of(images, sha256);

	while (image && memcmp(image->sha256, sha256, OBS_SHA256_BYTES) != 0)
		image = image->same;
	return image;
}

static void image_drop(struct obs_images *images, struct obs_image *image)
{
	struct obs_image **link = bucket_of(images, image->sha256);

	while (*link != image)
		link = &(*link)->same;
	*link = image->same;
	images->n--;
	images->bytes -= image->size;
	obs_hold_give(OBS_HOLD_IMAGES, image->size);
	free(image->data);
	free(image);
}

/* ---- idle images ---- */

static void idle_remove(struct obs_images *images, struct obs_image *image)
{
	*(image->older ? &image->older->newer : &images->oldest) = image->newer;
	*(image->newer ? &image->newer->older : &images->newest) = image->older;
	image->older = image->newer = NULL;
	images->idle_bytes -= image->size;
}

static void idle_drop_oldest(struct obs_images *images)
{
	struct obs_image *image = images->oldest;

	idle_remove(images, image);
	image_drop(images, image);
}

static void idle_add(struct obs_images *images, struct obs_image *image)
{
	image->older = images->newest;
	*(image->older ? &image->older->newer : &images->oldest) = image;
	images->newest = image;
	images->idle_bytes += image->size;
	while (images->idle_bytes > OBS_IMAGES_IDLE_BYTES && images->oldest != image)
		idle_drop_oldest(images);
}

static void await(struct obs_images *images, struct obs_image *image)
{
	if (image->awaited == 0)
		idle_remove(images, image);
	if (image->awaited < UINT32_MAX)
		image->awaited++;
}

void obs_images_spare(struct obs_images *images, uint64_t bytes)
{
	while (images->oldest && !obs_hold_room(bytes))
		idle_drop_oldest(images);
}

void obs_images_loaded(struct obs_images *images, struct obs_image *image)
{
	if (--image->awaited == 0)
		idle_add(images, image);
}

/* ---- adding ---- */

static bool room(struct obs_images *images, uint64_t size)
{
	while (images->oldest &&
		(images->n == OBS_IMAGES_MAX || size > OBS_UPLOADS_BYTES_MAX - images->bytes))
		idle_drop_oldest(images);
	obs_images_spare(images, size);
	return images->n < OBS_IMAGES_MAX && size <= OBS_UPLOADS_BYTES_MAX - images->bytes &&
		obs_quota_host(OBS_HOLD_IMAGES, size) == CUDA_SUCCESS;
}

/* The new image is awaited: the call that adds it decides what becomes of it. */
static enum ob_err image_add(
	struct obs_images *images, const uint8_t *sha256, uint64_t size, struct obs_image **ret)
{
	struct obs_image **bucket = bucket_of(images, sha256), *image;

	if (!room(images, size))
		return OB_ERR_LIMIT;
	image = calloc(1, sizeof *image);
	if (image)
		image->data = malloc(size + 1);
	if (!image || !image->data) {
		free(image);
		obs_hold_give(OBS_HOLD_IMAGES, size);
		return OB_ERR_NO_MEMORY;
	}
	memcpy(image->sha256, sha256, OBS_SHA256_BYTES);
	image->data[size] = '\0';
	image->size = size;
	image->awaited = 1;
	image->same = *bucket;
	*bucket = image;
	images->n++;
	images->bytes += size;
	*ret = image;
	return OB_ERR_NONE;
}

static bool image_right(const struct obs_image *image)
{
	uint8_t digest[OBT_SHA256_BYTES];

	obt_digest_sha256(image->data, image->size, digest);
	return memcmp(digest, image->sha256, sizeof digest) == 0;
}

/* Loads the image from the cache of uploads. */
static struct obs_image *image_fetch(struct obs_images *images, const uint8_t *sha256)
{
	uint64_t size = images->cache ? obs_cache_find(images->cache, OBS_CACHE_IMAGE, sha256) : 0;
	struct obs_image *image;

	if (size == 0 || size > OBP_IMAGE_MAX ||
		image_add(images, sha256, size, &image) != OB_ERR_NONE)
		return NULL;
	if (!obs_cache_read(images->cache, OBS_CACHE_IMAGE, sha256, image->data, size)) {
		image_drop(images, image);
		return NULL;
	}
	image->filled = image->size;
	image->whole = true;
	return image;
}

bool obs_images_query(struct obs_images *images, const uint8_t sha256[OBS_SHA256_BYTES])
{
	struct obs_image *image = lookup(images, sha256);

	if (!image)
		return image_fetch(images, sha256) != NULL;
	if (image->whole)
		await(images, image);
	return image->whole;
}

struct obs_image *obs_images_find(struct obs_images *images, const uint8_t sha256[OBS_SHA256_BYTES])
{
	struct obs_image *image = lookup(images, sha256);

	if (!image)
		return image_fetch(images, sha256);
	if (!image->whole)
		return NULL;
	if (!image->awaited)
		await(images, image); /* the client did not ask before */
	return image;
}

enum ob_err obs_images_put(struct obs_images *images, const uint8_t sha256[OBS_SHA256_BYTES],
	uint64_t total, uint64_t offset, const void *data, uint64_t size)
{
	struct obs_image *image = lookup(images, sha256);
	enum ob_err err;

	if (image && image->whole) {
		/* two threads of the client found it missing at the same time */
		if (offset + size == total)
			await(images, image);
		return OB_ERR_NONE;
	}
	if (total == 0 || total > OBP_IMAGE_MAX || size > total || offset > total - size)
		return OB_ERR_PROTOCOL;
	if (!image) {
		err = image_add(images, sha256, total, &image);
		if (err)
			return err;
	}
	if (image->size != total || offset > image->filled)
		return OB_ERR_PROTOCOL;
	/* another thread of the client is uploading the same image and is ahead */
	if (offset < image->filled)
		return offset + size <= image->filled ? OB_ERR_NONE : OB_ERR_PROTOCOL;
	memcpy(image->data + offset, data, size);
	image->filled += size;
	if (image->filled < total)
		return OB_ERR_NONE;
	if (!image_right(image))
		return OB_ERR_PROTOCOL;
	image->whole = true;
	if (images->cache)
		obs_cache_put(images->cache, OBS_CACHE_IMAGE, sha256, image->data, image->size);
	return OB_ERR_NONE;
}
