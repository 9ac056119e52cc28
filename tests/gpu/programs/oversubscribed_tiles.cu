// oversubscribed_tiles [HELD TILES BYTES]: holds HELD bytes, then allocates up to TILES tiles of
// BYTES each, until one is refused. Kernels write all tiles and then read them twice. The last line
// is JSON: the number of tiles, the number of wrong values, and the speeds. Without arguments it
// prints how much of the device is free. A caller that preloads a library which shows more free
// memory than there is can so pass the same sizes.
#include <cstdlib>
#include <vector>

#include "tests/gpu/programs/wide_work.cuh"

int main(int argc, char** argv) {
  if (argc != 1 && argc != 4) return 2;
  work::warm_up();
  if (argc == 1) {
    std::printf("{\"free_bytes\":%zu}\n", cuwarden::test::free_bytes());
    return 0;
  }
  const std::size_t held = std::strtoull(argv[1], nullptr, 0),
                    planned = std::strtoull(argv[2], nullptr, 0),
                    bytes = std::strtoull(argv[3], nullptr, 0), count = bytes / 8;
  // Everything that the kernels need is made before the device is full.
  unsigned long long* wrong = nullptr;
  REQUIRE(cudaMallocHost(&wrong, sizeof *wrong));
  *wrong = 0;
  wide::write_all<<<1, 1>>>(nullptr, 0, 0);
  wide::count_wrong<<<1, 1>>>(nullptr, 0, 0, wrong);
  REQUIRE(cudaDeviceSynchronize());
  void* beside = nullptr;
  if (held != 0) REQUIRE(cudaMalloc(&beside, held));

  std::vector<std::uint64_t*> tiles;
  const auto begun = std::chrono::steady_clock::now();
  for (std::uint64_t* tile = nullptr; tiles.size() < planned; tiles.push_back(tile))
    if (cudaMalloc(&tile, bytes) != cudaSuccess) break;
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begun;
  cudaGetLastError();

  const std::size_t all = tiles.size() * bytes;
  const double written = wide::gigabytes_per_second(all, [&] {
    for (std::size_t i = 0; i < tiles.size(); ++i)
      wide::write_all<<<1024, 256>>>(tiles[i], count, i * count);
  });
  const double read = wide::gigabytes_per_second(2 * all, [&] {
    for (int pass = 0; pass < 2; ++pass)
      for (std::size_t i = 0; i < tiles.size(); ++i)
        wide::count_wrong<<<1024, 256>>>(tiles[i], count, i * count, wrong);
  });
  std::printf(
      "{\"planned_tiles\":%zu,\"tiles\":%zu,\"wrong\":%llu,\"allocate_s\":%.3f,"
      "\"write_gb_s\":%.1f,\"read_gb_s\":%.1f}\n",
      planned, tiles.size(), *wrong, taken.count(), written, read);
  return 0;
}
