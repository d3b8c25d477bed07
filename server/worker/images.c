/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/images.h"

#include <stdlib.h>
#include <string.h>

#include "protocol/obp_calls.h"
#include "server/layers/hold.h"
#include "server/layers/quota.h"
#include "transport/digest.h"

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
	obs_hold_give(OBS_HOLD_IMAGES, image->size);
	*image = images->list[--images->n];
}

static enum ob_err image_add(
	struct obs_images *images, const uint8_t *sha256, uint64_t size, struct obs_image **ret)
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
	if (obs_quota_host(OBS_HOLD_IMAGES, size) != CUDA_SUCCESS)
		return OB_ERR_LIMIT;
	more = &images->list[images->n];
	*more = (struct obs_image){ .size = size, .data = malloc(size + 1) };
	if (!more->data) {
		obs_hold_give(OBS_HOLD_IMAGES, size);
		return OB_ERR_NO_MEMORY;
	}
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

const struct obs_image *obs_images_find(
	struct obs_images *images, const uint8_t sha256[OBS_SHA256_BYTES])
{
	struct obs_image *image = lookup(images, sha256);

	if (image)
		return image->whole ? image : NULL;
	return image_fetch(images, sha256);
}

enum ob_err obs_images_put(struct obs_images *images, const uint8_t sha256[OBS_SHA256_BYTES],
	uint64_t total, uint64_t offset, const void *data, uint64_t size)
{
	struct obs_image *image = lookup(images, sha256);
	enum ob_err err;

	if (image && image->whole)
		/* two threads of the client found it missing at the same time */
		return OB_ERR_NONE;
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
