// SPDX-License-Identifier: Apache-2.0
// Copyright The Outboard Authors
//
// cuBLAS against a reference on the host: levels 1 to 3, batched, strided, mixed types, cublasLt.
// Vectors and matrices hold small whole numbers, so that every result is exact, except where the
// result's own type rounds it. Prints a line for each operation, and "N operations: N right, N not
// supported, N failed, N wrong". "Not supported" is what cuBLAS says where it has no code for a device.
//
//     cublas_levels [N]     N: rows of the matrices (48)
//
// Exit code 1: a call failed; 2: a result is wrong. nvcc -o cublas_levels cublas_levels.cu -lcublas
// -lcublasLt; another version of cuBLAS is chosen by LD_LIBRARY_PATH.
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

static int n_right, n_unsupported, n_failed, n_wrong;
static cublasHandle_t handle;

static void told(const std::string &name, int status, bool right)
{
	n_right += !status && right;
	n_unsupported += status == CUBLAS_STATUS_NOT_SUPPORTED;
	n_failed += status && status != CUBLAS_STATUS_NOT_SUPPORTED;
	n_wrong += !status && !right;
	if (status)
		printf("%s: status %d\n", name.c_str(), status);
	else
		printf("%s: %s\n", name.c_str(), right ? "right" : "WRONG");
}

static void must(cudaError_t error)
{
	if (error) {
		printf("CUDA: %s\n", cudaGetErrorString(error));
		exit(1);
	}
}

typedef std::vector<double> Numbers;

// Numbers on the device, in type T.
template <class T> struct Device {
	T *p;
	size_t n;

	explicit Device(const Numbers &from) : p(NULL), n(from.size())
	{
		std::vector<T> copy(n);

		for (size_t i = 0; i < n; i++)
			copy[i] = T((float)from[i]);
		must(cudaMalloc(&p, n * sizeof(T)));
		must(cudaMemcpy(p, copy.data(), n * sizeof(T), cudaMemcpyHostToDevice));
	}
	~Device()
	{
		cudaFree(p);
	}
	bool holds(const Numbers &want, double relative = 0) const
	{
		std::vector<T> got(n);

		must(cudaMemcpy(got.data(), p, n * sizeof(T), cudaMemcpyDeviceToHost));
		for (size_t i = 0; i < n; i++)
			if (!(std::fabs((double)(float)got[i] - want[i]) <=
				    relative * std::fabs(want[i])))
				return false;
		return true;
	}
};

static Numbers made(size_t n, int step, int range = 7)
{
	Numbers out(n);

	for (size_t i = 0; i < n; i++)
		out[i] = (double)((int)((i * step + i / 13) % range) - range / 2);
	return out;
}

// Element (i, j) of op(a), a being column-major with `rows` rows.
static double at(const Numbers &a, int rows, bool transposed, int i, int j)
{
	return transposed ? a[j + (size_t)i * rows] : a[i + (size_t)j * rows];
}

static Numbers product(const Numbers &a, const Numbers &b, int n, bool ta = false, bool tb = false)
{
	Numbers c((size_t)n * n);

	for (int j = 0; j < n; j++)
		for (int i = 0; i < n; i++)
			for (int k = 0; k < n; k++)
				c[i + (size_t)j * n] += at(a, n, ta, i, k) * at(b, n, tb, k, j);
	return c;
}

// The lower triangle as a full matrix; unit: ones on the diagonal.
static Numbers lower(const Numbers &a, int n, bool unit = false)
{
	Numbers out((size_t)n * n);

	for (int j = 0; j < n; j++)
		for (int i = j; i < n; i++)
			out[i + (size_t)j * n] = i == j && unit ? 1 : a[i + (size_t)j * n];
	return out;
}

