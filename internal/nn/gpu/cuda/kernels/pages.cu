// Pages of keys and values. A page's address is that of its first layer; those of the others are stride bytes apart. layer is what a layer
// is behind the first, in bytes. In a layer there are first keys, [head][dimension][token], then values, [head][token][dimension].
#include "common.h"

// store writes rows' keys and values: a block for each row.
extern "C" __global__ void store(const float* keys, const float* values, const u64* rows, const u64* pages, u64 layer, u64 kv, u64 dim) {
  u64 row = rows[blockIdx.x], width = kv * dim;
  u32 at = position_of(row), slot = at % PAGE;
  float *to = layer_of(pages[run_of(row) + at / PAGE], layer), *to_values = to + width * PAGE;
  keys += blockIdx.x * width, values += blockIdx.x * width;
  for (u64 i = threadIdx.x; i < width; i += blockDim.x) {
    to[i * PAGE + slot] = keys[i];
    to_values[(i / dim * PAGE + slot) * dim + i % dim] = values[i];
  }
}

// turn_pair turns the dimensions a and b of a key by an angle.
__device__ __forceinline__ void turn_pair(float* to, const float* from, u64 a, u64 b, float cosine, float sine) {
  float p = from[a * PAGE], q = from[b * PAGE];
  to[a * PAGE] = sub_(mul_(p, cosine), mul_(q, sine));
  to[b * PAGE] = add_(mul_(p, sine), mul_(q, cosine));
}

// move copies tokens between pages. Blocks of x have 16 tokens each, y is layer·kv + head. chosen are the tokens' numbers, those of a layer's
// head from starts[y] to starts[y+1]−1; null: n tokens from from_at on. angles are of all tokens; null: keys keep their bits.
extern "C" __global__ void move(const u64* to, u64 at, const u64* from, u64 from_at, const i32* chosen, const i32* starts, u64 n, u64 stride,
                                u64 kv, u64 dim, const float* angles, u64 interleaved) {
  u64 layer = blockIdx.y / kv * stride, head = blockIdx.y % kv, first = (u64)blockIdx.x * PAGE, pairs = dim / 2;
  if (chosen) {
    n = starts[blockIdx.y + 1] - starts[blockIdx.y];
    chosen += starts[blockIdx.y];
  }
  u64 i = first + threadIdx.x % PAGE;
  if (i < n) {
    u64 t = at + i, f = chosen ? chosen[i] : from_at + i;
    float* tk = layer_of(to[t / PAGE], layer) + head * dim * PAGE + t % PAGE;
    const float* fk = layer_of(from[f / PAGE], layer) + head * dim * PAGE + f % PAGE;
    for (u64 j = threadIdx.x / PAGE; j < pairs; j += blockDim.x / PAGE) {
      u64 a = interleaved ? 2 * j : j, b = interleaved ? 2 * j + 1 : j + pairs;
      if (angles) {
        turn_pair(tk, fk, a, b, angles[2 * j], angles[2 * j + 1]);
      } else {
        tk[a * PAGE] = fk[a * PAGE], tk[b * PAGE] = fk[b * PAGE];
      }
    }
  }
  for (u64 e = threadIdx.x; e < PAGE * dim; e += blockDim.x) {
    i = first + e / dim;
    if (i >= n) break;
    u64 t = at + i, f = chosen ? chosen[i] : from_at + i;
    layer_of(to[t / PAGE], layer)[((kv + head) * PAGE + t % PAGE) * dim + e % dim] =
        layer_of(from[f / PAGE], layer)[((kv + head) * PAGE + f % PAGE) * dim + e % dim];
  }
}

