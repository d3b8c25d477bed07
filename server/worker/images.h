/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Code images by SHA-256: those that this session has uploaded, then those in the cache of uploads
 * (server/common/cache.h), so that a client sends a large image once.
 *
 * An image is awaited from its upload, or from the answer that the server has it, until the load
 * that follows. After that it is idle: kept for a repeated load, and dropped when memory is wanted,
 * the longest unused first. Executor only.
 */
#ifndef OBS_IMAGES_H
#define OBS_IMAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "server/common/cache.h"

#define OBS_SHA256_BYTES      32u
#define OBS_IMAGES_MAX        4096u /* images in this process's memory */
/* bytes of images in this process's memory */
#define OBS_UPLOADS_BYTES_MAX (2ull << 30)
#define OBS_IMAGES_IDLE_BYTES (64ull << 20) /* bytes of idle images, except for the last */
#define OBS_IMAGES_BUCKETS    1024u

struct obs_image {
	uint8_t sha256[OBS_SHA256_BYTES];
	uint8_t *data; /* `size` bytes and a NUL */
	uint64_t size, filled;
	uint32_t awaited;                /* loads that will follow; 0: idle, if whole */
	bool whole;                      /* filled, and its hash was checked */
	struct obs_image *same;          /* next in the bucket */
	struct obs_image *older, *newer; /* idle images */
};

struct obs_images {
	struct obs_cache *cache; /* the session's; NULL: images are not cached */
	struct obs_image *buckets[OBS_IMAGES_BUCKETS];
	struct obs_image *oldest, *newest; /* idle images */
	uint32_t n;
	uint64_t bytes, idle_bytes;
};

/* True: the image is here, whole, and awaits one more load. */
bool obs_images_query(struct obs_images *images, const uint8_t sha256[OBS_SHA256_BYTES]);
/*
 * For a load: a complete image whose hash was checked, or NULL. It stays until obs_images_loaded,
 * which must follow.
 */
struct obs_image *obs_images_find(
	struct obs_images *images, const uint8_t sha256[OBS_SHA256_BYTES]);
void obs_images_loaded(struct obs_images *images, struct obs_image *image);
/* Drops idle images until the budget of host memory has room for `bytes`, or none is left. */
void obs_images_spare(struct obs_images *images, uint64_t bytes);
/*
 * Adds one piece of an image. Pieces must come in order. With the last one the image awaits a load.
 * OB_ERR_PROTOCOL (a gap, another total, a wrong hash), OB_ERR_LIMIT, OB_ERR_NO_MEMORY.
 */
enum ob_err obs_images_put(struct obs_images *images, const uint8_t sha256[OBS_SHA256_BYTES],
	uint64_t total, uint64_t offset, const void *data, uint64_t size);

#endif
