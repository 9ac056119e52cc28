#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <vector>

#include "runtime_hooks/stacks/cfa_program.hpp"
#include "runtime_hooks/stacks/rule_table.hpp"

namespace cuwarden::stacks {
namespace {

using Base = Rule::Base;
using Special = Rule::Special;

TEST(Rules, HoldEveryDistanceOrSayThatTheyCannot) {
  for (const std::int64_t cfa : {0L, 8L, 16L, 8000L, (1L << 21) - 8}) {
    for (const std::int64_t rbp : {-2048L, -56L, -16L, 0L, 2040L}) {
      const Rule rule = Rule::framed(Base::rsp, cfa, true, rbp);
      EXPECT_EQ(rule.base(), Base::rsp);
      EXPECT_EQ(rule.cfa(), static_cast<std::uint64_t>(cfa));
      EXPECT_TRUE(rule.rbp_saved());
      EXPECT_EQ(rule.rbp_at(), rbp);
    }
  }
  for (const std::int64_t cfa : {-(1L << 20), -8L, 0L, (1L << 20) - 8})
    EXPECT_EQ(Rule::framed(Base::stored_at_rbp, cfa, false, 0).signed_cfa(), cfa);
  for (const std::int64_t cfa : {-8L, 4L, 1L << 21})
    EXPECT_EQ(Rule::framed(Base::rbp, cfa, false, 0).special(), Special::not_expressible);
  for (const std::int64_t rbp : {-2056L, 2048L, 4L})
    EXPECT_EQ(Rule::framed(Base::rbp, 16, true, rbp).special(), Special::not_expressible);
}

struct Table {
  std::vector<std::uint64_t> memory = std::vector<std::uint64_t>(RuleTable::bytes / 8);
  RuleTable rules{memory.data()};
};

TEST(RuleTables, FindStoredRulesAndNoneForAnotherPc) {
  Table table;
  std::mt19937_64 random(1);
  std::map<std::uint64_t, Rule> stored;
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t pc = 0x7f0000000000 + random() % (1 << 22);
    const Rule rule = Rule::framed(Base::rsp, static_cast<std::int64_t>(pc % 1000) * 8, false, 0);
    stored[pc] = rule;
    table.rules.insert(pc, rule);
  }
  std::size_t found = 0;
  for (std::uint64_t pc = 0x7f0000000000; pc < 0x7f0000000000 + (1 << 22); ++pc) {
    const Rule rule = table.rules.find(pc);
    if (!rule) continue;
    ++found;
    ASSERT_TRUE(stored.contains(pc)) << pc;
    ASSERT_EQ(rule.word(), stored[pc].word()) << pc;
  }
  // The table is filled nearly to its last slot.
  EXPECT_GT(found, RuleTable::slots * 9 / 10);
}

TEST(RuleTables, KeepRulesForThreeThousandPcs) {
  Table table;
  std::mt19937_64 random(2);
  std::vector<std::uint64_t> pcs(3000);
  for (std::uint64_t& pc : pcs) pc = random() >> 17;
  const Rule rule = Rule::framed(Base::rbp, 16, true, -16);
  for (const std::uint64_t pc : pcs) table.rules.insert(pc, rule);
  for (const std::uint64_t pc : pcs) EXPECT_EQ(table.rules.find(pc).word(), rule.word());
  table.rules.clear();
  for (const std::uint64_t pc : pcs) EXPECT_FALSE(table.rules.find(pc));
}

TEST(RuleTables, DoNotTakeAnAddressOfMoreThan47BitsForAPc) {
  Table table;
  const Rule rule(Special::end);
  table.rules.insert(0x1234, rule);
  table.rules.insert(0x1234 | std::uint64_t{1} << 47, Rule(Special::plt));
  EXPECT_EQ(table.rules.find(0x1234).word(), rule.word());
  for (unsigned bit = 47; bit < 64; ++bit) {
    EXPECT_FALSE(table.rules.find(0x1234 | std::uint64_t{1} << bit));
    EXPECT_FALSE(RuleTable::is_rule(table.rules.first(0x1234 | std::uint64_t{1} << bit)));
  }
}

Rule run(std::vector<std::uint8_t> program, std::uint64_t address = 0, bool signal = false) {
  // The program is on the heap with its exact size, so that AddressSanitizer sees a read beyond it.
  const auto bytes = std::make_unique<std::uint8_t[]>(program.size());
  std::copy(program.begin(), program.end(), bytes.get());
  CfaProgram cfa(address, 0, 1, -8);
  cfa.run({bytes.get(), bytes.get() + program.size()});
  return cfa.rule(signal);
}

// def_cfa rsp+8; offset of the return address 1; advance 1; def_cfa_offset 16; offset rbp 2;
// advance 3; def_cfa_register rbp.
const std::vector<std::uint8_t> usual = {0x0c, 7,    8, 0x90, 1,    0x41, 0x0e,
                                         16,   0x86, 2, 0x43, 0x0d, 6};

TEST(CfaPrograms, GiveTheRowThatHoldsAtTheAddress) {
  EXPECT_EQ(run(usual, 0).word(), Rule::framed(Base::rsp, 8, false, 0).word());
  EXPECT_EQ(run(usual, 1).word(), Rule::framed(Base::rsp, 16, true, -16).word());
  EXPECT_EQ(run(usual, 3).word(), Rule::framed(Base::rsp, 16, true, -16).word());
  EXPECT_EQ(run(usual, 4).word(), Rule::framed(Base::rbp, 16, true, -16).word());
}

TEST(CfaPrograms, EndAStackWhereTheReturnAddressIsUndefined) {
  EXPECT_EQ(run({0x0c, 7, 8, 0x07, 16}).special(), Special::end);
}

TEST(CfaPrograms, SayWhatARuleCannotExpress) {
  for (const std::vector<std::uint8_t>& program : std::vector<std::vector<std::uint8_t>>{
           {0x0c, 3, 8, 0x90, 1},                 // The CFA is relative to rbx.
           {0x0c, 7, 8, 0x90, 2},                 // The return address lies elsewhere.
           {0x0c, 7, 8, 0x90, 1, 0x09, 6, 3},     // rbp is in rbx.
           {0x0c, 7, 8, 0x90, 1, 0x16, 7, 1, 0},  // rsp is computed.
           {0x0f, 2, 0x77, 8, 0x90, 1}})          // The CFA is another expression.
    EXPECT_EQ(run(program).special(), Special::not_expressible);
  // The signal frame is not the usual one.
  EXPECT_EQ(run(usual, 4, true).special(), Special::not_expressible);
}

TEST(CfaPrograms, AreMalformedIfCutOffOrSenseless) {
  EXPECT_EQ(run({0x0c, 7}).special(), Special::malformed);
  EXPECT_EQ(run({0x0b}).special(), Special::malformed);
  EXPECT_EQ(run({0x3f}).special(), Special::malformed);
  EXPECT_EQ(run({0x0f, 0x80, 0x80}).special(), Special::malformed);
  EXPECT_EQ(run({0x0f, 100, 0x77}).special(), Special::malformed);
}

TEST(CfaPrograms, EndWhateverTheirBytesAre) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 100'000; ++i) {
    std::vector<std::uint8_t> program(random() % 40);
    for (std::uint8_t& byte : program)
      byte = static_cast<std::uint8_t>(random() % 3 == 0 ? random() : random() % 0x18);
    const Rule rule = run(program, random() % 64, random() % 8 == 0);
    ASSERT_TRUE(rule);
  }
}

}  // namespace
}  // namespace cuwarden::stacks
