// Owns a range of mapped memory. Anonymous mappings made here are zero, private to the process, not
// inherited over fork and left out of core dumps. Nothing throws; a failed mapping is empty.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <span>
#include <utility>

#include "runtime_hooks/core/confinement.hpp"
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/memory/own_memory.hpp"

namespace cuwarden {

inline constexpr std::size_t page_bytes = 4096;  // The host's page size on x86-64.

// Returns `value`, rounded up to a multiple of `multiple`, which is not 0.
constexpr std::size_t round_up(std::size_t value, std::size_t multiple) noexcept {
  return (value + multiple - 1) / multiple * multiple;
}

// A range of mapped memory, or nothing. The destructor unmaps the range. Until the range is
// unmapped, OwnMemory lists it, so that searches for the program's pointers pass it over.
class Mapping {
 public:
  Mapping() = default;
  // Takes over the range of `bytes` at `start`, which mmap returned: the destructor unmaps it. A
  // `start` of MAP_FAILED gives an empty mapping.
  Mapping(void* start, std::size_t bytes) noexcept
      : start_(start == MAP_FAILED ? nullptr : start), bytes_(start_ == nullptr ? 0 : bytes) {
    OwnMemory::add(start_, bytes_);
  }
  ~Mapping() { reset(); }
  // Takes over the other object's range, so that the other object is empty afterwards.
  Mapping(Mapping&& other) noexcept
      : start_(std::exchange(other.start_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  // Unmaps this object's range, if it owns one, and takes over the other object's.
  Mapping& operator=(Mapping&& other) noexcept {
    if (this != &other) {
      reset();
      start_ = std::exchange(other.start_, nullptr);
      bytes_ = std::exchange(other.bytes_, 0);
    }
    return *this;
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  // Maps `bytes` of zeroed memory, rounded up to whole pages; the result is empty on failure. A
  // page takes memory only once it is touched. Forked children do not inherit the memory, and core
  // dumps leave it out. In a confined thread (seccomp), or if the kernel refuses mprotect, children
  // inherit it and dumps contain it.
  static Mapping anonymous(std::size_t bytes) noexcept {
    const ErrnoGuard guard;
    // A confined thread asks for nothing but the memory.
    if (is_confined()) return map(bytes, PROT_READ | PROT_WRITE);
    Mapping made = reserved(bytes);
    // A seccomp filter may refuse to change the access, and still allow an accessible mapping.
    if (made && !made.open(0, made.size())) made = map(bytes, PROT_READ | PROT_WRITE);
    return made;
  }

  // Reserves `bytes` of address space, rounded up to whole pages, for memory of zeros that cannot
  // be accessed before open(). The result is empty on failure. Forked children do not inherit the
  // range, and core dumps leave it out. Neither holds if a seccomp filter confines the calling
  // thread.
  static Mapping reserved(std::size_t bytes) noexcept {
    const ErrnoGuard guard;
    Mapping made = map(bytes, PROT_NONE);
    made.keep_to_this_process();
    made.keep_unlocked();
    return made;
  }

  // Allows reading and writing of the bytes [offset, offset + bytes) of the mapped range. `offset`
  // is a multiple of the page size. Returns false if the kernel refuses.
  bool open(std::size_t offset, std::size_t bytes) const noexcept {
    const ErrnoGuard guard;
    return mprotect(static_cast<std::byte*>(start_) + offset, bytes, PROT_READ | PROT_WRITE) == 0;
  }

  // Unlocks the mapped range, in case the program has called mlockall(MCL_FUTURE). The kernel then
  // locks each new mapping, and touches all of its pages if they are accessible. So a large mapping
  // is made without access, unlocked by this function, and opened afterwards. Does nothing in a
  // confined thread (seccomp).
  void keep_unlocked() const noexcept {
    if (start_ == nullptr || is_confined()) return;
    const ErrnoGuard guard;
    munlock(start_, bytes_);
  }

  // Has the kernel leave the mapped range out of forked children and of core dumps. Does nothing in
  // a confined thread (seccomp).
  void keep_to_this_process() const noexcept {
    if (start_ == nullptr || is_confined()) return;
    const ErrnoGuard guard;
    madvise(start_, bytes_, MADV_DONTFORK);
    madvise(start_, bytes_, MADV_DONTDUMP);
  }

  // True if the object owns a range of memory; false if it is empty.
  explicit operator bool() const noexcept { return start_ != nullptr; }
  void* data() const noexcept { return start_; }        // The range's first byte; null if empty.
  std::size_t size() const noexcept { return bytes_; }  // The range's size in bytes; 0 if empty.
  // Returns all bytes of the range; an empty span if the object owns none.
  std::span<std::byte> bytes() const noexcept { return {static_cast<std::byte*>(start_), bytes_}; }

  // Empties this object without unmapping the range: the caller owns the range then. OwnMemory
  // still lists the range; a caller that unmaps it calls OwnMemory::remove() first. Returns the
  // range's address; null if there was no range.
  void* release() noexcept {
    bytes_ = 0;
    return std::exchange(start_, nullptr);
  }

  // Unmaps the range that this object owns, if any, and empties the object.
  void reset() noexcept {
    if (start_ == nullptr) return;
    const ErrnoGuard guard;
    OwnMemory::remove(start_);
    munmap(start_, bytes_);
    release();
  }

 private:
  // Maps `bytes` of zeroed private memory, rounded up to whole pages. `access`: PROT_ bits of mmap.
  // The result is empty on failure.
  static Mapping map(std::size_t bytes, int access) noexcept {
    bytes = round_up(bytes, page_bytes);
    return {mmap(nullptr, bytes, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
            bytes};
  }

  void* start_ = nullptr;  // First byte of the range that the object owns; null: none.
  std::size_t bytes_ = 0;  // Size of the range in bytes; 0: none.
};

}  // namespace cuwarden