// turn turns a page's keys in place: a block for each layer·kv + head. which[block·PAGE + slot] says by which angles, from 1; 0: not at all.
extern "C" __global__ void turn(u64 page, const i32* which, u64 stride, u64 kv, u64 dim, const float* angles, u64 interleaved) {
  u64 layer = blockIdx.x / kv * stride, head = blockIdx.x % kv, pairs = dim / 2, slot = threadIdx.x % PAGE;
  i32 w = which[blockIdx.x * PAGE + slot];
  if (w == 0) return;
  angles += (u64)(w - 1) * dim;
  float* keys = layer_of(page, layer) + head * dim * PAGE + slot;
  for (u64 j = threadIdx.x / PAGE; j < pairs; j += blockDim.x / PAGE) {
    turn_pair(keys, keys, interleaved ? 2 * j : j, interleaved ? 2 * j + 1 : j + pairs, angles[2 * j], angles[2 * j + 1]);
  }
}

// value_norm is the Euclidean norm of a head's values. Squares of floats are exact in double, so all orders but this one of the sum may
// differ, and Go has this one.
__device__ __forceinline__ double value_norm(const float* v, u64 dim) {
  double sum = 0;
  for (u64 d = 0; d < dim; d++) sum += (double)v[d] * (double)v[d];
  return sqrt(sum);
}

// value_norms has a thread for each token and head.
extern "C" __global__ void value_norms(double* norms, const u64* pages, u64 n, u64 layer, u64 kv, u64 dim) {
  u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n * kv) return;
  u64 head = i / n, t = i % n;
  norms[i] = value_norm(layer_of(pages[t / PAGE], layer) + ((kv + head) * PAGE + t % PAGE) * dim, dim);
}

// row_norms has a thread for each row and head: the norms of the rows' own values.
extern "C" __global__ void row_norms(float* norms, const u64* rows, const u64* pages, u64 n, u64 layer, u64 kv, u64 dim) {
  u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n * kv) return;
  u64 row = rows[i / kv], head = i % kv;
  u32 t = position_of(row);
  norms[i] = (float)value_norm(layer_of(pages[run_of(row) + t / PAGE], layer) + ((kv + head) * PAGE + t % PAGE) * dim, dim);
}

// place_unit is where unit i of a range of layers lies: layer after layer, in a layer page after page. units: 16 bytes of a layer each.
__device__ __forceinline__ void place_unit(u64 i, u64 n, u64 units, u64 first, u64 layers, u64 stride, const u64* pages, u64 host, w4*& on_host,
                                           w4*& on_device) {
  u64 u = i % units, p = i / units % n, l = first + i / units / n;
  on_host = (w4*)host + (p * layers + l) * units + u;
  on_device = (w4*)(pages[p] + l * stride) + u;
}

// kv_copy copies layers first to last−1 of n pages between the host's memory, where a page is all its layers, and the pool. out: to the
// host. Few blocks do it, so that most of the card stays free; four loads of each thread are on their way at a time.
extern "C" __global__ void __launch_bounds__(1024) kv_copy(u64, const u64*, u64, u64, u64, u64, u64, u64, u64);
extern "C" __global__ void kv_copy(u64 host, const u64* pages, u64 n, u64 units, u64 first, u64 last, u64 layers, u64 stride, u64 out) {
  u64 all = n * (last - first) * units, step = (u64)gridDim.x * blockDim.x;
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += 4 * step) {
    w4 v[4], *to[4];
#pragma unroll
    for (int j = 0; j < 4; j++) {
      if (i + j * step < all) {
        w4 *h, *d;
        place_unit(i + j * step, n, units, first, layers, stride, pages, host, h, d);
        to[j] = out ? h : d;
        v[j] = load_once(out ? d : h);
      }
    }
#pragma unroll
    for (int j = 0; j < 4; j++) {
      if (i + j * step < all) store_once(to[j], v[j]);
    }
  }
}

// page_copy copies a page within the pool: blocks of y have a layer each.
extern "C" __global__ void page_copy(u64 to, u64 from, u64 units, u64 stride) {
  const w4* f = (const w4*)(from + blockIdx.y * stride);
  w4* t = (w4*)(to + blockIdx.y * stride);
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < units; i += (u64)gridDim.x * blockDim.x) t[i] = f[i];
}
