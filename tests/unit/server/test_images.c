/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* What a session keeps of the code images that it has uploaded. */
#include "server/common/stats_page.h"
#include "server/layers/hold.h"
#include "server/worker/images.h"
#include "tests/test.h"
#include "transport/digest.h"

#define MIB (1u << 20)

static struct obs_images images;

static void name_of(uint32_t n, uint32_t size, uint8_t *data, uint8_t sha256[OBS_SHA256_BYTES])
{
	memset(data, 'x', size);
	memcpy(data, &n, sizeof n);
	obt_digest_sha256(data, size, sha256);
}

/* Uploads image n. */
static enum ob_err put(uint32_t n, uint32_t size)
{
	static uint8_t data[MIB];
	uint8_t sha256[OBS_SHA256_BYTES];

	name_of(n, size, data, sha256);
	return obs_images_put(&images, sha256, size, 0, data, size);
}

static bool query(uint32_t n, uint32_t size)
{
	static uint8_t data[MIB];
	uint8_t sha256[OBS_SHA256_BYTES];

	name_of(n, size, data, sha256);
	return obs_images_query(&images, sha256);
}

/* False: the image is not there. */
static bool load(uint32_t n, uint32_t size)
{
	static uint8_t data[MIB];
	uint8_t sha256[OBS_SHA256_BYTES];
	struct obs_image *image;

	name_of(n, size, data, sha256);
	image = obs_images_find(&images, sha256);
	if (!image)
		return false;
	CHECK_INT(image->size, size);
	CHECK(memcmp(image->data, data, size) == 0 && image->data[size] == 0);
	obs_images_loaded(&images, image);
	return true;
}

TEST(different_images_without_end)
{
	for (uint32_t i = 0; i < 2 * OBS_IMAGES_MAX + 5; i++) {
		CHECK_INT(put(i, 64), OB_ERR_NONE);
		CHECK(load(i, 64));
	}
	CHECK_INT(images.n, OBS_IMAGES_MAX);
	CHECK_INT(images.bytes, OBS_IMAGES_MAX * 64);
	CHECK(!query(0, 64) && !load(OBS_IMAGES_MAX, 64)); /* the longest unused are gone */
	CHECK(query(2 * OBS_IMAGES_MAX + 4, 64));
}

TEST(idle_images_have_a_maximum_size)
{
	for (uint32_t i = 0; i < 200; i++) {
		CHECK_INT(put(i, MIB), OB_ERR_NONE);
		CHECK(load(i, MIB));
		CHECK(images.idle_bytes <= OBS_IMAGES_IDLE_BYTES);
	}
	CHECK_INT(images.idle_bytes, OBS_IMAGES_IDLE_BYTES);
	CHECK_INT(obs_stats_page_read(&obs_stats_page->host[OBS_HOLD_IMAGES]), images.bytes);
	CHECK(!query(135, MIB) && query(136, MIB));
	CHECK_INT(images.idle_bytes, OBS_IMAGES_IDLE_BYTES - MIB);
}

TEST(idle_images_give_way_to_other_memory)
{
	obs_limits_now.host_memory = 16 * MIB;
	for (uint32_t i = 0; i < 40; i++) {
		CHECK_INT(put(i, MIB), OB_ERR_NONE);
		CHECK(load(i, MIB));
	}
	CHECK_INT(images.n, 16);
	obs_images_spare(&images, 5 * MIB);
	CHECK_INT(images.n, 11);
	CHECK(obs_hold_take(OBS_HOLD_MODULES, 5 * MIB));
	obs_images_spare(&images, 17 * MIB); /* more than there can be */
	CHECK_INT(images.n, 0);
	obs_hold_give(OBS_HOLD_MODULES, 5 * MIB);
	CHECK_INT(obs_stats_page_read(&obs_stats_page->host_used), 0);
}

/* Nothing may take an image away between the upload, or the answer, and the load. */
TEST(awaited_images_stay)
{
	CHECK_INT(put(0, 64), OB_ERR_NONE);
	CHECK_INT(put(1, 64), OB_ERR_NONE);
	CHECK(load(1, 64) && query(1, 64));
	for (uint32_t i = 2; i < OBS_IMAGES_MAX + 50; i++) {
		CHECK_INT(put(i, 64), OB_ERR_NONE);
		CHECK(load(i, 64));
	}
	obs_limits_now.host_memory = 1;
	obs_images_spare(&images, MIB);
	CHECK_INT(images.n, 2);
	CHECK(load(0, 64) && load(1, 64));
	obs_images_spare(&images, MIB);
	CHECK_INT(images.n, 0);
}

/* Two threads of the client load the same image: it stays until both have. */
TEST(each_load_is_awaited)
{
	CHECK_INT(put(0, 64), OB_ERR_NONE);
	CHECK_INT(put(0, 64), OB_ERR_NONE);
	CHECK(query(0, 64));
	for (int i = 0; i < 3; i++) {
		CHECK_INT(images.idle_bytes, 0);
		CHECK(load(0, 64));
	}
	CHECK_INT(images.idle_bytes, 64);
	CHECK(load(0, 64) && load(0, 64)); /* without asking */
	CHECK_INT(images.idle_bytes, 64);
}

TEST(awaited_images_have_a_maximum)
{
	for (uint32_t i = 0; i < OBS_IMAGES_MAX; i++)
		CHECK_INT(put(i, 64), OB_ERR_NONE);
	CHECK_INT(put(OBS_IMAGES_MAX, 64), OB_ERR_LIMIT);
	CHECK(load(7, 64));
	CHECK_INT(put(OBS_IMAGES_MAX, 64), OB_ERR_NONE);
	CHECK(!query(7, 64));
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
