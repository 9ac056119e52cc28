// A ledger is a file that another process has written: whatever its bytes are, the reader stays
// inside them.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <fstream>
#include <random>

#include "runtime_hooks/core/memory/mapping.hpp"
#include "runtime_hooks/ledger/format/geometry.hpp"
#include "runtime_hooks/ledger/storage/growing_file.hpp"
#include "runtime_hooks/ledger/write/allocation_records/totals.hpp"
#include "runtime_hooks/ledger/write/devices.hpp"
#include "runtime_hooks/ledger/write/names.hpp"
#include "runtime_hooks/ledger/write/stacks/stack_table.hpp"
#include "tests/repetitions.hpp"
#include "tests/unit/ledger/ledger_fixture.hpp"

namespace cuwarden::ledger {
namespace {

// Reads every byte that a reader hands out; the sum keeps the compiler from skipping a byte.
class Walk {
 public:
  explicit Walk(std::span<const std::byte> bytes) {
    ReadError error;
    const auto reader = Reader::open(bytes, error);
    opened = reader.has_value();
    EXPECT_EQ(opened, error.text == nullptr);
    if (opened) read_all(*reader);
  }
  bool opened = false;
  std::uint64_t sum = 0, rows = 0;

 private:
  void look(std::string_view text) {
    for (const char c : text) sum += static_cast<unsigned char>(c);
  }
  template <class Get>
  void table(const Reader& reader, RegionId id, const Get& get) {
    const std::uint64_t count = std::min<std::uint64_t>(reader.rows(id), 3000);
    for (std::uint64_t i = 0; i < count; ++i) rows += get(i) ? 1 : 0;
    // Rows outside of the table are absent, wherever they would lie.
    EXPECT_FALSE(get(reader.rows(id)));
    EXPECT_FALSE(get(UINT64_MAX));
    EXPECT_FALSE(get(UINT64_MAX / 64));
  }
  void read_all(const Reader& reader) {
    const ProcessView process = reader.process();
    look(process.host);
    look(process.program);
    look(process.command_line);
    look(process.report_path);
    table(reader, RegionId::records, [&](std::uint64_t i) { return reader.record(i).has_value(); });
    table(reader, RegionId::groups, [&](std::uint64_t i) {
      const auto group = reader.group(i);
      if (group) look(kind_name(group->kind));
      return group.has_value();
    });
    table(reader, RegionId::stacks, [&](std::uint64_t i) {
      const auto stack = reader.stack(i);
      if (!stack) return false;
      for (const Frame frame : stack->frames) sum += frame;
      if (!stack->frames.empty()) reader.module_at(stack->frames[0], stack->module_epoch);
      return true;
    });
    table(reader, RegionId::modules, [&](std::uint64_t i) {
      const auto module = reader.module(i);
      if (!module) return false;
      look(module->path);
      for (const std::uint8_t byte : module->build_id) sum += byte;
      return true;
    });
    table(reader, RegionId::threads, [&](std::uint64_t i) {
      const auto thread = reader.thread(i);
      if (thread) look(thread->name);
      return thread.has_value();
    });
    const GroupSums sums(reader);
    table(reader, RegionId::series, [&](std::uint64_t i) {
      auto series = reader.series(i);
      if (series) sums.put_into(*series);
      for (std::size_t b = 0; series && b < series->buckets_used; ++b) {
        sum += series->buckets[b].max_bytes;
      }
      return series.has_value();
    });
    table(reader, RegionId::devices, [&](std::uint64_t i) {
      const auto device = reader.device(i);
      if (device) look(device->name);
      if (device) look(device->largest_local_kernel);
      return device.has_value();
    });
    table(reader, RegionId::hooks, [&](std::uint64_t i) {
      const auto hook = reader.hook(i);
      if (hook) look(hook->name);
      return hook.has_value();
    });
    table(reader, RegionId::unhooked_lookups, [&](std::uint64_t i) {
      const auto lookup = reader.unhooked_lookup(i);
      if (lookup) look(lookup->name);
      return lookup.has_value();
    });
    table(reader, RegionId::settings,
          [&](std::uint64_t i) { return reader.setting(i).has_value(); });
    table(reader, RegionId::environment, [&](std::uint64_t i) {
      const auto value = reader.environment(i);
      if (value) look(value->value);
      return value.has_value();
    });
  }
};

// Bytes that are followed by a page without access.
class Guarded {
 public:
  explicit Guarded(std::size_t bytes)
      : mapping_(Mapping::anonymous(round_up(bytes, page_bytes) + page_bytes)), bytes_(bytes) {
    mprotect(mapping_.bytes().data() + mapping_.size() - page_bytes, page_bytes, PROT_NONE);
  }
  std::span<std::byte> bytes() const {
    return mapping_.bytes().subspan(mapping_.size() - page_bytes - bytes_, bytes_);
  }

