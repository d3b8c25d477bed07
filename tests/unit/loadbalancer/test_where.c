/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Selectors and labels: the grammar, each operator, each limit and one past it, and random texts. */
#include "base/check.h"
#include "loadbalancer/device.h"
#include "loadbalancer/where.h"
#include "protocol/load.h"
#include "tests/test.h"

#define GIB    (1ull << 30)
#define ROUNDS (200000 / TEST_SLOWER)

static const struct obl_device h100 = { .total = 80 * GIB,
	.units = 132,
	.capability = 90,
	.kind = OBL_GPU,
	.share_by = 1 << OBP_SHARE_BY_THROTTLE | 1 << OBP_SHARE_BY_GREEN,
	.model = "NVIDIA H100 PCIe" };

static struct obl_where parsed(const char *text)
{
	struct obl_where where;
	struct ob_cause cause = { .text = "" };

	test_subject = text;
	CHECK_INT(obl_where_parse(text, &where, &cause), OB_ERR_NONE);
	return where;
}

/* Whether an H100 of rack1 (zone a, rack 3, CUDA 12.4) is selected. */
static bool selects(const char *text)
{
	struct obl_where where = parsed(text);
	struct obl_labels labels;
	struct ob_cause cause;

	CHECK_INT(obl_labels_parse("zone=a,rack=3,note=two words", &labels, &cause), OB_ERR_NONE);
	return obl_where_server(&where, "rack1", 12040, &labels) && obl_where_device(&where, &h100);
}

TEST(what_is_selected)
{
	static const char *const yes[] = { "", " ", "model=H100", "model=h100", "model=L4|H100",
		"model!=L4|A100", "model=H100 PCIe", "kind=gpu", "kind!=software|mig",
		"share-by=green", "share-by=mps|throttle", "share-by!=mps", "memory>=80GiB",
		"memory=80G", "memory<81G", "memory>79GiB", "memory<=80GiB", "memory!=40GiB|48GiB",
		"capability>=9.0", "capability=8.6|9.0", "capability>8.9", "capability<10",
		"units=132", "units>=100", "cuda>=12.4", "cuda>=12", "cuda<13", "cuda=12.4",
		"server=rack1", "server=rack*", "server=*1", "server=*", "server=r*1",
		"server=rack2|rack1", "server!=rack2", "zone=a", "zone=a|b", "zone!=b",
		"missing!=x", "rack>=3", "rack<4", "rack=3", "rack!=2|4", "note=two words",
		" zone = a , rack > 2 ",
		"model=H100,zone!=b,memory>=40GiB,capability>=9.0,server=rack1|rack2" };
	static const char *const no[] = { "model=A100", "model!=h100", "kind=mig", "kind!=gpu",
		"share-by=mps", "share-by!=green", "share-by!=mps|throttle", "memory>=80.1GiB",
		"memory<80GiB", "memory>80GiB", "memory=79GiB|81GiB", "capability>=9.1",
		"capability!=9.0", "units>132", "cuda>=12.5", "cuda>12.4", "cuda!=12.4",
		"server=rack2", "server=rack", "server=ack1", "server=rack1*1", "server!=rack*",
		"zone=b", "zone!=a", "zone!=b|a", "zone=A", "missing=x", "missing>=0", "rack>3",
		"rack=03", "zone>=1", "note=two", "model=H100,zone=b" };

	for (unsigned i = 0; i < ob_count(yes); i++)
		CHECK(selects(yes[i]));
	for (unsigned i = 0; i < ob_count(no); i++)
		CHECK(!selects(no[i]));
}

TEST(what_is_not_known_is_not_selected)
{
	struct obl_where where = parsed("cuda>=1");
	struct obl_device unknown = { .kind = OBL_GPU };

	CHECK(!obl_where_server(&where, "rack1", 0, NULL));
	where = parsed("zone=a");
	CHECK(!obl_where_server(&where, "rack1", 12040, NULL));
	where = parsed("memory>=1");
	CHECK(!obl_where_device(&where, &unknown));
	where = parsed("capability>=5");
	CHECK(!obl_where_device(&where, &unknown));
}

