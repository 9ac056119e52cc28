// under_load HOW ACCOUNT SEED: allocates and frees until it is killed, and keeps an account of its
// own in the file ACCOUNT, which outlives it: each slot says what is live there, or that a call is
// under way. Each slot allocates from a call stack of its own, so that a report can be compared
// slot by slot.
//
//     load    two threads, slots at random, all kinds that have a free
//     grow    allocates and never frees: the ledger grows all the time; slot 0 counts the calls
//     stacks  allocates from SEED stacks, then returns from main: a report that takes its time
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>

#include "tests/end_to_end/programs/expected_totals.hpp"
#include "tests/end_to_end/programs/require.hpp"

namespace {

constexpr unsigned threads = 2, slots = 128, levels = 8;
constexpr std::uint64_t under_way = UINT64_MAX;

struct Account {
  std::atomic<std::uint64_t> operations;
  std::atomic<std::uint64_t> bytes[threads * slots];
};

void* allocate(unsigned slot, std::size_t bytes) {
  void* memory = nullptr;
  switch (slot % 4) {
    case 0:
      REQUIRE(cudaMalloc(&memory, bytes));
      break;
    case 1:
      REQUIRE(cudaMallocHost(&memory, bytes));
      break;
    case 2:
      REQUIRE(cudaMallocAsync(&memory, bytes, nullptr));
      break;
    default:
      REQUIRE(cudaMallocManaged(&memory, bytes));
  }
  return memory;
}

void release(unsigned slot, void* memory) {
  switch (slot % 4) {
    case 1:
      REQUIRE(cudaFreeHost(memory));
      break;
    case 2:
      REQUIRE(cudaFreeAsync(memory, nullptr));
      break;
    default:
      REQUIRE(cudaFree(memory));
  }
}

// The slot's bits, the lowest outermost, are the names on the stack.
void* one(unsigned bits, unsigned left, unsigned slot, std::size_t bytes);
[[gnu::noinline]] void* zero(unsigned bits, unsigned left, unsigned slot, std::size_t bytes) {
  void* memory = left == 0         ? allocate(slot, bytes)
                 : (bits & 1) != 0 ? one(bits >> 1, left - 1, slot, bytes)
                                   : zero(bits >> 1, left - 1, slot, bytes);
  asm volatile("# zero" ::: "memory");  // no tail call: each level is a frame; not equal to one()
  return memory;
}
[[gnu::noinline]] void* one(unsigned bits, unsigned left, unsigned slot, std::size_t bytes) {
  void* memory = left == 0         ? allocate(slot, bytes)
                 : (bits & 1) != 0 ? one(bits >> 1, left - 1, slot, bytes)
                                   : zero(bits >> 1, left - 1, slot, bytes);
  asm volatile("# one" ::: "memory");
  return memory;
}

void load(Account& account, unsigned thread, unsigned seed) {
  std::minstd_rand random(seed * threads + thread + 1);
  void* held[slots] = {};
  for (;;) {
    const auto index = static_cast<unsigned>(random() % slots);
    const unsigned slot = thread * slots + index;
    std::atomic<std::uint64_t>& said = account.bytes[slot];
    said.store(under_way);
    if (held[index] == nullptr) {
      const std::size_t bytes = random() % 500'000 + 1;
      held[index] = zero(slot, levels, slot, bytes);
      said.store(bytes);
    } else {
      release(slot, held[index]);
      held[index] = nullptr;
      said.store(0);
    }
    account.operations.fetch_add(1);
  }
}

[[gnu::noinline]] void grow_for_ever(Account& account) {
  for (;;) {
    void* memory = nullptr;
    REQUIRE(cudaMalloc(&memory, 512));
    account.bytes[0].fetch_add(1);
    account.operations.fetch_add(1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::string how = argv[1];
  const auto seed = static_cast<unsigned>(std::atoi(argv[3]));
  const int file = open(argv[2], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, sizeof(Account)) != 0) return 2;
  void* const mapped = mmap(nullptr, sizeof(Account), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) return 2;
  Account& account = *static_cast<Account*>(mapped);
  if (how == "grow") grow_for_ever(account);
  if (how == "load") {
    std::thread second([&] { load(account, 1, seed); });
    load(account, 0, seed);
  }
  if (how == "stacks") {
    for (unsigned stack = 0; stack < seed; ++stack) zero(stack, 16, 0, 512);
    account.operations.store(seed);
  }
}
