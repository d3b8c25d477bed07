/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The ring of the log against a simple model: every residue of head and tail with every size of a
 * record, then long random runs with several uncommitted records, early acknowledgements, breaks
 * after which the server acknowledges what it had received before, a server that acknowledges as
 * late as it may, and memory that is given back at any time.
 */
#include <sys/mman.h>

#include "client-shim/session/ring.h"
#include "tests/test.h"

#define LIVE_MAX (1u << 16)
#define HEADER   ((uint32_t)sizeof(struct obp_record))

/* A record as the model knows it; entry: bytes in the ring, wire: bytes on the wire. */
struct entry {
	uint64_t number;
	struct obp_record *at;
	uint32_t entry, wire;
	bool committed, byref;
};

static struct obc_ring ring;
/* reserved and not acknowledged, by number modulo LIVE_MAX */
static struct entry live[LIVE_MAX];
/* numbers: of the writer, taken up by the server, acknowledged by it */
static uint64_t reserved, received, acked;
/* the server's: taken up since its last acknowledgement */
static uint64_t unacked_bytes;
static uint64_t seed;
static uint64_t mixed; /* batches that began with a record whose data is outside the ring */

static uint32_t dice(uint32_t n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33) % n;
}

static uint8_t pattern(uint64_t number, size_t i)
{
	return (uint8_t)(number * 37 + i * 11 + (number >> 8));
}

static struct entry *entry_of(uint64_t number)
{
	return &live[number % LIVE_MAX];
}

static void begin(uint64_t size)
{
	obc_ring_fini(&ring);
	CHECK_INT(obc_ring_init(&ring, size), OB_ERR_NONE);
	reserved = received = acked = unacked_bytes = 0;
	seed = size;
}

static bool urgent; /* the next reservations are */

/* False: no room. The record's bytes are written at once, its size only by commit. */
static bool reserve(uint32_t entry, uint32_t wire, bool byref)
{
	uint64_t tail = UINT64_MAX;
	struct obp_record *record = urgent ? obc_ring_reserve_urgent(&ring, entry, 1, &tail)
					   : obc_ring_reserve(&ring, entry, 1, &tail);

	if (!record) {
		CHECK(tail != UINT64_MAX);
		return false;
	}
	CHECK((uint8_t *)record >= ring.bytes &&
		(uint8_t *)record + entry <= ring.bytes + ring.mask + 1);
	reserved++;
	CHECK(ring.last_number == reserved && reserved - acked < LIVE_MAX);
	*entry_of(reserved) = (struct entry){ reserved, record, entry, wire, false, byref };
	if (byref) {
		((struct obc_byref *)record)->entry_size = entry;
		for (size_t i = sizeof(struct obc_byref); i < entry; i++)
			((uint8_t *)record)[i] = pattern(reserved, i);
	} else {
		for (size_t i = HEADER; i < entry; i++)
			((uint8_t *)record)[i] = pattern(reserved, i);
	}
	return true;
}

static void commit(uint64_t number)
{
	struct entry *e = entry_of(number);

	obc_ring_commit(e->at, 1, (uint16_t)(e->byref ? OBC_LANE_BYREF : 0), e->wire);
	e->committed = true;
}

/* Is record `number` where and what it was written? */
static void intact(uint64_t number, const uint8_t *at)
{
	const struct entry *e = entry_of(number);

	CHECK(e->number == number && e->committed);
	CHECK((const uint8_t *)e->at == at);
	CHECK_INT(e->at->size, e->wire);
	for (size_t i = e->byref ? sizeof(struct obc_byref) : HEADER; i < e->entry; i++)
		CHECK(at[i] == pattern(number, i));
}

/* The batch's records, first to last, lie in one piece inside the ring and are unharmed. */
static void batch_check(const struct obc_batch *batch, uint64_t first)
{
	const uint8_t *p = (const uint8_t *)obc_ring_at(&ring, batch->start);
	uint64_t bytes = 0;

	CHECK(p + (batch->end - batch->start) <= ring.bytes + ring.mask + 1);
	CHECK(batch->count == 1 ||
		batch->bytes <= (batch->byref ? OBC_RING_MIXED : ring.batch_max));
	for (uint32_t i = 0; i < batch->count; i++) {
		intact(first + i, p);
		CHECK(entry_of(first + i)->byref == (i == 0 && batch->byref));
		p += entry_of(first + i)->entry;
		bytes += entry_of(first + i)->wire;
	}
	CHECK(p == ring.bytes + ((batch->end - 1) & ring.mask) + 1);
	CHECK_INT(bytes, batch->bytes);
}

static void ack(uint64_t number)
{
	CHECK(obc_ring_ack(&ring, number));
	acked = ob_max(acked, number);
	if (number == received)
		unacked_bytes = 0;
}

