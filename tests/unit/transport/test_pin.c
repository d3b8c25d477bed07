/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Lists of pins: forms, limits, and that a pin of one address is worth nothing at another. */
#include "tests/test.h"
#include "transport/pin.h"

#define TAIL "000000000000000000000000000000000000000000000000000000000001"
#define A    "0000" TAIL
#define B    "0000000000000000000000000000000000000000000000000000000000000002"

static const uint8_t hash_a[OBT_PIN_BYTES] = { [31] = 1 }, hash_b[OBT_PIN_BYTES] = { [31] = 2 };
static struct obt_pins pins;
static struct ob_cause cause;

TEST(one_pin_is_for_every_address)
{
	CHECK_INT(obt_pins_add(&pins, A, false, &cause), OB_ERR_NONE);
	CHECK(obt_pins_apply(&pins, "h:1") && obt_pins_accept(&pins, "h:1", hash_a));
	CHECK(!obt_pins_accept(&pins, "h:1", hash_b));
}

TEST(an_address_with_pins_accepts_only_these)
{
	CHECK_INT(obt_pins_add(&pins, A ",tls://one:1=" B, false, &cause), OB_ERR_NONE);
	CHECK(obt_pins_accept(&pins, "one:1", hash_b) && !obt_pins_accept(&pins, "one:1", hash_a));
	CHECK(obt_pins_accept(&pins, "two:1", hash_a) && !obt_pins_accept(&pins, "two:1", hash_b));
	/* the port belongs to the address */
	CHECK(!obt_pins_accept(&pins, "one:2", hash_b));
}

TEST(without_a_pin_authorities_decide)
{
	CHECK_INT(obt_pins_add(&pins, "tls://[::1]:5=" A, false, &cause), OB_ERR_NONE);
	CHECK(obt_pins_apply(&pins, "::1:5") && obt_pins_accept(&pins, "::1:5", hash_a));
	CHECK(!obt_pins_apply(&pins, "two:1") && !obt_pins_accept(&pins, "two:1", hash_a));
}

TEST(several_pins_of_one_address)
{
	CHECK_INT(
		obt_pins_add(&pins, "tls://one:1=" A ",tls://one:1=" B, true, &cause), OB_ERR_NONE);
	CHECK(obt_pins_accept(&pins, "one:1", hash_a) && obt_pins_accept(&pins, "one:1", hash_b));
}

TEST(what_was_there_first_is_not_loosened)
{
	CHECK_INT(obt_pins_add(&pins, "tls://one:1=" A, false, &cause), OB_ERR_NONE);
	CHECK_INT(
		obt_pins_add(&pins, "tls://one:1=" B ",tls://two:1=" B, true, &cause), OB_ERR_NONE);
	CHECK(!obt_pins_accept(&pins, "one:1", hash_b) && obt_pins_accept(&pins, "two:1", hash_b));
	CHECK_INT(pins.n, 2);
}

TEST(joined_lists)
{
	char *text = NULL;

	CHECK_INT(obt_pins_join(
			  A ",tls://one:1=" A, "tls://one:1=" B ",tls://two:2=" B, &text, &cause),
		OB_ERR_NONE);
	CHECK(strcmp(text, A ",tls://one:1=" A ",tls://two:2=" B) == 0);
	free(text);
	CHECK_INT(obt_pins_join(NULL, "tls://two:2=" B, &text, &cause), OB_ERR_NONE);
	CHECK(strcmp(text, "tls://two:2=" B) == 0);
	free(text);
	CHECK_INT(obt_pins_join("", "", &text, &cause), OB_ERR_NONE);
	CHECK(text[0] == '\0');
	free(text);
	CHECK_INT(obt_pins_join("x", "", &text, &cause), OB_ERR_ARGUMENT);
	CHECK_INT(obt_pins_join(A, "x", &text, &cause), OB_ERR_ARGUMENT);
}

TEST(forms)
{
	uint8_t pin[OBT_PIN_BYTES];

	CHECK(obt_pin_parse("sha256:" A, pin) && memcmp(pin, hash_a, sizeof pin) == 0);
	/* as openssl prints it, with colons */
	CHECK(obt_pin_parse("SHA256:00:00" TAIL, pin) && memcmp(pin, hash_a, sizeof pin) == 0);
	CHECK(!obt_pin_parse("", pin) && !obt_pin_parse(A "0", pin) && !obt_pin_parse("0x", pin));
	CHECK_INT(obt_pins_add(&pins, "tcp://one:1=" A, false, &cause), OB_ERR_ARGUMENT);
	CHECK(strstr(cause.text, "tcp://one:1"));
	CHECK_INT(obt_pins_add(&pins, A ",junk", false, &cause), OB_ERR_ARGUMENT);
	CHECK_INT(obt_pins_add(&pins, "=" A, false, &cause), OB_ERR_ARGUMENT);
	CHECK_INT(pins.n, 0);
}

TEST(limits)
{
	static char text[OBT_PINS_MAX * 100 + 1000];
	size_t at = 0;

	for (unsigned i = 0; i < OBT_PINS_MAX; i++)
		at += (size_t)snprintf(
			text + at, sizeof text - at, "%stls://h%u:1=" A, i ? "," : "", i);
	CHECK_INT(obt_pins_add(&pins, text, false, &cause), OB_ERR_NONE);
	CHECK_INT(pins.n, OBT_PINS_MAX);
	CHECK_INT(obt_pins_add(&pins, B, false, &cause), OB_ERR_LIMIT);
	CHECK_INT(pins.n, OBT_PINS_MAX);
	pins.n = 0;
	memset(text, 'a', 900);
	text[900] = '\0';
	CHECK_INT(obt_pins_add(&pins, text, false, &cause), OB_ERR_LIMIT);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
