// What all kernels share. There are no headers but this one: NVRTC has the built-in functions, and the emulator in package emulator has the
// same names. All parameters of kernels are 64 bits wide, because gorgonia.org/cu passes 8 bytes for each.
#ifndef RP_COMMON
#define RP_COMMON

typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;

struct alignas(16) f4 { float x, y, z, w; };
struct alignas(8) w2 { u32 x, y; };
struct alignas(16) w4 { u32 x, y, z, w; };

const u32 PAGE = 16; // tokens

// Products and sums that the compiler may not fuse, so that they are the bits that Go computes.
#ifdef RP_EMU
__device__ __forceinline__ float mul_(float a, float b) { return a * b; }
__device__ __forceinline__ float add_(float a, float b) { return a + b; }
__device__ __forceinline__ float sub_(float a, float b) { return a - b; }
__device__ __forceinline__ w4 load_once(const w4* p) { return *p; }
__device__ __forceinline__ void store_once(w4* p, w4 v) { *p = v; }
#else
__device__ __forceinline__ float mul_(float a, float b) { return __fmul_rn(a, b); }
__device__ __forceinline__ float add_(float a, float b) { return __fadd_rn(a, b); }
__device__ __forceinline__ float sub_(float a, float b) { return __fsub_rn(a, b); }
// Loads and stores of what is not used again: they leave the caches to others.
__device__ __forceinline__ w4 load_once(const w4* p) {
  uint4 v = __ldcs((const uint4*)p);
  w4 r; r.x = v.x; r.y = v.y; r.z = v.z; r.w = v.w;
  return r;
}
__device__ __forceinline__ void store_once(w4* p, w4 v) { __stcs((uint4*)p, make_uint4(v.x, v.y, v.z, v.w)); }
#endif

__device__ __forceinline__ float bits(u32 u) { union { u32 u; float f; } c; c.u = u; return c.f; }
__device__ __forceinline__ u32 image(float f) { union { u32 u; float f; } c; c.f = f; return c.u; }
__device__ __forceinline__ float infinity_() { return bits(0x7f800000u); }

// half_ is the value of a half precision number: see quant.FromF16.
__device__ __forceinline__ float half_(u32 h) {
  u32 sign = (h & 0x8000u) << 16, x = (h & 0x7fffu) << 13;
  if (x >= 31u << 23) return bits(sign | x | 255u << 23);
  return bits(sign | image(mul_(bits(x), bits(239u << 23)))); // times 2^112
}

// Reads of packed weights, which lie at even addresses.
__device__ __forceinline__ u32 half_bits(const u8* p) { return *(const u16*)p; }
__device__ __forceinline__ float half_at(const u8* p) { return half_(half_bits(p)); }
__device__ __forceinline__ u32 four(const u8* p) { return half_bits(p) | half_bits(p + 2) << 16; }

__device__ __forceinline__ float warp_sum(float x) {
  for (int m = 16; m; m >>= 1) x = add_(x, __shfl_xor_sync(0xffffffffu, x, m));
  return x;
}
__device__ __forceinline__ float warp_max(float x) {
  for (int m = 16; m; m >>= 1) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, m));
  return x;
}

// Where a row of a batch is: in the low half the place of its run's first page in the table of pages, in the high half its position.
__device__ __forceinline__ u32 run_of(u64 row) { return (u32)row; }
__device__ __forceinline__ u32 position_of(u64 row) { return (u32)(row >> 32); }

// A layer's part of a page: keys, then values, each of KV·dim·PAGE floats.
__device__ __forceinline__ float* layer_of(u64 page, u64 layer) { return (float*)(page + layer); }

#endif
