/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * outboard cert: makes a certificate for a server that has none, and prints the pin by which
 * clients identify it.
 */
#include <stdio.h>

#include "base/text.h"
#include "tools/command.h"
#include "transport/tls.h"

#define NAMES_DEFAULT "localhost,127.0.0.1"
#define DAYS_DEFAULT  825u
#define DAYS_MAX      36500u

struct settings {
	const char *cert, *key, *names;
	uint32_t days;
};

static const struct ob_option options[] = {
	{ OB_OPTION("cert", OB_FILE, struct settings, cert), .arg = "FILE",
		.help = "the certificate (PEM)" },
	{ OB_OPTION("key", OB_FILE, struct settings, key), .arg = "FILE",
		.help = "make the certificate and this private key; neither file may exist" },
	{ OB_OPTION("names", OB_TEXT, struct settings, names), .arg = "NAME,...",
		.fallback = NAMES_DEFAULT,
		.help = "host names and addresses that the certificate is for" },
	{ OB_OPTION("days", OB_NUMBER, struct settings, days), .arg = "N", .min = 1,
		.max = DAYS_MAX, .fallback = "825", .help = "days until it expires" },
	{ 0 },
};

static int cert_main(int argc, char **argv)
{
	struct settings s = { .names = NAMES_DEFAULT, .days = DAYS_DEFAULT };
	struct ob_cause cause;
	char text[2 * OBT_TLS_PIN_BYTES + 1];
	uint8_t pin[OBT_TLS_PIN_BYTES];
	int code = ob_options_parse(&obx_cert_command, &s, argc, argv);

	if (code != OB_OPTIONS_GO)
		return code;
	if (!s.cert)
		return ob_usage_error(&obx_cert_command, "--cert is missing");
	if (s.key && obt_tls_make_certificate(s.cert, s.key, s.names, s.days, pin, &cause)) {
		fprintf(stderr, "outboard cert: %s\n", cause.text);
		return OBX_EXIT_UNWELL;
	}
	if (!s.key && obt_tls_read_pin(s.cert, pin)) {
		fprintf(stderr,
			"outboard cert: %s is not a certificate in PEM form; 'outboard cert --cert "
			"FILE --key FILE' makes one\n",
			s.cert);
		return OBX_EXIT_UNWELL;
	}
	ob_text_hex(pin, sizeof pin, text);
	printf("%s\n", text);
	return 0;
}

const struct ob_command obx_cert_command = {
	.name = "outboard cert",
	.group = OBX_GROUP_REMOTE,
	.summary = "make a certificate for a tls:// address, show its pin",
	.usage = "--cert FILE [--key FILE [--names NAME,...] [--days N]]",
	.about = "With --key: makes a key and a certificate signed by itself. Without: reads the "
		 "certificate. Prints the pin; clients set OUTBOARD_TLS_PIN to it, or copy the "
		 "certificate and set OUTBOARD_TLS_CA.",
	.options = options,
	.main = cert_main,
};
