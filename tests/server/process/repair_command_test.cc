#include "server/process/repair_command.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "engine/api/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/sqlite_job_store.h"
#include "tests/server/store/blocking_writes.h"

namespace wan::server {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class RepairCommandTest : public testing::Test {
 protected:
  RepairCommandTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "wan_repair_XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) std::abort();
    folder_ = pattern;
  }
  ~RepairCommandTest() override { std::filesystem::remove_all(folder_); }

  int Run(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), {"wanserve", "repair"});
    out_.str("");
    err_.str("");
    EXPECT_TRUE(IsRepairCommand(static_cast<int>(arguments.size()), arguments.data()));
    return RunRepairCommand(static_cast<int>(arguments.size()), arguments.data(), SystemClock(),
                            out_, err_);
  }
  int Repair() { return Run({"--data-dir", folder_.c_str()}); }

  std::filesystem::path folder_;
  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(RepairCommandTest, TheExitCodeTellsWhatHappened) {
  EXPECT_EQ(Run({}), 2);
  EXPECT_EQ(Run({"--nonsense"}), 2);
  EXPECT_EQ(Run({"--help"}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("--data-dir DIR"));
  EXPECT_EQ(Repair(), 1);
  EXPECT_THAT(err_.str(), StartsWith("wanserve repair: there is no "));

  const std::filesystem::path database = folder_ / "jobs.db";
  {
    auto store = OpenSqliteJobStore(database);
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_EQ(Repair(), 1);
    EXPECT_THAT(err_.str(), HasSubstr("a server uses "));
    StoredJob stored;
    stored.job.set_name("jobs/a");
    stored.job.set_state(wan::v1::JOB_STATE_QUEUED);
    wan::v1::Event event;
    event.set_job("jobs/a");
    event.set_sequence(1);
    ASSERT_TRUE(InsertInto(**store, stored, "", std::span(&event, 1)).ok());
  }
  EXPECT_EQ(Repair(), 0);
  EXPECT_EQ(out_.str(), "the database is whole; nothing was changed\n");

  std::fstream(database, std::ios::in | std::ios::out | std::ios::binary) << "garbage";
  EXPECT_EQ(Repair(), 0) << "all rows are still there";
  EXPECT_THAT(out_.str(),
              StartsWith("repaired: 1 jobs with 1 events\nthe damaged file is kept as " +
                         database.string() + ".damaged-"));
  std::ofstream(database) << std::string(50'000, 'x');
  EXPECT_EQ(Repair(), 3);
  EXPECT_THAT(out_.str(), HasSubstr("lost: "));
  EXPECT_EQ(Repair(), 0);
}

}  // namespace
}  // namespace wan::server
