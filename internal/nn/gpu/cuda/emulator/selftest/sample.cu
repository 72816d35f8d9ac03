// Kernels of the emulator's own test. Our kernels are in ../../kernels.

// sample_sum writes the sum of each block's part of x: shared memory, a barrier, and shuffles.
extern "C" __global__ void __launch_bounds__(256) sample_sum(const float* __restrict__ x, float* sums, unsigned n) {
	__shared__ float partial[8];
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	float v = i < n ? x[i] : 0.f;
#pragma unroll
	for (int by = 16; by; by >>= 1) v += __shfl_xor_sync(0xffffffffu, v, by);
	if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v;
	__syncthreads();
	if (threadIdx.x == 0) {
		v = 0;
		for (unsigned w = 0; w < blockDim.x / 32; w++) v += partial[w];
		sums[blockIdx.x] = v;
	}
}

// sample_add adds a number to n numbers.
extern "C" __global__ void sample_add(float* x, float by, unsigned n) {
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n) x[i] += by;
}

// sample_write writes to a place that may be outside.
extern "C" __global__ void sample_write(float* x, int at) { x[at] = 1; }

// sample_stale sums shared memory that nobody has written, but for the first thread's.
extern "C" __global__ void sample_stale(float* out) {
	__shared__ float a[32];
	if (threadIdx.x == 0) a[0] = 1;
	__syncthreads();
	out[threadIdx.x] = a[threadIdx.x];
}

// sample_race reads what another thread writes, without a barrier.
extern "C" __global__ void sample_race(float* out) {
	__shared__ float a[64];
	a[threadIdx.x] = threadIdx.x;
	out[threadIdx.x] = a[63 - threadIdx.x];
}

// sample_number takes an address as a number.
extern "C" __global__ void sample_number(unsigned long long x) { *(float*)x = 1; }

// sample_lanes tries what lanes of a warp can ask of each other: 8 numbers for each thread.
extern "C" __global__ void sample_lanes(unsigned* out) {
	unsigned t = threadIdx.x, *o = out + 8 * t;
	o[0] = __shfl_up_sync(0xffffffffu, t, 3);
	o[1] = __shfl_down_sync(0xffffffffu, t, 3);
	o[2] = __shfl_sync(0xffffffffu, t, 5);
	o[3] = __shfl_sync(0xffffffffu, t, 5, 8);
	o[4] = __ballot_sync(0xffffffffu, t % 3 == 0);
	if (t % 32 < 16) { // half of them
		o[5] = __shfl_xor_sync(0x0000ffffu, t, 1);
		__syncwarp(0x0000ffffu);
	} else {
		o[5] = 0;
	}
	o[6] = __any_sync(0xffffffffu, t == 33);
	o[7] = __all_sync(0xffffffffu, t < 32);
}

// sample_leave: only the first half of the threads comes to the barrier. The others have ended.
extern "C" __global__ void sample_leave(unsigned* out) {
	__shared__ unsigned count;
	if (threadIdx.x == 0) count = 0;
	__syncthreads();
	atomicAdd(&count, 1u);
	if (threadIdx.x >= blockDim.x / 2) return;
	__syncthreads();
	if (threadIdx.x == 0) out[0] = count;
}

// sample_stuck: threads wait for others that wait for them.
extern "C" __global__ void sample_stuck(unsigned* out) {
	if (threadIdx.x == 0) __syncwarp();
	__syncthreads();
	out[0] = 1;
}

// sample_dynamic reverses n numbers in shared memory whose size the launch says.
extern "C" __global__ void sample_dynamic(unsigned* x, unsigned n) {
	extern __shared__ unsigned sample_memory[];
	sample_memory[threadIdx.x] = x[threadIdx.x];
	__syncthreads();
	x[threadIdx.x] = sample_memory[n - 1 - threadIdx.x];
}

template <int N> __device__ __forceinline__ float sum_of(const float4& v) {
	__shared__ float part[N];
	part[threadIdx.x] = v.x + v.y + v.z + v.w;
	__syncthreads();
	float s = 0;
	for (int i = 0; i < N; i++) s += part[i];
	return s;
}

// sample_vector: shared memory in a template, vectors, and functions.
extern "C" __global__ void sample_vector(const float4* x, float* out) {
	float s, c;
	sincosf(0.5f, &s, &c);
	float v = sum_of<32>(__ldcs(x + threadIdx.x)) + __uint_as_float(__float_as_uint(s * s + c * c)) - 1;
	__stcs(out + threadIdx.x, fmaf(v, rsqrtf(4.f), __expf(0.f)));
}
