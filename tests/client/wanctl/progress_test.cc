#include "client/wanctl/progress.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "client/wanctl/display.h"
#include "tests/client/fakes/events.h"

namespace wan::client {
namespace {

using fakes::Cancelled;
using fakes::Completed;
using fakes::Failed;
using fakes::Preview;
using fakes::Queued;
using fakes::Requeued;
using fakes::StageFinished;
using fakes::StageStarted;
using fakes::Step;
using wan::v1::Event;

// The bar after these events.
std::string Bar(const std::vector<Event>& events, int columns = 100) {
  ProgressBar bar;
  for (const Event& event : events) bar.Add(event);
  return bar.Render(columns);
}

// Every line that a job leaves on a stream that is no terminal.
std::string Shown(const std::vector<Event>& events, int columns) {
  std::ostringstream stream;
  {
    Display display(stream, columns);
    for (const Event& event : events) display.Show(event);
  }
  return stream.str();
}

std::vector<Event> WholeJob() {
  Event queued = Queued(1, 2);
  queued.mutable_queued()->set_eta_seconds(40);
  return {queued,
          Queued(2, 0),
          StageStarted(3, "T5_Encoding"),
          StageFinished(4, "T5_Encoding", 0.534),
          StageStarted(5, "Step_0_Loading"),
          StageFinished(6, "Step_0_Loading", 0.001),
          StageStarted(7, "Step_0_Inference"),
          StageFinished(8, "Step_0_Inference", 1.5),
          Step(9, 1, 2, 1.5, 3.2),
          Preview(1, "jpeg"),
          StageStarted(10, "Step_1_Inference"),
          Step(11, 2, 2, 1.0, 2),
          StageStarted(12, "VAE_Decoding"),
          StageFinished(13, "VAE_Decoding", 2.001),
          Completed(14)};
}

TEST(ProgressTest, PlainLines) {
  EXPECT_EQ(Shown(WholeJob(), 0),
            "jobs/a1 queued behind 2 jobs, starts in about 0:40\n"
            "jobs/a1 queued, next to run\n"
            "T5_Encoding 0.53 s\n"
            "Step 1/2  1.50 s  0:03 left\n"
            "Step 2/2  1.00 s  0:02 left\n"
            "VAE_Decoding 2.00 s\n"
            "jobs/a1 completed in 12.50 s\n");
}

TEST(ProgressTest, PlainLinesOfWhatGoesWrong) {
  Event stage = StageFinished(2, "VAE_Decoding", 0.5);
  stage.mutable_stage_finished()->set_error("out of\nmemory");
  EXPECT_EQ(Shown({Queued(1, 1), stage, Requeued(3, "server restarted"), Step(4, 1, 3, 0.25),
                   Failed(5, 13, "x"), Cancelled(5, "x")},
                  0),
            "jobs/a1 queued behind 1 job\n"
            "VAE_Decoding 0.50 s: out of?memory\n"
            "jobs/a1 runs again: server restarted\n"
            "Step 1/3  0.25 s\n");
}

TEST(ProgressTest, ShowsWhereAJobGoesOn) {
  Event resumed = Requeued(2, "");
  resumed.mutable_resumed()->set_step(2);
  EXPECT_EQ(Shown({resumed, Step(3, 3, 3, 0.25)}, 0),
            "jobs/a1 goes on after step 2\n"
            "Step 3/3  0.25 s\n");
}

TEST(ProgressTest, BarBeforeTheFirstStep) {
  EXPECT_EQ(Bar({}), "");
  EXPECT_EQ(Bar({Queued(1, 3)}), "queued behind 3 jobs");
  Event soon = Queued(1, 0);
  soon.mutable_queued()->set_eta_seconds(0.2);
  EXPECT_EQ(Bar({soon}), "queued, next to run");
  EXPECT_EQ(Bar({Queued(1, 3), StageStarted(2, "T5_Encoding")}), "T5_Encoding");
}

TEST(ProgressTest, BarWithSteps) {
  const std::vector<Event> events = {StageStarted(1, "Step_0_Inference"), Step(2, 1, 4, 2.0, 9.4),
                                     StageStarted(3, "Step_1_Inference")};
  EXPECT_EQ(Bar(events),
            "[=======>                      ] 1/4  2.00 s/step  0:09 left  Step_1_Inference");
}

TEST(ProgressTest, SecondsPerStepAreTheMean) {
  EXPECT_EQ(Bar({Step(1, 1, 4, 2.0, 9), Step(2, 2, 4, 1.0, 4)}),
            "[===============>              ] 2/4  1.50 s/step  0:04 left");
  // A watcher that joined late has seen one step.
  EXPECT_EQ(Bar({Step(2, 2, 4, 1.0, 4)}),
            "[===============>              ] 2/4  1.00 s/step  0:04 left");
}

TEST(ProgressTest, TimeLeftIsOnlyShownWhereItIsKnown) {
  EXPECT_EQ(Bar({Step(1, 1, 4, 2.0, 9), Step(2, 2, 4, 2.0)}),
            "[===============>              ] 2/4  2.00 s/step");
}

TEST(ProgressTest, BarAfterTheLastStep) {
  EXPECT_EQ(Bar({Step(1, 4, 4, 2.0, 3), StageStarted(2, "VAE_Decoding")}),
            "[==============================] 4/4  2.00 s/step  0:03 left  VAE_Decoding");
}

TEST(ProgressTest, ANewAttemptStartsOver) {
  EXPECT_EQ(Bar({Step(1, 3, 4, 2.0, 9), Requeued(2, "server restarted")}), "queued again");
  EXPECT_EQ(Bar({Step(1, 3, 4, 9.0, 9), Requeued(2, "server restarted"), Step(3, 1, 4, 1.0, 3)}),
            "[=======>                      ] 1/4  1.00 s/step  0:03 left");
}

TEST(ProgressTest, BarFitsTheTerminal) {
  const std::vector<Event> events = {Step(1, 1, 4, 2.0, 9), StageStarted(2, "Step_1_Inference")};
  EXPECT_EQ(Bar(events, 60), "[==>        ] 1/4  2.00 s/step  0:09 left  Step_1_Inference");
  EXPECT_EQ(Bar(events, 50), "1/4  2.00 s/step  0:09 left  Step_1_Inference");
  EXPECT_EQ(Bar(events, 20), "1/4  2.00 s/step  0");
  for (int columns = 0; columns < 120; ++columns) {
    EXPECT_LT(static_cast<int>(Bar(events, columns).size()), std::max(columns, 1)) << columns;
  }
}

TEST(ProgressTest, FiguresThatMakeNoSenseDoNoHarm) {
  EXPECT_EQ(Bar({Step(1, 9, 4, 1.0)}), "[==============================] 9/4  1.00 s/step");
  EXPECT_EQ(Bar({Step(1, -1, 4, 1.0)}), "[>                             ] -1/4  1.00 s/step");
  EXPECT_EQ(Bar({Step(1, 1, 0, 1.0), StageStarted(2, "a\x1b[2Jb")}), "a?[2Jb");
}

TEST(ProgressTest, ATerminalIsRedrawnInPlace) {
  EXPECT_EQ(
      Shown({Queued(1), StageStarted(2, "T5_Encoding"), Step(3, 1, 2, 1.0), Completed(4)}, 60),
      "jobs/a1 queued, next to run\n"
      "\r\x1b[Kqueued, next to run"
      "\r\x1b[KT5_Encoding"
      "\r\x1b[K[=============>             ] 1/2  1.00 s/step  T5_Encoding"
      "\r\x1b[Kjobs/a1 completed in 12.50 s\n");
}

}  // namespace
}  // namespace wan::client
