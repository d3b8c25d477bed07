/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Which code is loaded without waiting for the server's word. */
#include "client-shim/session/trust.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/opt.h"

static struct obi_entry entry;
static struct obi_symbols symbols;
static struct obf_image_ref image = { .entry = &entry, .symbols = &symbols };

static void server(int driver_version, int major, int minor)
{
	static struct obp_device device;
	static struct obp_welcome welcome = { .n_devices = 1, .devices = &device };

	welcome.driver_version = driver_version;
	device.attr[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] = major;
	device.attr[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR] = minor;
	obc_trust_start(&welcome);
	entry = (struct obi_entry){ .kind = OBI_PTX, .arch = 75 };
	symbols = (struct obi_symbols){ .plain = true, .ptx_version = 80, .arch = 75 };
	image.from_text = false;
	image.n_options = 0;
}

static bool trusted(void)
{
	return obc_trust_code(&image, 0);
}

static void test_ptx(void **state)
{
	(void)state;
	server(12000, 9, 0);
	assert_true(trusted());
	symbols.ptx_version = 81;
	assert_false(trusted());
	server(12000, 9, 0);
	symbols.plain = false;
	assert_false(trusted());
	server(12000, 7, 0);
	assert_false(trusted());
	server(12000, 9, 0);
	image.from_text = true;
	assert_false(trusted());
	server(12000, 9, 0);
	image.n_options = 1;
	assert_false(trusted());
	server(12000, 9, 0);
	symbols.variable_bytes = OBC_TRUST_VARIABLES;
	assert_true(trusted());
	symbols.variable_bytes++;
	assert_false(trusted());
	server(10020, 9, 0);
	assert_false(trusted());
	assert_int_equal(obc_trust_ptx_version(13000), 90);
	assert_int_equal(obc_trust_ptx_version(14020), 90);
	assert_int_equal(obc_trust_ptx_version(12060), 85);
	assert_int_equal(obc_trust_ptx_version(11000), 70);
	assert_int_equal(obc_trust_ptx_version(10999), 0);
}

static void test_machine_code(void **state)
{
	(void)state;
	server(12000, 8, 6);
	symbols = (struct obi_symbols){ .arch = 86 };
	entry = (struct obi_entry){ .kind = OBI_ELF, .arch = 86 };
	assert_true(trusted());
	entry.arch = 80; /* runs there too, but another's word is asked for */
	assert_false(trusted());
}

static void test_confirmed(void **state)
{
	uint8_t name[32] = { 1 };

	(void)state;
	assert_false(obc_trust_confirmed(name, 0));
	obc_trust_confirm(name, 0);
	assert_true(obc_trust_confirmed(name, 0));
	assert_false(obc_trust_confirmed(name, 1));
	for (unsigned i = 0; i < OBC_TRUST_IMAGES; i++) {
		uint8_t other[32] = { 2, (uint8_t)i, (uint8_t)(i >> 8) };

		assert_true(obc_trust_confirmed(name, 0));
		obc_trust_confirm(other, 0);
		assert_true(obc_trust_confirmed(other, 0));
	}
	assert_false(obc_trust_confirmed(name, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_ptx),
		cmocka_unit_test(test_machine_code), cmocka_unit_test(test_confirmed) };

	ob_opt_set(OB_OPT_TRUST, true); /* what is tested here */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
