#include "engine/schedulers/flow_solver.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/record_function.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <string_view>
#include <utility>

#include "tests/engine/schedulers/golden_samplers.h"

namespace wan {
namespace {

using testing::HasSubstr;

at::Tensor Golden(const std::string& name) {
  const RawTensor& tensor = GoldenSamplers().at(name);
  return at::from_blob(const_cast<char*>(tensor.bytes.data()), tensor.shape, at::kFloat).clone();
}

double RelativeError(const at::Tensor& actual, const at::Tensor& expected) {
  return ((actual - expected).norm() / expected.norm()).item<double>();
}

std::unique_ptr<FlowSolver> Make(std::string_view name, int steps, double shift) {
  auto solver = MakeFlowSolver(name, steps, shift);
  EXPECT_TRUE(solver.ok()) << solver.status();
  return *std::move(solver);
}

// The samples after every step, [steps, ...], given the model's output at each.
at::Tensor RunGolden(FlowSolver& solver, int first_step, at::Tensor sample) {
  const at::Tensor outputs = Golden("model_outputs");
  std::vector<at::Tensor> samples;
  const int steps = static_cast<int>(solver.schedule().timesteps.size());
  for (int step = first_step; step < steps; ++step) {
    sample = solver.Step(outputs[step], step, sample);
    samples.push_back(sample);
  }
  return at::stack(samples);
}

class GoldenTrajectoryTest : public testing::TestWithParam<GoldenSampler> {};

TEST_P(GoldenTrajectoryTest, EqualsTheReferenceAfterEveryStep) {
  const GoldenSampler& c = GetParam();
  const auto solver = Make(c.solver, c.steps, c.shift);
  const at::Tensor samples = RunGolden(*solver, 0, Golden("start"));
  const at::Tensor expected = Golden(c.Prefix() + "samples");
  ASSERT_EQ(samples.sizes(), expected.sizes());
  double worst = 0;
  for (int step = 0; step < c.steps; ++step) {
    worst = std::max(worst, RelativeError(samples[step], expected[step]));
  }
  EXPECT_LE(worst, 1e-6);
  const double gap = (samples - expected).abs().max().item<double>();
  std::printf("golden: sampler/%s worst relative error %.1e, largest gap %.1e\n",
              c.Prefix().c_str(), worst, gap);
}

// A state taken after any step and put into a fresh solver leads to the same bits.
TEST_P(GoldenTrajectoryTest, ResumesAtAnyStep) {
  const GoldenSampler& c = GetParam();
  const auto whole = Make(c.solver, c.steps, c.shift);
  const at::Tensor samples = RunGolden(*whole, 0, Golden("start"));
  const at::Tensor outputs = Golden("model_outputs");
  const auto first = Make(c.solver, c.steps, c.shift);
  at::Tensor sample = Golden("start");
  for (int step = 0; step < c.steps; ++step) {
    FlowSolverState state = first->state();
    // As if it had been written to disk and read back.
    for (at::Tensor& tensor : state.history) tensor = tensor.clone();
    const auto second = Make(c.solver, c.steps, c.shift);
    ASSERT_TRUE(second->Restore(std::move(state)).ok()) << step;
    EXPECT_TRUE(
        at::equal(RunGolden(*second, step, sample), samples.narrow(0, step, c.steps - step)))
        << "resumed at " << step;
    sample = first->Step(outputs[step], step, sample);
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenTrajectoryTest, EveryGoldenSampler());

TEST(Differences, Item3DpmPlusPlusIsFiniteFromSigmaOne) {
  const auto solver = Make("dpm++", 4, 5);
  ASSERT_EQ(solver->schedule().sigmas[0], 1);
  const at::Tensor samples = RunGolden(*solver, 0, Golden("start"));
  EXPECT_TRUE(samples.isfinite().all().item<bool>());
  // diffusers starts a little lower and ends elsewhere.
  const at::Tensor theirs = Golden("diffusers_dpm++/4_5/samples");
  EXPECT_NEAR((samples - theirs).abs().max().item<double>(), 0.046, 0.001);
}

TEST(Differences, Item4EulerIsAddingTheFlow) {
  const auto solver = Make("euler", 2, 8);
  const at::Tensor start = Golden("start");
  const at::Tensor flow = Golden("model_outputs")[0];
  const std::vector<float>& sigmas = solver->schedule().sigmas;
  EXPECT_TRUE(at::equal(solver->Step(flow, 0, start), start + (sigmas[1] - sigmas[0]) * flow));
}

// A model that always sees the same clean latents: every solver is exact, whatever the schedule.
TEST(FlowSolver, ReachesCleanLatentsThatNeverChange) {
  const at::Tensor clean = Golden("start");
  const at::Tensor noise = Golden("model_outputs")[0];
  for (const std::string& name : FlowSolverNames()) {
    for (const int steps : {1, 2, 3, 7, 50, 400}) {
      for (const double shift : {kMinFlowShift, 0.5, 1.0, 5.0, 12.0, kMaxFlowShift}) {
        const auto solver = Make(name, steps, shift);
        const std::vector<float>& sigmas = solver->schedule().sigmas;
        at::Tensor x = (1 - sigmas[0]) * clean + sigmas[0] * noise;
        for (int step = 0; step < steps; ++step) {
          x = solver->Step((x - clean) / sigmas[step], step, x);
        }
        EXPECT_LE(RelativeError(x, clean), 2e-5) << name << " " << steps << " steps, " << shift;
      }
    }
  }
}

// Relative error after `steps` steps from sigma 0.9 to 0.1, evenly spaced in lambda, for clean
// latents from a normal distribution of deviation 1/2: the flow is linear in x, and the solution
// known, is proportional to the deviation at sigma.
double ErrorOnANormalDistribution(const std::string& name, int steps) {
  const auto deviation = [](double sigma) {
    return std::sqrt((1 - sigma) * (1 - sigma) / 4 + sigma * sigma);
  };
  FlowSchedule schedule;
  const double ends = std::log(9);
  for (int i = 0; i <= steps; ++i) {
    const double lambda = ends * (2.0 * i / steps - 1);
    schedule.sigmas.push_back(static_cast<float>(1 / (1 + std::exp(lambda))));
    schedule.timesteps.push_back(1000 * schedule.sigmas.back());
  }
  schedule.sigmas.push_back(0);
  const auto solver = *MakeFlowSolver(name, schedule);
  const at::Tensor noise = Golden("start");
  at::Tensor x = noise * deviation(schedule.sigmas[0]);
  for (int step = 0; step < steps; ++step) {
    const double sigma = schedule.sigmas[step];
    const double slope = (sigma - (1 - sigma) / 4) / (deviation(sigma) * deviation(sigma));
    x = solver->Step(x * slope, step, x);
  }
  return RelativeError(x, noise * deviation(schedule.sigmas[steps]));
}

// With twice the steps the error falls by 2 to the power of the method's order, which no wrong
// coefficient keeps: 1 for Euler, 2 for DPM-Solver++(2M), 3 for UniPC with its corrector.
TEST(FlowSolver, ConvergesWithItsOrder) {
  const struct {
    const char* name;
    double ratio;
  } cases[] = {{"euler", 2}, {"dpm++", 4}, {"unipc", 8}};  // "lcm" adds noise and solves nothing
  for (const auto& c : cases) {
    const double coarse = ErrorOnANormalDistribution(c.name, 48);
    const double fine = ErrorOnANormalDistribution(c.name, 96);
    EXPECT_NEAR(coarse / fine, c.ratio, 0.1 * c.ratio) << c.name << " " << coarse << " " << fine;
  }
}

// The seed decides the noise, and a run that goes on draws what the whole run drew.
TEST(FlowSolver, LcmAddsTheNoiseThatTheSeedDrawsNext) {
  const at::Tensor start = Golden("start");
  const at::Tensor flow = Golden("model_outputs")[0];
  const auto solver = Make("lcm", 4, 5);
  solver->set_noise_seed(7);
  const std::vector<float>& sigmas = solver->schedule().sigmas;
  EXPECT_TRUE(at::equal(solver->Start(start), sigmas[0] * start));
  const at::Tensor first = solver->Step(flow, 0, start);
  const at::Tensor second = solver->Step(flow, 1, first);

  at::Generator generator = at::detail::createCPUGenerator(7);
  const auto draw = [&] { return at::randn(start.sizes(), generator, at::kFloat); };
  draw();  // the noise from which the run starts
  at::Tensor expected = (1 - sigmas[1]) * (start - sigmas[0] * flow) + sigmas[1] * draw();
  EXPECT_LE(RelativeError(first, expected), 1e-6);
  expected = (1 - sigmas[2]) * (expected - sigmas[1] * flow) + sigmas[2] * draw();
  EXPECT_LE(RelativeError(second, expected), 1e-6);

  const auto resumed = Make("lcm", 4, 5);
  resumed->set_noise_seed(7);
  ASSERT_TRUE(resumed->Restore({1, {}}).ok());
  EXPECT_TRUE(at::equal(resumed->Step(flow, 1, first), second));
  const auto other = Make("lcm", 4, 5);
  EXPECT_FALSE(at::equal(other->Step(flow, 0, start), first));
  EXPECT_TRUE(at::equal(Make("euler", 4, 5)->Start(start), start));
}

// Counts how often the thread draws normal noise.
class DrawCounter {
 public:
  DrawCounter() {
    handle_ =
        at::addThreadLocalCallback(at::RecordFunctionCallback([](const at::RecordFunction& called) {
                                     if (std::string_view(called.name()) == "aten::normal_")
                                       ++drawn;
                                     return std::unique_ptr<at::ObserverContext>();
                                   }).scopes({at::RecordScope::FUNCTION}));
  }
  ~DrawCounter() { at::removeCallback(handle_); }
  DrawCounter(const DrawCounter&) = delete;
  DrawCounter& operator=(const DrawCounter&) = delete;

  int Take() { return std::exchange(drawn, 0); }

 private:
  inline static thread_local int drawn = 0;
  at::CallbackHandle handle_;
};

TEST(FlowSolver, LcmDrawsTheNoiseOfEachStepOnce) {
  constexpr int kSteps = 12;
  const at::Tensor start = Golden("start");
  const at::Tensor flow = Golden("model_outputs")[0];
  DrawCounter draws;
  const auto run = [&](int first) {
    const auto solver = Make("lcm", kSteps, 5);
    EXPECT_TRUE(solver->Restore({first, {}}).ok());
    at::Tensor x = start;
    for (int step = first; step < kSteps; ++step) x = solver->Step(flow, step, x);
    return draws.Take();
  };
  // One draw is the start's, and the last step adds none.
  EXPECT_EQ(run(0), kSteps);
  EXPECT_EQ(run(7), kSteps) << "a run that goes on makes the earlier draws once";
}

// An image-to-video job overwrites the first frame of what it passes and of what it gets.
TEST(FlowSolver, KeepsNoneOfTheCallersTensors) {
  const at::Tensor outputs = Golden("model_outputs");
  for (const std::string& name : FlowSolverNames()) {
    const auto plain = Make(name, 10, 5);
    const auto disturbed = Make(name, 10, 5);
    at::Tensor expected = Golden("start");
    at::Tensor sample = Golden("start");
    for (int step = 0; step < 10; ++step) {
      const at::Tensor input = sample.clone();
      const at::Tensor output = outputs[step].clone();
      const at::Tensor next = disturbed->Step(output, step, input);
      sample = next.clone();
      for (const at::Tensor& tensor : {input, output, next}) tensor.fill_(1e9);
      expected = plain->Step(outputs[step], step, expected);
      ASSERT_TRUE(at::equal(sample, expected)) << name << " step " << step;
    }
  }
}

TEST(FlowSolver, TakesAnyShapeAndLayout) {
  const at::Tensor outputs = Golden("model_outputs");
  for (const std::string& name : FlowSolverNames()) {
    if (name == "lcm") continue;  // its noise is drawn in the order of the shape
    const auto plain = Make(name, 4, 5);
    const auto other = Make(name, 4, 5);
    at::Tensor expected = Golden("start");
    at::Tensor sample = expected.permute({3, 1, 0, 2});
    for (int step = 0; step < 4; ++step) {
      expected = plain->Step(outputs[step], step, expected);
      sample = other->Step(outputs[step].permute({3, 1, 0, 2}), step, sample);
    }
    EXPECT_TRUE(at::equal(sample, expected.permute({3, 1, 0, 2}))) << name;
  }
}

TEST(FlowSolver, RefusesStepsOutOfOrderAndOtherTensors) {
  const at::Tensor x = Golden("start");
  const at::Tensor flow = Golden("model_outputs")[0];
  for (const std::string& name : FlowSolverNames()) {
    const auto solver = Make(name, 2, 5);
    EXPECT_THROW(solver->Step(flow, 1, x), c10::Error) << name;
    EXPECT_THROW(solver->Step(flow, -1, x), c10::Error) << name;
    EXPECT_THROW(solver->Step(flow.to(at::kDouble), 0, x), c10::Error) << name;
    EXPECT_THROW(solver->Step(flow, 0, x.to(at::kBFloat16)), c10::Error) << name;
    EXPECT_THROW(solver->Step(flow[0], 0, x), c10::Error) << name;
    // None of these counted as a step.
    at::Tensor next = solver->Step(flow, 0, x);
    next = solver->Step(flow, 1, next);
    EXPECT_THROW(solver->Step(flow, 2, next), c10::Error) << name;
  }
}

TEST(FlowSolver, RefusesStatesOfAnotherRun) {
  const auto solver = Make("unipc", 4, 5);
  const at::Tensor x = Golden("start");
  const FlowSolverState wrong[] = {{5, {x, x, x}},    {-1, {}},
                                   {2, {}},           {2, {x}},
                                   {0, {x}},          {2, {x, x, at::Tensor()}},
                                   {2, {x, x, x[0]}}, {2, {x, x, x.to(at::kDouble)}}};
  for (const FlowSolverState& state : wrong) {
    EXPECT_EQ(solver->Restore(state).code(), absl::StatusCode::kInvalidArgument)
        << state.next_step << ", " << state.history.size();
  }
  EXPECT_TRUE(solver->Restore({2, {x, x, x}}).ok());
  EXPECT_EQ(solver->state().next_step, 2);
}

TEST(FlowSolver, EverySolverTakesAScheduleOfTheCallers) {
  const std::vector<double> timesteps = {1000, 757, 522};
  const auto schedule = MakeEulerSchedule(timesteps, 5);
  ASSERT_TRUE(schedule.ok());
  for (const std::string& name : FlowSolverNames()) {
    const auto solver = MakeFlowSolver(name, *schedule);
    ASSERT_TRUE(solver.ok()) << solver.status();
    EXPECT_EQ((*solver)->schedule().timesteps, schedule->timesteps);
    EXPECT_TRUE(RunGolden(**solver, 0, Golden("start")).isfinite().all().item<bool>()) << name;
  }
}

TEST(FlowSolver, SaysWhatIsWrong) {
  EXPECT_THAT(std::string(MakeFlowSolver("heun", 4, 5).status().message()),
              HasSubstr("solver is 'heun'"));
  EXPECT_THAT(std::string(MakeFlowSolver("euler", 0, 5).status().message()),
              HasSubstr("steps is 0"));
  const FlowSchedule wrong[] = {{{}, {}},           {{0}, {}},          {{0.5, 0.5, 0}, {500, 500}},
                                {{1.5, 0}, {1500}}, {{1, 0.5}, {1000}}, {{1, 0.5, 0}, {1000}}};
  for (const FlowSchedule& schedule : wrong) {
    EXPECT_EQ(MakeFlowSolver("euler", schedule).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_THAT(std::string(MakeFlowSolver("heun", {{1, 0}, {1000}}).status().message()),
              HasSubstr("solver is 'heun'; must be one of dpm++, euler, lcm, unipc"));
}

}  // namespace
}  // namespace wan
