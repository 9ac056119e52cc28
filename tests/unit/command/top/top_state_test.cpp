// `top`: keys change the state of the live view.
#include <gtest/gtest.h>

#include "tests/unit/command/top/live_data_fixture.hpp"

namespace cuwarden {
namespace {

using Name = Key::Name;
using Texts = std::vector<std::string>;
using Live = test::LiveViewUnderTest;

TEST(TopState, arrows_and_letters_move_the_selection_and_stop_at_the_ends) {
  Live live;
  EXPECT_NE(live.selected().find("large"), std::string::npos);
  live.press_key(Name::down);
  EXPECT_NE(live.selected().find("middle"), std::string::npos);
  live.type("jjj");
  EXPECT_NE(live.selected().find("small"), std::string::npos);
  live.type("k");
  live.press_key(Name::up);
  live.press_key(Name::up);
  EXPECT_NE(live.selected().find("large"), std::string::npos);
  live.press_key(Name::end);
  EXPECT_NE(live.selected().find("small"), std::string::npos);
  live.press_key(Name::home);
  EXPECT_NE(live.selected().find("large"), std::string::npos);
}

TEST(TopState, pages_move_by_the_lines_that_are_shown) {
  Live live;
  for (std::int64_t pid = 100; pid < 200; ++pid)
    live.data.processes.push_back(test::live_process(pid, "many", 0));
  live.screen.rows = 13;  // ten lines of the list
  EXPECT_EQ(live.lines().size(), 13u);
  live.press_key(Name::page_down);
  EXPECT_EQ(live.state.processes.index, 9u);
  live.press_key(Name::page_down);
  EXPECT_EQ(live.state.processes.index, 18u);
  EXPECT_NE(live.selected(), "");  // the list has scrolled
  EXPECT_EQ(live.state.processes.first, 9u);
  live.press_key(Name::page_up);
  live.press_key(Name::page_up);
  EXPECT_EQ(live.state.processes.index, 0u);
}

TEST(TopState, the_selection_stays_with_its_line_when_the_order_changes) {
  Live live;
  live.press_key(Name::down);  // middle
  live.data.processes[2].row.device_bytes = 9 * test::mebibyte;
  EXPECT_EQ(live.programs().front(), "middle");
  EXPECT_NE(live.selected().find("middle"), std::string::npos);
  EXPECT_EQ(live.state.processes.index, 0u);
}

TEST(TopState, the_selection_goes_to_the_next_line_if_its_own_is_gone) {
  Live live;
  live.press_key(Name::down);
  live.data.processes.erase(live.data.processes.begin() + 2);  // middle
  EXPECT_NE(live.selected().find("small"), std::string::npos);
  live.data.processes.clear();
  EXPECT_EQ(live.selected(), "");
  live.press_key(Name::enter);
  EXPECT_EQ(live.state.page, LivePage::processes);
}

TEST(TopState, enter_opens_a_process_then_a_stack_and_escape_goes_back) {
  Live live;
  live.press_key(Name::down);
  live.open();
  EXPECT_EQ(live.state.page, LivePage::process);
  EXPECT_TRUE(live.lines()[0].starts_with("middle (pid 13) running for "));
  live.press_key(Name::down);
  live.open();
  EXPECT_EQ(live.state.page, LivePage::stack);
  EXPECT_EQ(live.state.stack, 2u);
  live.press_key(Name::escape);
  EXPECT_NE(live.selected().find("b.cpp:2 in step"), std::string::npos);
  live.press_key(Name::backspace);
  EXPECT_EQ(live.state.page, LivePage::processes);
  EXPECT_NE(live.selected().find("middle"), std::string::npos);
  live.press_key(Name::escape);
  EXPECT_EQ(live.state.page, LivePage::processes);
}

TEST(TopState, another_process_of_the_same_pid_is_not_the_one_that_is_open) {
  Live live;
  live.open();
  live.data.processes[1].row.start = "2026-02-01T00:00:00Z";
  EXPECT_EQ(open_process(live.state, live.data), nullptr);
  EXPECT_EQ(live.lines()[0], "The process is not known any more.");
}

TEST(TopState, s_and_arrows_choose_the_column_that_sorts) {
  Live live;
  EXPECT_NE(live.lines()[1].find("DEVICE*"), std::string::npos);
  live.type("s");
  EXPECT_EQ(live.state.processes.order, LiveOrder::peak);
  live.type("<<");
  EXPECT_EQ(live.state.processes.order, LiveOrder::pid);
  live.type("<");
  EXPECT_EQ(live.state.processes.order, LiveOrder::text);
  live.type(">>");
  EXPECT_EQ(live.state.processes.order, LiveOrder::bytes);
  live.type("g");
  EXPECT_EQ(live.state.processes.order, LiveOrder::growth);
  live.type("c");  // the list has no such column
  EXPECT_EQ(live.state.processes.order, LiveOrder::growth);
  live.type("b");
  live.open();
  live.type("c");
  EXPECT_EQ(live.state.stacks.order, LiveOrder::count);
}

TEST(TopState, r_reverses_the_order_until_another_column_sorts) {
  Live live;
  live.type("r");
  EXPECT_EQ(live.programs(), (Texts{"small", "middle", "large"}));
  EXPECT_NE(live.lines()[1].find("DEVICE^"), std::string::npos);
  live.type("I");
  EXPECT_EQ(live.programs().front(), "large");
  live.type("rs");
  EXPECT_FALSE(live.state.processes.reversed);
}

TEST(TopState, letters_after_a_slash_filter_at_once) {
  Live live;
  live.type("/l");
  EXPECT_EQ(live.programs(), (Texts{"large", "middle", "small"}));
  live.type("ar");
  EXPECT_EQ(live.programs(), Texts{"large"});
  EXPECT_EQ(live.lines().back(), "filter: lar_");
  live.type("q");
  EXPECT_FALSE(live.state.quits);
  EXPECT_EQ(live.programs(), Texts{});
  live.press_key(Name::backspace);
  EXPECT_EQ(live.programs(), Texts{"large"});
  live.press_key(Name::enter);
  EXPECT_EQ(live.programs(), Texts{"large"});
  EXPECT_NE(live.lines().back().find("Esc ends filter: lar"), std::string::npos);
  live.press_key(Name::escape);
  EXPECT_EQ(live.programs().size(), 3u);
  live.type("/small");
  live.press_key(Name::escape);
  EXPECT_EQ(live.programs().size(), 3u);
  EXPECT_FALSE(live.state.typing);
}

TEST(TopState, backspace_takes_a_whole_character_from_the_filter) {
  Live live;
  live.type("/a");
  press(live.state, {Name::text, "ü"}, live.data);
  EXPECT_EQ(live.state.processes.filter, "aü");
  live.press_key(Name::backspace);
  EXPECT_EQ(live.state.processes.filter, "a");
  live.press_key(Name::backspace);
  live.press_key(Name::backspace);
  EXPECT_EQ(live.state.processes.filter, "");
}

TEST(TopState, arrows_move_while_a_filter_is_typed) {
  Live live;
  live.type("/l");
  live.press_key(Name::down);
  EXPECT_NE(live.selected().find("middle"), std::string::npos);
  EXPECT_TRUE(live.state.typing);
}

TEST(TopState, m_folds_by_module_call_and_kind_in_turn) {
  Live live;
  live.type("m");  // processes are not folded
  EXPECT_EQ(live.state.fold, LiveFold::stack);
  live.open();
  const std::vector<LiveFold> expected{LiveFold::module, LiveFold::call, LiveFold::kind,
                                       LiveFold::stack};
  for (const LiveFold fold : expected) {
    live.type("m");
    EXPECT_EQ(live.state.fold, fold);
  }
}

TEST(TopState, enter_on_a_folded_line_lists_its_stacks_alone) {
  Live live;
  live.open();
  live.type("m");
  EXPECT_EQ(live.locations(), (Texts{"liba.so", "libb.so", "libc_cache.so"}));
  live.open();
  EXPECT_EQ(live.locations(), (Texts{"a.cpp:1 in load", "a.cpp:3 in keep"}));
  EXPECT_NE(live.text().find("WHERE, in liba.so"), std::string::npos);
  live.press_key(Name::escape);
  EXPECT_EQ(live.locations(), (Texts{"liba.so", "libb.so", "libc_cache.so"}));
  EXPECT_NE(live.selected().find("liba.so (2 stacks)"), std::string::npos);
}

TEST(TopState, another_process_opens_without_the_filter_and_folds_of_the_one_before) {
  Live live;
  live.open();
  live.type("m/liba");
  live.press_key(Name::enter);
  live.press_key(Name::escape);  // removes the filter
  live.press_key(Name::escape);
  ASSERT_EQ(live.state.page, LivePage::processes);
  live.press_key(Name::down);
  live.open();
  EXPECT_EQ(live.state.fold, LiveFold::stack);
  EXPECT_EQ(live.locations().size(), 4u);
}

TEST(TopState, h_shows_the_keys_until_another_key) {
  Live live;
  live.type("h");
  EXPECT_EQ(live.lines()[0], "Keys of cuwarden top");
  live.type("x");
  EXPECT_TRUE(live.lines()[0].starts_with("cuwarden top: 3 processes"));
  live.type("?");
  EXPECT_TRUE(live.state.help);
}

TEST(TopState, the_keys_scroll_on_a_small_screen) {
  Live live;
  live.screen.rows = 5;
  live.type("h");
  EXPECT_EQ(live.lines()[0], "Keys of cuwarden top");
  live.press_key(Name::down);
  EXPECT_TRUE(live.state.help);
  EXPECT_TRUE(live.lines()[0].starts_with("q "));
  live.press_key(Name::end);
  const Texts lines = live.lines();
  EXPECT_TRUE(lines[lines.size() - 2].starts_with("STATE: "));
}

TEST(TopState, q_quits_on_every_page) {
  for (const int depth : {0, 1, 2}) {
    Live live;
    for (int i = 0; i < depth; ++i) live.open();
    live.type("q");
    EXPECT_TRUE(live.state.quits) << depth;
  }
  Live live;
  live.type("hq");
  EXPECT_TRUE(live.state.quits);
}

TEST(TopState, a_key_without_a_meaning_changes_nothing) {
  Live live;
  const std::string before = live.text();
  live.type("xyz");
  live.press_key(Name::erase);
  EXPECT_EQ(live.text(), before);
}

}  // namespace
}  // namespace cuwarden
