// A service: tiles of a map in a cache on the device, with page-locked buffers for the way there.
// Two threads that miss the same tile both load it, and one of the two tiles is forgotten.
#include <list>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "tests/end_to_end/programs/require.hpp"

namespace {

constexpr std::size_t tile_bytes = std::size_t{1} << 20;
constexpr int most_tiles = 64;

class Tiles {
 public:
  void use(int number, void* staging, bool is_slow) {
    if (find(number)) return;
    void* tile = load(staging);
    // Meanwhile, another thread has loaded the tile.
    if (is_slow) insert(number, load(staging));
    insert(number, tile);
  }
  std::size_t count() const { return tiles_.size(); }

 private:
  bool find(int number) {
    const std::lock_guard<std::mutex> locked(lock_);
    return tiles_.count(number) != 0;
  }
  static void* load(void* staging) {
    void* tile = nullptr;
    REQUIRE(cudaMalloc(&tile, tile_bytes));  // planted
    REQUIRE(cudaMemcpy(tile, staging, tile_bytes, cudaMemcpyHostToDevice));
    return tile;
  }
  void insert(int number, void* tile) {
    const std::lock_guard<std::mutex> locked(lock_);
    if (tiles_.count(number) == 0) order_.push_back(number);
    tiles_[number] = tile;
    if (order_.size() <= most_tiles) return;
    REQUIRE(cudaFree(tiles_[order_.front()]));
    tiles_.erase(order_.front());
    order_.pop_front();
  }

  std::mutex lock_;
  std::unordered_map<int, void*> tiles_;
  std::list<int> order_;
};

Tiles tiles;
void* index_of_tiles = nullptr;

void serve(int first) {
  void* staging = nullptr;
  REQUIRE(cudaMallocHost(&staging, tile_bytes));
  for (int request = 0; request < 400; ++request) {
    const int number = first * 1000 + request / 2;
    tiles.use(number, staging, request % 50 == 0);
  }
  REQUIRE(cudaFreeHost(staging));
}

}  // namespace

int main() {
  REQUIRE(cudaMallocManaged(&index_of_tiles, 128 << 20));
  std::vector<std::thread> threads;
  for (int first = 0; first < 3; ++first) threads.emplace_back(serve, first);
  for (std::thread& thread : threads) thread.join();
  std::printf("%zu tiles\n", tiles.count());
}
