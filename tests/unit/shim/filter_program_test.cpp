// Reading of seccomp filters: which system calls they let through whatever the arguments are.
#include "shim/process/filter_program.hpp"

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include <cstddef>
#include <vector>

#include "runtime_hooks/core/confinement.hpp"

namespace cuwarden::shim {
namespace {

constexpr std::uint32_t number_at = offsetof(seccomp_data, nr),
                        arch_at = offsetof(seccomp_data, arch),
                        first_argument_at = offsetof(seccomp_data, args);
constexpr sock_filter load(std::uint32_t at) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at); }
constexpr sock_filter answer(std::uint32_t action) { return BPF_STMT(BPF_RET | BPF_K, action); }
constexpr sock_filter jump(std::uint16_t condition, std::uint32_t value, std::uint8_t if_true,
                           std::uint8_t if_false) {
  return BPF_JUMP(static_cast<std::uint16_t>(BPF_JMP | condition | BPF_K), value, if_true,
                  if_false);
}
constexpr sock_filter allow = answer(SECCOMP_RET_ALLOW),
                      end_process = answer(SECCOMP_RET_KILL_PROCESS);

bool allows(std::vector<sock_filter> instructions, std::uint32_t number) {
  const sock_fprog program{static_cast<unsigned short>(instructions.size()), instructions.data()};
  const SeccompFilter filter(&program);
  EXPECT_TRUE(filter.is_valid());
  return filter.allows(number);
}

TEST(SeccompFilter, tells_the_calls_of_a_list_apart) {
  const std::vector<sock_filter> denies{load(arch_at),
                                        jump(BPF_JEQ, AUDIT_ARCH_X86_64, 1, 0),
                                        end_process,
                                        load(number_at),
                                        jump(BPF_JEQ, SYS_openat, 0, 1),
                                        end_process,
                                        allow};
  EXPECT_FALSE(allows(denies, SYS_openat));
  EXPECT_TRUE(allows(denies, SYS_mmap));
  const std::vector<sock_filter> allows_one{load(number_at), jump(BPF_JEQ, SYS_openat, 0, 1), allow,
                                            end_process};
  EXPECT_TRUE(allows(allows_one, SYS_openat));
  EXPECT_FALSE(allows(allows_one, SYS_mmap));
}

TEST(SeccompFilter, follows_comparisons_of_order_and_bits) {
  // Refuses numbers from 100 to 199, and odd ones.
  const std::vector<sock_filter> filter{load(number_at),
                                        jump(BPF_JGE, 200, 2, 0),
                                        jump(BPF_JGT, 99, 0, 1),
                                        end_process,
                                        jump(BPF_JSET, 1, 0, 1),
                                        end_process,
                                        allow};
  EXPECT_TRUE(allows(filter, 98));
  EXPECT_FALSE(allows(filter, 99));
  EXPECT_FALSE(allows(filter, 100));
  EXPECT_FALSE(allows(filter, 198));
  EXPECT_TRUE(allows(filter, 200));
}

TEST(SeccompFilter, a_call_that_is_refused_with_some_arguments_is_not_allowed) {
  const std::vector<sock_filter> filter{load(number_at),
                                        jump(BPF_JEQ, SYS_prctl, 0, 2),
                                        load(first_argument_at),
                                        jump(BPF_JEQ, 22, 1, 0),
                                        allow,
                                        end_process};
  EXPECT_FALSE(allows(filter, SYS_prctl));
  const std::vector<sock_filter> calculates{load(first_argument_at),
                                            BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xff),
                                            BPF_STMT(BPF_RET | BPF_A, 0)};
  EXPECT_FALSE(allows(calculates, SYS_prctl));
}

TEST(SeccompFilter, calculates_with_what_is_known) {
  const std::vector<sock_filter> filter{load(number_at),
                                        BPF_STMT(BPF_MISC | BPF_TAX, 0),
                                        BPF_STMT(BPF_LD | BPF_IMM, 5),
                                        BPF_STMT(BPF_ALU | BPF_ADD | BPF_X, 0),
                                        BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 1),
                                        jump(BPF_JEQ, 24, 0, 1),
                                        allow,
                                        end_process};
  EXPECT_TRUE(allows(filter, 7));
  EXPECT_FALSE(allows(filter, 8));
}

TEST(SeccompFilter, only_calls_that_are_made_as_ever_are_allowed) {
  EXPECT_TRUE(allows({answer(SECCOMP_RET_LOG)}, SYS_openat));
  for (const std::uint32_t action :
       {SECCOMP_RET_KILL_THREAD, SECCOMP_RET_TRAP, SECCOMP_RET_ERRNO | 1u, SECCOMP_RET_TRACE,
        SECCOMP_RET_USER_NOTIF})
    EXPECT_FALSE(allows({answer(action)}, SYS_openat)) << action;
}

TEST(SeccompFilter, a_filter_that_leads_beyond_its_end_allows_nothing) {
  EXPECT_FALSE(allows({load(number_at)}, SYS_openat));
  EXPECT_FALSE(allows({load(number_at), jump(BPF_JEQ, SYS_openat, 9, 0), allow}, SYS_openat));
  EXPECT_TRUE(allows({BPF_STMT(BPF_JMP | BPF_JA, 1), end_process, allow}, SYS_openat));
}

TEST(SeccompFilter, a_filter_that_the_kernel_refuses_is_not_valid) {
  EXPECT_FALSE(SeccompFilter(nullptr).is_valid());
  sock_filter one = allow;
  const sock_fprog empty{0, &one}, without{1, nullptr}, too_long{BPF_MAXINSNS + 1, &one};
  EXPECT_FALSE(SeccompFilter(&empty).is_valid());
  EXPECT_FALSE(SeccompFilter(&without).is_valid());
  EXPECT_FALSE(SeccompFilter(&too_long).is_valid());
  EXPECT_FALSE(SeccompFilter(&empty).allows(SYS_openat));
}

TEST(SeccompFilter, a_filter_that_cannot_be_read_allows_nothing) {
  detail::probing_fails.store(true);
  const std::vector<sock_filter> all{allow};
  EXPECT_FALSE(allows(all, SYS_openat));
  EXPECT_FALSE(SeccompFilter(nullptr).is_valid());
  detail::probing_fails.store(false);
}

}  // namespace
}  // namespace cuwarden::shim
