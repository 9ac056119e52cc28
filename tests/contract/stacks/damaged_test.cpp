// Damaged stacks: a walk ends early, and never faults. libgcc's unwinder is not tried on them,
// because it might fault.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>

#include <cstdlib>
#include <random>

#include "tests/contract/stacks/comparing.hpp"
#include "tests/repetitions.hpp"

namespace {

constexpr std::size_t room = 256;
std::uint64_t frames[room];

extern "C" int walk_for_assembly() { return walk_stack(frames, room); }

// Calls walk_for_assembly() with this value in rbp, in a frame that is described by rbp.
extern "C" int with_rbp(std::uint64_t rbp);
// Calls walk_for_assembly() with this return address in its frame, and rbp unchanged.
extern "C" int with_return_address(std::uint64_t address);
// Calls walk_for_assembly() on another stack, which ends with these two words: saved rbp, return
// address.
extern "C" int on_stack(std::uint64_t* top, std::uint64_t rbp, std::uint64_t address);
// Calls `work` from a frame without unwind tables.
extern "C" int undescribed(int (*work)());

asm(R"(
.text
.type with_rbp, @function
with_rbp:
  .cfi_startproc
  pushq %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset rbp, -16
  movq %rdi, %rbp
  .cfi_def_cfa rbp, 16
  call walk_for_assembly
  popq %rbp
  .cfi_def_cfa rsp, 8
  ret
  .cfi_endproc
.size with_rbp, .-with_rbp

.type with_return_address, @function
with_return_address:
  .cfi_startproc
  pushq %rbx
  .cfi_def_cfa_offset 16
  movq 8(%rsp), %rbx
  movq %rdi, 8(%rsp)
  call walk_for_assembly
  movq %rbx, 8(%rsp)
  popq %rbx
  .cfi_def_cfa_offset 8
  ret
  .cfi_endproc
.size with_return_address, .-with_return_address

.type on_stack, @function
on_stack:
  .cfi_startproc
  pushq %rbx
  .cfi_def_cfa_offset 16
  movq %rsp, %rbx
  movq %rdx, -8(%rdi)
  movq %rsi, -16(%rdi)
  leaq -24(%rdi), %rsp
  pushq %rbp
  leaq -16(%rdi), %rbp
  .cfi_def_cfa rbp, 16
  .cfi_offset rbp, -16
  call walk_for_assembly
  popq %rbp
  movq %rbx, %rsp
  popq %rbx
  .cfi_def_cfa rsp, 8
  ret
  .cfi_endproc
.size on_stack, .-on_stack

.type undescribed, @function
undescribed:
  pushq %rbx
  call *%rdi
  popq %rbx
  ret
.size undescribed, .-undescribed
)");

constexpr std::uint64_t astray[] = {0,
                                    1,
                                    7,
                                    8,
                                    9,
                                    16,
                                    4096,
                                    ~std::uint64_t{0},
                                    ~std::uint64_t{0} - 7,
                                    ~std::uint64_t{0} - 15,
                                    std::uint64_t{1} << 47,
                                    (std::uint64_t{1} << 47) - 16,
                                    (std::uint64_t{1} << 47) - 4096,
                                    std::uint64_t{1} << 63,
                                    0xffffffffff600000,
                                    0xdeadbeefdeadbeef};

TEST(DamagedStacks, RbpMayHoldAnything) {
  for (const std::uint64_t rbp : astray) EXPECT_GE(with_rbp(rbp), 1) << rbp;
  EXPECT_GT(stacks_seen().unreadable, 0u);
}

TEST(DamagedStacks, AReturnAddressMayBeAnything) {
  for (const std::uint64_t address : astray) {
    const int count = with_return_address(address);
    ASSERT_GE(count, 1) << address;
    // The frame after the damage, if there is one, is the damaged address.
    if (count > 1) {
      EXPECT_EQ(frames[1], address - 1);
    }
  }
}

TEST(DamagedStacks, AStackMayHoldAnyAddressesNearTheStackAndTheCode) {
  std::mt19937_64 random(815);
  std::uint64_t on_the_stack = 0;
  const auto stack = reinterpret_cast<std::uint64_t>(&on_the_stack);
  const auto libc = reinterpret_cast<std::uint64_t>(&qsort);
  const auto own_code = reinterpret_cast<std::uint64_t>(&with_rbp);
  for (std::uint64_t i = 0; i < cuwarden::test::repetitions(20'000, 1'000'000); ++i) {
    ASSERT_GE(with_rbp(stack - 8192 + random() % 65536), 1);
    ASSERT_GE(with_rbp(random() >> (random() % 64)), 1);
    ASSERT_GE(with_return_address(own_code - 4096 + random() % 65536), 1);
    ASSERT_GE(with_return_address(libc - 65536 + random() % 1000000), 1);
    ASSERT_GE(with_return_address(random() >> (random() % 64)), 1);
  }
}

TEST(DamagedStacks, AStackThatEndsBeforeMemoryWithoutAccessIsReadToItsEndOnly) {
  constexpr std::size_t page = 4096;
  auto* const memory = static_cast<char*>(
      mmap(nullptr, 8 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_EQ(mprotect(memory + 7 * page, page, PROT_NONE), 0);
  char* const end = memory + 7 * page;
  const auto here = reinterpret_cast<std::uint64_t>(__builtin_return_address(0));
  const auto there = reinterpret_cast<std::uint64_t>(end);
  const std::uint64_t before = stacks_seen().unreadable;
  for (std::uint64_t distance = 0; distance < 64; ++distance)
    for (const std::uint64_t rbp : {there - distance, there + distance})
      EXPECT_GE(on_stack(reinterpret_cast<std::uint64_t*>(end), rbp, here), 1);
  EXPECT_GT(stacks_seen().unreadable, before);
  // Access is taken away from a part that was read before, and the stack ends below it.
  ASSERT_EQ(mprotect(memory + 6 * page, page, PROT_NONE), 0);
  EXPECT_GE(on_stack(reinterpret_cast<std::uint64_t*>(end - page), there - 64, here), 1);
  munmap(memory, 8 * page);
}

// Without a guard page, other memory may lie right below a stack, hold other stacks, and be
// unmapped.
TEST(DamagedStacks, MemoryBelowAThreadsStackIsNotTakenForAPartOfIt) {
  constexpr std::size_t bytes = 262144;
  static char* memory;
  memory = static_cast<char*>(
      mmap(nullptr, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstack(&attributes, memory + bytes, bytes), 0);
  const auto work = [](void*) -> void* {
    const auto here = reinterpret_cast<std::uint64_t>(__builtin_return_address(0));
    EXPECT_GE(walk_stack(frames, room), 1);
    EXPECT_GE(on_stack(reinterpret_cast<std::uint64_t*>(memory + bytes), 0, here), 1);
    EXPECT_GE(walk_stack(frames, room), 1);
    munmap(memory, bytes);
    const auto gone = reinterpret_cast<std::uint64_t>(memory);
    for (const std::uint64_t rbp : {gone + bytes - 16, gone + bytes - 4096, gone + 64})
      EXPECT_GE(with_rbp(rbp), 1);
    return nullptr;
  };
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, work, nullptr), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  munmap(memory + bytes, bytes);
}

TEST(DamagedStacks, FramesInACircleEnd) {
  std::uint64_t circle[4];
  circle[0] = reinterpret_cast<std::uint64_t>(circle);
  circle[1] = reinterpret_cast<std::uint64_t>(&with_rbp) + 12;
  EXPECT_LE(with_rbp(reinterpret_cast<std::uint64_t>(circle)), static_cast<int>(room));
}

TEST(DamagedStacks, AFunctionWithoutUnwindTablesEndsAStackAsInLibgcc) {
  Comparing all;
  const int count = undescribed(compared);
  EXPECT_GE(count, 2);
  EXPECT_LE(count, 4);
  EXPECT_EQ(all.no_description(), 1u);
}

}  // namespace
