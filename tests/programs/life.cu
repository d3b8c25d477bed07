/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Conway's Game of Life on a torus: 24 generations, one launch each, with two boards that are
 * swapped. A glider must return to its start.
 */
#include "check.h"
#include <vector>

enum { SIDE = 96, GENERATIONS = 24, GLIDER = 16, GLIDER_GENERATIONS = 4 * GLIDER };

__host__ __device__ unsigned char rule(const unsigned char *board, int side, int x, int y)
{
	int alive = 0;

	for (int dy = -1; dy <= 1; dy++)
		for (int dx = -1; dx <= 1; dx++)
			if (dx || dy)
				alive += board[(y + dy + side) % side * side +
					(x + dx + side) % side];
	return alive == 3 || (alive == 2 && board[y * side + x]);
}

__global__ void generation(const unsigned char *from, unsigned char *to, int side)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;

	if (x < side && y < side)
		to[y * side + x] = rule(from, side, x, y);
}

static std::vector<unsigned char> run(
	const std::vector<unsigned char> &start, int side, int generations)
{
	std::vector<unsigned char> end(start.size());
	unsigned char *board[2];

	for (unsigned char *&b : board)
		CU(cudaMalloc(&b, start.size()));
	CU(cudaMemcpy(board[0], start.data(), start.size(), cudaMemcpyHostToDevice));
	for (int g = 0; g < generations; g++)
		generation<<<dim3((side + 15) / 16, (side + 15) / 16), dim3(16, 16)>>>(
			board[g % 2], board[1 - g % 2], side);
	CU(cudaGetLastError());
	CU(cudaMemcpy(end.data(), board[generations % 2], end.size(), cudaMemcpyDeviceToHost));
	for (unsigned char *b : board)
		CU(cudaFree(b));
	return end;
}

int main()
{
	std::vector<unsigned char> soup(SIDE * SIDE), glider(GLIDER * GLIDER);
	uint32_t seed = 8;
	int alive = 0;

	for (unsigned char &cell : soup)
		cell = random_next(&seed) % 3 == 0;
	for (int cell : { 1, GLIDER + 2, 2 * GLIDER, 2 * GLIDER + 1, 2 * GLIDER + 2 })
		glider[cell] = 1;
	std::vector<unsigned char> got = run(soup, SIDE, GENERATIONS), want = soup;
	for (int g = 0; g < GENERATIONS; g++) {
		std::vector<unsigned char> next(want.size());
		for (int y = 0; y < SIDE; y++)
			for (int x = 0; x < SIDE; x++)
				next[y * SIDE + x] = rule(want.data(), SIDE, x, y);
		want = next;
	}
	OK(got == want);
	OK(run(glider, GLIDER, GLIDER_GENERATIONS) == glider);
	for (unsigned char cell : got)
		alive += cell;
	printf("alive %d checksum %016llx\n", alive,
		(unsigned long long)checksum(got.data(), got.size()));
	return verdict("life");
}