static Numbers symmetric(const Numbers &a, int n)
{
	Numbers out((size_t)n * n);

	for (int j = 0; j < n; j++)
		for (int i = 0; i < n; i++)
			out[i + (size_t)j * n] =
				i >= j ? a[i + (size_t)j * n] : a[j + (size_t)i * n];
	return out;
}

static Numbers times(const Numbers &a, const Numbers &x, int n, bool transposed = false)
{
	Numbers y(n);

	for (int i = 0; i < n; i++)
		for (int k = 0; k < n; k++)
			y[i] += at(a, n, transposed, i, k) * x[k];
	return y;
}

// The functions of one precision.
template <class T> struct Calls;
#define CALL(name) static constexpr auto name = PREFIX(name)
#define CALLS              \
	CALL(axpy);        \
	CALL(copy);        \
	CALL(swap);        \
	CALL(scal);        \
	CALL(dot);         \
	CALL(nrm2);        \
	CALL(asum);        \
	CALL(rot);         \
	CALL(gemv);        \
	CALL(ger);         \
	CALL(symv);        \
	CALL(trmv);        \
	CALL(trsv);        \
	CALL(syr);         \
	CALL(gemm);        \
	CALL(symm);        \
	CALL(syrk);        \
	CALL(trmm);        \
	CALL(trsm);        \
	CALL(geam);        \
	CALL(dgmm);        \
	CALL(gemmBatched); \
	CALL(gemmStridedBatched)
template <> struct Calls<float> {
#define PREFIX(name) cublasS##name
	CALLS;
	static constexpr auto amax = cublasIsamax;
#undef PREFIX
};
template <> struct Calls<double> {
#define PREFIX(name) cublasD##name
	CALLS;
	static constexpr auto amax = cublasIdamax;
#undef PREFIX
};

template <class T> static void level1(const std::string &p, int n)
{
	typedef Calls<T> C;
	const Numbers x = made(n, 3), y = made(n, 5, 11);
	const T two = 2, c = 0, s = 1;
	Numbers want(n);
	Device<T> dx(x), dy(y), dz(y);
	T value = 0;
	double sum = 0, norm = 0, dot = 0;
	int status, index = 0, first = 0;

	status = C::axpy(handle, n, &two, dx.p, 1, dy.p, 1);
	for (int i = 0; i < n; i++) {
		want[i] = 2 * x[i] + y[i];
		sum += std::fabs(x[i]);
		norm += x[i] * x[i];
		dot += x[i] * y[i];
		first = std::fabs(x[i]) > std::fabs(x[first]) ? i : first;
	}
	told(p + "axpy", status, dy.holds(want));
	status = C::copy(handle, n, dz.p, 1, dy.p, 1);
	told(p + "copy", status, dy.holds(y));
	status = C::dot(handle, n, dx.p, 1, dy.p, 1, &value);
	told(p + "dot", status, value == dot);
	status = C::nrm2(handle, n, dx.p, 1, &value);
	told(p + "nrm2", status, std::fabs(value - std::sqrt(norm)) < 1e-5 * std::sqrt(norm));
	status = C::asum(handle, n, dx.p, 1, &value);
	told(p + "asum", status, value == sum);
	status = C::amax(handle, n, dx.p, 1, &index);
	told(p + "amax", status, index == first + 1);
	status = C::scal(handle, n, &two, dy.p, 1);
	for (int i = 0; i < n; i++)
		want[i] = 2 * y[i];
	told(p + "scal", status, dy.holds(want));
	status = C::swap(handle, n, dx.p, 1, dy.p, 1);
	told(p + "swap", status, dy.holds(x) && dx.holds(want));
	// a rotation by a right angle: x' = y, y' = -x
	status = C::rot(handle, n, dy.p, 1, dz.p, 1, &c, &s);
	for (int i = 0; i < n; i++)
		want[i] = -x[i];
	told(p + "rot", status, dy.holds(y) && dz.holds(want));
}

