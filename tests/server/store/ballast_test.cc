#include "server/store/ballast.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"
#include "tests/server/jobs/full_disk.h"
#include "tests/server/jobs/test_support.h"

namespace wan::server {
namespace {

class BallastTest : public testing::Test {
 protected:
  // The bytes that the file takes on the disk.
  uint64_t Taken() const {
    struct stat facts = {};
    return stat(file_.c_str(), &facts) == 0 ? static_cast<uint64_t>(facts.st_blocks) * 512 : 0;
  }

  const TempFolder folder_;
  const std::filesystem::path file_ = folder_.path() / "ballast";
  const Ballast ballast_{file_};
};

TEST_F(BallastTest, TakesUpSpaceAndGivesItBack) {
  EXPECT_FALSE(ballast_.Release()) << "there is none";
  ballast_.Fill();
  EXPECT_GE(Taken(), Ballast::kBytes);
  ballast_.Fill();
  EXPECT_EQ(std::filesystem::file_size(file_), Ballast::kBytes);
  EXPECT_TRUE(ballast_.Release());
  EXPECT_EQ(Taken(), 0u);
  EXPECT_FALSE(ballast_.Release());
}

TEST_F(BallastTest, WhatTheDiskRefusesIsLeftOut) {
  {
    const FullDisk full;
    ballast_.Fill();
    EXPECT_FALSE(ballast_.Release());
  }
  ballast_.Fill();
  EXPECT_TRUE(ballast_.Release());
  const Ballast nowhere(folder_.path() / "none" / "ballast");
  nowhere.Fill();
  EXPECT_FALSE(nowhere.Release());
}

TEST_F(BallastTest, ACopyWithHolesIsFilled) {
  std::ofstream(file_) << "";
  std::filesystem::resize_file(file_, Ballast::kBytes);
  EXPECT_FALSE(ballast_.Release()) << "there is nothing to give";
  ballast_.Fill();
  EXPECT_GE(Taken(), Ballast::kBytes);
  EXPECT_TRUE(ballast_.Release());
}

TEST_F(BallastTest, ALinkInItsPlaceIsNotTouched) {
  const std::filesystem::path other = folder_.path() / "other";
  const Ballast elsewhere(other);
  elsewhere.Fill();
  std::filesystem::create_symlink(other, file_);
  ballast_.Fill();
  EXPECT_FALSE(ballast_.Release());
  EXPECT_EQ(std::filesystem::file_size(other), Ballast::kBytes);
}

}  // namespace
}  // namespace wan::server
