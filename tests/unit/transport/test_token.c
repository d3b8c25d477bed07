/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tests/unit/test.h"
#include "transport/token.h"

static char path[64], why[256];

static void directory(void)
{
	char name[] = "/tmp/outboard-token-XXXXXX";

	CHECK(mkdtemp(name));
	snprintf(path, sizeof path, "%s/tokens", name);
}

static void directory_remove(void)
{
	unlink(path);
	*strrchr(path, '/') = '\0';
	rmdir(path);
}

TEST(made_written_read_and_checked)
{
	struct obt_tokens tokens = { 0 }, back;
	char text[200][OBT_TOKEN_TEXT];
	const char *reason = NULL;

	directory();
	for (unsigned i = 0; i < 200; i++)
		CHECK(obt_tokens_add(&tokens, i ? "some name" : "a\nb", i % 2 ? OBT_SCOPE_LOOK : OBT_SCOPE_USE, i, text[i]));
	CHECK_STR(tokens.list[0].name, "a?b"); /* one token is one line */
	CHECK(obt_tokens_write(path, &tokens, why, sizeof why));
	CHECK(obt_tokens_write(path, &tokens, why, sizeof why));
	CHECK(obt_tokens_read(path, &back, why, sizeof why));
	CHECK_INT(back.n, 200);
	for (unsigned i = 0; i < 200; i++) {
		const struct obt_token *found = obt_tokens_check(&back, text[i], 50, &reason);

		CHECK(!memcmp(&back.list[i], &tokens.list[i], sizeof back.list[i]));
		if (i && i <= 50) {
			CHECK(!found && strstr(reason, "expired")); /* expiry 50 is not after 50 */
			continue;
		}
		CHECK(found == &back.list[i]);
	}
	CHECK(obt_tokens_remove(&back, back.list[100].id));
	CHECK_INT(back.n, 199);
	CHECK(!obt_tokens_check(&back, text[100], 50, &reason) && strstr(reason, "revoked"));
	CHECK(obt_tokens_check(&back, text[101], 50, &reason) && obt_tokens_check(&back, text[199], 50, &reason));
	CHECK(!obt_tokens_remove(&back, tokens.list[100].id));
	obt_tokens_fini(&tokens);
	obt_tokens_fini(&back);
	directory_remove();
}

TEST(what_is_no_token)
{
	struct obt_tokens tokens = { 0 };
	char text[OBT_TOKEN_TEXT], bad[OBT_TOKEN_TEXT + 8];
	const char *reason = NULL;

	CHECK(obt_tokens_add(&tokens, "x", OBT_SCOPE_USE, 0, text));
	CHECK(obt_tokens_check(&tokens, text, 1u << 31, &reason));
	for (size_t n = 0; n < strlen(text); n++) {
		snprintf(bad, sizeof bad, "%.*s", (int)n, text);
		CHECK(!obt_tokens_check(&tokens, bad, 0, &reason));
	}
	snprintf(bad, sizeof bad, "%s0", text);
	CHECK(!obt_tokens_check(&tokens, bad, 0, &reason));
	/* Every character counts, those of the id too. */
	for (size_t i = 0; i < strlen(text); i++) {
		snprintf(bad, sizeof bad, "%s", text);
		bad[i] = bad[i] == '0' ? '1' : '0';
		CHECK(!obt_tokens_check(&tokens, bad, 0, &reason));
	}
	obt_tokens_fini(&tokens);
}

TEST(files_that_are_wrong)
{
	static const char hash[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
	static const struct {
		const char *format;
		bool right;
	} lines[] = {
		{ "# a comment\n\n", true },          { "01234567 %s use 0 name with blanks\n", true }, { "01234567 %s look 12345678901 -\n", true },
		{ "0123456 %s use 0 name\n", false }, { "01234567 %s root 0 name\n", false },           { "01234567 %s use -1 name\n", false },
		{ "01234567 %.63s use 0 name\n", false }, { "0123456x %s use 0 name\n", false },        { "01234567 %s use\n", false },
		{ "garbage %s\n", false },
	};
	struct obt_tokens tokens;

	directory();
	CHECK(obt_tokens_read(path, &tokens, why, sizeof why) && tokens.n == 0);
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
		FILE *file = fopen(path, "we");

		CHECK(file);
		fprintf(file, lines[i].format, hash);
		fclose(file);
		CHECK_INT(obt_tokens_read(path, &tokens, why, sizeof why), lines[i].right);
		CHECK(lines[i].right || strstr(why, "line 1"));
		obt_tokens_fini(&tokens);
	}
	directory_remove();
	snprintf(path, sizeof path, "/nonexistent/tokens");
	tokens = (struct obt_tokens){ 0 };
	CHECK(!obt_tokens_write(path, &tokens, why, sizeof why));
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
