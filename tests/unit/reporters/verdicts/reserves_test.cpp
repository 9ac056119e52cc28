// Memory that libraries keep for themselves: in the advice on a refused request, and in the report.
#include "reporters/tables/ledger_report.hpp"
#include "reporters/text/text_report.hpp"
#include "tests/unit/reporters/fake_ledger.hpp"
#include "tests/unit/reporters/verdicts/verdict_case.hpp"

namespace cuwarden {
namespace {

class Reserves : public Verdicts {
 protected:
  Reserves() {
    ledger.hooks = {{{0}, "cudaMalloc", 1}};
    ledger.process.program = "/bin/app";
  }

  static const LibraryReserve* nccl() {
    return reserve_of("/lib/libnccl.so.2", Kind::device, DeviceOrdinal{0});
  }
  std::string advice() const { return judge(given).advice; }
  bool advises(std::string_view part) const { return advice().find(part) != std::string::npos; }

  // Adds a group whose call stack leads through these modules, innermost first, with one live
  // allocation.
  GroupId add_group(const std::vector<std::string_view>& paths, std::uint64_t bytes,
                    Kind kind = Kind::device) {
    std::vector<ledger::Frame> frames;
    for (const std::string_view path : paths) {
      base += 0x10000;
      ledger.add_module(path, base, 0x10000);
      frames.push_back(base + 0x100);
    }
    const GroupId group = ledger.add_group(ledger.add_stack(frames), {0}, kind,
                                           kind == Kind::pinned ? no_device : DeviceOrdinal{0});
    if (bytes != 0) ledger.add_record(group, 0x7f2000000000 + base, bytes, 1'000'000'000);
    return group;
  }
  // Returns the reserves of the case of a refusal of the group's next request, at which the other
  // groups held their live bytes: library and bytes of each.
  std::vector<std::pair<std::string, std::uint64_t>> reserves_for(
      GroupId asking, const std::vector<GroupId>& holding) const {
    const ledger::Reader reader = ledger.reader();
    StackModules modules(reader);
    std::vector<ledger::IncidentHolding> holdings;
    for (const GroupId group : holding) {
      holdings.emplace_back().group = group;
      holdings.back().bytes = reader.group(group.value)->live_bytes;
    }
    const auto made = case_of(reader, asking, given.incident, holdings, {}, modules);
    std::vector<std::pair<std::string, std::uint64_t>> result;
    for (const auto& [reserve, bytes] : made.value().reserves)
      result.emplace_back(reserve->library, bytes);
    return result;
  }
  using Named = std::vector<std::pair<std::string, std::uint64_t>>;

  test::FakeLedger ledger;
  std::uint64_t base = 0x7e0000000000;
};

TEST_F(Reserves, an_advice_names_a_librarys_reserve_and_the_call_that_gives_it_back) {
  live(Kind::device, 97 * GiB);
  EXPECT_EQ(verdict(), "device_full_own");
  EXPECT_FALSE(advises("NCCL"));
  given.reserves = {{nccl(), 958 * MiB}};
  EXPECT_TRUE(
      advises("; NCCL has 958.0 MiB (buffers of communicators): to get memory back, call "
              "ncclCommSuspend(comm, NCCL_SUSPEND_MEM) from NCCL 2.29.7 on, or ncclCommDestroy"))
      << advice();
}

TEST_F(Reserves, a_reserve_without_a_call_is_limited_by_a_setting) {
  live(Kind::device, 97 * GiB);
  given.reserves = {{reserve_of("/lib/libjax_common.so", Kind::device, DeviceOrdinal{0}), GiB}};
  EXPECT_TRUE(advises("takes in advance): to limit it, use XLA_CLIENT_MEM_FRACTION")) << advice();
}

TEST_F(Reserves, reserves_that_would_not_matter_are_not_named) {
  live(Kind::device, 97 * GiB);
  // 6 GiB and 6 MiB were lacking.
  given.reserves = {{nccl(), 308 * MiB}};
  EXPECT_TRUE(advises("NCCL"));
  given.reserves = {{nccl(), 307 * MiB}};
  EXPECT_FALSE(advises("NCCL")) << advice();
  const LibraryReserve* const fft = reserve_of("libcufft.so", Kind::device, DeviceOrdinal{0});
  const LibraryReserve* const blas = reserve_of("libcublas.so", Kind::device, DeviceOrdinal{0});
  given.reserves = {{nccl(), 3 * GiB}, {fft, 2 * GiB}, {blas, GiB}};
  EXPECT_TRUE(advises("NCCL") && advises("cuFFT")) << advice();
  EXPECT_FALSE(advises("cuBLAS")) << advice();
}

TEST_F(Reserves, no_reserve_is_named_where_free_memory_does_not_help) {
  given.reserves = {{nccl(), 10 * GiB}};
  live(Kind::device, 97 * GiB);
  given.incident.bytes = 101 * GiB;
  EXPECT_EQ(verdict(), "larger_than_device");
  EXPECT_FALSE(advises("NCCL"));
  given.incident.bytes = 8 * GiB;
  set(Fact::free_bytes, 9 * GiB);
  EXPECT_EQ(verdict(), "unknown") << "enough was free right after";
  EXPECT_FALSE(advises("NCCL"));
}

TEST_F(Reserves, a_request_for_pinned_memory_is_helped_by_reserves_of_the_host) {
  given.kind = Kind::pinned;
  given.device = no_device;
  given.incident.bytes = 2 * GiB;
  set(Fact::ram_available_bytes, GiB);
  EXPECT_EQ(verdict(), "host_ram_exhausted");
  given.reserves = {{reserve_of("libtorch_cuda.so", Kind::pinned, no_device), 14 * GiB}};
  EXPECT_TRUE(advises("PyTorch has 14.0 GiB")) << advice();
  EXPECT_TRUE(advises("empty_host_cache()")) << advice();
}

TEST_F(Reserves, holders_are_summed_by_library_and_the_largest_comes_first) {
  const GroupId asking = add_group({"/bin/app"}, 0);
  const GroupId first = add_group({"/lib/libcudart.so.13", "/lib/libnccl.so.2", "/bin/app"}, 3);
  const GroupId second = add_group({"/lib/libnccl.so.2", "/lib/libtorch_cuda.so"}, 4);
  const GroupId others = add_group({"/bin/app", "/lib/libnccl.so.2"}, 100);
  const GroupId plans = add_group({"/lib/libcufft.so.12"}, 9);
  EXPECT_EQ(reserves_for(asking, {first, second, others, plans}),
            (Named{{"cuFFT", 9}, {"NCCL", 7}}));
}

TEST_F(Reserves, bindings_of_cuda_do_not_hide_the_pool_that_calls_them) {
  const GroupId asking = add_group({"/bin/app"}, 0);
  const GroupId pool = add_group(
      {"/env/cupy_backends/cuda/api/runtime.so", "/env/cupy/cuda/memory.cpython-312.so"}, 5);
  EXPECT_EQ(reserves_for(asking, {pool}), (Named{{"CuPy", 5}}));
}

TEST_F(Reserves, a_cache_that_its_allocator_has_just_emptied_is_not_named) {
  const GroupId cache = add_group({"/env/libc10_cuda.so"}, 5);
  EXPECT_EQ(reserves_for(cache, {cache}), Named());
  const GroupId pinned = add_group(
      {"/env/cupy_backends/cuda/api/runtime.so", "/env/cupy/cuda/pinned_memory.cpython-312.so"}, 7,
      Kind::pinned);
  EXPECT_EQ(reserves_for(pinned, {pinned}), Named());
  // PyTorch's allocator of pinned memory does not empty its cache.
  const GroupId blocks = add_group({"/env/libtorch_cuda.so"}, 8, Kind::pinned);
  EXPECT_EQ(reserves_for(blocks, {blocks, pinned}), (Named{{"PyTorch", 8}, {"CuPy", 7}}));
  // NCCL does not empty anything when it is refused memory.
  const GroupId buffers = add_group({"/lib/libnccl.so.2"}, 6);
  EXPECT_EQ(reserves_for(cache, {cache, buffers}), (Named{{"NCCL", 6}}));
  EXPECT_EQ(reserves_for(buffers, {cache, buffers}), (Named{{"NCCL", 6}, {"PyTorch", 5}}));
}

TEST_F(Reserves, the_report_has_a_row_for_each_device_and_file_of_a_library) {
  add_group({"/lib/libcudart.so.13", "/lib/libnccl.so.2"}, 3 << 20);
  add_group({"/lib/libnccl.so.2"}, 1 << 20, Kind::pinned);
  add_group({"/bin/app"}, 50 << 20);
  const GroupId gone = add_group({"/lib/libcufft.so.12"}, 0);
  ledger.groups[gone.value - 1].released_count = 1;
  ledger.groups[gone.value - 1].released_bytes = 1 << 20;
  const ledger::Reader reader = ledger.reader();
  const IndexedReport report(LedgerReport(reader, {}).whole());
  ASSERT_EQ(report->library_reserves.size(), 2u);
  const auto& [buffers, pinned] =
      std::tie(report->library_reserves[0], report->library_reserves[1]);
  EXPECT_EQ(buffers.library, "NCCL");
  EXPECT_EQ(report.module_name(buffers.module), "libnccl.so.2");
  EXPECT_EQ(buffers.device, 0u);
  EXPECT_EQ(buffers.count, 1u);
  EXPECT_EQ(buffers.bytes, 3u << 20);
  EXPECT_TRUE(buffers.limited_by.has_value());
  EXPECT_EQ(pinned.device, std::nullopt);
  EXPECT_EQ(pinned.gives_back, "ncclCommDestroy");
  EXPECT_EQ(pinned.limited_by, std::nullopt);
  const std::string text = text_report(report, {});
  EXPECT_NE(text.find("3.0 MiB in 1 allocation (GPU 0) · buffers of communicators"), text.npos)
      << text;
  EXPECT_NE(text.find("to limit it: NCCL_BUFFSIZE and NCCL_MAX_CTAS"), text.npos) << text;
}

TEST_F(Reserves, the_groups_of_a_running_process_tell_what_calls_of_libraries_took) {
  add_group({"/lib/libnccl.so.2", "/bin/app"}, 6 * MiB, Kind::stream);
  add_group({"/lib/libcudart.so.13", "/lib/libcufft.so.12"}, 3 * MiB, Kind::module);
  add_group({"/lib/libcufft.so.12"}, 2 * MiB, Kind::graph_exec);
  add_group({"/lib/libnccl.so.2"}, 5 * MiB, Kind::local_memory);
  add_group({"/lib/libnccl.so.2"}, 50 * MiB);
  add_group({"/bin/app"}, 8 * MiB, Kind::stream);
  // Two streams of NCCL have ended, and the driver keeps their memory.
  ledger::GroupView& ended =
      ledger.groups[add_group({"/lib/libnccl.so.2"}, 0, Kind::stream).value - 1];
  ended.allocations = ended.frees = 2;
  ended.allocated_bytes = 4 * MiB;
  ledger::DeviceView& device = ledger.devices.emplace_back();
  device.ordinal = DeviceOrdinal{0};
  device.at = ledger::ReadingAt::last_call;
  device.total_bytes = GiB;
  device.free_bytes = GiB - 78 * MiB;
  device.implicit.streams = 18 * MiB;
  device.implicit.modules = 3 * MiB;
  device.implicit.graphs = 2 * MiB;
  device.implicit.local_memory = 5 * MiB;
  ledger::SeriesView& memory = ledger.series.emplace_back();
  memory.kind = Kind::device;
  memory.device = DeviceOrdinal{0};
  memory.live_bytes = 50 * MiB;

  const ledger::Reader reader = ledger.reader();
  const LibrariesImplicit took = live_implicit_of_libraries(reader);
  ASSERT_EQ(took.size(), 1u);
  EXPECT_EQ(took.at(0).streams, 10 * MiB);
  EXPECT_EQ(took.at(0).modules, 3 * MiB);
  EXPECT_EQ(took.at(0).graphs, 2 * MiB);

  std::map<std::string, std::int64_t> parts, of_report;
  put_accounts(reader, ledger.series, find_fragmentation(reader), took, {},
               [&](const model::AccountItem& item) { parts[item.item] = item.bytes.value_or(0); });
  ReportOptions options;
  options.end_reason = ledger::EndReason::running;
  for (const model::AccountItem& item : LedgerReport(reader, options).whole().accounts)
    of_report[item.item] = item.bytes.value_or(0);
  EXPECT_EQ(parts, of_report);
  EXPECT_EQ(parts, (std::map<std::string, std::int64_t>{{"live_device", 50 * MiB},
                                                        {"local_memory", 5 * MiB},
                                                        {"streams", 8 * MiB},
                                                        {"libraries", 15 * MiB},
                                                        {"unexplained", 0}}));
}

TEST_F(Reserves, without_reserves_the_text_has_no_section_about_them) {
  add_group({"/bin/app"}, 50 << 20);
  const ledger::Reader reader = ledger.reader();
  const std::string text = text_report(IndexedReport(LedgerReport(reader, {}).whole()), {});
  EXPECT_EQ(text.find("LIBRARIES"), text.npos) << text;
}

}  // namespace
}  // namespace cuwarden