 private:
  Mapping mapping_;
  std::size_t bytes_;
};

class DamagedLedger : public LedgerTest {
 protected:
  void SetUp() override {
    for (std::uint16_t i = 0; i < 3; ++i) {
      const GroupId group = device_group(i);
      for (std::uint64_t n = 1; n <= 20; ++n) add((i * 20 + n) * 512, n * 1000, group);
    }
    const std::array<Frame, 1> here = {reinterpret_cast<std::uintptr_t>(&make_writer) + 1};
    writer->stacks.intern(here, false);
    const std::uint8_t uuid[16] = {};
    writer->devices.identify(DeviceOrdinal{0}, "Simulated H200", uuid);
    writer->names.set_setting("stack_depth", "256", false);
    writer->names.set_environment("CUDA_VISIBLE_DEVICES", "0");
    writer->names.count_unhooked_lookup("cuMemFuture");
    writer->totals.sample_host_rss(1'000'000, writer->time.now_ns());
    copy = std::make_unique<Guarded>(writer->file.bytes().size());
    // The copy is made from the file: in the writer's mapping, pages that are not filled cannot be
    // read.
    std::ifstream file(std::string(writer->file.path()), std::ios::binary);
    file.read(reinterpret_cast<char*>(copy->bytes().data()),
              static_cast<std::streamsize>(copy->bytes().size()));
    ASSERT_TRUE(file.good());
  }
  Header& header() { return *reinterpret_cast<Header*>(copy->bytes().data()); }

