// Attention over pages, and what probes see of it. See package compute.
#include "common.h"

const u32 QUERIES = 16; // of a block; each of its four warps has four
const u32 CHUNK = 128;  // tokens whose sums are kept by themselves, so that different blocks may compute them

// Sums of a query over a chunk, or over all so far: the largest product, and relative to it the sum of exponentials.
struct Softmax { float most, sum; };

// join adds a chunk to what there is, and returns by what the results so far and those of the chunk are to be multiplied.
__device__ __forceinline__ void join(Softmax& all, Softmax chunk, float& before, float& now) {
  float most = fmaxf(all.most, chunk.most);
  before = expf(all.most - most), now = expf(chunk.most - most);
  all.sum = fmaf(all.sum, before, mul_(chunk.sum, now));
  all.most = most;
}

// A warp's queries.
struct Queries { u32 count, row[4], head[4], seen[4], most; };

__device__ __forceinline__ void queries_of(Queries& q, const u32* task, const u64* rows, u64 heads, u64 kv, u64 limit) {
  u32 shared = (u32)(heads / kv), groups = (shared + QUERIES - 1) / QUERIES, head = blockIdx.y / groups, group = blockIdx.y % groups;
  u32 width = shared - group * QUERIES < QUERIES ? shared - group * QUERIES : QUERIES, first = threadIdx.x / 32 * 4;
  q.count = 0, q.most = 0;
#pragma unroll
  for (u32 i = 0; i < 4; i++) {
    u32 at = first + i;
    q.row[i] = 0, q.head[i] = 0, q.seen[i] = 0;
    if (at < task[1] * width) {
      q.row[i] = task[0] + at / width;
      q.head[i] = head * shared + group * QUERIES + at % width;
      u64 seen = position_of(rows[q.row[i]]) + 1;
      q.seen[i] = (u32)(seen < limit ? seen : limit);
      q.most = q.seen[i] > q.most ? q.seen[i] : q.most;
      q.count = i + 1;
    }
  }
}

