/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The admission's check of a ticket, the page that it reads, and what becomes of the client. */
#include "base/buf.h"
#include "protocol/load.h"
#include "server/admission/ticket.h"
#include "tests/test.h"

#define NOW 1000000u

static struct obs_pool_page page;
static struct obt_sign_key *key;
static uint8_t sealed[OBP_TICKET_MAX];
static size_t size;
static struct obp_ticket ticket, got;
static int64_t ahead;
static enum obs_ticket_refusal why;
static struct ob_cause cause;

static void begin(int64_t ahead_s)
{
	uint8_t public[OBT_SIGN_KEY_BYTES];

	page = (struct obs_pool_page){ .on = true, .server = "rack-1", .incarnation = 42 };
	key = obt_sign_key_new(NULL);
	obt_sign_key_public(key, public);
	CHECK(obs_pool_page_add(&page, public, ahead_s));
	ticket = (struct obp_ticket){ .reservation = { 1 },
		.server = "rack-1",
		.incarnation = 42,
		.fence = 1,
		.tenant = "alice",
		.issued = NOW,
		.expires = NOW + 60,
		.memory = 1000,
		.share = 250000,
		.priority = 1,
		.n_devices = 1 };
}

static void seal(void)
{
	struct ob_buf body;

	ob_buf_init(&body, OBP_TICKET_BODY_MAX);
	CHECK(obp_ticket_encode(&ticket, &body));
	size = body.size + OBT_SIGN_OVERHEAD;
	CHECK(obt_sign_seal(key, body.data, body.size, sealed));
	ob_buf_fini(&body);
}

static enum ob_err check(uint64_t now)
{
	seal();
	return obs_ticket_check(&page, sealed, size, now, &got, &ahead, &why, &cause);
}

TEST(a_good_one_is_read)
{
	begin(-7);
	CHECK_INT(check(NOW), OB_ERR_NONE);
	CHECK_STR(got.tenant, "alice");
	CHECK_INT(got.memory, 1000);
	CHECK_INT(ahead, -7);
	/* the expiry is the supervisor's */
	CHECK_INT(check(NOW + 100000), OB_ERR_NONE);
	obt_sign_key_free(key);
}

TEST(each_wrong_one_is_refused)
{
	begin(0);
	CHECK_INT(check(NOW - OBP_TICKET_SKEW_S), OB_ERR_NONE);
	CHECK_INT(check(NOW - OBP_TICKET_SKEW_S - 1), OB_ERR_DENIED);
	CHECK_INT(why, OBS_TICKET_FUTURE);
	CHECK(strstr(cause.text, "31 s in the future"));
	ticket.incarnation = 41;
	CHECK_INT(check(NOW), OB_ERR_DENIED);
	CHECK_INT(why, OBS_TICKET_INCARNATION);
	snprintf(ticket.server, sizeof ticket.server, "rack-2");
	CHECK_INT(check(NOW), OB_ERR_DENIED);
	CHECK_INT(why, OBS_TICKET_SERVER);
	CHECK(strstr(cause.text, "rack-2") && strstr(cause.text, "rack-1"));
	snprintf(ticket.server, sizeof ticket.server, "rack-1");
	ticket.incarnation = 42;
	seal();
	for (size_t i = 0; i < size; i++) {
		sealed[i] ^= 0x10;
		CHECK(obs_ticket_check(&page, sealed, size, NOW, &got, &ahead, &why, &cause));
		sealed[i] ^= 0x10;
	}
	for (size_t n = 0; n < size; n++)
		CHECK(obs_ticket_check(&page, sealed, n, NOW, &got, &ahead, &why, &cause));
	/* signed, and no ticket */
	CHECK(obt_sign_seal(key, "xyz", 3, sealed));
	CHECK_INT(obs_ticket_check(
			  &page, sealed, OBT_SIGN_OVERHEAD + 3, NOW, &got, &ahead, &why, &cause),
		OB_ERR_PROTOCOL);
	CHECK_INT(why, OBS_TICKET_FORM);
	page.on = false;
	CHECK_INT(check(NOW), OB_ERR_DENIED);
	CHECK(strstr(cause.text, "does not belong to a pool"));
	obt_sign_key_free(key);
}

TEST(keys_are_kept_and_bounded)
{
	uint8_t public[OBT_SIGN_KEY_BYTES] = { 1 };

	begin(0);
	CHECK(obs_pool_page_add(&page, page.keys[0], 9));
	CHECK_INT(page.n_keys, 1);
	CHECK_INT(page.ahead_s[0], 9);
	for (unsigned i = 1; i < OBS_POOL_KEYS_MAX; i++) {
		public[1] = (uint8_t)i;
		CHECK(obs_pool_page_add(&page, public, 0));
	}
	public[1] = 255;
	CHECK(!obs_pool_page_add(&page, public, 0));
	CHECK(obs_pool_page_add(&page, page.keys[OBS_POOL_KEYS_MAX - 1], 3));
	CHECK_INT(check(NOW), OB_ERR_NONE);
	obt_sign_key_free(key);
}

TEST(the_lower_limit_counts)
{
	struct obs_identity identity = { .who = "anonymous", .scope = OBT_SCOPE_LOOK };

	begin(0);
	obs_ticket_identify(&ticket, &identity);
	CHECK_STR(identity.who, "tenant alice");
	CHECK(identity.proved && identity.scope == OBT_SCOPE_USE);
	CHECK_INT(identity.allow.value[OBT_ALLOW_MEMORY], 1000);
	CHECK_INT(identity.allow.value[OBT_ALLOW_SHARE], 250000);
	CHECK_INT(identity.allow.value[OBT_ALLOW_PRIORITY], 1);
	identity.allow.value[OBT_ALLOW_MEMORY] = 999;
	identity.allow.value[OBT_ALLOW_SHARE] = 250001;
	ticket.priority = 3;
	obs_ticket_identify(&ticket, &identity);
	CHECK_INT(identity.allow.value[OBT_ALLOW_MEMORY], 999);
	CHECK_INT(identity.allow.value[OBT_ALLOW_SHARE], 250000);
	CHECK_INT(identity.allow.value[OBT_ALLOW_PRIORITY], 1);
	ticket.memory = 0;
	identity.allow.value[OBT_ALLOW_MEMORY] = 0;
	obs_ticket_identify(&ticket, &identity);
	CHECK_INT(identity.allow.value[OBT_ALLOW_MEMORY], 0);
	obt_sign_key_free(key);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
