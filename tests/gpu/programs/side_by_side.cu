// Kernels and cuBLAS at work on memory of many sizes that lives at once. Each leaves alone the rims
// of the memory that it works on. After each, all memory is compared with the host's results, rims
// and neighbours included.
//
//     side_by_side [lock]
//
// `lock` first locks much of the device in the driver's slabs (locked_slabs.hpp).
#include <cooperative_groups.h>
#include <cublas_v2.h>

#include <algorithm>
#include <cstring>

#include "tests/end_to_end/programs/memory_contract/locked_slabs.hpp"
#include "tests/gpu/programs/device_work.cuh"

namespace side_by_side {

constexpr std::size_t KiB = 1024, MiB = 1024 * KiB;
// Sizes of memory_contract that have room for rims.
constexpr std::size_t sizes[] = {511,           512,         513,     4 * KiB, 64 * KiB + 1, MiB,
                                 MiB + MiB / 2, 2 * MiB - 1, 2 * MiB, 3 * MiB, 33 * MiB + 1};
constexpr std::size_t rim = 16;  // Words at either end.

// Words in the device's memory or in page-locked memory.
struct Piece {
  unsigned* words = nullptr;
  bool is_pinned = false;
  std::vector<unsigned> expected;

  unsigned* inner() const { return words + rim; }
  unsigned* inner_expected() { return expected.data() + rim; }
  // A number of words that makes whole uint4 values.
  std::size_t inner_count() const { return (expected.size() - 2 * rim) / 4 * 4; }
};

std::vector<Piece> pieces;

void add_piece(std::size_t bytes, bool is_pinned, unsigned seed) {
  Piece piece;
  piece.is_pinned = is_pinned;
  void* made = nullptr;
  if (is_pinned)
    REQUIRE(cudaMallocHost(&made, bytes));
  else
    REQUIRE(cudaMalloc(&made, bytes));
  piece.words = static_cast<unsigned*>(made);
  piece.expected.resize(bytes / sizeof(unsigned));
  for (std::size_t i = 0; i < piece.expected.size(); ++i) piece.expected[i] = work::value(seed, i);
  REQUIRE(cudaMemcpy(made, piece.expected.data(), piece.expected.size() * sizeof(unsigned),
                     cudaMemcpyDefault));
  pieces.push_back(std::move(piece));
}

void check(const char* what) {
  REQUIRE(cudaGetLastError());
  REQUIRE(cudaDeviceSynchronize());
  bool same = true;
  std::vector<unsigned> got;
  for (const Piece& piece : pieces) {
    const std::size_t bytes = piece.expected.size() * sizeof(unsigned);
    got.resize(piece.expected.size());
    REQUIRE(cudaMemcpy(got.data(), piece.words, bytes, cudaMemcpyDefault));
    same = same && std::memcmp(got.data(), piece.expected.data(), bytes) == 0;
  }
  std::printf("%s: as the host computes it: %s\n", what, same ? "yes" : "no");
}

__host__ __device__ inline unsigned changed(unsigned word) { return word * 2654435761u + 7; }

// --- kernels on one piece

__global__ void change_vectors(uint4* data, std::size_t count) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    uint4 four = data[i];
    four.x = changed(four.x), four.y = changed(four.y), four.z = changed(four.z),
    four.w = changed(four.w);
    data[i] = four;
  }
}

void change_on_host(Piece& piece) {
  unsigned* const words = piece.inner_expected();
  for (std::size_t i = 0; i < piece.inner_count(); ++i) words[i] = changed(words[i]);
}

void vectors() {
  for (Piece& piece : pieces) {
    change_vectors<<<64, 256>>>(reinterpret_cast<uint4*>(piece.inner()), piece.inner_count() / 4);
    change_on_host(piece);
  }
  check("vector loads and stores");
}

__global__ void change_bytes(unsigned char* data, std::size_t count) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step)
    data[i] = static_cast<unsigned char>(data[i] ^ 0x5a);
}

void bytes() {
  for (Piece& piece : pieces) {
    // Starts at an odd address.
    const std::size_t count = piece.inner_count() * sizeof(unsigned) - 2;
    change_bytes<<<64, 256>>>(reinterpret_cast<unsigned char*>(piece.inner()) + 1, count);
    auto* const expected = reinterpret_cast<unsigned char*>(piece.inner_expected()) + 1;
    for (std::size_t i = 0; i < count; ++i) expected[i] ^= 0x5a;
  }
  check("bytes");
}

