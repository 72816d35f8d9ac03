// What CUDA C++ has that C++ has not, for kernels that run on the CPU. build.sh includes it in front of each .cu file, which is compiled
// with RP_EMU defined. The threads of a block are fibers (emulator.cpp) that take turns: a thread runs until it waits for others.
#pragma once

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <math.h>
#include <type_traits>
#include <utility>
#include <vector>

struct dim3 {
	unsigned x = 1, y = 1, z = 1;
	dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

namespace rp_emu {

// Thread is one of a block's.
struct Thread {
	dim3 index;
	int number = 0;      // in the block
	int state = 0;       // what it waits for
	int operation = 0;   // of its warp, if it waits for that
	unsigned mask = 0;   // lanes of that operation
	int source = 0;      // lane whose value it wants
	uint64_t value = 0;  // it gives, and then gets
	void* fiber = nullptr;
};

extern Thread* self; // the one that runs
extern dim3 block_index, block_size, grid_size;

enum { sync_warp = 1, shuffle, ballot };

int block_barrier(int predicate, int how); // how: 0 count, 1 and, 2 or
uint64_t warp_operation(int operation, unsigned mask, uint64_t value, int source);

// Kernel is a __global__ function and what is known of its parameters.
struct Kernel {
	const char* name;
	void (*call)(const char* arguments, const size_t* offsets);
	std::vector<size_t> sizes, alignments;
	std::vector<bool> pointers;
};

void add_kernel(Kernel k);

template <auto F> struct Register;
template <class... A, void (*F)(A...)> struct Register<F> {
	template <class T> static T load(const char* from) {
		T value;
		memcpy(&value, from, sizeof value);
		return value;
	}
	template <size_t... I> static void unpack(const char* arguments, const size_t* offsets, std::index_sequence<I...>) {
		F(load<std::remove_cv_t<A>>(arguments + offsets[I])...);
	}
	static void call(const char* arguments, const size_t* offsets) { unpack(arguments, offsets, std::index_sequence_for<A...>{}); }
	explicit Register(const char* name) { add_kernel({name, call, {sizeof(A)...}, {alignof(A)...}, {std::is_pointer_v<A>...}}); }
};

template <class To, class From> inline To bits(From v) {
	static_assert(sizeof(To) == sizeof(From));
	To to;
	memcpy(&to, &v, sizeof to);
	return to;
}

template <class T> inline T exchange(unsigned mask, T v, int source) {
	static_assert(sizeof(T) <= 8);
	uint64_t u = 0;
	memcpy(&u, &v, sizeof v);
	u = warp_operation(shuffle, mask, u, source);
	memcpy(&v, &u, sizeof v);
	return v;
}

inline int lane() { return self->number & 31; }
template <class T> inline T update(T* p, T v) {
	T old = *p;
	*p = v;
	return old;
}

} // namespace rp_emu

#ifdef RP_EMU // kernels only: the library's own headers know some of these words

#define RP_EMU_KERNEL(name) static const rp_emu::Register<name> rp_emu_kernel_##name{#name};

#define threadIdx (rp_emu::self->index)
#define blockIdx (rp_emu::block_index)
#define blockDim (rp_emu::block_size)
#define gridDim (rp_emu::grid_size)
#define warpSize 32

#define __global__
#define __device__ static
#define __host__
#define __constant__ static
// Blocks run one after the other on one thread of the CPU, so that this is memory of one block; the emulator knows where it is and
// overwrites it between blocks.
#define __shared__ thread_local
#define __restrict__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

// Vectors.
#define RP_EMU_VECTOR(T, N, A2, A4)                                                  \
	struct alignas(A2) N##2 { T x, y; };                                             \
	struct N##3 { T x, y, z; };                                                      \
	struct alignas(A4) N##4 { T x, y, z, w; };                                       \
	inline N##2 make_##N##2(T x, T y) { return {x, y}; }                             \
	inline N##3 make_##N##3(T x, T y, T z) { return {x, y, z}; }                     \
	inline N##4 make_##N##4(T x, T y, T z, T w) { return {x, y, z, w}; }
RP_EMU_VECTOR(signed char, char, 2, 4)
RP_EMU_VECTOR(unsigned char, uchar, 2, 4)
RP_EMU_VECTOR(short, short, 4, 8)
RP_EMU_VECTOR(unsigned short, ushort, 4, 8)
RP_EMU_VECTOR(int, int, 8, 16)
RP_EMU_VECTOR(unsigned, uint, 8, 16)
RP_EMU_VECTOR(float, float, 8, 16)
RP_EMU_VECTOR(double, double, 16, 16)
#undef RP_EMU_VECTOR

// Barriers, and exchange in a warp.
inline void __syncthreads() { rp_emu::block_barrier(0, 0); }
inline int __syncthreads_count(int p) { return rp_emu::block_barrier(p, 0); }
inline int __syncthreads_and(int p) { return rp_emu::block_barrier(p, 1); }
inline int __syncthreads_or(int p) { return rp_emu::block_barrier(p, 2); }
inline void __syncwarp(unsigned mask = ~0u) { rp_emu::warp_operation(rp_emu::sync_warp, mask, 0, 0); }
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
inline unsigned __ballot_sync(unsigned mask, int p) { return unsigned(rp_emu::warp_operation(rp_emu::ballot, mask, p != 0, 0)); }
inline int __any_sync(unsigned mask, int p) { return __ballot_sync(mask, p) != 0; }
inline int __all_sync(unsigned mask, int p) { return __ballot_sync(mask, !p) == 0; }
template <class T> inline T __shfl_sync(unsigned mask, T v, int source, int width = 32) {
	int l = rp_emu::lane();
	return rp_emu::exchange(mask, v, (l & ~(width - 1)) | (source & (width - 1)));
}
template <class T> inline T __shfl_up_sync(unsigned mask, T v, unsigned by, int width = 32) {
	int l = rp_emu::lane(), s = l - int(by);
	return rp_emu::exchange(mask, v, s < (l & ~(width - 1)) ? l : s);
}
template <class T> inline T __shfl_down_sync(unsigned mask, T v, unsigned by, int width = 32) {
	int l = rp_emu::lane(), s = l + int(by);
	return rp_emu::exchange(mask, v, s > (l | (width - 1)) ? l : s);
}
template <class T> inline T __shfl_xor_sync(unsigned mask, T v, int by, int width = 32) {
	int l = rp_emu::lane(), s = l ^ by;
	return rp_emu::exchange(mask, v, s > (l | (width - 1)) ? l : s);
}
template <class T> inline T __reduce_add_sync(unsigned mask, T v) {
	T sum = 0;
	for (int l = 0; l < 32; l++) {
		T other = __shfl_sync(mask, v, mask >> l & 1 ? l : rp_emu::lane());
		if (mask >> l & 1) sum += other;
	}
	return sum;
}

// Atomics: no thread is interrupted.
template <class T, class U> inline T atomicAdd(T* p, U v) { return rp_emu::update(p, T(*p + T(v))); }
template <class T, class U> inline T atomicSub(T* p, U v) { return rp_emu::update(p, T(*p - T(v))); }
template <class T, class U> inline T atomicMax(T* p, U v) { return rp_emu::update(p, std::max(*p, T(v))); }
template <class T, class U> inline T atomicMin(T* p, U v) { return rp_emu::update(p, std::min(*p, T(v))); }
template <class T, class U> inline T atomicOr(T* p, U v) { return rp_emu::update(p, T(*p | T(v))); }
template <class T, class U> inline T atomicAnd(T* p, U v) { return rp_emu::update(p, T(*p & T(v))); }
template <class T, class U> inline T atomicXor(T* p, U v) { return rp_emu::update(p, T(*p ^ T(v))); }
template <class T, class U> inline T atomicExch(T* p, U v) { return rp_emu::update(p, T(v)); }
template <class T, class U, class V> inline T atomicCAS(T* p, U was, V v) { return rp_emu::update(p, *p == T(was) ? T(v) : *p); }
inline unsigned atomicInc(unsigned* p, unsigned last) { return rp_emu::update(p, *p >= last ? 0u : *p + 1); }

// Loads and stores with hints for caches.
template <class T> inline T __ldg(const T* p) { return *p; }
template <class T> inline T __ldca(const T* p) { return *p; }
template <class T> inline T __ldcg(const T* p) { return *p; }
template <class T> inline T __ldcs(const T* p) { return *p; }
template <class T> inline T __ldlu(const T* p) { return *p; }
template <class T> inline T __ldcv(const T* p) { return *p; }
template <class T> inline void __stwb(T* p, T v) { *p = v; }
template <class T> inline void __stcg(T* p, T v) { *p = v; }
template <class T> inline void __stcs(T* p, T v) { *p = v; }
template <class T> inline void __stwt(T* p, T v) { *p = v; }

// Bits.
inline float __uint_as_float(unsigned v) { return rp_emu::bits<float>(v); }
inline float __int_as_float(int v) { return rp_emu::bits<float>(v); }
inline unsigned __float_as_uint(float v) { return rp_emu::bits<unsigned>(v); }
inline int __float_as_int(float v) { return rp_emu::bits<int>(v); }
inline double __longlong_as_double(long long v) { return rp_emu::bits<double>(v); }
inline long long __double_as_longlong(double v) { return rp_emu::bits<long long>(v); }
inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
inline int __clz(int v) { return v ? __builtin_clz(unsigned(v)) : 32; }
inline int __clzll(long long v) { return v ? __builtin_clzll((unsigned long long)v) : 64; }
inline int __ffs(int v) { return __builtin_ffs(v); }
inline int __ffsll(long long v) { return __builtin_ffsll(v); }
inline unsigned __brev(unsigned v) {
	unsigned r = 0;
	for (int i = 0; i < 32; i++) r |= (v >> i & 1) << (31 - i);
	return r;
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
	uint64_t both = uint64_t(b) << 32 | a;
	unsigned r = 0;
	for (int i = 0; i < 4; i++) {
		unsigned s = selector >> (4 * i) & 0xf, byte = unsigned(both >> (8 * (s & 7))) & 0xff;
		if (s & 8) byte = byte & 0x80 ? 0xff : 0;
		r |= byte << (8 * i);
	}
	return r;
}
inline int __dp4a(int a, int b, int c) {
	for (int i = 0; i < 4; i++) c += int(int8_t(unsigned(a) >> (8 * i))) * int(int8_t(unsigned(b) >> (8 * i)));
	return c;
}
inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned(uint64_t(a) * b >> 32); }

