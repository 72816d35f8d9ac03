// The formats of package quant. Each weight is computed as quant.Dequantize does, bit for bit.
#ifndef RP_FORMATS
#define RP_FORMATS
#include "common.h"

enum { F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_NL };

#define EACH_FORMAT(K) \
  K(f32, F32) K(f16, F16) K(bf16, BF16) K(q8_0, Q8_0) K(q4_0, Q4_0) K(q4_1, Q4_1) K(q5_0, Q5_0) K(q5_1, Q5_1) K(q3_k, Q3_K) \
  K(q4_k, Q4_K) K(q5_k, Q5_K) K(q6_k, Q6_K) K(iq4_nl, IQ4_NL)

// A block of tile's has 512 threads, so that a thread may have 128 registers.
#define TILE_BOUND(n, T) extern "C" __global__ void __launch_bounds__(512) tile_##n(float*, const float*, const u8*, u64, u64, u64, u64);
EACH_FORMAT(TILE_BOUND)

// byte_ is byte i of a word.
__device__ __forceinline__ u32 byte_(u32 word, int i) { return word >> (8 * i) & 255u; }

__device__ __forceinline__ f4 make(float x, float y, float z, float w) { f4 r; r.x = x; r.y = y; r.z = z; r.w = w; return r; }

// scaled is d·(q + by) of four numbers, one in each byte.
__device__ __forceinline__ f4 scaled(float d, u32 q, int by) {
  return make(mul_(d, (float)((int)byte_(q, 0) + by)), mul_(d, (float)((int)byte_(q, 1) + by)), mul_(d, (float)((int)byte_(q, 2) + by)),
              mul_(d, (float)((int)byte_(q, 3) + by)));
}

// shifted is d·q + m.
__device__ __forceinline__ f4 shifted(float d, u32 q, float m) {
  return make(add_(mul_(d, (float)byte_(q, 0)), m), add_(mul_(d, (float)byte_(q, 1)), m), add_(mul_(d, (float)byte_(q, 2)), m),
              add_(mul_(d, (float)byte_(q, 3)), m));
}

// fifths are bits i to i+3 of high, each in its place above the other four of a byte.
__device__ __forceinline__ u32 fifths(u32 high, u32 i) {
  u32 b = high >> i;
  return (b & 1u) << 4 | (b & 2u) << 11 | (b & 4u) << 18 | (b & 8u) << 25;
}

// scale_k unpacks scale and minimum j of a block of Q4_K or Q5_K: see quant.ScaleQ4K.
__device__ __forceinline__ void scale_k(const u8* b, u32 j, u32& scale, u32& least) {
  if (j < 4) {
    scale = b[j] & 63u, least = b[j + 4] & 63u;
  } else {
    scale = (b[j + 4] & 15u) | (u32)(b[j - 4] >> 6) << 4, least = (u32)(b[j + 4] >> 4) | (u32)(b[j] >> 6) << 4;
  }
}

__device__ __forceinline__ float iq4_value(u32 q) {
  const u64 low = 0xf6eaddcfbfad9881ull, high = 0x7159453526190d01ull; // quant.IQ4Values
  return (float)(i8)((q < 8 ? low : high) >> (8 * (q & 7)));
}

// weights are the four weights from column k on, a multiple of four.
template <int T>
__device__ __forceinline__ f4 weights(const u8* row, u32 k) {
  if (T == F32) return *(const f4*)(row + 4 * (u64)k);
  if (T == F16 || T == BF16) {
    w2 v = *(const w2*)(row + 2 * (u64)k);
    if (T == BF16) return make(bits(v.x << 16), bits(v.x & 0xffff0000u), bits(v.y << 16), bits(v.y & 0xffff0000u));
    return make(half_(v.x & 0xffffu), half_(v.x >> 16), half_(v.y & 0xffffu), half_(v.y >> 16));
  }
  u32 i = k % 32, low = i % 16, shift = i / 16 * 4; // of the formats with blocks of 32
  u32 b = k / 32;
  if (T == Q8_0) {
    const u8* p = row + (u64)b * 34;
    u32 q = four(p + 2 + i);
    float d = half_at(p);
    return make(mul_(d, (float)(i8)q), mul_(d, (float)(i8)(q >> 8)), mul_(d, (float)(i8)(q >> 16)), mul_(d, (float)(i8)(q >> 24)));
  }
  if (T == Q4_0) {
    const u8* p = row + (u64)b * 18;
    return scaled(half_at(p), four(p + 2 + low) >> shift & 0x0f0f0f0fu, -8);
  }
  if (T == IQ4_NL) {
    const u8* p = row + (u64)b * 18;
    u32 q = four(p + 2 + low) >> shift & 0x0f0f0f0fu;
    float d = half_at(p);
    return make(mul_(d, iq4_value(byte_(q, 0))), mul_(d, iq4_value(byte_(q, 1))), mul_(d, iq4_value(byte_(q, 2))),
                mul_(d, iq4_value(byte_(q, 3))));
  }
  if (T == Q4_1) {
    const u8* p = row + (u64)b * 20;
    return shifted(half_at(p), four(p + 4 + low) >> shift & 0x0f0f0f0fu, half_at(p + 2));
  }
  if (T == Q5_0) {
    const u8* p = row + (u64)b * 22;
    return scaled(half_at(p), (four(p + 6 + low) >> shift & 0x0f0f0f0fu) | fifths(four(p + 2), i), -16);
  }
  if (T == Q5_1) {
    const u8* p = row + (u64)b * 24;
    return shifted(half_at(p), (four(p + 8 + low) >> shift & 0x0f0f0f0fu) | fifths(four(p + 4), i), half_at(p + 2));
  }
  u32 j = k % 256; // of the formats with blocks of 256
  b = k / 256;
  if (T == Q3_K) {
    const u8* p = row + (u64)b * 110;
    u32 part = j / 128, l = j % 32, group = j % 128 / 32, s = j / 16;
    u32 q = four(p + 32 + part * 32 + l) >> (2 * group) & 0x03030303u;
    q |= (four(p + l) >> (4 * part + group) & 0x01010101u) << 2;
    const u8* c = p + 96;
    u32 scale = (c[s % 8] >> (s / 8 * 4) & 15u) | (c[8 + s % 4] >> (s / 4 * 2) & 3u) << 4;
    return scaled(mul_(half_at(p + 108), (float)((int)scale - 32)), q, -4);
  }
  if (T == Q4_K || T == Q5_K) {
    const u8* p = row + (u64)b * (T == Q4_K ? 144 : 176);
    u32 group = j / 32, scale, least;
    scale_k(p + 4, group, scale, least);
    u32 q = four(p + (T == Q4_K ? 16 : 48) + group / 2 * 32 + i) >> (4 * (group % 2)) & 0x0f0f0f0fu;
    if (T == Q5_K) q |= (four(p + 16 + i) >> group & 0x01010101u) << 4;
    return shifted(mul_(half_at(p), (float)scale), q, -mul_(half_at(p + 2), (float)least));
  }
  // Q6_K
  const u8* p = row + (u64)b * 210;
  u32 part = j / 128, l = j % 32, group = j % 128 / 32;
  u32 q = four(p + part * 64 + group % 2 * 32 + l) >> (group / 2 * 4) & 0x0f0f0f0fu;
  q |= (four(p + 128 + part * 32 + l) >> (2 * group) & 0x03030303u) << 4;
  return scaled(mul_(half_at(p + 208), (float)(i8)p[192 + j / 16]), q, -32);
}

#endif
