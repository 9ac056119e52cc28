// Code that comes and goes: libraries, and code that a program makes at run time.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <map>
#include <string>

#include "tests/contract/stacks/comparing.hpp"

namespace {

using CallBack = int (*)(int (*)());

TEST(ChangingCode, ALibraryAtTheAddressesOfAClosedOneIsWalkedByItsOwnRules) {
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
  bool at_one_address = false;
  for (const auto& [base, which] : at) at_one_address = at_one_address || which == 3;
  EXPECT_TRUE(at_one_address) << "the loader gave both libraries addresses of their own";
  EXPECT_GT(all.recognised(), 20u);
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

 private:
  static constexpr std::size_t bytes = 4096;
  unsigned char* memory_;
};

int seen;
int look() {
  seen = compared();
  return 0;
}

TEST(ChangingCode, CodeWithoutUnwindTablesEndsAStackAsInLibgcc) {
  Comparing all;
  const MadeCode code;
  for (int i = 0; i < 5; ++i) code.call(look);
  EXPECT_LE(seen, 3);
  EXPECT_EQ(all.foreign_code(), 5u);
  EXPECT_EQ(all.recognised(), 0u);  // Code that a program generated may be replaced at any time.
}

}  // namespace
