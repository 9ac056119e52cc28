// Owners of the frames of call stacks, and the frame that a person would name.
#include "reporters/owners/known_libraries.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reporters/labels/users_frame.hpp"
#include "reporters/owners/short_names.hpp"

namespace cuwarden {
namespace {

NamedFrame python(std::string_view file, std::string_view function = "f") {
  return {.path = {}, .function = function, .file = file, .line = 7, .is_python = true};
}
NamedFrame native(std::string_view path, std::string_view function = {},
                  std::string_view file = {}) {
  return {.module = 1, .path = path, .function = function, .file = file, .offset = 0x1f20};
}

std::string library(const NamedFrame& frame, std::string_view further = {}) {
  return std::string(KnownLibraries(further).library_of(frame));
}

TEST(KnownLibraries, frameworks_are_known_by_the_folders_of_their_packages) {
  EXPECT_EQ(library(python("/v/lib/python3.12/site-packages/torch/nn/modules/linear.py")),
            "PyTorch");
  EXPECT_EQ(library(python("/usr/lib/python3/dist-packages/cupy/_core/core.py")), "CuPy");
  EXPECT_EQ(library(native("/v/lib/python3.12/site-packages/jaxlib/_jax.so")), "JAX");
  EXPECT_EQ(library(native("/opt/lib/libtorch_cuda.so")), "PyTorch");
  EXPECT_EQ(library(native("/usr/local/cuda/lib64/libcublasLt.so.13")), "cuBLAS");
  EXPECT_EQ(library(python("/tmp/torchinductor_u/4z/c4z7.py", "call")), "PyTorch");
  EXPECT_EQ(library(python("<eval_with_key>.12", "forward")), "PyTorch");
  EXPECT_EQ(library(python("<stdin>", "<module>")), "") << "the user's own";
}

TEST(KnownLibraries, the_interpreter_is_its_program_and_its_standard_library) {
  EXPECT_EQ(library(native("/usr/bin/python3.11", "_start")), "Python");
  EXPECT_EQ(library(native("/opt/lib/libpython3.12.so.1.0")), "Python");
  EXPECT_EQ(library(python("/usr/lib/python3.11/contextlib.py")), "Python");
  EXPECT_EQ(library(python("<frozen importlib._bootstrap>")), "Python");
  EXPECT_EQ(library(native("/usr/lib/python3.11/lib-dynload/_ctypes.so")), "Python");
  EXPECT_EQ(library(native("/usr/bin/python3-renderer", "draw")), "") << "another program";
}

TEST(KnownLibraries, other_packages_and_the_users_files_are_the_programs_own) {
  EXPECT_EQ(library(python("/v/lib/python3.12/site-packages/transformers/trainer.py")), "");
  EXPECT_EQ(library(python("/home/u/torch/train.py")), "") << "no package";
  EXPECT_EQ(library(native("/home/u/libmesh.so", "refine", "/home/u/mesh.cpp")), "");
}

TEST(KnownLibraries, files_of_users_with_names_like_libraries_are_the_programs_own) {
  EXPECT_EQ(library(python("/home/u/xla_train.py")), "");
  EXPECT_EQ(library(native("/home/u/app", "f", "/home/u/src/libtorch_wrapper.cpp")), "");
  EXPECT_EQ(library(native("/home/u/libnvme_cache.so")), "");
  EXPECT_EQ(library(native("/usr/lib/libnvcuvid.so.1")), "NVIDIA's libraries");
  EXPECT_EQ(library(python("/home/u/lib/python3_tools/train.py")), "");
  EXPECT_EQ(library(native("/v/torch.libs/libgomp-a34b3233.so.1")), "system libraries");
  EXPECT_EQ(library(native("/usr/bin/python3.13t")), "Python");
}

TEST(KnownLibraries, function_templates_do_not_belong_to_the_library_of_their_result) {
  EXPECT_EQ(library(native("/home/u/app", "std::unique_ptr<float, D> make<float>(unsigned long)")),
            "");
  EXPECT_EQ(library(native("/home/u/ext.so", "at::Tensor my_forward<float>(at::Tensor)")), "");
  EXPECT_EQ(library(native("/home/u/app", "thrust::device_vector<float> load<float>(int)")), "");
  EXPECT_EQ(library(native("/home/u/app", "Buffer::operator std::vector<int>() const")), "");
  EXPECT_EQ(library(native("/home/u/ext.so", "std::ostream& at::operator<<(std::ostream&, int)")),
            "PyTorch");
}

TEST(KnownLibraries, functions_that_headers_put_into_the_program_are_the_libraries) {
  EXPECT_EQ(library(native("/home/u/ext.so", "at::Tensor::clone() const")), "PyTorch");
  EXPECT_EQ(library(native("/home/u/ext.so", "void std::vector<int>::resize(unsigned long)")),
            "system libraries");
  EXPECT_EQ(library(native("/home/u/ext.so", "make", "/usr/include/c++/12/bits/alloc_traits.h")),
            "system libraries");
  EXPECT_EQ(library(native("/home/u/ext.so", "atlas::draw()")), "");
  EXPECT_EQ(library(native("/home/u/ext.so", "at::mine()", "/home/u/ext.cpp")), "")
      << "the source file is known";
}

TEST(KnownLibraries, code_that_a_pattern_of_the_setting_matches_is_named_by_it) {
  const char* const list = "/mylib/,libown*";
  EXPECT_EQ(library(python("/home/u/mylib/pool.py"), list), "/mylib/");
  EXPECT_EQ(library(native("/home/u/libown_alloc.so.2"), list), "libown*");
  EXPECT_EQ(library(native("/home/u/libfoo.so.2"), "libfoo.so"), "libfoo.so");
  EXPECT_EQ(library(python("/home/u/pool.py"), "pool.py"), "pool.py");
  EXPECT_EQ(library(python("/home/u/train.py"), list), "");
  EXPECT_EQ(library(python("/home/u/train.py"), "/,libown*"), "") << "not accepted";
}

std::string where(std::vector<NamedFrame> frames) {
  KnownLibraries libraries;
  for (NamedFrame& frame : frames) frame.library = libraries.library_of(frame);
  const auto users = users_frame(frames);
  return users ? location_text(frames[*users]) : "";
}

TEST(UsersFrame, is_the_innermost_one_of_the_programs_own_code) {
  EXPECT_EQ(where({native("/lib/libcudart.so.13", "cudaMalloc"), native("/p/libc10_cuda.so"),
                   python("/v/lib/python3.12/site-packages/torch/functional.py"),
                   python("/home/u/train.py", "step"), python("/home/u/train.py", "<module>")}),
            "/home/u/train.py:7 in step");
}

TEST(UsersFrame, is_the_innermost_one_outside_cuda_if_all_are_libraries) {
  EXPECT_EQ(where({native("/lib/libcudart.so.13", "cudaMalloc"), native("/p/libcublas.so.13"),
                   native("/p/libtorch_cuda.so", "at::addmm()")}),
            "libcublas.so.13+0x1f20");
  EXPECT_EQ(where({native("/lib/libcudart.so.13", "cudaMalloc")}), "");
}

TEST(UsersFrame, is_the_operation_of_a_backward_pass_in_pytorchs_own_thread) {
  EXPECT_EQ(
      where({native("/p/libc10_cuda.so", "c10::cuda::alloc_block(int)"),
             native("/p/libtorch_cpu.so", "at::_ops::mm::call(at::Tensor const&)"),
             native("/p/libtorch_cpu.so", "torch::autograd::generated::AddmmBackward0::apply(int)"),
             native("/p/libtorch_cpu.so", "torch::autograd::Engine::thread_main(int)")}),
      "torch::autograd::generated::AddmmBackward0::apply(int) in libtorch_cpu.so");
}

TEST(UsersFrame, is_code_without_a_name_only_if_there_is_no_other) {
  const NamedFrame compiled{.path = {}, .function = {}, .offset = 0x7f0000001000};
  EXPECT_EQ(where({compiled, native("/home/u/app", "main", "/home/u/app.cpp")}),
            "/home/u/app.cpp in main");
  EXPECT_EQ(where({compiled}), "code at 0x7f0000001000");
}

TEST(ShortNames, long_lists_are_cut_and_short_ones_stay) {
  EXPECT_EQ(short_name("at::native::copy<at::Tensor const&, long, long>(at::Tensor const&, "
                       "at::Tensor const&, bool)"),
            "at::native::copy<…>(…)");
  EXPECT_EQ(short_name("std::vector<int>::resize(unsigned long)"),
            "std::vector<int>::resize(unsigned long)");
  EXPECT_EQ(short_name("(anonymous namespace)::make(int)"), "make(int)");
  EXPECT_EQ(short_name("cache::(anonymous namespace)::make(int)"), "cache::make(int)");
  EXPECT_EQ(short_name("Trainer.fit.<locals>.<lambda>"), "Trainer.fit.<locals>.<lambda>");
  EXPECT_EQ(short_name("a::operator<<(std::ostream&, some::very::long_type const&)"),
            "a::operator<<(…)");
  EXPECT_EQ(short_name("unfinished<int, std::map<long_name, other"),
            "unfinished<int, std::map<long_name, other");
}

TEST(ShortNames, the_name_alone_has_no_result_type_and_no_lists) {
  EXPECT_EQ(name_alone("void std::vector<int>::resize(unsigned long)"), "std::vector::resize");
  EXPECT_EQ(name_alone("std::enable_if<true, int>::type at::make<int>(int)"), "at::make");
  EXPECT_EQ(name_alone("at::Tensor::clone() const"), "at::Tensor::clone");
  EXPECT_EQ(name_alone("int (anonymous namespace)::make<float>(int) [clone .isra.0]"),
            "{nameless}::make");
  EXPECT_EQ(name_alone("vector<int> make_operator<float, std::x>(at::Tensor)"), "make_operator");
  EXPECT_EQ(name_alone("c10::IValue::toTensor() const &"), "c10::IValue::toTensor");
  EXPECT_EQ(name_alone("f() const volatile"), "f");
  EXPECT_EQ(name_alone("at::X::run(int) const::{lambda(int)#1}::operator()(int) const"),
            "at::X::run::{lambda#1}::operator");
  EXPECT_EQ(name_alone("at::native::f(int)::{unnamed type#1}::g()"),
            "at::native::f::{unnamed_type#1}::g");
  EXPECT_EQ(name_alone("main"), "main");
  EXPECT_EQ(name_alone(""), "");
}

}  // namespace
}  // namespace cuwarden
