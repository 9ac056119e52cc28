// The search for a frame's unwind table, which every exception of the shim makes.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>

#include <atomic>
#include <thread>

#include "tests/comes_about.hpp"

namespace cuwarden::shim {
namespace {

TEST(UnwindTableSearch,
     does_not_wait_for_the_list_of_objects_where_libc_has_a_search_without_lock) {
  if (dlvsym(RTLD_DEFAULT, "_dl_find_object", "GLIBC_2.35") == nullptr)
    GTEST_SKIP() << "this libc has no such search";
  dl_find_object object{};
  ASSERT_EQ(_dl_find_object(reinterpret_cast<void*>(&dlsym), &object), 0);
  struct Search {
    std::atomic<bool> found{false};
    std::thread thread;
    bool in_time = false;
  } search;
  dl_iterate_phdr(
      [](dl_phdr_info*, size_t, void* given) {
        auto& wanted = *static_cast<Search*>(given);
        wanted.thread = std::thread([&wanted] {
          dl_find_object other{};
          wanted.found = _dl_find_object(reinterpret_cast<void*>(&dlsym), &other) == 0;
        });
        wanted.in_time = comes_about([&] { return wanted.found.load(); });
        return 1;
      },
      &search);
  search.thread.join();
  EXPECT_TRUE(search.in_time);
}

}  // namespace
}  // namespace cuwarden::shim
