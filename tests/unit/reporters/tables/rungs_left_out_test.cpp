// Rungs that were left out for a refused request: their rows in the report, and their line in the
// text.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

#include "reporters/json/read_report.hpp"
#include "reporters/json/update.hpp"
#include "reporters/tables/ledger_report.hpp"
#include "reporters/text/text_rungs.hpp"
#include "tests/unit/reporters/fake_ledger.hpp"

namespace cuwarden {
namespace {

using ledger::LeftOut;

class RungsLeftOut : public testing::Test {
 protected:
  RungsLeftOut() {
    ledger.hooks = {{{0}, "cudaMalloc", 1}};
    ledger.settings = {{"CUWARDEN_POOL", "off", true},
                       {"CUWARDEN_MESH", "on", false},
                       {"CUWARDEN_SPILL", "0", false}};
    group = ledger.add_group(ledger.add_stack({0x1000}), {0}, Kind::device, {0});
  }
  void add_incident(const std::map<ledger::Rung, LeftOut>& left_out) {
    ledger::IncidentView& incident = ledger.incidents.emplace_back();
    incident.id = {static_cast<std::uint32_t>(ledger.incidents.size())};
    incident.group = group;
    incident.result = 2;
    incident.bytes = 3 << 20;
    for (const auto& [rung, reason] : left_out)
      incident.left_out[static_cast<std::size_t>(rung)] = reason;
  }
  void add_rung(std::uint32_t order, ledger::Rung rung, ledger::RungOutcome outcome) {
    ledger.incident_rungs.push_back({{order, rung, outcome, 0, {}}, {1}});
  }
  model::Report report() const {
    const ledger::Reader reader = ledger.reader();
    return LedgerReport(reader, {}).whole();
  }
  // Returns the lines about the first incident's rungs.
  std::string lines() const {
    const IndexedReport made(report());
    std::string text;
    add_rungs(made, made->incidents.at(0), Style(false), text);
    return text;
  }

  test::FakeLedger ledger;
  GroupId group;
};

std::set<std::string> reasons_in_schema() {
  const Json schema = Json::parse(std::ifstream(REPORT_SCHEMA));
  std::set<std::string> reasons;
  for (const Json& reason :
       schema["properties"]["rungs_left_out"]["items"]["properties"]["reason"]["anyOf"])
    reasons.insert(reason["const"]);
  return reasons;
}

TEST_F(RungsLeftOut, each_reason_has_a_name_in_the_schema_and_words_in_the_text) {
  std::set<std::string> reasons;
  for (std::uint8_t i = 1; i < ledger::left_out_count; ++i) {
    ledger.incidents.clear();
    add_incident({{ledger::Rung::spill, static_cast<LeftOut>(i)}});
    const auto rows = report().rungs_left_out;
    ASSERT_EQ(rows.size(), 1u);
    std::string name = rows[0].reason;
    reasons.insert(name);
    std::ranges::replace(name, '_', ' ');
    EXPECT_NE(lines(), "  nothing was tried: " + name + "\n");
  }
  EXPECT_EQ(reasons, reasons_in_schema());
}

TEST_F(RungsLeftOut, rows_have_the_setting_that_turns_the_rung_off) {
  const auto setting_of = [&](ledger::Rung rung, LeftOut reason) {
    ledger.incidents.clear();
    add_incident({{rung, reason}});
    return report().rungs_left_out.at(0).setting;
  };
  using ledger::Rung;
  EXPECT_EQ(setting_of(Rung::spill, LeftOut::rescues_off), "CUWARDEN_POOL");
  EXPECT_EQ(setting_of(Rung::spill, LeftOut::turned_off), "CUWARDEN_SPILL");
  EXPECT_EQ(setting_of(Rung::wait, LeftOut::turned_off), "CUWARDEN_WAIT");
  EXPECT_EQ(setting_of(Rung::reclaim, LeftOut::turned_off), "CUWARDEN_SYNC_TIMEOUT");
  EXPECT_EQ(setting_of(Rung::mesh, LeftOut::turned_off), "CUWARDEN_MESH_PAUSE");
  ledger.settings[1].value = "off";
  EXPECT_EQ(setting_of(Rung::mesh, LeftOut::turned_off), "CUWARDEN_MESH");
  EXPECT_EQ(setting_of(Rung::mesh, LeftOut::nothing_there), std::nullopt);
}

TEST_F(RungsLeftOut, each_incident_has_rows_of_its_own_rungs) {
  using enum ledger::Rung;
  add_incident({{give_back, LeftOut::nothing_there}});
  add_incident({{retry, LeftOut::in_vain_before}, {wait, LeftOut::in_vain_before}});
  const auto rows = report().rungs_left_out;
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0], (model::RungLeftOut{1, "pool", "nothing_there", std::nullopt}));
  EXPECT_EQ(rows[1], (model::RungLeftOut{2, "retry", "in_vain_before", std::nullopt}));
  EXPECT_EQ(rows[2], (model::RungLeftOut{2, "wait", "in_vain_before", std::nullopt}));
}

TEST_F(RungsLeftOut, the_text_has_rungs_of_one_reason_together) {
  using enum ledger::Rung;
  add_incident({{give_back, LeftOut::nothing_there},
                {mesh, LeftOut::nothing_there},
                {reclaim, LeftOut::nothing_there},
                {wait, LeftOut::own_memory},
                {spill, LeftOut::turned_off}});
  add_rung(1, retry, ledger::RungOutcome::no_memory);
  EXPECT_EQ(lines(),
            "  tried: retry (no memory)\n"
            "  not tried: reclaim (no reclaimer is registered) · pool, mesh (cuwarden's pool has "
            "held no memory) · wait (the request does not fit beside this process's own memory) · "
            "spill (CUWARDEN_SPILL=0)\n");
  ledger.incidents[0].repeats = 2;
  EXPECT_NE(lines().find("  not tried for the first: reclaim ("), std::string::npos) << lines();
}

TEST_F(RungsLeftOut, a_refusal_after_which_nothing_was_tried_has_one_reason) {
  add_incident(
      {{ledger::Rung::retry, LeftOut::rescues_off}, {ledger::Rung::spill, LeftOut::rescues_off}});
  EXPECT_EQ(lines(), "  nothing was tried: CUWARDEN_POOL=off\n");
}

TEST_F(RungsLeftOut, a_report_of_an_earlier_version_lacks_the_table) {
  add_incident({{ledger::Rung::retry, LeftOut::rescues_off}});
  Json document;
  update(document, report(), Unlisted::dropped);
  ASSERT_EQ(document["rungs_left_out"].size(), 1u);
  std::string error;
  const auto same = parse_report(document.dump(), "report", error);
  ASSERT_TRUE(same) << error;
  EXPECT_EQ(same->rungs_left_out.at(0).setting, "CUWARDEN_POOL");
  document.erase("rungs_left_out");
  const auto earlier = parse_report(document.dump(), "report", error);
  ASSERT_TRUE(earlier) << error;
  EXPECT_TRUE(earlier->rungs_left_out.empty());
}

TEST_F(RungsLeftOut, a_reason_of_a_later_version_is_shown_by_its_name) {
  add_incident({{ledger::Rung::mesh, LeftOut::compute_mode}});
  model::Report later = report();
  later.rungs_left_out[0].reason = "another_reason";
  const IndexedReport made(std::move(later));
  std::string text;
  add_rungs(made, made->incidents.at(0), Style(false), text);
  EXPECT_EQ(text, "  nothing was tried: another reason\n");
}

}  // namespace
}  // namespace cuwarden
