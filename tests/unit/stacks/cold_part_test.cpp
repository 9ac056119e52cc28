// The functions under test are written in assembly, as GCC lays them out: the compilers decide by
// themselves what they move out of a function.
#include "runtime_hooks/stacks/cold_part.hpp"

#include <gtest/gtest.h>

asm(R"(
.text
.type split_function, @function
.globl split_function, split_function_end, split_function_cold, split_function_cold_end
split_function:
  .cfi_startproc
  push %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset 6, -16
  mov %rsp, %rbp
  .cfi_def_cfa_register 6
  mov $0x000000e9, %eax
  test %edi, %edi
  js split_function_cold
  pop %rbp
  .cfi_def_cfa 7, 8
  ret
  .cfi_endproc
split_function_end:

.type whole_function, @function
.globl whole_function, whole_function_end
whole_function:
  .cfi_startproc
  test %edi, %edi
  js other_function
  jmp other_function
  .cfi_endproc
whole_function_end:

# Has one jump into the cold part of split_function, and two into its own.
.type misleading_function, @function
.globl misleading_function, misleading_function_end
.globl misleading_function_cold, misleading_function_cold_end
misleading_function:
  .cfi_startproc
  push %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset 6, -16
  mov %rsp, %rbp
  .cfi_def_cfa_register 6
  jo split_function_cold
  js misleading_function_cold
  jmp misleading_function_cold
  .cfi_endproc
misleading_function_end:

.section .text.unlikely, "ax", @progbits
other_function:
  .cfi_startproc
  push %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset 6, -16
  pop %rbp
  .cfi_def_cfa_offset 8
  ret
  .cfi_endproc
split_function_cold:
  .cfi_startproc
  .cfi_def_cfa 6, 16
  .cfi_offset 6, -16
  xor %eax, %eax
  pop %rbp
  .cfi_def_cfa 7, 8
  ret
  .cfi_endproc
split_function_cold_end:
misleading_function_cold:
  .cfi_startproc
  .cfi_def_cfa 6, 16
  .cfi_offset 6, -16
  pop %rbp
  .cfi_def_cfa 7, 8
  ret
  .cfi_endproc
misleading_function_cold_end:
.text
)");

extern "C" const char split_function[], split_function_end[], split_function_cold[],
    split_function_cold_end[], whole_function[], whole_function_end[], misleading_function[],
    misleading_function_end[], misleading_function_cold[], misleading_function_cold_end[];

namespace cuwarden::stacks {
namespace {

CodeRange range(const char* start, const char* end) {
  return {reinterpret_cast<std::uint64_t>(start), reinterpret_cast<std::uint64_t>(end)};
}

TEST(ColdParts, AreFoundByTheJumpsThatLeadIntoThem) {
  const CodeRange found = cold_part_of(range(split_function, split_function_end));
  const CodeRange expected = range(split_function_cold, split_function_cold_end);
  EXPECT_EQ(found.start, expected.start);
  EXPECT_EQ(found.end, expected.end);
}

TEST(ColdParts, AreNoFunctionsToWhichAFunctionEndsWithAJump) {
  EXPECT_EQ(cold_part_of(range(whole_function, whole_function_end)).start, 0u);
}

TEST(ColdParts, AreThoseWithTheMostJumps) {
  const CodeRange found = cold_part_of(range(misleading_function, misleading_function_end));
  const CodeRange expected = range(misleading_function_cold, misleading_function_cold_end);
  EXPECT_EQ(found.start, expected.start);
  EXPECT_EQ(found.end, expected.end);
}

TEST(ColdParts, AreNotFoundWithoutAFunction) { EXPECT_EQ(cold_part_of({}).start, 0u); }

}  // namespace
}  // namespace cuwarden::stacks