template <class T> static void level2(const std::string &p, int n)
{
	typedef Calls<T> C;
	const Numbers a = made((size_t)n * n, 3), x = made(n, 5), y = made(n, 4, 5);
	const Numbers l = lower(made((size_t)n * n, 3, 3), n, true);
	const T one = 1, zero = 0;
	Numbers want((size_t)n * n);
	int status;

	for (int t = 0; t < 2; t++) {
		Device<T> da(a), dx(x), dy(y);

		status = C::gemv(handle, t ? CUBLAS_OP_T : CUBLAS_OP_N, n, n, &one, da.p, n, dx.p,
			1, &zero, dy.p, 1);
		told(p + (t ? "gemv transposed" : "gemv"), status, dy.holds(times(a, x, n, t)));
	}
	{
		Device<T> da(a), dx(x), dy(y);

		status = C::ger(handle, n, n, &one, dx.p, 1, dy.p, 1, da.p, n);
		for (int j = 0; j < n; j++)
			for (int i = 0; i < n; i++)
				want[i + (size_t)j * n] = a[i + (size_t)j * n] + x[i] * y[j];
		told(p + "ger", status, da.holds(want));
	}
	{
		Device<T> da(a), dx(x), dy(y);

		status = C::symv(
			handle, CUBLAS_FILL_MODE_LOWER, n, &one, da.p, n, dx.p, 1, &zero, dy.p, 1);
		told(p + "symv", status, dy.holds(times(symmetric(a, n), x, n)));
	}
	{
		Device<T> da(a), dx(x);

		status = C::syr(handle, CUBLAS_FILL_MODE_LOWER, n, &one, dx.p, 1, da.p, n);
		for (int j = 0; j < n; j++)
			for (int i = 0; i < n; i++)
				want[i + (size_t)j * n] =
					a[i + (size_t)j * n] + (i >= j ? x[i] * x[j] : 0);
		told(p + "syr", status, da.holds(want));
	}
	{
		Device<T> da(a), dx(x);

		status = C::trmv(handle, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT,
			n, da.p, n, dx.p, 1);
		told(p + "trmv", status, dx.holds(times(lower(a, n), x, n)));
	}
	{
		// few entries, so that the solution of whole numbers stays exact
		Numbers band(l);

		for (int j = 0; j < n; j++)
			for (int i = j + 2; i < n; i++)
				band[i + (size_t)j * n] = 0;
		Device<T> da(band), dx(times(band, x, n));

		status = C::trsv(handle, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_UNIT, n,
			da.p, n, dx.p, 1);
		told(p + "trsv", status, dx.holds(x));
	}
}

