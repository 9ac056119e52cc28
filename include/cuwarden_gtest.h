/* cuwarden_gtest.h: a listener for GoogleTest that names the tests whose GPU memory leaks.
 *
 *   int main(int argc, char** argv) {
 *     testing::InitGoogleTest(&argc, argv);
 *     testing::UnitTest::GetInstance()->listeners().Append(new cuwarden::StepForEachTest);
 *     return RUN_ALL_TESTS();
 *   }
 *
 * Each test is a step of the recording (cuwarden.h) with the test's name, such as "Cache.evicts".
 * The report, which is made when the program has ended, says of each leak in which tests its
 * allocations were made. In a process that does not run under cuwarden, the listener does nothing.
 *
 * GoogleTest 1.10 or later is needed. Set-up and tear-down of a fixture belong to the test, those
 * of a whole test suite to none. */
#ifndef CUWARDEN_GTEST_H
#define CUWARDEN_GTEST_H

#include <gtest/gtest.h>

#include <string>

#include "cuwarden.h"

namespace cuwarden {

// A listener that marks each test as a step. GoogleTest's list of listeners takes ownership of it.
class StepForEachTest : public testing::EmptyTestEventListener {
 public:
  void OnTestStart(const testing::TestInfo& test) override {
    cuwarden_named_step((std::string(test.test_suite_name()) + "." + test.name()).c_str());
  }
  void OnTestEnd(const testing::TestInfo&) override { cuwarden_named_step(""); }
};

}  // namespace cuwarden

#endif
