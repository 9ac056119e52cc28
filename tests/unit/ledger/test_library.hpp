// A library that a test loads and unloads, and frames of it and of the test program.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "runtime_hooks/ledger/write/stacks/stack_table.hpp"

namespace cuwarden::ledger {

// Returns a program counter in the test program.
inline Frame frame_in_program() { return reinterpret_cast<std::uintptr_t>(&frame_in_program) + 1; }

// Loads the library at `path`, and unloads it at its end. The test fails if that is not possible.
class TestLibrary {
 public:
  explicit TestLibrary(const std::string& path = CUWARDEN_TEST_MODULE)
      : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    EXPECT_NE(handle_, nullptr) << dlerror();
  }
  ~TestLibrary() { dlclose(handle_); }
  TestLibrary(const TestLibrary&) = delete;
  TestLibrary& operator=(const TestLibrary&) = delete;
  // Returns a program counter in the library.
  Frame frame() const {
    return reinterpret_cast<std::uintptr_t>(dlsym(handle_, "cuwarden_test_module")) + 1;
  }

 private:
  void* handle_;
};

}  // namespace cuwarden::ledger
