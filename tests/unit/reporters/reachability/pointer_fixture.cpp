// A program that keeps the addresses of blocks which do not exist, each in one location. Prints
// "ready" when they are there, and ends when its standard input is closed.
//
// usage: pointer_fixture LOCATIONS...
//
// LOCATIONS are words such as "static"; block i is kept in location i. The addresses are computed
// at run time from inverted numbers, so that nothing else in the process has them.
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "tests/comes_about.hpp"
#include "tests/unit/reporters/reachability/block_addresses.hpp"

namespace {

using cuwarden::reachability::inverted_address;

std::uint64_t in_data = 1;  // begins as a number other than zero, in the file
std::uint64_t in_bss;       // begins as zero
thread_local std::uint64_t in_thread_storage;
std::atomic<bool> is_stored{false};

// Stores the address of block i, plus `bytes`, and leaves it in no register.
[[gnu::noinline]] void store(void* to, std::uint32_t i, std::uint64_t bytes = 0,
                             std::uint64_t tag = 0) {
  std::uint64_t word = inverted_address(i) - bytes;
  asm volatile("notq %0\n\torq %2, %0\n\tmovq %0, (%1)\n\txorl %k0, %k0"
               : "+r"(word)
               : "r"(to), "r"(tag)
               : "memory");
}

[[gnu::noinline]] void clear_stack() {
  volatile char bytes[1 << 16];
  for (volatile char& byte : bytes) byte = 0;
}

// A record as a driver might keep of each block: one of a list, whose chunk has a form of its own.
struct Record {
  Record* next;
  std::uint64_t address, bytes, flags[10];
};
Record* records = nullptr;
void record(std::uint32_t i) {
  auto* const made = static_cast<Record*>(std::calloc(1, sizeof(Record)));
  made->next = records;
  made->bytes = 4096;
  made->flags[3] = 7;
  store(&made->address, i);
  records = made;
}

// Node of a program's list, of the size of a Record.
struct Node {
  const char* name;
  std::uint64_t address;
  Node* next;
  std::uint64_t rest[10];
};
Node* nodes = nullptr;

void* map_page(int access) {
  return mmap(nullptr, 4096, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

void keep_on_stack(std::uint32_t i) {
  volatile std::uint64_t word[2];
  store(const_cast<std::uint64_t*>(word), i);
  is_stored = true;
  for (;;) pause();
}

void put(const std::string& location, std::uint32_t i) {
  if (location == "data") store(&in_data, i);
  if (location == "bss") store(&in_bss, i);
  if (location == "heap") store(std::calloc(1, 100), i);
  if (location == "heap_inside") store(std::calloc(1, 100), i, 64);
  if (location == "large_heap") store(static_cast<char*>(std::calloc(1, 90'000)) + 50'000, i);
  if (location == "mapped_heap") store(static_cast<char*>(std::calloc(1, 4 << 20)) + (3 << 20), i);
  if (location == "thread_storage") store(&in_thread_storage, i);
  if (location == "thread_stack") {
    std::thread(keep_on_stack, i).detach();
    cuwarden::wait_until("the thread has the pointer", [] { return is_stored.load(); });
  }
  if (location == "page") store(map_page(PROT_READ | PROT_WRITE), i);
  if (location == "read_only_page") {
    void* const page = map_page(PROT_READ | PROT_WRITE);
    store(page, i);
    mprotect(page, 4096, PROT_READ);
  }
  if (location == "hidden_page") {
    void* const page = map_page(PROT_READ | PROT_WRITE);
    store(page, i);
    mprotect(page, 4096, PROT_NONE);
  }
  if (location == "tagged") store(std::calloc(1, 100), i, 0, std::uint64_t{1} << 63);
  // A small chunk goes to the thread's own lists, a larger one is marked as free.
  for (const std::size_t bytes : {std::size_t{40}, std::size_t{90'000}}) {
    if (location != "freed_" + std::to_string(bytes)) continue;
    auto* const freed = static_cast<char*>(std::malloc(bytes));
    // Keeps the chunk apart from the end of the heap.
    [[maybe_unused]] void* const behind = std::malloc(24);
    store(freed + 24, i);
    std::free(freed);
  }
  if (location == "record" || location == "record_and_node") record(i);
  if (location == "node" || location == "record_and_node") {
    auto* const made = static_cast<Node*>(std::calloc(1, sizeof(Node)));
    made->name = "a node of the program";
    made->next = nodes;
    store(&made->address, i);
    nodes = made;
  }
}

}  // namespace

int main(int count, char** locations) {
  for (int i = 1; i < count; ++i) put(locations[i], static_cast<std::uint32_t>(i - 1));
  clear_stack();
  if (write(STDOUT_FILENO, "ready\n", 6) != 6) return 1;
  char byte = 0;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
}