// attend: x of a block is its task, a first row and a number of rows of one run, so many that they have at most QUERIES queries for a head;
// y is the head of keys and values, times the groups of queries if more share it; z is the chunk, and partial gets its sums; with one z
// a block does all chunks and writes out and sums (of exponentials, as logarithms; null: not wanted). Rows look at limit tokens at most.
// A row's result is the same bits whatever other rows there are: what other rows of a warp see is masked, which adds exact zeros.
template <int J>
__device__ __forceinline__ void attend(float* out, float* sums, const float* q, const u32* tasks, const u64* rows, const u64* pages,
                                       float* partial, u64 layer, u64 heads, u64 kv, u64 dim, u64 limit, u64 scale, u64 chunks) {
  __shared__ __align__(16) float scaled[QUERIES][32 * J];
  __shared__ __align__(16) float weights[QUERIES][32];
  Queries w;
  queries_of(w, tasks + 2 * blockIdx.x, rows, heads, kv, limit);
  if (w.count == 0) return;
  u32 lane = threadIdx.x % 32, mine = threadIdx.x / 32 * 4;
  u64 shared = heads / kv, head = blockIdx.y / ((shared + QUERIES - 1) / QUERIES);
  const u64* table = pages + run_of(rows[w.row[0]]);
  float all[4][J], acc[4][J];
  Softmax total[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    total[i].most = -infinity_(), total[i].sum = 0;
#pragma unroll
    for (int j = 0; j < J; j++) {
      u32 d = lane + 32 * j;
      all[i][j] = 0;
      scaled[mine + i][d] = i < w.count && d < dim ? mul_(q[(w.row[i] * heads + w.head[i]) * dim + d], bits((u32)scale)) : 0;
    }
  }
  __syncwarp();
  u32 first = gridDim.z > 1 ? blockIdx.z : 0, last = gridDim.z > 1 ? blockIdx.z + 1 : (w.most + CHUNK - 1) / CHUNK;
  for (u32 c = first; c < last; c++) {
    Softmax part[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      part[i].most = -infinity_(), part[i].sum = 0;
#pragma unroll
      for (int j = 0; j < J; j++) acc[i][j] = 0;
    }
    u32 end = (c + 1) * CHUNK < w.most ? (c + 1) * CHUNK : w.most;
    for (u32 t0 = c * CHUNK; t0 < end; t0 += 32) {
      u32 t = t0 + lane, page = t / PAGE, final = (w.most - 1) / PAGE;
      const float* key = layer_of(table[page < final ? page : final], layer) + head * dim * PAGE + t % PAGE;
      float s[4] = {0, 0, 0, 0};
#pragma unroll 4
      for (u32 d = 0; d < dim; d += 4) {
        float k0 = key[d * PAGE], k1 = key[(d + 1) * PAGE], k2 = key[(d + 2) * PAGE], k3 = key[(d + 3) * PAGE];
#pragma unroll
        for (int i = 0; i < 4; i++) {
          f4 x = *(const f4*)(scaled[mine + i] + d);
          s[i] = fmaf(x.x, k0, s[i]);
          s[i] = fmaf(x.y, k1, s[i]);
          s[i] = fmaf(x.z, k2, s[i]);
          s[i] = fmaf(x.w, k3, s[i]);
        }
      }
#pragma unroll
      for (int i = 0; i < 4; i++) {
        if (t >= w.seen[i]) s[i] = -infinity_();
        float most = fmaxf(part[i].most, warp_max(s[i])), before = 1, weight = 0;
        if (most > -infinity_()) before = expf(part[i].most - most), weight = expf(s[i] - most);
        part[i].sum = fmaf(part[i].sum, before, weight); // of this lane's tokens
        part[i].most = most;
#pragma unroll
        for (int j = 0; j < J; j++) acc[i][j] = mul_(acc[i][j], before);
        weights[mine + i][lane] = weight;
      }
      __syncwarp();
      u32 count = end - t0 < 32 ? end - t0 : 32;
      if (out) {
        for (u32 n = 0; n < count; n += 4) {
          f4 p[4];
          float v[4][J];
#pragma unroll
          for (int i = 0; i < 4; i++) p[i] = *(const f4*)(weights[mine + i] + n);
#pragma unroll
          for (u32 m = 0; m < 4; m++) {
            u32 token = t0 + (n + m < count ? n + m : n); // of those behind the last, the weights are zero
            const float* value = layer_of(table[token / PAGE], layer) + ((kv + head) * PAGE + token % PAGE) * dim;
#pragma unroll
            for (int j = 0; j < J; j++) v[m][j] = lane + 32 * j < dim ? value[lane + 32 * j] : 0;
          }
#pragma unroll
          for (int i = 0; i < 4; i++) {
#pragma unroll
            for (int j = 0; j < J; j++) {
              acc[i][j] = fmaf(p[i].x, v[0][j], acc[i][j]);
              acc[i][j] = fmaf(p[i].y, v[1][j], acc[i][j]);
              acc[i][j] = fmaf(p[i].z, v[2][j], acc[i][j]);
              acc[i][j] = fmaf(p[i].w, v[3][j], acc[i][j]);
            }
          }
        }
      }
      __syncwarp();
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
      part[i].sum = warp_sum(part[i].sum);
      if (part[i].most == -infinity_() || i >= w.count) continue; // nothing of the chunk is seen
      if (gridDim.z > 1) {
        float* to = partial + ((w.row[i] * heads + w.head[i]) * chunks + c) * (dim + 2);
        if (lane == 0) to[0] = part[i].most, to[1] = part[i].sum;
#pragma unroll
        for (int j = 0; j < J; j++) {
          if (lane + 32 * j < dim) to[2 + lane + 32 * j] = acc[i][j];
        }
        continue;
      }
      float before, now;
      join(total[i], part[i], before, now);
#pragma unroll
      for (int j = 0; j < J; j++) all[i][j] = fmaf(all[i][j], before, mul_(acc[i][j], now));
    }
  }
  if (gridDim.z > 1) return;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    if (i >= w.count) continue;
    u64 query = w.row[i] * heads + w.head[i];
    if (sums && lane == 0) sums[query] = total[i].most + logf(total[i].sum);
    if (!out) continue;
#pragma unroll
    for (int j = 0; j < J; j++) {
      if (lane + 32 * j < dim) out[query * dim + lane + 32 * j] = all[i][j] / total[i].sum;
    }
  }
}

extern "C" __global__ void attend_64(float* out, float* sums, const float* q, const u32* tasks, const u64* rows, const u64* pages,
                                     float* partial, u64 layer, u64 heads, u64 kv, u64 dim, u64 limit, u64 scale, u64 chunks) {
  attend<2>(out, sums, q, tasks, rows, pages, partial, layer, heads, kv, dim, limit, scale, chunks);
}
extern "C" __global__ void attend_128(float* out, float* sums, const float* q, const u32* tasks, const u64* rows, const u64* pages,
                                      float* partial, u64 layer, u64 heads, u64 kv, u64 dim, u64 limit, u64 scale, u64 chunks) {
  attend<4>(out, sums, q, tasks, rows, pages, partial, layer, heads, kv, dim, limit, scale, chunks);
}
extern "C" __global__ void attend_256(float* out, float* sums, const float* q, const u32* tasks, const u64* rows, const u64* pages,
                                      float* partial, u64 layer, u64 heads, u64 kv, u64 dim, u64 limit, u64 scale, u64 chunks) {
  attend<8>(out, sums, q, tasks, rows, pages, partial, layer, heads, kv, dim, limit, scale, chunks);
}

