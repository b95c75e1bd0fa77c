// Every input that is kept of a fuzz target, the smallest that reach all that was reached and those
// that once broke something, holds what the target promises.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/fuzz/fuzz_target.h"

namespace wan {
namespace {

namespace fs = std::filesystem;

class CorpusTest : public ::testing::TestWithParam<FuzzTarget> {};

TEST_P(CorpusTest, EveryInputHoldsItsPromises) {
  const fs::path folder = fs::path(WAN_FUZZ_CORPUS) / GetParam().name;
  ASSERT_TRUE(fs::is_directory(folder)) << folder << ": build the target unpack_corpus";
  int inputs = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    SCOPED_TRACE(entry.path());
    GetParam().run({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
    ++inputs;
  }
  EXPECT_GE(inputs, 3);
}

INSTANTIATE_TEST_SUITE_P(Targets, CorpusTest, ::testing::ValuesIn(FuzzTargets()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace wan
