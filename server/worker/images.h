/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Code images by SHA-256: what this session has uploaded, and behind that the cache of uploads
 * (server/common/cache.h), so that a large image of one client crosses the wire once. Executor only.
 */
#ifndef OBS_IMAGES_H
#define OBS_IMAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "server/common/cache.h"

#define OBS_SHA256_BYTES      32u
#define OBS_IMAGES_MAX        4096u /* images one session has uploaded or asked for */
/* of images a session has in this process's memory */
#define OBS_UPLOADS_BYTES_MAX (2ull << 30)

struct obs_image {
	uint8_t sha256[OBS_SHA256_BYTES];
	uint8_t *data; /* size bytes and a NUL */
	uint64_t size, filled;
	bool whole; /* filled and checked */
};

struct obs_images {
	struct obs_cache *cache; /* the session's; NULL: images do not outlive it */
	struct obs_image *list;
	uint32_t n, capacity;
	uint64_t bytes;
};

/* A whole, checked image or NULL. Valid until the next call here. */
const struct obs_image *obs_images_find(
	struct obs_images *images, const uint8_t sha256[OBS_SHA256_BYTES]);
/*
 * One piece. Pieces come in order. OB_ERR_PROTOCOL (a hole, another total, a wrong hash),
 * OB_ERR_LIMIT, OB_ERR_NO_MEMORY.
 */
enum ob_err obs_images_put(struct obs_images *images, const uint8_t sha256[OBS_SHA256_BYTES],
	uint64_t total, uint64_t offset, const void *data, uint64_t size);

#endif