/* Each message names the place and what is expected there. */
TEST(what_is_wrong)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{ "model", "at the end: expected one of = != >= <= > <" },
		{ "model=", "at the end: expected a value" },
		{ "=x", "at '=x': expected a name such as model or zone" },
		{ "model=a,", "at the end: expected a condition after the comma" },
		{ ",model=a", "at ',model=a': expected a name such as model or zone" },
		{ "model=a,,zone=b", "at ',zone=b': expected a name such as model or zone" },
		{ "zone=a|", "at the end: expected a value" },
		{ "zone=a|,rack=1", "at ',rack=1': expected a value" },
		{ "zone==a", "at '=a': expected a value" },
		{ "zone=a=b", "at '=b': expected a comma, | or the end" },
		{ "zone a", "at 'a': expected one of = != >= <= > <" },
		{ "model>=H100", "at '>=H100': this name can be used with = and != only" },
		{ "kind<gpu", "at '<gpu': this name can be used with = and != only" },
		{ "server>rack", "at '>rack': this name can be used with = and != only" },
		{ "share-by=half", "at 'half': expected throttle, green or mps" },
		{ "share-by=none", "at 'none': expected throttle, green or mps" },
		{ "share-by>=green", "at '>=green': this name can be used with = and != only" },
		{ "kind=cpu", "at 'cpu': expected gpu, mig or software" },
		{ "memory>=40X", "at '40X': expected a size such as 40GiB" },
		{ "memory>=lots,zone=a", "at 'lots,zone=a': expected a size such as 40GiB" },
		{ "capability>=9.10", "at '9.10': expected a compute capability such as 9.0" },
		{ "capability>=.9", "at '.9': expected a compute capability such as 9.0" },
		{ "capability>=9.", "at '9.': expected a compute capability such as 9.0" },
		{ "units=1.5", "at '1.5': expected a whole number" },
		{ "cuda>=twelve", "at 'twelve': expected a CUDA version such as 12.4" },
		{ "cuda>=12.4.1", "at '12.4.1': expected a CUDA version such as 12.4" },
		{ "zone>=a", "at 'a': labels can be compared by order with whole numbers only" },
		{ "rack>=1|2", "at '|2': several values can be used with = and != only" },
		{ "zone=a'b", "at ''b': expected a comma, | or the end" },
		{ "zone=\x01", "at '?': expected a value" },
		{ "zone=\xc3\xa4", "at '\?\?': expected a value" },
		{ "memory>=40GiB and much more text",
			"at '40GiB and much more text': expected a size such as 40GiB" },
		{ "memory>=40GiB and much more text!",
			"at '40GiB and much more text...': expected a size such as 40GiB" },
	};
	struct obl_where where, before;
	struct ob_cause cause;

	memset(&where, 0x55, sizeof where);
	before = where;
	for (unsigned i = 0; i < ob_count(cases); i++) {
		test_subject = cases[i].text;
		CHECK_INT(obl_where_parse(cases[i].text, &where, &cause), OB_ERR_ARGUMENT);
		CHECK_STR(cause.text, cases[i].message);
		CHECK(memcmp(&where, &before, sizeof where) == 0); /* written on success only */
	}
}

TEST(labels)
{
	struct obl_labels labels;
	struct ob_cause cause;

	CHECK_INT(obl_labels_parse("", &labels, &cause), OB_ERR_NONE);
	CHECK_INT(labels.n, 0);
	CHECK(!obl_label_text(&labels, "zone"));
	CHECK_INT(
		obl_labels_parse(" zone = a , rack=3,a.b/c-d_e=1 2", &labels, &cause), OB_ERR_NONE);
	CHECK_STR(obl_label_text(&labels, "zone"), "a");
	CHECK_STR(obl_label_text(&labels, "a.b/c-d_e"), "1 2");
	CHECK(!obl_label_text(&labels, "zon"));
	CHECK_INT(obl_labels_parse("zone=a,zone=b", &labels, &cause), OB_ERR_ARGUMENT);
	CHECK_STR(cause.text, "at 'zone=b': this label is given twice");
	CHECK_INT(obl_labels_parse("rack=1,memory=2", &labels, &cause), OB_ERR_ARGUMENT);
	CHECK_STR(cause.text, "at 'memory=2': selectors use this name for something else");
	CHECK_INT(obl_labels_parse("zone!=a", &labels, &cause), OB_ERR_ARGUMENT);
	CHECK_STR(cause.text, "at '!=a': expected =");
	CHECK_INT(obl_labels_parse("zone=a|b", &labels, &cause), OB_ERR_ARGUMENT);
	CHECK_STR(cause.text, "at '|b': expected a comma or the end");
	CHECK_INT(obl_labels_parse("zone=a,", &labels, &cause), OB_ERR_ARGUMENT);
	CHECK_STR(cause.text, "at the end: expected a label after the comma");
	CHECK_STR(obl_label_text(&labels, "zone"), "a"); /* the last good ones are still there */
}

#define TEXT_MAX 2048

/* Appends to a text of TEXT_MAX bytes. */
static void add(char *text, const char *piece)
{
	size_t at = strlen(text);

	snprintf(text + at, TEXT_MAX - at, "%s", piece);
}

/* n times `piece`, with `between` in between. */
static void repeat(char *ret, const char *piece, const char *between, unsigned n)
{
	ret[0] = '\0';
	for (unsigned i = 0; i < n; i++) {
		add(ret, i ? between : "");
		add(ret, piece);
	}
}