/*
 * The server takes up what it has not had yet. It acknowledges as late as it may, and where its
 * buffer happens to end: idle, behind the last.
 */
static void take_up(uint64_t last, bool idle)
{
	while (received < last) {
		received++;
		unacked_bytes += entry_of(received)->wire;
		if (dice(4) == 0 && unacked_bytes >= (ring.mask + 1) / 4)
			ack(received);
	}
	if (idle && unacked_bytes >= (ring.mask + 1) / 4)
		ack(received);
}

/*
 * One batch, from gather to left. acks: the server may acknowledge while it is still leaving.
 * False: nothing is committed.
 */
static bool send(bool acks)
{
	struct obc_batch batch;
	uint64_t first = ring.sent_number + 1;
	bool mix = dice(2);

	if (!obc_ring_gather(&ring, mix, &batch))
		return false;
	batch_check(&batch, first);
	CHECK(mix || !batch.byref || batch.count == 1);
	mixed += batch.byref && batch.count > 1;
	obc_ring_leaving(&ring, &batch);
	CHECK_INT(ring.sent_number, first + batch.count - 1);
	if (acks && dice(2))
		take_up(ring.sent_number, false);
	/*
	 * After a break the server knows later records than are being sent: it may acknowledge
	 * those too.
	 */
	if (acks && received > acked && dice(4) == 0)
		ack(acked + 1 + dice((uint32_t)(received - acked)));
	/* Other threads go on reserving meanwhile. */
	while (acks && dice(2) && reserve(8, 8, false))
		commit(reserved);
	batch_check(&batch, first);
	obc_ring_left(&ring, &batch);
	take_up(ring.sent_number, true);
	return true;
}

/* ---- every residue ---- */

/* May `need` bytes be placed when `fill` bytes are live before `head`? */
static bool fits(uint64_t size, uint64_t head, uint64_t fill, uint64_t need)
{
	uint64_t to_end = size - head % size;

	if (need <= to_end)
		return fill + need <= size;
	return fill == 0 || fill + to_end + need <= size;
}

static void one_case(uint64_t size, uint64_t residue, uint64_t fill, uint32_t need)
{
	uint64_t base = 4 * size + residue;
	bool room;

	ring.head = base;
	ring.tail = base;
	ring.sent = base;
	ring.sent_number = 0;
	ring.left_number = 0;
	ring.acked = 0;
	ring.last_number = ring.tail_number = ring.sent_most = 0;
	ring.first_mark = ring.n_marks = 0;
	reserved = received = acked = unacked_bytes = 0;
	for (uint64_t i = 0; i < fill / 8; i++)
		CHECK(reserve(8, 8, false));
	CHECK_INT(ring.head, base + fill);
	room = reserve(need, need, false);
	CHECK(room == fits(size, base + fill, fill, need));
	for (uint64_t n = 1; n <= reserved; n++)
		commit(n);
	while (send(false))
		;
	CHECK_INT(ring.sent_number, reserved);
	if (reserved)
		ack(reserved);
	CHECK(ring.tail == ring.head || !reserved);
	CHECK(reserve((uint32_t)size, (uint32_t)size, false)); /* empty: anything fits */
}

TEST(every_residue_of_head_and_tail)
{
	for (uint64_t size = 64; size <= 256; size *= 2) {
		begin(size);
		/* off: it would hide most residues; the random runs have it */
		ring.rewind_min = size;
		for (uint64_t residue = 0; residue < size; residue += 8)
			for (uint64_t fill = 0; fill <= size; fill += 8)
				for (uint32_t need = 8; need <= size; need += 8)
					one_case(size, residue, fill, need);
	}
}

/* ---- random runs ---- */

static uint32_t random_size(void)
{
	uint32_t max = dice(4) ? 128 : ring.record_max;

	return HEADER + dice(ob_min(max, ring.record_max) / 8) * 8;
}

static bool random_reserve(void)
{
	if (ring.record_max >= 128 && dice(16) == 0)
		return reserve(sizeof(struct obc_byref) + 8 * dice(8),
			HEADER + 128 + 8 * dice(1000), true);
	uint32_t size = random_size();
	return reserve(size, size, false);
}

static void commit_all(void)
{
	for (uint64_t n = ring.sent_number + 1; n <= reserved; n++)
		if (!entry_of(n)->committed)
			commit(n);
}

static void commit_one(void)
{
	uint64_t n = ring.sent_number + 1;

	if (reserved < n)
		return;
	n += dice((uint32_t)(reserved - n + 1));
	if (!entry_of(n)->committed)
		commit(n);
}

/*
 * A break: the server says how far it was, and may take up more of the old connection's bytes
 * afterwards.
 */