// Arithmetic. The fast functions are the exact ones.
// They are macros since the C library declares functions of these names.
#define __expf expf
#define __exp10f exp10f
#define __logf logf
#define __log2f log2f
#define __sinf sinf
#define __cosf cosf
#define __sincosf sincosf
#define __powf powf
inline float __fdividef(float x, float y) { return x / y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __frcp_rn(float x) { return 1 / x; }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1) : 0; }
inline float rsqrtf(float x) { return 1 / sqrtf(x); }
inline double rsqrt(double x) { return 1 / sqrt(x); }
inline int __float2int_rn(float x) { return int(lrintf(x)); }
inline int __float2int_rz(float x) { return int(x); }
inline int __float2int_rd(float x) { return int(floorf(x)); }
inline int __float2int_ru(float x) { return int(ceilf(x)); }
inline unsigned __float2uint_rn(float x) { return unsigned(llrintf(x)); }
inline float __int2float_rn(int x) { return float(x); }
inline float __uint2float_rn(unsigned x) { return float(x); }
inline long long clock64() { return 0; }
template <class A, class B> inline std::common_type_t<A, B> min(A a, B b) {
	using T = std::common_type_t<A, B>;
	return T(b) < T(a) ? T(b) : T(a);
}
template <class A, class B> inline std::common_type_t<A, B> max(A a, B b) {
	using T = std::common_type_t<A, B>;
	return T(a) < T(b) ? T(b) : T(a);
}

#endif
