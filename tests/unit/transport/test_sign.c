/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "transport/sign.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/test.h"

#define TEXT "what a balancer says"

static uint8_t sealed[sizeof TEXT + OBT_SIGN_OVERHEAD];

TEST(a_sealed_text_opens)
{
	struct obt_sign_key *key = obt_sign_key_new(NULL), *other = obt_sign_key_new(NULL);
	uint8_t keys[2][OBT_SIGN_KEY_BYTES];
	const uint8_t *text;
	struct ob_cause cause;
	size_t size;

	obt_sign_key_public(other, keys[0]);
	obt_sign_key_public(key, keys[1]);
	CHECK(obt_sign_seal(key, TEXT, sizeof TEXT, sealed));
	CHECK_INT(obt_sign_open(keys, 2, sealed, sizeof sealed, &text, &size, &cause), OB_ERR_NONE);
	CHECK(size == sizeof TEXT && memcmp(text, TEXT, size) == 0);
	CHECK_INT(
		obt_sign_open(keys, 1, sealed, sizeof sealed, &text, &size, &cause), OB_ERR_DENIED);
	CHECK(strstr(cause.text, "does not know"));
	CHECK_INT(
		obt_sign_open(keys, 0, sealed, sizeof sealed, &text, &size, &cause), OB_ERR_DENIED);
	obt_sign_key_free(key);
	obt_sign_key_free(other);
}

TEST(each_altered_byte_is_noticed)
{
	struct obt_sign_key *key = obt_sign_key_new(NULL);
	uint8_t keys[1][OBT_SIGN_KEY_BYTES];
	const uint8_t *text;
	struct ob_cause cause;
	size_t size;

	obt_sign_key_public(key, keys[0]);
	CHECK(obt_sign_seal(key, TEXT, sizeof TEXT, sealed));
	for (size_t i = 0; i < sizeof sealed; i++) {
		sealed[i] ^= 1;
		CHECK(obt_sign_open(keys, 1, sealed, sizeof sealed, &text, &size, &cause));
		CHECK(cause.text[0]);
		sealed[i] ^= 1;
	}
	for (size_t n = 0; n < sizeof sealed; n++)
		CHECK(obt_sign_open(keys, 1, sealed, n, &text, &size, &cause));
	obt_sign_key_free(key);
}

TEST(a_key_is_kept_in_a_file)
{
	char folder[] = "/tmp/sign-XXXXXX", path[64];
	struct obt_sign_key *made, *read;
	uint8_t a[OBT_SIGN_KEY_BYTES], b[OBT_SIGN_KEY_BYTES];
	struct ob_cause cause = { OB_ERR_NONE, 0, "" };
	struct stat status;
	FILE *file;

	CHECK(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/key", folder);
	made = obt_sign_key_open(path, &cause);
	CHECK(made);
	CHECK(stat(path, &status) == 0 && (status.st_mode & 0777) == 0600);
	read = obt_sign_key_open(path, &cause);
	CHECK(read);
	obt_sign_key_public(made, a);
	obt_sign_key_public(read, b);
	CHECK(memcmp(a, b, sizeof a) == 0);
	obt_sign_key_free(made);
	obt_sign_key_free(read);
	CHECK(chmod(path, 0644) == 0);
	CHECK(!obt_sign_key_open(path, &cause) && strstr(cause.text, "chmod 600"));
	CHECK(chmod(path, 0640) == 0);
	CHECK(!obt_sign_key_open(path, &cause) && strstr(cause.text, "chmod 600"));
	if (geteuid() == 0) { /* root's key, read by the group of a process that is not root */
		CHECK(chown(path, 0, 4321) == 0 && chmod(folder, 0755) == 0);
		CHECK(setegid(4321) == 0 && seteuid(4321) == 0);
		read = obt_sign_key_open(path, &cause);
		CHECK(seteuid(0) == 0 && setegid(0) == 0);
		CHECK(read);
		obt_sign_key_free(read);
		CHECK(chmod(path, 0660) == 0 && setegid(4321) == 0 && seteuid(4321) == 0);
		CHECK(!obt_sign_key_open(path, &cause) && strstr(cause.text, "chmod 600"));
		CHECK(seteuid(0) == 0 && setegid(0) == 0);
	}
	CHECK(chmod(path, 0600) == 0);
	file = fopen(path, "w");
	fputs("nothing", file);
	fclose(file);
	CHECK(!obt_sign_key_open(path, &cause) && strstr(cause.text, "not an Ed25519"));
	CHECK(unlink(path) == 0 && rmdir(folder) == 0);
	CHECK(!obt_sign_key_open(path, &cause));
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