static void again(void)
{
	uint64_t most = ob_max(ring.sent_number, ring.sent_most),
		 number = acked + dice((uint32_t)(received - acked + 1));

	CHECK(!obc_ring_rewind(&ring, most + 1));
	if (acked)
		CHECK(!obc_ring_rewind(&ring, acked - 1));
	CHECK(obc_ring_rewind(&ring, number));
	acked = number;
	CHECK(!obc_ring_ack(&ring, most + 1));
}

static void release_all(void)
{
	for (uint64_t at = 0; at <= ring.mask;) {
		uint64_t next = obc_ring_release(&ring, at);

		CHECK(next > at && next <= ring.mask + 1);
		at = next;
	}
}

static void random_run(uint64_t size, unsigned steps)
{
	begin(size);
	for (unsigned i = 0; i < steps; i++) {
		switch (dice(8)) {
		case 0:
		case 1:
		case 2:
			if (random_reserve())
				break;
			/*
			 * No room. When all is committed and sent and the server has nothing more
			 * to acknowledge there must be.
			 */
			commit_all();
			while (send(true))
				;
			CHECK(reserve(ring.record_max, ring.record_max, false));
			break;
		case 3:
		case 4:
			commit_one();
			break;
		case 5:
		case 6:
			send(true);
			break;
		default:
			if (dice(20) == 0)
				again();
			else if (dice(20) == 0)
				release_all();
		}
	}
	commit_all();
	while (send(true))
		;
	CHECK_INT(received, reserved);
}

TEST(random_runs)
{
	for (uint64_t size = 1024; size <= 64u << 10; size *= 2)
		random_run(size, 300000 / TEST_SLOWER);
	CHECK(mixed > 0);
}

/* Bytes of the ring that are in memory. */
static uint64_t resident(void)
{
	static unsigned char pages[(OBC_RING_DEFAULT >> 12) + 1];
	size_t page = (size_t)sysconf(_SC_PAGESIZE), n = (ring.mask + 1) / page;
	uint64_t found = 0;

	CHECK(mincore(ring.bytes, ring.mask + 1, pages) == 0);
	for (size_t i = 0; i < n; i++)
		found += pages[i] & 1 ? page : 0;
	return found;
}

/* Fills the ring with records of `size` bytes until there is no room for another. */
static void fill(uint32_t size)
{
	while (reserve(size, size, false))
		commit(reserved);
}

/* Sends all records and compares their bytes; the server acknowledges nothing of its own accord. */
static void send_all(void)
{
	struct obc_batch batch;

	while (obc_ring_gather(&ring, true, &batch)) {
		batch_check(&batch, ring.sent_number + 1);
		obc_ring_leaving(&ring, &batch);
		obc_ring_left(&ring, &batch);
	}
	received = reserved;
}

static void drain(void)
{
	send_all();
	ack(reserved);
	CHECK(ring.head == ring.tail);
}

TEST(released_memory_is_given_back)
{
	const uint32_t size = 16u << 10;

	begin(8u << 20);
	fill(size);
	CHECK_INT(resident(), ring.mask + 1);
	/* Full: nothing may go. */
	release_all();
	CHECK_INT(resident(), ring.mask + 1);
	drain();
	CHECK_INT(resident(), ring.mask + 1);
	release_all();
	CHECK(resident() <= 64u << 10);
	/* Some records in the middle, then some around the end of the ring. */
	for (int round = 0; round < 2; round++) {
		uint64_t held;

		fill(size);
		drain();
		while ((ring.head & ring.mask) < (round ? ring.mask - 2 * size : ring.mask / 2) &&
			reserve(8, 8, false)) {
			commit(reserved);
			CHECK(reserve(size, size, false));
			commit(reserved);
			/* The last stays, so that the ring does not restart at its first byte. */
			send_all();
			ack(reserved - 1);
		}
		for (int i = 0; i < 8; i++) {
			CHECK(reserve(size, size, false));
			commit(reserved);
		}
		held = ring.head - ring.tail;
		release_all();
		CHECK(resident() >= held && resident() <= held + (256u << 10));
		drain(); /* compares the bytes of each record */
		release_all();
		CHECK(resident() <= 64u << 10);
	}
}

/* Ordinary writers write as much as they can; all is sent and acknowledged. Returns bytes. */
static uint64_t write_all(uint32_t size)
{
	uint64_t bytes = 0;

	while (reserve(size, size, false)) {
		commit(reserved);
		bytes += size;
		send_all();
		ack(reserved);
	}
	return bytes;
}

/* One that the hold does not limit. */
static void write_urgent(uint32_t size, bool acked_too)
{
	urgent = true;
	CHECK(reserve(size, size, false));
	urgent = false;
	commit(reserved);
	send_all();
	if (acked_too)
		ack(reserved);
}

