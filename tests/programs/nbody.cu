/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * All-pairs gravity with tiles of bodies in shared memory. The leapfrog steps must conserve
 * momentum and match the host.
 */
#include "check.h"
#include <cmath>
#include <vector>

enum { BODIES = 512, THREADS = 128, STEPS = 2 };
static const float SOFTENING = 0.01f, DT = 0.001f;

__device__ float3 pull(float3 sum, float4 me, float4 other, float softening)
{
	float dx = other.x - me.x, dy = other.y - me.y, dz = other.z - me.z;
	float inverse = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz + softening);
	float strength = other.w * inverse * inverse * inverse;

	return make_float3(sum.x + dx * strength, sum.y + dy * strength, sum.z + dz * strength);
}

__global__ void step(const float4 *in, float4 *out, float4 *velocity, float softening, float dt)
{
	__shared__ float4 tile[THREADS];
	int i = blockIdx.x * THREADS + threadIdx.x;
	float4 me = in[i], v = velocity[i];
	float3 sum = make_float3(0, 0, 0);

	for (int base = 0; base < BODIES; base += THREADS) {
		tile[threadIdx.x] = in[base + threadIdx.x];
		__syncthreads();
#pragma unroll 4
		for (int j = 0; j < THREADS; j++)
			sum = pull(sum, me, tile[j], softening);
		__syncthreads();
	}
	v = make_float4(v.x + sum.x * dt, v.y + sum.y * dt, v.z + sum.z * dt, 0);
	velocity[i] = v;
	out[i] = make_float4(me.x + v.x * dt, me.y + v.y * dt, me.z + v.z * dt, me.w);
}

int main()
{
	std::vector<float4> body(BODIES), velocity(BODIES), got(BODIES), got_velocity(BODIES);
	float4 *device_body[2], *device_velocity;
	uint32_t seed = 17;
	double worst = 0, momentum[3] = {};

	for (float4 &b : body) {
		float *f = &b.x;
		for (int k = 0; k < 3; k++)
			f[k] = (float)(int32_t)random_next(&seed) / 2147483648.0f;
		b.w = 1.0f;
	}
	for (float4 &v : velocity)
		v = make_float4(0, 0, 0, 0);
	CU(cudaMalloc(&device_body[0], sizeof(float4) * BODIES));
	CU(cudaMalloc(&device_body[1], sizeof(float4) * BODIES));
	CU(cudaMalloc(&device_velocity, sizeof(float4) * BODIES));
	CU(cudaMemcpy(
		device_body[0], body.data(), sizeof(float4) * BODIES, cudaMemcpyHostToDevice));
	CU(cudaMemset(device_velocity, 0, sizeof(float4) * BODIES));
	for (int s = 0; s < STEPS; s++)
		step<<<BODIES / THREADS, THREADS>>>(
			device_body[s % 2], device_body[1 - s % 2], device_velocity, SOFTENING, DT);
	CU(cudaGetLastError());
	CU(cudaMemcpy(got.data(), device_body[STEPS % 2], sizeof(float4) * BODIES,
		cudaMemcpyDeviceToHost));
	CU(cudaMemcpy(got_velocity.data(), device_velocity, sizeof(float4) * BODIES,
		cudaMemcpyDeviceToHost));

	for (int s = 0; s < STEPS; s++) {
		std::vector<float4> next = body;
		for (int i = 0; i < BODIES; i++) {
			double sum[3] = {};
			for (int j = 0; j < BODIES; j++) {
				double d[3] = { body[j].x - body[i].x, body[j].y - body[i].y,
					body[j].z - body[i].z };
				double r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + SOFTENING;
				for (int k = 0; k < 3; k++)
					sum[k] += d[k] * body[j].w / (r2 * sqrt(r2));
			}
			for (int k = 0; k < 3; k++) {
				(&velocity[i].x)[k] += (float)(sum[k] * DT);
				(&next[i].x)[k] += (&velocity[i].x)[k] * DT;
			}
		}
		body = next;
	}
	for (int i = 0; i < BODIES; i++)
		for (int k = 0; k < 3; k++) {
			double error = fabs((&got[i].x)[k] - (&body[i].x)[k]) +
				fabs((&got_velocity[i].x)[k] - (&velocity[i].x)[k]);
			worst = error > worst ? error : worst;
			momentum[k] += (&got_velocity[i].x)[k];
		}
	OK(worst < 1e-3);
	OK(fabs(momentum[0]) + fabs(momentum[1]) + fabs(momentum[2]) < 1e-2);
	printf("body 0 at %.4f %.4f %.4f, body %d at %.4f %.4f %.4f\n", got[0].x, got[0].y,
		got[0].z, BODIES - 1, got[BODIES - 1].x, got[BODIES - 1].y, got[BODIES - 1].z);
	return verdict("nbody");
}
