// Code that comes and goes: libraries, and what a program makes at run time.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unwind.h>

#include <cstring>
#include <map>
#include <string>

#include "tests/contract/stacks/comparing.hpp"

extern "C" void __register_frame(void*);
extern "C" void __deregister_frame(void*);

namespace {

using CallBack = int (*)(int (*)());

TEST(ChangingCode, ALibraryInThePlaceOfAnotherIsWalkedByItsOwnRules) {
  Comparing all;
  std::map<void*, int> at;
  for (int i = 0; i < 20; ++i) {
    const char* const path =
        i % 2 == 0 ? CUWARDEN_TEST_CLOSED_LIBRARY : CUWARDEN_TEST_OTHER_LIBRARY;
    void* const library = dlopen(path, RTLD_NOW);
    ASSERT_NE(library, nullptr) << dlerror();
    const auto call = reinterpret_cast<CallBack>(dlsym(library, "call_back"));
    for (int again = times(3); again > 0; --again) call(compared);
    Dl_info info;
    dladdr(reinterpret_cast<void*>(call), &info);
    at[info.dli_fbase] |= 1 << i % 2;
    dlclose(library);
    probe_modules_changed();
  }
  bool in_one_place = false;
  for (const auto& [base, which] : at) in_one_place = in_one_place || which == 3;
  EXPECT_TRUE(in_one_place) << "the loader gave both libraries places of their own";
  EXPECT_GT(all.recognised(), 20u);
}

TEST(ChangingCode, ADlcloseThatUnloadsNothingLeavesWhatIsKnown) {
  Comparing all;
  for (int i = times(10); i > 0; --i) {
    void* const library = dlopen("libc.so.6", RTLD_NOW);
    dlclose(library);
    probe_modules_changed();
    compared();
  }
  EXPECT_EQ(all.recognised(), 9u);
}

// A function made at run time: push %rbx; call *%rdi; pop %rbx; ret.
class MadeCode {
 public:
  MadeCode()
      : memory_(static_cast<unsigned char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE | PROT_EXEC,
                                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    static constexpr unsigned char code[] = {0x53, 0xff, 0xd7, 0x5b, 0xc3};
    std::memcpy(memory_, code, sizeof code);
  }
  ~MadeCode() { munmap(memory_, bytes); }
  MadeCode(const MadeCode&) = delete;
  MadeCode& operator=(const MadeCode&) = delete;
  int call(int (*work)()) const { return reinterpret_cast<CallBack>(memory_)(work); }

  // An unwind table for it, as a JIT compiler writes one. Returns where it begins.
  unsigned char* describe() {
    unsigned char* const table = memory_ + 1024;
    unsigned char* at = table;
    const auto bytes_of = [&](std::initializer_list<unsigned char> more) {
      for (const unsigned char byte : more) *at++ = byte;
    };
    const auto word = [&](std::uint64_t value, std::size_t size) {
      std::memcpy(at, &value, size);
      at += size;
    };
    word(20, 4);  // the common entry
    word(0, 4);
    bytes_of({1, 0, 1, 0x78, 16});    // version, no augmentation, 1, -8, return address
    bytes_of({0x0c, 7, 8, 0x90, 1});  // the CFA is rsp + 8, the return address below it
    bytes_of({0, 0, 0, 0, 0, 0});
    unsigned char* const entry = at;
    word(28, 4);
    word(static_cast<std::uint64_t>(entry + 4 - table), 4);
    word(reinterpret_cast<std::uint64_t>(memory_), 8);
    word(5, 8);
    bytes_of({0x41, 0x0e, 16, 0x83, 2, 0x43, 0x0e, 8});  // rbx pushed, popped
    word(0, 4);
    return table;
  }

 private:
  static constexpr std::size_t bytes = 4096;
  unsigned char* memory_;
};

int seen;
int look() {
  seen = compared();
  return 0;
}

TEST(ChangingCode, WhatNobodyDescribesEndsAStackAsItEndsLibgccs) {
  Comparing all;
  const MadeCode code;
  for (int i = 0; i < 5; ++i) code.call(look);
  EXPECT_LE(seen, 3);
  EXPECT_EQ(all.foreign_code(), 5u);
  EXPECT_EQ(all.recognised(), 0u);  // the code may be replaced
}

std::uint64_t frames[64];
int count;
__attribute__((noinline)) int walk() {
  count = walk_stack(frames, 64);
  return 0;
}
struct Reference {
  std::uint64_t frames[64];
  int count;
} reference;
int walk_both() {
  reference.count = 0;
  _Unwind_Backtrace(
      [](_Unwind_Context* context, void*) {
        const auto ip = _Unwind_GetIP(context);
        if (ip != 0 && reference.count < 64) reference.frames[reference.count++] = ip - 1;
        return _URC_NO_REASON;
      },
      nullptr);
  const int result = walk();
  asm volatile("" ::: "memory");  // no jump instead of a call
  return result;
}

TEST(ChangingCode, WhatIsDescribedToTheHostsLibgccIsFollowedThere) {
  MadeCode code;
  unsigned char* const table = code.describe();
  __register_frame(table);
  code.call(walk);
  const int before = count;
  probe_ask_host(
      reinterpret_cast<const void* (*)(void*, void*)>(dlsym(RTLD_DEFAULT, "_Unwind_Find_FDE")));
  code.call(walk_both);
  EXPECT_GT(count, before + 3);
  // From walk_both() on, whose call differs.
  ASSERT_EQ(count, reference.count + 1);
  EXPECT_EQ(std::memcmp(frames + 2, reference.frames + 1,
                        static_cast<std::size_t>(count - 2) * sizeof *frames),
            0);
  __deregister_frame(table);
  code.call(walk);
  EXPECT_EQ(count, before);
  probe_ask_host(nullptr);
}

}  // namespace