__global__ void count_up(unsigned* data, std::size_t count, bool by_compare) {
  for (std::size_t i = threadIdx.x; i < count; i += blockDim.x) {
    if (!by_compare) {
      atomicAdd(data + i, 3u);
      continue;
    }
    unsigned seen = data[i], before;
    do {
      before = seen;
      seen = atomicCAS(data + i, before, before + 5u);
    } while (seen != before);
  }
}

// 32 blocks at once count up the first and the last words.
void atomics() {
  constexpr unsigned blocks = 32;
  for (Piece& piece : pieces) {
    const std::size_t all = piece.inner_count(), count = std::min<std::size_t>(all / 2, 64);
    for (const bool at_end : {false, true}) {
      const std::size_t at = at_end ? all - count : 0;
      count_up<<<blocks, 32>>>(piece.inner() + at, count, false);
      count_up<<<blocks, 32>>>(piece.inner() + at, count, true);
      for (std::size_t i = 0; i < count; ++i) piece.inner_expected()[at + i] += blocks * (3 + 5);
    }
  }
  check("atomics");
}

// --- kernels on two pieces

// Computes `second` from `first`; all threads wait; then `first` becomes `second`, rotated by one
// word.
__global__ void exchange(unsigned* first, unsigned* second, std::size_t count) {
  const cooperative_groups::grid_group all = cooperative_groups::this_grid();
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x,
                    begin = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (std::size_t i = begin; i < count; i += step) second[i] = changed(first[i]);
  all.sync();
  for (std::size_t i = begin; i < count; i += step) first[i] = second[(i + 1) % count];
}

void cooperative_launches() {
  for (std::size_t at = 0; at + 1 < pieces.size(); ++at) {
    Piece &one = pieces[at], &other = pieces[at + 1];
    unsigned *first = one.inner(), *second = other.inner();
    std::size_t count = std::min(one.inner_count(), other.inner_count());
    void* arguments[] = {&first, &second, &count};
    REQUIRE(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(&exchange), dim3(32),
                                        dim3(256), arguments, 0, nullptr));
    unsigned *const to = one.inner_expected(), *const between = other.inner_expected();
    for (std::size_t i = 0; i < count; ++i) between[i] = changed(to[i]);
    for (std::size_t i = 0; i < count; ++i) to[i] = between[(i + 1) % count];
  }
  check("cooperative launches");
}

// --- graphs

// Captures kernels, a copy from each piece to the next, and a fill of the device's first inner
// words.
void graphs() {
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  constexpr int launches = 3;
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  REQUIRE(cudaDeviceSynchronize());
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  const auto copied = [](std::size_t at) {
    return std::min(pieces[at].inner_count(), pieces[at + 1].inner_count()) / 2;
  };
  for (std::size_t at = 0; at < pieces.size(); ++at) {
    Piece& piece = pieces[at];
    change_vectors<<<64, 256, 0, stream>>>(reinterpret_cast<uint4*>(piece.inner()),
                                           piece.inner_count() / 4);
    if (!piece.is_pinned) REQUIRE(cudaMemsetAsync(piece.inner(), 0x3c, sizeof(unsigned), stream));
    if (at + 1 < pieces.size())
      REQUIRE(cudaMemcpyAsync(pieces[at + 1].inner(), piece.inner(), copied(at) * sizeof(unsigned),
                              cudaMemcpyDefault, stream));
  }
  REQUIRE(cudaStreamEndCapture(stream, &graph));
  REQUIRE(cudaGraphInstantiate(&exec, graph, 0));
  for (int launch = 0; launch < launches; ++launch) {
    REQUIRE(cudaGraphLaunch(exec, stream));
    for (std::size_t at = 0; at < pieces.size(); ++at) {
      change_on_host(pieces[at]);
      if (!pieces[at].is_pinned) pieces[at].inner_expected()[0] = 0x3c3c3c3c;
      if (at + 1 < pieces.size())
        std::memcpy(pieces[at + 1].inner_expected(), pieces[at].inner_expected(),
                    copied(at) * sizeof(unsigned));
    }
  }
  check("graphs of kernels, copies and fills");
  REQUIRE(cudaGraphExecDestroy(exec));
  REQUIRE(cudaGraphDestroy(graph));
  REQUIRE(cudaStreamDestroy(stream));
}

// --- cuBLAS

