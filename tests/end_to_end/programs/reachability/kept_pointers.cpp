// Allocates memory of several kinds, and keeps the pointers to it in containers of all sorts, or
// loses them. The function that allocates a block tells what becomes of its pointer: lost_device()
// loses the pointer to device memory, held_pinned() keeps the one to page-locked memory, and so on.
//
// usage: kept_pointers SEED [exit|hide]
//
// `exit`: ends by exit() in the main thread; otherwise main() returns. In both cases the containers
// that are variables of functions are destroyed before the process ends, without freeing anything.
// `hide`: also keeps pointers in other forms. inverted_device() keeps the one to device memory with
// all bits inverted, and so on.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "tests/comes_about.hpp"
#include "tests/end_to_end/programs/reachability/mapped_memory.hpp"
#include "tests/end_to_end/programs/require.hpp"

namespace {

std::mt19937_64 random_numbers;

std::size_t any_of(std::size_t count) { return random_numbers() % count; }

std::size_t any_size() {
  constexpr std::array<std::size_t, 7> sizes{512, 4096, 65536, 1 << 20, 2 << 20, 16 << 20, 40000};
  return sizes[any_of(sizes.size())];
}

void* allocate_device() {
  void* block = nullptr;
  REQUIRE(cudaMalloc(&block, any_size()));
  return block;
}
void* allocate_pinned() {
  void* block = nullptr;
  REQUIRE(cudaMallocHost(&block, any_size() % (1 << 20) + 64));
  return block;
}
void* allocate_managed() {
  void* block = nullptr;
  REQUIRE(cudaMallocManaged(&block, any_size() % (1 << 20) + 64));
  return block;
}
void* allocate_virtual() {
  const CUdeviceptr address = map_device_memory();
  REQUIRE(address != 0);
  return reinterpret_cast<void*>(address);
}
void* allocate_stream_ordered() {
  void* block = nullptr;
  REQUIRE(cudaMallocAsync(&block, any_size() % (1 << 20) + 64, nullptr));
  return block;
}

// Returns what `allocate` returns. The caller keeps its frame, since this is no tail call.
[[gnu::always_inline]] inline void* block_of(void* (*allocate)()) {
  void* block = allocate();
  asm volatile("" : "+r"(block));
  return block;
}

// Defines a function WHAT(), which calls one of WHAT_device(), WHAT_pinned() and so on, at random.
#define DEFINE_ALLOCATING(what)                                                            \
  [[gnu::noinline]] void* what##_device() { return block_of(allocate_device); }            \
  [[gnu::noinline]] void* what##_pinned() { return block_of(allocate_pinned); }            \
  [[gnu::noinline]] void* what##_managed() { return block_of(allocate_managed); }          \
  [[gnu::noinline]] void* what##_virtual() { return block_of(allocate_virtual); }          \
  [[gnu::noinline]] void* what##_ordered() { return block_of(allocate_stream_ordered); }   \
  void* what() {                                                                           \
    constexpr std::array all{what##_device, what##_pinned, what##_managed, what##_virtual, \
                             what##_ordered};                                              \
    return all[any_of(all.size())]();                                                      \
  }
DEFINE_ALLOCATING(lost)
DEFINE_ALLOCATING(held)
DEFINE_ALLOCATING(inside)
DEFINE_ALLOCATING(freed)
DEFINE_ALLOCATING(inverted)
DEFINE_ALLOCATING(marked_high)
DEFINE_ALLOCATING(marked_low)
DEFINE_ALLOCATING(distance)
DEFINE_ALLOCATING(packed)

struct Node {
  int number;
  void* block;
  std::uint64_t rest;
};
// A structure in which the pointer's address is no multiple of eight.
struct [[gnu::packed]] PackedNode {
  std::uint32_t number;
  void* block;
  std::uint32_t rest;
};
// A container that is destroyed at the process's end, before the handlers that CUDA has registered.
std::vector<void*>& early_destroyed() {
  static std::vector<void*> blocks;
  return blocks;
}
std::map<int, void*>* by_number;
std::unordered_map<void*, int>* numbers;
std::list<void*>* listed;
std::vector<void*>* in_row;
std::deque<void*>* queued;
std::set<void*>* sorted;
std::vector<std::function<void*()>>* captured;
std::vector<std::uint64_t>* hidden;
std::vector<PackedNode>* packed_nodes;
std::array<void* volatile, 8> variables;
thread_local std::array<void* volatile, 4> of_thread;
std::atomic<bool> is_thread_ready{false};

// The thread has a pointer on its stack alone, and sleeps until the process ends.
void keep_on_stack() {
  void* volatile block = held();
  is_thread_ready = true;
  for (;;) {
    pause();
    std::printf("%p\n", block);  // keeps the variable alive
  }
}

// Malloc and free of other data, so that records of all sorts lie side by side.
void make_noise() {
  static std::array<void*, 256> kept;
  for (int i = 0; i < 20; ++i) {
    void*& block = kept[any_of(kept.size())];
    if (block != nullptr) {
      std::free(block);
      block = nullptr;
    } else {
      block = std::calloc(1, 16 + any_of(1500));
    }
  }
}

[[gnu::noinline]] void keep_and_lose(int round) {
  make_noise();
  for (int i = 0; i < 3; ++i) lost();
  (*by_number)[round] = held();
  (*numbers)[held()] = round;
  listed->push_back(held());
  in_row->push_back(held());
  queued->push_back(held());
  sorted->insert(held());
  captured->push_back([block = held()] { return block; });
  in_row->push_back(new Node{round, held(), 0});
  if (round < 8) variables[static_cast<std::size_t>(round)] = held();
  if (round % 4 == 0) early_destroyed().push_back(held());
  in_row->push_back(static_cast<char*>(inside()) + 8 * (1 + any_of(7)));
  auto* const node = new Node{round, freed(), 0};
  delete node;
}

[[gnu::noinline]] void hide(std::uint32_t round) {
  const auto number = [](void* block) { return reinterpret_cast<std::uint64_t>(block); };
  hidden->push_back(~number(inverted()));
  hidden->push_back(number(marked_high()) | std::uint64_t{1} << 63);
  hidden->push_back(number(marked_low()) | 1);
  hidden->push_back(number(distance()) - number(variables[0]));
  packed_nodes->push_back({round, packed(), 0});
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) return 2;
  random_numbers.seed(std::strtoull(arguments[1], nullptr, 10));
  // The driver refuses calls before the runtime has set it up, and the first block may be virtual.
  REQUIRE(cudaFree(nullptr));
  by_number = new std::map<int, void*>;
  numbers = new std::unordered_map<void*, int>;
  listed = new std::list<void*>;
  in_row = new std::vector<void*>;
  queued = new std::deque<void*>;
  sorted = new std::set<void*>;
  captured = new std::vector<std::function<void*()>>;
  std::thread(keep_on_stack).detach();
  cuwarden::wait_until("the thread has its block", [] { return is_thread_ready.load(); });
  for (void* volatile& block : of_thread) block = held();
  hidden = new std::vector<std::uint64_t>;
  packed_nodes = new std::vector<PackedNode>;
  const std::string_view mode = count > 2 ? arguments[2] : "";
  for (int round = 0; round < 12; ++round) {
    keep_and_lose(round);
    if (mode == "hide") hide(static_cast<std::uint32_t>(round));
  }
  clear_stack();
  std::puts("done");
  if (mode == "exit") std::exit(3);
  return 0;
}
