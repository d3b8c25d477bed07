/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Which code is loaded without waiting for the server's word. */
#include "client-shim/session/trust.h"

#include <stdlib.h>
#include <string.h>

#include "base/opt.h"
#include "tests/test.h"

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

TEST(ptx)
{
	server(12000, 9, 0);
	CHECK(trusted());
	symbols.ptx_version = 81;
	CHECK(!trusted());
	server(12000, 9, 0);
	symbols.plain = false;
	CHECK(!trusted());
	server(12000, 7, 0);
	CHECK(!trusted());
	server(12000, 9, 0);
	image.from_text = true;
	CHECK(!trusted());
	server(12000, 9, 0);
	image.n_options = 1;
	CHECK(!trusted());
	server(12000, 9, 0);
	symbols.variable_bytes = OBC_TRUST_VARIABLES;
	CHECK(trusted());
	symbols.variable_bytes++;
	CHECK(!trusted());
	server(10020, 9, 0);
	CHECK(!trusted());
	CHECK_INT(obc_trust_ptx_version(13000), 90);
	CHECK_INT(obc_trust_ptx_version(14020), 90);
	CHECK_INT(obc_trust_ptx_version(12060), 85);
	CHECK_INT(obc_trust_ptx_version(11000), 70);
	CHECK_INT(obc_trust_ptx_version(10999), 0);
}

TEST(machine_code)
{
	server(12000, 8, 6);
	symbols = (struct obi_symbols){ .arch = 86 };
	entry = (struct obi_entry){ .kind = OBI_ELF, .arch = 86 };
	CHECK(trusted());
	entry.arch = 80; /* runs there too, but another's word is asked for */
	CHECK(!trusted());
}

TEST(confirmed)
{
	uint8_t name[32] = { 1 };

	CHECK(!obc_trust_confirmed(name, 0));
	obc_trust_confirm(name, 0);
	CHECK(obc_trust_confirmed(name, 0));
	CHECK(!obc_trust_confirmed(name, 1));
	for (unsigned i = 0; i < OBC_TRUST_IMAGES; i++) {
		uint8_t other[32] = { 2, (uint8_t)i, (uint8_t)(i >> 8) };

		CHECK(obc_trust_confirmed(name, 0));
		obc_trust_confirm(other, 0);
		CHECK(obc_trust_confirmed(other, 0));
	}
	CHECK(!obc_trust_confirmed(name, 0));
}

int main(int argc, char **argv)
{
	ob_opt_set(OB_OPT_TRUST, true); /* what is tested here */
	return test_main(argc, argv);
}
