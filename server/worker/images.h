/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Code images by SHA-256: those that this session has uploaded, then those in the cache of uploads
 * (server/common/cache.h), so that a client sends a large image once.
 */
#ifndef OBS_IMAGES_H
#define OBS_IMAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "server/common/cache.h"

#define OBS_SHA256_BYTES      32u
#define OBS_IMAGES_MAX        4096u /* images that one session has uploaded or asked for */
/* bytes of images in this process's memory */
#define OBS_UPLOADS_BYTES_MAX (2ull << 30)

struct obs_image {
	uint8_t sha256[OBS_SHA256_BYTES];
	uint8_t *data; /* `size` bytes and a NUL */
	uint64_t size, filled;
	bool whole; /* filled, and its hash was checked */
};

struct obs_images {
	struct obs_cache *cache; /* the session's; NULL: images are not cached */
	struct obs_image *list;
	uint32_t n, capacity;
	uint64_t bytes;
};

/* A complete image whose hash was checked, or NULL. Valid until the next call here. */
const struct obs_image *obs_images_find(
	struct obs_images *images, const uint8_t sha256[OBS_SHA256_BYTES]);
/*
 * Adds one piece of an image. Pieces must come in order. OB_ERR_PROTOCOL (a gap, another total, a
 * wrong hash), OB_ERR_LIMIT, OB_ERR_NO_MEMORY.
 */
enum ob_err obs_images_put(struct obs_images *images, const uint8_t sha256[OBS_SHA256_BYTES],
	uint64_t total, uint64_t offset, const void *data, uint64_t size);

#endif