TEST(each_limit_and_one_past_it)
{
	char text[TEXT_MAX], word[OBL_WHERE_WORD_MAX + 8];
	struct obl_labels labels;
	struct obl_where where;
	struct ob_cause cause;

	repeat(text, "a=1", ",", OBL_WHERE_TERMS_MAX);
	CHECK_INT(obl_where_parse(text, &where, &cause), OB_ERR_NONE);
	repeat(text, "a=1", ",", OBL_WHERE_TERMS_MAX + 1);
	CHECK_INT(obl_where_parse(text, &where, &cause), OB_ERR_ARGUMENT);
	CHECK_STR(cause.text, "at 'a=1': too many conditions: 16 at most");

	repeat(text, "1", "|", OBL_WHERE_VALUES_MAX);
	memmove(text + 2, text, strlen(text) + 1);
	memcpy(text, "a=", 2);
	CHECK_INT(obl_where_parse(text, &where, &cause), OB_ERR_NONE);
	add(text, "|1");
	CHECK_INT(obl_where_parse(text, &where, &cause), OB_ERR_ARGUMENT);
	CHECK_STR(cause.text, "at '1': too many values: 32 at most");

	memset(word, 'w', sizeof word);
	word[OBL_WHERE_WORD_MAX - 1] = '\0';
	snprintf(text, sizeof text, "%s=%s", word, word);
	CHECK_INT(obl_where_parse(text, &where, &cause), OB_ERR_NONE);
	CHECK_INT(obl_labels_parse(text, &labels, &cause), OB_ERR_NONE);
	word[OBL_WHERE_WORD_MAX - 1] = 'w';
	word[OBL_WHERE_WORD_MAX] = '\0';
	snprintf(text, sizeof text, "%s=1", word);
	CHECK_INT(obl_where_parse(text, &where, &cause), OB_ERR_ARGUMENT);
	CHECK_STR(cause.text, "at 'wwwwwwwwwwwwwwwwwwwwwwww...': a word has 63 characters at most");
	snprintf(text, sizeof text, "a=%s", word);
	CHECK_INT(obl_labels_parse(text, &labels, &cause), OB_ERR_ARGUMENT);

	/* 255 characters: four words of 63 bytes with their NULs are 256 */
	word[OBL_WHERE_WORD_MAX - 1] = '\0';
	repeat(text, word, "=", 2);
	add(text, ",");
	add(text, word);
	add(text, "=");
	add(text, word);
	CHECK_INT(strlen(text), OBL_WHERE_MAX - 1);
	CHECK_INT(obl_where_parse(text, &where, &cause), OB_ERR_NONE);
	add(text, ",a=1");
	CHECK_INT(obl_where_parse(text, &where, &cause), OB_ERR_ARGUMENT);
	CHECK(strstr(cause.text, "it is too long"));

	text[0] = '\0';
	for (unsigned i = 0; i < OBL_LABELS_MAX; i++) {
		snprintf(word, sizeof word, "%sl%u=1", i ? "," : "", i);
		add(text, word);
	}
	CHECK_INT(obl_labels_parse(text, &labels, &cause), OB_ERR_NONE);
	add(text, ",m=1");
	CHECK_INT(obl_labels_parse(text, &labels, &cause), OB_ERR_ARGUMENT);
	CHECK_STR(cause.text, "at 'm=1': too many labels: 16 at most");
}

/*
 * Random texts of the grammar's own pieces: what is accepted can be matched, and a selector and its
 * opposite never both hold.
 */
TEST(random_texts)
{
	static const char *const pieces[] = { "model", "kind", "memory", "capability", "units",
		"cuda", "server", "zone", "rack", "=", "!=", ">=", "<=", ">", "<", "|", ",", " ",
		"gpu", "mig", "40GiB", "9.0", "12.4", "7", "rack1", "*", "H100", "a", "\x80", "'",
		"18446744073709551615", "18446744073709551616" };
	struct obl_labels labels;
	struct ob_cause cause;
	uint64_t seed = 7;
	uint32_t accepted = 0;

	CHECK(!obl_labels_parse("zone=a,rack=3", &labels, &cause));
	for (uint32_t round = 0; round < ROUNDS; round++) {
		char text[TEXT_MAX] = "", opposite[TEXT_MAX + 1];
		struct obl_where where, other;
		uint32_t n;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		n = 3 + (uint32_t)(seed >> 40) % 6;
		for (uint32_t i = 0; i < n; i++) {
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			add(text, pieces[(seed >> 33) % ob_count(pieces)]);
		}
		if (obl_where_parse(text, &where, &cause)) {
			CHECK(cause.text[0]);
			continue;
		}
		accepted++;
		obl_where_server(&where, "rack1", 12040, &labels);
		obl_where_device(&where, &h100);
		if (where.n_terms != 1 || !strchr(text, '=') || strpbrk(text, "!<>"))
			continue;
		n = (uint32_t)(strchr(text, '=') - text);
		snprintf(opposite, sizeof opposite, "%.*s!%s", (int)n, text, text + n);
		CHECK_INT(obl_where_parse(opposite, &other, &cause), OB_ERR_NONE);
		CHECK((obl_where_server(&where, "rack1", 12040, &labels) &&
			      obl_where_device(&where, &h100)) !=
			(obl_where_server(&other, "rack1", 12040, &labels) &&
				obl_where_device(&other, &h100)));
	}
	CHECK(accepted > 500);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