// Small integers, so that all sums are exact, with a rim before and after them that nothing writes
// to.
struct Floats {
  static constexpr std::size_t rim = 64;
  float* memory = nullptr;
  std::vector<float> expected;

  explicit Floats(std::size_t count, unsigned seed) : expected(count + 2 * rim) {
    REQUIRE(cudaMalloc(&memory, expected.size() * sizeof(float)));
    for (std::size_t i = 0; i < expected.size(); ++i)
      expected[i] = static_cast<float>(work::value(seed, i) % 8);
    REQUIRE(cudaMemcpy(memory, expected.data(), expected.size() * sizeof(float),
                       cudaMemcpyHostToDevice));
  }
  float* data() const { return memory + rim; }
  float* host() { return expected.data() + rim; }
  bool is_right() const {
    std::vector<float> got(expected.size());
    REQUIRE(cudaMemcpy(got.data(), memory, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
    return got == expected;
  }
};

// Computes C = A * B, and then A += 2 * B. The matrices have sizes that the driver cuts from its
// slabs, that fill its pages, and that would waste half of a page.
void cublas() {
  cublasHandle_t handle = nullptr;
  REQUIRE(cublasCreate(&handle));
  constexpr int orders[] = {7, 90, 333, 640, 886};
  std::vector<std::vector<Floats>> all;
  for (const int n : orders) {
    all.emplace_back();
    for (unsigned i = 0; i < 3; ++i)
      all.back().emplace_back(std::size_t(n) * std::size_t(n), 3 * unsigned(n) + i);
  }
  const float one = 1, zero = 0, two = 2;
  for (std::size_t at = 0; at < all.size(); ++at) {
    const int n = orders[at];
    const std::size_t side = std::size_t(n);
    Floats &a = all[at][0], &b = all[at][1], &c = all[at][2];
    REQUIRE(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a.data(), n, b.data(), n,
                        &zero, c.data(), n));
    std::fill(c.host(), c.host() + side * side, 0.0f);
    for (std::size_t column = 0; column < side; ++column)
      for (std::size_t k = 0; k < side; ++k) {
        const float factor = b.host()[column * side + k];
        const float* const from = a.host() + k * side;
        float* const to = c.host() + column * side;
        for (std::size_t row = 0; row < side; ++row) to[row] += from[row] * factor;
      }
    REQUIRE(cublasSaxpy(handle, n * n, &two, b.data(), 1, a.data(), 1));
    for (std::size_t i = 0; i < side * side; ++i) a.host()[i] += 2 * b.host()[i];
  }
  REQUIRE(cudaDeviceSynchronize());
  bool right = true;
  for (const auto& matrices : all)
    for (const Floats& matrix : matrices) right = right && matrix.is_right();
  std::printf("matrices: as the host computes it: %s\n", right ? "yes" : "no");
  for (const auto& matrices : all)
    for (const Floats& matrix : matrices) REQUIRE(cudaFree(matrix.memory));
  REQUIRE(cublasDestroy(handle));
}

}  // namespace side_by_side

int main(int argc, char** argv) {
  using namespace side_by_side;
  work::warm_up();
  if (argc > 1 && std::strcmp(argv[1], "lock") == 0 && !cuwarden::memory_contract::lock_slabs())
    return 3;
  unsigned seed = 1;
  for (const bool is_pinned : {false, true})
    for (const std::size_t size : sizes) add_piece(size, is_pinned, seed++);
  check("as it was made");
  vectors();
  bytes();
  atomics();
  cooperative_launches();
  graphs();
  cublas();
  check("beside the matrices");
  // Every other piece is freed and replaced by a new one.
  for (std::size_t at = 0; at < pieces.size(); at += 2) {
    const std::size_t size = sizes[at % (sizeof sizes / sizeof *sizes)];
    const bool is_pinned = pieces[at].is_pinned;
    REQUIRE(is_pinned ? cudaFreeHost(pieces[at].words) : cudaFree(pieces[at].words));
    add_piece(size, is_pinned, seed++);
    std::swap(pieces[at], pieces.back());
    pieces.pop_back();
  }
  vectors();
  graphs();
  for (const Piece& piece : pieces)
    REQUIRE(piece.is_pinned ? cudaFreeHost(piece.words) : cudaFree(piece.words));
  std::printf("freed: %d\n", static_cast<int>(cudaDeviceSynchronize()));
  return 0;
}
