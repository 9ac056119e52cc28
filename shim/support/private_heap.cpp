// The shim's own heap, behind malloc and so behind operator new of the static C++ runtime. None of
// it is visible outside this object (the version script hides the names).
//
// The host's heap must not be used. A report may be written by _exit in a signal handler that
// interrupted malloc, after a heap corruption, or below the host's own interposer of malloc. The
// hooked path allocates nothing; this heap serves the start, messages and the report.
//
// Blocks of up to 32 KiB come from lists by size class, larger ones from mmap. Memory is not given
// back to the system except for large blocks: a report needs a few megabytes, once.
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/memory/own_memory.hpp"
#include "runtime_hooks/core/memory/wiped_page.hpp"

namespace cuwarden::shim {
namespace {

// Lies before each block, and keeps blocks 16-byte aligned.
struct BlockHead {
  std::uint64_t bytes;       // usable bytes of the block
  std::uint64_t size_class;  // index into free_lists, or `mapped`
};
static_assert(sizeof(BlockHead) == 16);

struct FreeBlock {
  FreeBlock* next;
};

constexpr std::uint64_t mapped = ~std::uint64_t{0};
constexpr unsigned smallest_shift = 5, largest_shift = 15;
constexpr std::size_t class_count = largest_shift - smallest_shift + 1;
constexpr std::size_t refill_bytes = std::size_t{1} << 18;

// The lock guards all other members, and no lock is taken under it. The hooked path takes it only
// for messages. So _exit in a signal handler finds it held only if the thread was starting,
// reporting or writing a message.
struct Heap {
  FutexLock lock;
  FreeBlock* free_lists[class_count];
  std::byte* fresh;
  std::size_t fresh_bytes;
};

// A forked child begins with an empty heap: another thread may have held the lock, with the lists
// half changed. Memory that was allocated before stays valid.
constinit std::atomic<Heap*> made{nullptr};
constinit Heap without_page{};

Heap& heap() {
  Heap* present = made.load(std::memory_order_acquire);
  if (present != nullptr) return *present;
  Heap* mine = static_cast<Heap*>(make_wiped_page(sizeof(Heap)));  // all zeros: an empty heap
  if (mine == nullptr) mine = &without_page;
  if (made.compare_exchange_strong(present, mine, std::memory_order_acq_rel)) return *mine;
  if (mine != &without_page) munmap(mine, sizeof(Heap));
  return *present;
}

// Replaces a heap by a new one if its lock will not be given back any more, as in a forked child.
// Returns false if there is no memory for it.
bool begin_anew(Heap& stuck) {
  Heap* present = &stuck;
  auto* const mine = static_cast<Heap*>(make_wiped_page(sizeof(Heap)));
  if (mine == nullptr) return false;
  if (!made.compare_exchange_strong(present, mine, std::memory_order_acq_rel))
    munmap(mine, sizeof(Heap));
  return true;
}

void* map(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  OwnMemory::add(memory, bytes);
  return memory;
}

BlockHead* head_of(void* block) { return static_cast<BlockHead*>(block) - 1; }

void* allocate_mapped(std::size_t bytes) {
  if (bytes > SIZE_MAX - sizeof(BlockHead)) return nullptr;
  auto* head = static_cast<BlockHead*>(map(bytes + sizeof(BlockHead)));
  if (head == nullptr) return nullptr;
  *head = {bytes, mapped};
  return head + 1;
}

void* allocate(std::size_t bytes) {
  bytes = std::max<std::size_t>(bytes, std::size_t{1} << smallest_shift);
  if (bytes > std::size_t{1} << largest_shift) return allocate_mapped(bytes);
  const auto size_class = static_cast<std::size_t>(std::bit_width(bytes - 1)) - smallest_shift;
  const std::size_t block_bytes = std::size_t{1} << (size_class + smallest_shift);
  Heap& present = heap();
  const Locked locked(present.lock);
  if (!locked) return begin_anew(present) ? allocate(bytes) : nullptr;
  auto& [lock, free_lists, fresh, fresh_bytes] = present;
  if (FreeBlock* block = free_lists[size_class]; block != nullptr) {
    free_lists[size_class] = block->next;
    return block;
  }
  if (fresh_bytes < block_bytes + sizeof(BlockHead)) {
    void* more = map(refill_bytes);
    if (more == nullptr) return nullptr;
    fresh = static_cast<std::byte*>(more);
    fresh_bytes = refill_bytes;
  }
  auto* head = reinterpret_cast<BlockHead*>(fresh);
  fresh += block_bytes + sizeof(BlockHead);
  fresh_bytes -= block_bytes + sizeof(BlockHead);
  *head = {block_bytes, size_class};
  return head + 1;
}

void release(void* block) {
  if (block == nullptr) return;
  BlockHead* head = head_of(block);
  if (head->size_class == mapped) {
    const int saved = errno;
    OwnMemory::remove(head);
    munmap(head, head->bytes + sizeof(BlockHead));
    errno = saved;
    return;
  }
  auto& [lock, free_lists, fresh, fresh_bytes] = heap();
  const Locked locked(lock);
  if (!locked) return;
  auto* freed = static_cast<FreeBlock*>(block);
  freed->next = free_lists[head->size_class];
  free_lists[head->size_class] = freed;
}

void* fail_for_memory() {
  errno = ENOMEM;
  return nullptr;
}

}  // namespace
}  // namespace cuwarden::shim

extern "C" {

void* malloc(std::size_t bytes) {
  void* block = cuwarden::shim::allocate(bytes);
  return block != nullptr ? block : cuwarden::shim::fail_for_memory();
}

void free(void* block) { cuwarden::shim::release(block); }

void* calloc(std::size_t count, std::size_t size) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) return cuwarden::shim::fail_for_memory();
  // A call of malloc() before the one of memset() might be compiled into a call of calloc() itself.
  void* block = cuwarden::shim::allocate(bytes);
  if (block == nullptr) return cuwarden::shim::fail_for_memory();
  std::memset(block, 0, bytes);
  return block;
}

void* realloc(void* block, std::size_t bytes) {
  if (block == nullptr) return malloc(bytes);
  const std::size_t held = cuwarden::shim::head_of(block)->bytes;
  if (bytes <= held) return block;
  void* larger = malloc(bytes);
  if (larger == nullptr) return nullptr;
  std::memcpy(larger, block, held);
  free(block);
  return larger;
}

// Alignments above 16 do not occur here; asking for one fails instead of misaligning.
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  return alignment <= 16 ? malloc(bytes) : cuwarden::shim::fail_for_memory();
}

// Replaces libc's strdup, with which the static C++ runtime names its locale.
char* strdup(const char* text) noexcept {
  const std::size_t bytes = std::strlen(text) + 1;
  void* copy = malloc(bytes);
  return copy == nullptr ? nullptr : static_cast<char*>(std::memcpy(copy, text, bytes));
}

}  // extern "C"
