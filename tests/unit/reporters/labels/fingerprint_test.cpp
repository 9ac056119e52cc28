// Fingerprints are the same in two builds, and differ for different leaks.
#include "reporters/labels/fingerprint.hpp"

#include <gtest/gtest.h>

#include <string>
#include <unordered_set>
#include <vector>

namespace cuwarden {
namespace {

using Frames = std::vector<NamedFrame>;

NamedFrame frame_of(std::string_view path, std::string_view function,
                    std::string_view library = {}) {
  return {.module = 1, .path = path, .function = function, .library = library};
}

NamedFrame python_frame(std::string_view file, std::string_view function,
                        std::string_view library = {}) {
  return {.function = function, .file = file, .is_python = true, .library = library};
}

std::string identity(const Frames& frames) {
  return Fingerprints().identity("device", "cudaMalloc", frames);
}

std::string fingerprint(const Frames& frames) {
  return Fingerprints().of("device", "cudaMalloc", frames);
}

TEST(Fingerprints, name_the_module_and_the_function_of_each_frame) {
  EXPECT_EQ(identity({frame_of("/opt/lib/libcache.so.2", "Cache::insert(Key const&)"),
                      frame_of("/home/u/app", "main")}),
            "device cudaMalloc\nlibcache.so Cache::insert\napp main");
}

// The value for "chongo was here!" and a line feed is one that the hash's authors publish.
TEST(Fingerprints, are_the_fnv_1a_hash_of_the_identity) {
  EXPECT_EQ(Fingerprints().of("chongo", "was here!\n", {}), "46810940eff5f915");
}

TEST(Fingerprints, do_not_depend_on_what_a_build_a_run_or_a_machine_changes) {
  struct Pair {
    const char* reason;
    NamedFrame one, other;
  };
  const Pair pairs[] = {
      {"folder", frame_of("/a/libx.so", "f"), frame_of("/b/c/libx.so", "f")},
      {"version of the file", frame_of("/a/libx.so.1", "f"), frame_of("/a/libx.so.2.7", "f")},
      {"hash of a wheel", frame_of("/a/libx-0a1b2c3d.so.1", "f"), frame_of("/a/libx.so", "f")},
      {"version of Python", frame_of("/a/x.cpython-311-x86_64-linux-gnu.so", "f"),
       frame_of("/a/x.cpython-314-x86_64-linux-gnu.so", "f")},
      {"stable interface of Python", frame_of("/a/x.abi3.so", "f"), frame_of("/a/x.so", "f")},
      {"copy for constant parameters", frame_of("app", "fill.constprop.0"),
       frame_of("app", "fill")},
      {"copy of a C++ function", frame_of("app", "n::fill(int) [clone .isra.0]"),
       frame_of("app", "n::fill(int)")},
      {"part that is seldom run", frame_of("app", "fill.cold"), frame_of("app", "fill")},
      {"parameters", frame_of("app", "n::f(int)"), frame_of("app", "n::f(long, char const*)")},
      {"template arguments", frame_of("app", "void n::f<int>(int)"),
       frame_of("app", "n::f<long>()")},
      {"number of a lambda", frame_of("app", "n::f()::{lambda(int)#1}::operator()(int) const"),
       frame_of("app", "n::f()::{lambda(int)#3}::operator()(int) const")},
      {"lambda by Clang", frame_of("app", "n::f()::$_0::operator()(int) const"),
       frame_of("app", "n::f()::{lambda(int)#1}::operator()(int) const")},
      {"hash of Rust", frame_of("app", "cache::insert::h0123456789abcdef"),
       frame_of("app", "cache::insert::hfedcba9876543210")},
      {"folder of a Python file", python_frame("/a/train.py", "step"),
       python_frame("/b/train.py", "step")},
  };
  for (const Pair& pair : pairs)
    EXPECT_EQ(fingerprint({pair.one}), fingerprint({pair.other})) << pair.reason;
}

// Debug information has the bare name of a function in an anonymous namespace.
TEST(Fingerprints, do_not_depend_on_debug_information) {
  struct Pair {
    const char *with_debug, *without;
  };
  const Pair pairs[] = {
      {"process", "(anonymous namespace)::process(int)"},
      {"process", "cache::(anonymous namespace)::process(int) [clone .part.0]"},
      {"fill<int>", "void (anonymous namespace)::fill<int>(cache::Key)"},
      {"insert", "(anonymous namespace)::Cache::insert(int)"},
      {"operator()", "(anonymous namespace)::run()::{lambda(int)#1}::operator()(int) const"}};
  for (const Pair& pair : pairs)
    EXPECT_EQ(fingerprint({frame_of("app", pair.with_debug)}),
              fingerprint({frame_of("app", pair.without)}))
        << pair.without;
}

TEST(Fingerprints, differ_for_other_functions_modules_kinds_and_callers) {
  const Frames frames = {frame_of("liba.so", "n::f()"), frame_of("app", "main")};
  std::unordered_set<std::string> different = {
      fingerprint(frames),
      fingerprint({frame_of("liba.so", "n::g()"), frames[1]}),
      fingerprint({frame_of("liba.so", "m::f()"), frames[1]}),
      fingerprint({frame_of("libb.so", "n::f()"), frames[1]}),
      fingerprint({frames[0], frame_of("app", "other()")}),
      fingerprint({frames[0], frame_of("app", "between()"), frames[1]}),
      fingerprint({frames[1], frames[0]}),
      fingerprint({frames[0]}),
      Fingerprints().of("pinned", "cudaMalloc", frames),
      Fingerprints().of("device", "cuMemAlloc", frames),
  };
  EXPECT_EQ(different.size(), 10u);
}

TEST(Fingerprints, differ_for_functions_whose_names_are_alike) {
  const char* const names[] = {"main.alloc",
                               "main.store",
                               "main._omp_fn.0",
                               "main",
                               "Less::operator()(int) const",
                               "Less::operator<<(int)",
                               "Less::operator new(unsigned long)",
                               "Less::operator bool() const",
                               "void f<int>(int) requires C<int>",
                               "void g<int>(int) requires C<int>"};
  std::unordered_set<std::string> different;
  for (const char* name : names) different.insert(fingerprint({frame_of("app", name)}));
  EXPECT_EQ(different.size(), std::size(names));
  EXPECT_NE(fingerprint({python_frame("model.py", "Encoder.forward")}),
            fingerprint({python_frame("model.py", "Decoder.forward")}));
}

TEST(Fingerprints, leave_out_frames_that_differ_from_machine_to_machine) {
  const Frames own = {frame_of("app", "n::f()"), python_frame("train.py", "step"),
                      frame_of("app", "main")};
  const Frames all = {frame_of("libcudart.so.13", "cudaMalloc", cuda_library),
                      own[0],
                      frame_of("libffi.so.8", "", "libffi"),
                      frame_of("python3.12", "PyObject_Call", interpreter_library),
                      own[1],
                      python_frame("/usr/lib/python3.12/threading.py", "run", interpreter_library),
                      own[2],
                      frame_of("libc.so.6", "__libc_start_main", system_libraries),
                      frame_of("app", "_start")};
  EXPECT_EQ(identity(all), identity(own));
}

TEST(Fingerprints, name_all_frames_if_none_would_be_left) {
  EXPECT_EQ(identity({frame_of("libc.so.6", "start_thread", system_libraries)}),
            "device cudaMalloc\nlibc.so start_thread");
}

TEST(Fingerprints, do_not_depend_on_the_depth_of_a_recursion_or_on_nameless_frames) {
  const NamedFrame walk = frame_of("app", "walk(Node*)"), nameless = frame_of("libx.so", "");
  EXPECT_EQ(fingerprint({walk, nameless}), fingerprint({walk, walk, walk, nameless, nameless}));
  // An address without a module tells nothing.
  EXPECT_EQ(fingerprint({walk}), fingerprint({NamedFrame{.offset = 0x7f00}, walk}));
}

TEST(Fingerprints, do_not_collide_for_a_million_stacks) {
#if defined(CUWARDEN_SANITIZED)
  constexpr std::size_t outer = 20;  // a sanitizer makes each many times slower
#else
  constexpr std::size_t outer = 1000;
#endif
  constexpr std::size_t inner = 1000;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < inner + outer; ++i)
    names.push_back((i < inner ? "inner" : "outer") + std::to_string(i));
  // The fingerprints of a report's groups are made by one object, too.
  Fingerprints fingerprints;
  std::unordered_set<std::string> met;
  Frames frames(2);
  frames.push_back(frame_of("app", "main"));
  for (std::size_t i = 0; i < inner; ++i) {
    frames[0] = frame_of("app", names[i]);
    for (std::size_t o = 0; o < outer; ++o) {
      frames[1] = frame_of("app", names[inner + o]);
      met.insert(fingerprints.of("device", "cudaMalloc", frames));
    }
  }
  EXPECT_EQ(met.size(), inner * outer);
}

}  // namespace
}  // namespace cuwarden