// attend_join adds the chunks of partial in their order, as one block would have: x of a block is the row, y the head; a warp.
extern "C" __global__ void attend_join(float* out, float* sums, const float* partial, const u64* rows, u64 heads, u64 dim, u64 limit,
                                       u64 chunks) {
  u64 query = blockIdx.x * heads + blockIdx.y, seen = position_of(rows[blockIdx.x]) + 1;
  u32 lane = threadIdx.x, count = (u32)(((seen < limit ? seen : limit) + CHUNK - 1) / CHUNK);
  partial += query * chunks * (dim + 2);
  float all[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  Softmax total;
  total.most = -infinity_(), total.sum = 0;
#pragma unroll 4
  for (u32 c = 0; c < count; c++) {
    const float* from = partial + c * (dim + 2);
    Softmax part;
    part.most = from[0], part.sum = from[1];
    float before, now;
    join(total, part, before, now);
#pragma unroll
    for (int j = 0; j < 8; j++) {
      if (lane + 32 * j < dim) all[j] = fmaf(all[j], before, mul_(from[2 + lane + 32 * j], now));
    }
  }
  if (sums && lane == 0) sums[query] = total.most + logf(total.sum);
  if (!out) return;
#pragma unroll
  for (int j = 0; j < 8; j++) {
    if (lane + 32 * j < dim) out[query * dim + lane + 32 * j] = all[j] / total.sum;
  }
}

// probe adds to columns what rows first to first+n−1, of one run, attend to them: for each head of keys and values x·32 to x·32+31 are a
// block's columns, and it goes through all rows and the queries that share the head, so that the order of the sums is fixed. logs are
// the logarithms of the sums of exponentials. weights are the rows', KV for each; null: 1, or the tokens that a row sees. most: the largest
// in place of the sum. columns has tokens floats for each head.
extern "C" __global__ void probe(float* columns, const float* q, const float* logs, const u64* rows, const u64* pages, const float* weights,
                                 u64 first, u64 n, u64 layer, u64 heads, u64 kv, u64 dim, u64 tokens, u64 scale, u64 by_position, u64 most) {
  __shared__ __align__(16) float keys[256][32];
  __shared__ float parts[4][32];
  u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, head = blockIdx.y, shared = (u32)(heads / kv);
  const u64* table = pages + run_of(rows[first]);
  u32 t = blockIdx.x * 32 + lane, last = position_of(rows[first + n - 1]), page = (t < last ? t : last) / PAGE;
  const float* key = layer_of(table[page], layer) + (u64)head * dim * PAGE + t % PAGE;
  for (u32 d = warp; d < dim; d += 4) keys[d][lane] = mul_(key[d * PAGE], bits((u32)scale));
  __syncthreads();
  float sum = 0;
  u64 count = n * shared;
  for (u64 at = 4 * warp; at < count; at += 16) {
    const float* query[4];
    float s[4] = {0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < 4; i++) {
      u64 x = at + i < count ? at + i : count - 1;
      query[i] = q + ((first + x / shared) * heads + head * shared + x % shared) * dim;
    }
    for (u32 d = 0; d < dim; d += 4) {
      float k0 = keys[d][lane], k1 = keys[d + 1][lane], k2 = keys[d + 2][lane], k3 = keys[d + 3][lane];
#pragma unroll
      for (int i = 0; i < 4; i++) {
        f4 x = *(const f4*)(query[i] + d);
        s[i] = fmaf(x.x, k0, s[i]);
        s[i] = fmaf(x.y, k1, s[i]);
        s[i] = fmaf(x.z, k2, s[i]);
        s[i] = fmaf(x.w, k3, s[i]);
      }
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
      if (at + i >= count) continue;
      u64 row = first + (at + i) / shared;
      u32 position = position_of(rows[row]);
      if (t > position) continue;
      float weight = weights ? weights[row * kv + head] : by_position ? (float)(position + 1) : 1;
      float x = mul_(expf(s[i] - logs[row * heads + head * shared + (at + i) % shared]), weight);
      sum = most ? fmaxf(sum, x) : add_(sum, x);
    }
  }
  parts[warp][lane] = sum;
  __syncthreads();
  if (warp || t >= tokens || t > last) return;
  float* column = columns + head * tokens + t;
  sum = *column;
  for (int i = 0; i < 4; i++) sum = most ? fmaxf(sum, parts[i][lane]) : add_(sum, parts[i][lane]);
  *column = sum;
}