  TemporaryFolder small_folder;
  std::unique_ptr<Guarded> copy;
  DamagedLedger() { writer = make_writer(small_folder.path(), 1 << 20); }
};

TEST_F(DamagedLedger, the_undamaged_copy_reads_in_full) {
  const Walk walk(copy->bytes());
  EXPECT_TRUE(walk.opened);
  EXPECT_GT(walk.rows, 75u);
}

TEST_F(DamagedLedger, flipped_bytes_never_lead_outside) {
  std::mt19937_64 random(2024);
  const std::span<std::byte> bytes = copy->bytes();
  const Geometry geometry = [&] {
    Geometry found;
    for (std::size_t i = 0; i < region_count; ++i) {
      found.regions[i] = {header().regions[i].offset, header().regions[i].capacity_bytes, 0};
    }
    return found;
  }();
  constexpr std::uint64_t extremes[] = {0, 1, 0xff, 0x7fffffff, 0xffffffff, UINT64_MAX, 1ull << 63};
  std::uint64_t opened = 0;
  const std::uint64_t rounds = test::repetitions(20'000, 1'000'000);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    struct Undo {
      std::size_t at;
      std::uint64_t value;
    };
    std::array<Undo, 4> undo{};
    const std::size_t changes = random() % undo.size() + 1;
    const std::uint64_t checksum = header().checksum;
    for (std::size_t i = 0; i < changes; ++i) {
      // The header and the first rows of each region are chosen, because they have content.
      const std::size_t region = random() % (region_count + 2);
      const std::size_t start = region < region_count ? geometry.regions[region].offset : 0;
      const std::size_t length = region < region_count ? 1024 : sizeof(Header);
      const std::size_t at = std::min(start + random() % length, bytes.size() - 8);
      std::memcpy(&undo[i].value, &bytes[at], 8);
      undo[i].at = at;
      if (random() % 2 == 0) {
        bytes[at] ^= static_cast<std::byte>(1u << random() % 8);
      } else {
        const std::uint64_t value = extremes[random() % std::size(extremes)];
        std::memcpy(&bytes[at], &value, random() % 2 == 0 ? 4 : 8);
      }
    }
    // Three times in four the checksum is made to fit, as an attacker would.
    if (random() % 4 != 0) header().checksum = header_checksum(header());
    opened += Walk(bytes).opened ? 1 : 0;
    for (std::size_t i = changes; i > 0; --i) {
      std::memcpy(&bytes[undo[i - 1].at], &undo[i - 1].value, 8);
    }
    header().checksum = checksum;
  }
  EXPECT_GT(opened, rounds / 4) << "too few reach the tables";
  EXPECT_TRUE(Walk(bytes).opened) << "the mutations were undone";
}

TEST_F(DamagedLedger, a_cut_file_loses_rows_and_nothing_else) {
  std::mt19937_64 random(7);
  const std::span<const std::byte> whole = copy->bytes();
  for (int round = 0; round < 200; ++round) {
    const std::size_t length =
        round < 20 ? random() % (2 * sizeof(Header)) / 8 * 8 : random() % whole.size() / 8 * 8;
    const Guarded cut(length);
    std::memcpy(cut.bytes().data(), whole.data(), length);
    const Walk walk(cut.bytes());
    EXPECT_EQ(walk.opened, length >= sizeof(Header));
  }
}

TEST_F(DamagedLedger, a_few_rows_cannot_claim_all_of_the_file) {
  ReadError error;
  const auto reader = Reader::open(copy->bytes(), error);
  ASSERT_TRUE(reader);
  const auto claim_all = [&](RegionId id) {
    Region& region = header().regions[index_of(id)];
    region.file_bytes.store(region.capacity_bytes);
    region.used.store(region.capacity_bytes / region.row_bytes);
    return region.capacity_bytes / region.row_bytes;
  };
  ASSERT_GT(claim_all(RegionId::frames), 2 * deepest_stack);
  auto& stack = reinterpret_cast<Stack*>(copy->bytes().data() +
                                         header().regions[index_of(RegionId::stacks)].offset)[1];
  stack.first = 1;
  stack.count = deepest_stack;
  ASSERT_TRUE(reader->stack(1));
  EXPECT_EQ(reader->stack(1)->frames.size(), deepest_stack);
  stack.count = deepest_stack + 1;
  EXPECT_FALSE(reader->stack(1));

  ASSERT_GT(claim_all(RegionId::strings), 8192u);
  auto& module = reinterpret_cast<Module*>(copy->bytes().data() +
                                           header().regions[index_of(RegionId::modules)].offset)[1];
  ASSERT_TRUE(reader->module(1));
  module.path = {1, 4096};
  EXPECT_EQ(reader->module(1)->path.size(), 4096u);
  module.path = {1, 4097};
  EXPECT_EQ(reader->module(1)->path, "");
}

TEST_F(DamagedLedger, a_file_that_is_no_ledger_is_refused_with_a_reason) {
  const auto reason = [&]() -> std::string {
    ReadError error;
    const auto reader = Reader::open(copy->bytes(), error);
    return reader ? "" : error.text;
  };
  header().version = layout_version + 1;
  EXPECT_NE(reason().find("version"), std::string::npos);
  header().version = layout_version;
  header().process.pid += 1;
  EXPECT_NE(reason().find("damaged"), std::string::npos);
  header().process.pid -= 1;
  header().published.store(0);
  EXPECT_NE(reason().find("never completed"), std::string::npos);
  header().magic = 0;
  EXPECT_NE(reason().find("not a cuwarden ledger"), std::string::npos);
}

}  // namespace
}  // namespace cuwarden::ledger