template <class T> static void level3(const std::string &p, int n)
{
	typedef Calls<T> C;
	const Numbers a = made((size_t)n * n, 3), b = made((size_t)n * n, 5), zeros((size_t)n * n);
	const cublasOperation_t ops[2] = { CUBLAS_OP_N, CUBLAS_OP_T };
	const T one = 1, zero = 0;
	Numbers want((size_t)n * n);
	int status;

	for (int t = 0; t < 4; t++) {
		Device<T> da(a), db(b), dc(zeros);

		status = C::gemm(handle, ops[t & 1], ops[t >> 1], n, n, n, &one, da.p, n, db.p, n,
			&zero, dc.p, n);
		told(p + "gemm " + "NT"[t & 1] + "NT"[t >> 1], status,
			dc.holds(product(a, b, n, t & 1, t >> 1)));
	}
	{
		Device<T> da(a), db(b), dc(zeros);

		status = C::symm(handle, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, n, n, &one, da.p,
			n, db.p, n, &zero, dc.p, n);
		told(p + "symm", status, dc.holds(product(symmetric(a, n), b, n)));
	}
	{
		Device<T> da(a), dc(zeros);

		status = C::syrk(handle, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, n, n, &one, da.p, n,
			&zero, dc.p, n);
		told(p + "syrk", status, dc.holds(lower(product(a, a, n, false, true), n)));
	}
	{
		Device<T> da(a), db(b), dc(zeros);

		status = C::trmm(handle, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N,
			CUBLAS_DIAG_NON_UNIT, n, n, &one, da.p, n, db.p, n, dc.p, n);
		told(p + "trmm", status, dc.holds(product(lower(a, n), b, n)));
	}
	{
		Numbers band = lower(made((size_t)n * n, 3, 3), n, true);

		for (int j = 0; j < n; j++)
			for (int i = j + 2; i < n; i++)
				band[i + (size_t)j * n] = 0;
		Device<T> da(band), db(product(band, b, n));

		status = C::trsm(handle, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N,
			CUBLAS_DIAG_UNIT, n, n, &one, da.p, n, db.p, n);
		told(p + "trsm", status, db.holds(b));
	}
	{
		Device<T> da(a), db(b), dc(zeros);

		status = C::geam(handle, CUBLAS_OP_T, CUBLAS_OP_N, n, n, &one, da.p, n, &one, db.p,
			n, dc.p, n);
		for (int j = 0; j < n; j++)
			for (int i = 0; i < n; i++)
				want[i + (size_t)j * n] =
					a[j + (size_t)i * n] + b[i + (size_t)j * n];
		told(p + "geam", status, dc.holds(want));
	}
	{
		const Numbers x = made(n, 5);
		Device<T> da(a), dx(x), dc(zeros);

		status = C::dgmm(handle, CUBLAS_SIDE_LEFT, n, n, da.p, n, dx.p, 1, dc.p, n);
		for (int j = 0; j < n; j++)
			for (int i = 0; i < n; i++)
				want[i + (size_t)j * n] = x[i] * a[i + (size_t)j * n];
		told(p + "dgmm", status, dc.holds(want));
	}
}

template <class T> static void batched(const std::string &p, int n, int count)
{
	typedef Calls<T> C;
	const size_t each = (size_t)n * n;
	const Numbers a = made(each * count, 3), b = made(each * count, 5), zeros(each * count);
	const T one = 1, zero = 0;
	Numbers want;
	Device<T> da(a), db(b), dc(zeros);
	std::vector<T *> pointers;
	T **on_device;
	int status;

	for (int k = 0; k < count; k++) {
		Numbers c = product(Numbers(a.begin() + k * each, a.begin() + (k + 1) * each),
			Numbers(b.begin() + k * each, b.begin() + (k + 1) * each), n);

		want.insert(want.end(), c.begin(), c.end());
	}
	status = C::gemmStridedBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, da.p, n,
		each, db.p, n, each, &zero, dc.p, n, each, count);
	told(p + "gemm strided", status, dc.holds(want));
	for (int k = 0; k < 3 * count; k++)
		pointers.push_back((k < count                      ? da.p
						   : k < 2 * count ? db.p
								   : dc.p) +
			k % count * each);
	must(cudaMemset(dc.p, 0, each * count * sizeof(T)));
	must(cudaMalloc(&on_device, pointers.size() * sizeof(T *)));
	must(cudaMemcpy(
		on_device, pointers.data(), pointers.size() * sizeof(T *), cudaMemcpyHostToDevice));
	status = C::gemmBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, on_device, n,
		on_device + count, n, &zero, on_device + 2 * count, n, count);
	told(p + "gemm batched", status, dc.holds(want));
	cudaFree(on_device);
}

