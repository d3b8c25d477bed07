/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * outboard cert: makes a certificate for a server that has none, and prints the pin by which
 * clients identify it.
 */
#include <getopt.h>
#include <stdio.h>

#include "base/text.h"
#include "tools/command.h"
#include "transport/tls.h"

#define DAYS_DEFAULT 825u
#define DAYS_MAX     36500u

static int usage(void)
{
	puts("usage: outboard cert --cert FILE [--key FILE --names NAME,...] [--days N]\n"
	     "\n"
	     "With --key: makes a key and a certificate signed by itself for these host names and "
	     "addresses; neither file may exist. Without: reads\n"
	     "the certificate. Prints the pin; clients set OUTBOARD_TLS_PIN to it, or copy the "
	     "certificate and set OUTBOARD_TLS_CA.\n"
	     "\n"
	     "  --names NAME,...   default localhost,127.0.0.1\n"
	     "  --days N           days until it expires (default 825)");
	return 0;
}

int obx_cert_main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "cert", required_argument, NULL, 'c' },
		{ "key", required_argument, NULL, 'k' },
		{ "names", required_argument, NULL, 'n' },
		{ "days", required_argument, NULL, 'd' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	const char *cert = NULL, *key = NULL, *names = "localhost,127.0.0.1";
	struct ob_cause cause;
	char text[2 * OBT_TLS_PIN_BYTES + 1];
	uint8_t pin[OBT_TLS_PIN_BYTES];
	uint64_t days = DAYS_DEFAULT;
	int c;

	while ((c = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		switch (c) {
		case 'c':
			cert = optarg;
			break;
		case 'k':
			key = optarg;
			break;
		case 'n':
			names = optarg;
			break;
		case 'd':
			if (!ob_text_parse_number(optarg, 1, DAYS_MAX, &days))
				return obx_usage_error("cert",
					"--days is a number from 1 to %u, not '%s'", DAYS_MAX,
					optarg);
			break;
		case 'h':
			return usage();
		default:
			return obx_option_wrong("cert", c, argv);
		}
	}
	if (!cert)
		return obx_usage_error("cert", "--cert is missing");
	if (key && obt_tls_make_certificate(cert, key, names, (unsigned)days, pin, &cause)) {
		fprintf(stderr, "outboard cert: %s\n", cause.text);
		return OBX_EXIT_UNWELL;
	}
	if (!key && obt_tls_read_pin(cert, pin)) {
		fprintf(stderr, "outboard cert: %s holds no certificate that can be read\n", cert);
		return OBX_EXIT_UNWELL;
	}
	ob_text_hex(pin, sizeof pin, text);
	printf("%s\n", text);
	return 0;
}