/* What writers get while the ring is held does not grow, however much others send. */
TEST(a_held_ring_limits_writers)
{
	static const uint64_t sizes[] = { OBC_RING_MIN, 1u << 20, OBC_RING_DEFAULT };

	for (int i = 0; i < 3; i++) {
		uint64_t room;

		begin(sizes[i]);
		write_urgent(160, true); /* as an ordinary one, while the ring is not held */
		obc_ring_hold(&ring, true);
		room = write_all(16);
		CHECK(room <= ring.held_room && room + 64 >= ring.held_room);
		/* Two of the largest records fit; the server needs 72 bytes for one of 16. */
		CHECK(room + 64 >= 2ull * ring.record_max);
		CHECK(room / 16 * 72 + (8u << 20) <= sizes[i] + (16u << 20));
		for (uint64_t sent = 0; sent < 3 * sizes[i]; sent += 160) {
			write_urgent(160, dice(4) > 0);
			CHECK(!reserve(16, 16, false));
		}
		ack(reserved);
		obc_ring_hold_move(&ring, ring.head - 4096);
		CHECK_INT(write_all(16), ring.held_room - 4096);
		obc_ring_hold(&ring, false);
		CHECK(reserve(ring.record_max, ring.record_max, false));
		commit(reserved);
		drain();
	}
}

/* The tail of a held ring may be more than a lap behind the records. */
TEST(released_memory_of_a_held_ring)
{
	const uint32_t size = 4096, live_records = 512;

	begin(8u << 20);
	/* The last one stays, so that the ring does not restart at its first byte. */
	while (ring.head < 3u << 20) {
		CHECK(reserve(size, size, false));
		commit(reserved);
	}
	send_all();
	ack(reserved - 1);
	obc_ring_hold(&ring, true);
	while (reserve(size, size, false))
		commit(reserved);
	do {
		write_urgent(size, false);
		ack(reserved - 1);
	} while (ring.head < ring.mask || (ring.head & ring.mask) != 2u << 20);
	for (uint32_t i = 0; i < live_records; i++)
		write_urgent(size, false);
	CHECK(ring.head - ring.tail > ring.mask);
	/* Before and behind the place of the tail are records. */
	CHECK((ring.tail & ring.mask) > 2u << 20 && (ring.tail & ring.mask) < 4u << 20);
	release_all();
	for (uint64_t n = acked + 1; n <= reserved; n++)
		intact(n, (const uint8_t *)entry_of(n)->at);
	CHECK(resident() <= live_records * size + (256u << 10));
	obc_ring_hold(&ring, false);
	drain();
}

/*
 * Very many small batches that nobody acknowledges: the marks do not run out, and what the server
 * then acknowledges gives room.
 */
TEST(marks_never_run_out)
{
	begin(64u << 10);
	for (int round = 0; round < 3; round++) {
		for (uint64_t i = 0; reserve(8, 8, false); i++) {
			struct obc_batch batch;

			commit(reserved);
			CHECK(obc_ring_gather(&ring, true, &batch));
			obc_ring_leaving(&ring, &batch);
			obc_ring_left(&ring, &batch);
			CHECK(ring.n_marks <= OBC_RING_MARKS);
		}
		take_up(reserved, true);
		CHECK(reserve(ring.record_max, ring.record_max, false));
		commit(reserved);
		CHECK(send(false));
		ack(reserved);
	}
}

TEST(guard_pages)
{
	uint8_t *end;

	begin(64u << 10);
	end = ring.bytes + ring.mask + 1;
	for (int i = 0; i < 2; i++) {
		pid_t child = fork();
		int status;

		if (child == 0) {
			signal(SIGSEGV, SIG_DFL);
			*(volatile uint8_t *)(i ? end : ring.bytes - 1) = 1;
			_exit(0);
		}
		CHECK(waitpid(child, &status, 0) == child &&
			!(WIFEXITED(status) && WEXITSTATUS(status) == 0));
	}
}

TEST(sizes_from_the_environment)
{
	static const char *const bad[] = { "63K", "32K", "2G", "100000", "-1", "64K1", "big", "0" };
	uint64_t size = 0;

	unsetenv("OUTBOARD_RING");
	CHECK(obc_ring_size_read(&size) && size == OBC_RING_DEFAULT);
	setenv("OUTBOARD_RING", "64K", 1);
	CHECK(obc_ring_size_read(&size) && size == OBC_RING_MIN);
	setenv("OUTBOARD_RING", "1G", 1);
	CHECK(obc_ring_size_read(&size) && size == OBC_RING_MAX);
	for (size_t i = 0; i < ob_count(bad); i++) {
		setenv("OUTBOARD_RING", bad[i], 1);
		CHECK(!obc_ring_size_read(&size));
	}
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