static void complex_numbers(int n)
{
	typedef std::complex<float> Z;
	std::vector<Z> a((size_t)n * n), b((size_t)n * n), want((size_t)n * n), got((size_t)n * n);
	cuComplex *p[3], one = { 1, 0 }, zero = { 0, 0 };
	bool right = true;
	int status;

	for (size_t i = 0; i < a.size(); i++) {
		a[i] = Z((float)(i % 5) - 2, (float)(i % 3) - 1);
		b[i] = Z((float)(i % 3) - 1, (float)(i % 7) - 3);
	}
	for (int j = 0; j < n; j++)
		for (int i = 0; i < n; i++)
			for (int k = 0; k < n; k++)
				want[i + (size_t)j * n] +=
					std::conj(a[k + (size_t)i * n]) * b[k + (size_t)j * n];
	for (int i = 0; i < 3; i++)
		must(cudaMalloc(&p[i], a.size() * sizeof(Z)));
	must(cudaMemcpy(p[0], a.data(), a.size() * sizeof(Z), cudaMemcpyHostToDevice));
	must(cudaMemcpy(p[1], b.data(), a.size() * sizeof(Z), cudaMemcpyHostToDevice));
	status = cublasCgemm(
		handle, CUBLAS_OP_C, CUBLAS_OP_N, n, n, n, &one, p[0], n, p[1], n, &zero, p[2], n);
	must(cudaMemcpy(got.data(), p[2], a.size() * sizeof(Z), cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < a.size(); i++)
		right &= got[i] == want[i];
	told("C gemm CN", status, right);
	for (int i = 0; i < 3; i++)
		cudaFree(p[i]);
}

template <class In, class Out>
static void mixed(const std::string &name, cudaDataType in, cudaDataType out,
	cublasComputeType_t compute, int n, double relative)
{
	const Numbers a = made((size_t)n * n, 3, 5), b = made((size_t)n * n, 5, 5);
	Device<In> da(a), db(b);
	Device<Out> dc(Numbers((size_t)n * n));
	const float one = 1, zero = 0;
	const double one_d = 1, zero_d = 0;
	const int one_i = 1, zero_i = 0;
	const __half one_h = 1, zero_h = 0;
	const void *alpha = &one, *beta = &zero;

	if (compute == CUBLAS_COMPUTE_64F)
		alpha = &one_d, beta = &zero_d;
	if (compute == CUBLAS_COMPUTE_32I)
		alpha = &one_i, beta = &zero_i;
	if (compute == CUBLAS_COMPUTE_16F)
		alpha = &one_h, beta = &zero_h;
	int status = cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, n, n, n, alpha, da.p, in, n,
		db.p, in, n, beta, dc.p, out, n, compute, CUBLAS_GEMM_DEFAULT);

	told("GemmEx " + name, status, dc.holds(product(a, b, n, true), relative));
}

