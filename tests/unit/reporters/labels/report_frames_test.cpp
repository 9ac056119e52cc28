// Libraries of the frames of a report, and the locations that follow from them.
#include "reporters/labels/report_frames.hpp"

#include <gtest/gtest.h>

namespace cuwarden {
namespace {

// A report of one leak: cudaMalloc, called by PyTorch, called by the user's script.
model::Report two_frames() {
  model::Report made;
  made.modules = {{1, "/usr/local/cuda/lib64/libcudart.so.13", {}}, {2, "/p/libc10_cuda.so", {}}};
  made.frames.resize(3);
  for (model::Id id = 1; id <= 3; ++id) made.frames[id - 1].id = id;
  made.frames[0].function = "cudaMalloc";
  made.frames[0].module = 1;
  made.frames[1].module = 2;
  made.frames[2].function = "step";
  made.frames[2].file = "/home/u/train.py";
  made.frames[2].line = 41;
  made.frames[2].language = "python";
  made.stacks = {{7, {1, 2, 3}, false}};
  made.leak_groups.resize(1);
  made.leak_groups[0].stack = 7;
  made.implicit_groups.resize(1);
  made.implicit_groups[0].stack = 7;
  made.forecasts.resize(1);
  made.forecasts[0].stack = 7;
  return made;
}

TEST(ReportFrames, a_report_without_libraries_gets_them_and_the_locations) {
  model::Report old = two_frames();
  label_old_report(old);
  EXPECT_EQ(old.frames[0].library, "CUDA");
  EXPECT_EQ(old.frames[1].library, "PyTorch");
  EXPECT_EQ(old.frames[2].library, std::nullopt);
  EXPECT_EQ(old.leak_groups[0].where, "/home/u/train.py:41 in step");
  EXPECT_EQ(old.implicit_groups[0].where, "/home/u/train.py:41 in step");
  EXPECT_EQ(old.forecasts[0].where, "/home/u/train.py:41 in step");
}

TEST(ReportFrames, a_report_with_a_library_stays_as_it_is) {
  model::Report given = two_frames();
  given.frames[0].library = "CUDA";
  given.leak_groups[0].where = "elsewhere";
  label_old_report(given);
  EXPECT_EQ(given.frames[1].library, std::nullopt);
  EXPECT_EQ(given.leak_groups[0].where, "elsewhere");
}

TEST(ReportFrames, libraries_follow_the_setting_of_the_reports_process) {
  model::Report given = two_frames();
  given.settings = {{"CUWARDEN_LIBRARIES", "train.py", "environment"}};
  label_report(given);
  EXPECT_EQ(given.frames[2].library, "train.py");
  EXPECT_EQ(given.leak_groups[0].where, "libc10_cuda.so+0x0");
}

// The paths in a redacted report have lost their folders.
TEST(ReportFrames, a_redacted_report_keeps_the_libraries_that_it_has) {
  model::Report given = two_frames();
  given.redacted = true;
  given.frames[1].library = "PyTorch";
  given.frames[2].library = "JAX";
  label_report(given);
  EXPECT_EQ(given.frames[2].library, "JAX");
  EXPECT_EQ(given.frames[0].library, "CUDA") << "by its name";
  EXPECT_EQ(given.leak_groups[0].where, "libc10_cuda.so+0x0");
  EXPECT_EQ(given.leak_groups[0].module, 2u);
}

}  // namespace
}  // namespace cuwarden