template <class In, class Out>
static void light(const std::string &name, cudaDataType in, cudaDataType out,
	cublasComputeType_t compute, cudaDataType scale, int n, double relative,
	cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT)
{
	const Numbers a = made((size_t)n * n, 3, 5), b = made((size_t)n * n, 5, 5),
		      bias = made(n, 3);
	Device<In> da(a), db(b);
	Device<Out> dc(Numbers((size_t)n * n)), dbias(bias);
	Numbers want = product(a, b, n, true);
	cublasLtHandle_t lt;
	cublasLtMatmulDesc_t what;
	cublasLtMatrixLayout_t la, lb, lc;
	cublasLtMatmulPreference_t preference;
	cublasLtMatmulHeuristicResult_t found;
	const cublasOperation_t transposed = CUBLAS_OP_T;
	const float one = 1, zero = 0;
	const double one_d = 1, zero_d = 0;
	const int one_i = 1, zero_i = 0;
	const void *alpha = &one, *beta = &zero;
	size_t room = 4 << 20;
	void *work;
	int n_found = 0, status;

	if (scale == CUDA_R_64F)
		alpha = &one_d, beta = &zero_d;
	if (scale == CUDA_R_32I)
		alpha = &one_i, beta = &zero_i;
	must(cudaMalloc(&work, room));
	status = cublasLtCreate(&lt);
	cublasLtMatmulDescCreate(&what, compute, scale);
	cublasLtMatmulDescSetAttribute(
		what, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed);
	cublasLtMatmulDescSetAttribute(
		what, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
	if (epilogue != CUBLASLT_EPILOGUE_DEFAULT) {
		cublasLtMatmulDescSetAttribute(
			what, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &dbias.p, sizeof dbias.p);
		for (int j = 0; j < n; j++)
			for (int i = 0; i < n; i++)
				want[i + (size_t)j * n] =
					std::fmax(want[i + (size_t)j * n] + bias[i], 0);
	}
	cublasLtMatrixLayoutCreate(&la, in, n, n, n);
	cublasLtMatrixLayoutCreate(&lb, in, n, n, n);
	cublasLtMatrixLayoutCreate(&lc, out, n, n, n);
	cublasLtMatmulPreferenceCreate(&preference);
	cublasLtMatmulPreferenceSetAttribute(
		preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof room);
	if (!status)
		status = cublasLtMatmulAlgoGetHeuristic(
			lt, what, la, lb, lc, lc, preference, 1, &found, &n_found);
	if (!status && n_found)
		status = cublasLtMatmul(lt, what, alpha, da.p, la, db.p, lb, beta, dc.p, lc, dc.p,
			lc, &found.algo, work, room, 0);
	told("Lt " + name, status, n_found && dc.holds(want, relative));
	cublasLtMatmulPreferenceDestroy(preference);
	cublasLtMatrixLayoutDestroy(la);
	cublasLtMatrixLayoutDestroy(lb);
	cublasLtMatrixLayoutDestroy(lc);
	cublasLtMatmulDescDestroy(what);
	cublasLtDestroy(lt);
	cudaFree(work);
}

int main(int argc, char **argv)
{
	const int n = argc > 1 ? atoi(argv[1]) : 48;
	const double half = 0.0009765625, brain = 0.0078125; // steps of f16 and bf16

	if (cublasCreate(&handle)) {
		printf("cublasCreate failed\n");
		return 1;
	}
	level1<float>("S ", 20 * n);
	level1<double>("D ", 20 * n);
	level2<float>("S ", n);
	level2<double>("D ", n);
	level3<float>("S ", n);
	level3<double>("D ", n);
	batched<float>("S ", n, 5);
	batched<double>("D ", n, 5);
	complex_numbers(n);
	mixed<double, double>("f64", CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, n, 0);
	mixed<float, float>("f32", CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, n, 0);
	mixed<float, float>("tf32", CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, n, 0);
	mixed<__half, __half>("f16", CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F, n, half);
	mixed<__half, __half>("f16 in f16", CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_16F, n, half);
	mixed<__half, float>("f16 to f32", CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, n, 0);
	mixed<__nv_bfloat16, __nv_bfloat16>(
		"bf16", CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F, n, brain);
	mixed<__nv_bfloat16, float>(
		"bf16 to f32", CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, n, 0);
	mixed<signed char, int>("int8", CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I, n, 0);
	light<double, double>("f64", CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, CUDA_R_64F, n, 0);
	light<float, float>("f32", CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F, n, 0);
	light<float, float>(
		"tf32", CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F, n, 0);
	light<__half, __half>(
		"f16", CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F, CUDA_R_32F, n, half);
	light<__nv_bfloat16, __nv_bfloat16>(
		"bf16", CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F, n, brain);
	light<__half, __half>("f16, bias and relu", CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F,
		CUDA_R_32F, n, half, CUBLASLT_EPILOGUE_RELU_BIAS);
	light<signed char, int>(
		"int8", CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I, CUDA_R_32I, n, 0);
	light<__nv_fp8_e4m3, __nv_bfloat16>(
		"fp8", CUDA_R_8F_E4M3, CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F, n, brain);
	cublasDestroy(handle);
	printf("%d operations: %d right, %d not supported, %d failed, %d wrong\n",
		n_right + n_unsupported + n_failed + n_wrong, n_right, n_unsupported, n_failed,
		n_wrong);
	return n_wrong ? 2 : n_failed ? 1 : 0;
}
