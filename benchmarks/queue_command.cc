// Measures what a long queue costs: CreateJob with an empty and with a long queue, the slowest
// GetJob and Stats meanwhile, and a restart. The command runs the server without its network, on a
// fake engine that never finishes the first job. The data folder is a real one, so every job is
// synced to disk.
//
//   wan_bench queue --data-dir /var/lib/wanserve-bench --queued 5000 --calls 2000 --callers 4
//   --owners 50
//
// The data folder must not exist; it is removed at the end. The exit status is 1 if a limit is not
// kept.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "benchmarks/commands.h"
#include "engine/api/clock.h"
#include "server/jobs/job_service.h"
#include "server/jobs/turns.h"
#include "tests/fakes/fake_engine.h"

namespace wan {
namespace {

struct QueueSettings {
  std::string data_dir;
  int queued = 5000;
  int calls = 2000;
  int callers = 4;
  int owners = 1;
  double at_most_ms = 20;        // limit of CreateJob's 99th percentile in milliseconds
  double restart_at_most_s = 3;  // limit of the seconds until the service accepts jobs
};

constexpr char kModel[] = "m";

// Statistics of the seconds of many calls.
struct Times {
  std::vector<absl::Duration> sorted;
  absl::Duration whole;

  absl::Duration Quantile(double part) const {
    return sorted[static_cast<size_t>(part * static_cast<double>(sorted.size() - 1))];
  }
};

class Bench {
 public:
  explicit Bench(const QueueSettings& settings) : settings_(settings) {
    options_.data_dir = settings.data_dir;
    options_.queue_capacity = 10 * (settings.queued + settings.calls + 1);
  }

  absl::Status Open() {
    engine_ = std::make_unique<fakes::FakeEngine>();
    engine_->Hold("T5_Encoding");
    auto opened = server::JobService::Open(options_, {engine_.get()}, SystemClock());
    if (!opened.ok()) return opened.status();
    service_ = *std::move(opened);
    absl::Notification loaded;
    absl::Status status;
    service_->model_operations().Load({kModel, "synthetic:ti2v-5b"}, [&](const auto& model) {
      status = model.status();
      loaded.Notify();
    });
    loaded.WaitForNotification();
    return status;
  }

  void Close() { service_.reset(); }

  // Creates jobs on as many threads as there are callers.
  absl::StatusOr<Times> Create(int calls, int priority) {
    std::vector<std::vector<absl::Duration>> times(static_cast<size_t>(settings_.callers));
    std::vector<absl::Status> ends(times.size());
    std::vector<std::thread> threads;
    const absl::Time begin = absl::Now();
    for (size_t caller = 0; caller < times.size(); ++caller) {
      threads.emplace_back([&, caller] {
        for (int i = static_cast<int>(caller); i < calls; i += settings_.callers) {
          wan::v1::GenerationRequest request;
          request.set_model(kModel);
          request.set_prompt("a red circle moves to the right");
          request.set_priority(priority);
          const std::string owner = absl::StrCat("owner ", i % settings_.owners);
          const absl::Time start = absl::Now();
          const auto created = server::AwaitPosted<absl::StatusOr<server::JobService::Created>>(
              [&](const server::PostTask& post, server::JobService::CreateDone done) {
                service_->Create(std::make_shared<const wan::v1::GenerationRequest>(request),
                                 {.tied = false, .owner = owner}, post, std::move(done));
              });
          times[caller].push_back(absl::Now() - start);
          ends[caller].Update(created.status());
          if (!ends[caller].ok()) return;
          if (any_job_.empty() && i == 0) any_job_ = created->job.name();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    Times all;
    all.whole = absl::Now() - begin;
    for (const absl::Status& end : ends) {
      if (!end.ok()) return end;
    }
    for (const auto& some : times) all.sorted.insert(all.sorted.end(), some.begin(), some.end());
    std::sort(all.sorted.begin(), all.sorted.end());
    return all;
  }

  // Meanwhile also measures the slowest calls of GetJob and Stats.
  absl::StatusOr<Times> CreateBeside(int calls, int priority) {
    std::atomic<bool> done = false;
    std::thread reader([&] {
      while (!done) {
        const absl::Time start = absl::Now();
        service_->Stats();
        if (!any_job_.empty()) service_->Get(any_job_).IgnoreError();
        longest_read_ = std::max(longest_read_, absl::Now() - start);
        absl::SleepFor(absl::Milliseconds(1));
      }
    });
    absl::StatusOr<Times> times = Create(calls, priority);
    done = true;
    reader.join();
    return times;
  }

  int queued() const { return service_->Stats().queued_total; }
  int64_t most_entries_at_once() const { return service_->Stats().most_entries_at_once; }
  absl::Duration longest_read() const { return longest_read_; }

 private:
  const QueueSettings settings_;
  server::JobServiceOptions options_;
  std::unique_ptr<fakes::FakeEngine> engine_;
  std::unique_ptr<server::JobService> service_;
  std::string any_job_;
  absl::Duration longest_read_;
};

double Millis(absl::Duration duration) { return absl::ToDoubleMilliseconds(duration); }

absl::Status AddTimes(const std::string& what, int queued, const Times& times, Session& session) {
  BenchRow row{.name = absl::StrCat(what, ", ", queued, " queued")};
  row.timing =
      Timing{absl::ToDoubleSeconds(times.Quantile(0.5)), absl::ToDoubleSeconds(times.Quantile(0)),
             absl::ToDoubleSeconds(times.Quantile(1)), static_cast<int64_t>(times.sorted.size())};
  row.figures = {{"p50_ms", Millis(times.Quantile(0.5))},
                 {"p99_ms", Millis(times.Quantile(0.99))},
                 {"max_ms", Millis(times.Quantile(1))},
                 {"calls_per_second",
                  static_cast<double>(times.sorted.size()) / absl::ToDoubleSeconds(times.whole)}};
  return session.Add(std::move(row));
}

absl::StatusOr<bool> Measure(const QueueSettings& settings, Session& session) {
  Bench bench(settings);
  if (absl::Status opened = bench.Open(); !opened.ok()) return opened;
  const auto empty = bench.Create(std::min(settings.calls, 200), 0);
  if (!empty.ok()) return empty.status();
  absl::Status added = AddTimes("CreateJob", 0, *empty, session);
  const auto filling = bench.Create(settings.queued - bench.queued(), 0);
  if (!filling.ok()) return filling.status();

  bool kept = true;
  const auto judge = [&](const Times& times) {
    kept = kept && Millis(times.Quantile(0.99)) <= settings.at_most_ms;
  };
  const int queued = bench.queued();
  const auto last = bench.Create(settings.calls, 0);
  if (!last.ok()) return last.status();
  added.Update(AddTimes("CreateJob", queued, *last, session));
  judge(*last);
  const int then_queued = bench.queued();
  const auto first = bench.CreateBeside(settings.calls, 1);
  if (!first.ok()) return first.status();
  added.Update(AddTimes("CreateJob before all others", then_queued, *first, session));
  judge(*first);
  const double longest_read = absl::ToDoubleSeconds(bench.longest_read());
  added.Update(session.Add({.name = "GetJob and Stats beside it, the longest",
                            .timing = Timing{longest_read, 0, longest_read, 1}}));

  const int left = bench.queued();
  bench.Close();
  const absl::Time start = absl::Now();
  if (absl::Status opened = bench.Open(); !opened.ok()) return opened;
  const absl::Duration restart = absl::Now() - start;
  kept = kept && absl::ToDoubleSeconds(restart) <= settings.restart_at_most_s;
  const double seconds = absl::ToDoubleSeconds(restart);
  added.Update(session.Add({.name = absl::StrCat("restart, ", left, " queued"),
                            .timing = Timing{seconds, seconds, seconds, 1},
                            .figures = {{"most_entries_at_once", bench.most_entries_at_once()}}}));
  if (!added.ok()) return added;
  return kept;
}

absl::StatusOr<bool> Run(const QueueSettings& settings, Session& session) {
  std::error_code error;
  if (std::filesystem::exists(settings.data_dir, error)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--data-dir ", settings.data_dir, " exists; name a folder that can be made and removed"));
  }
  const absl::StatusOr<bool> kept = Measure(settings, session);
  std::filesystem::remove_all(settings.data_dir, error);
  return kept;
}

}  // namespace

BenchCommand AddQueue(CLI::App& app) {
  const auto settings = std::make_shared<QueueSettings>();
  app.add_option("--data-dir", settings->data_dir, "data folder to make, on the disk to measure")
      ->required();
  app.add_option("--queued", settings->queued, "jobs that wait")->check(CLI::Range(500, 1'000'000));
  app.add_option("--calls", settings->calls, "calls to measure")->check(CLI::Range(100, 1'000'000));
  app.add_option("--callers", settings->callers, "threads that call")->check(CLI::Range(1, 64));
  app.add_option("--owners", settings->owners, "principals that the jobs belong to, in turns")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--at-most", settings->at_most_ms, "milliseconds that 99 % of CreateJob may take");
  app.add_option("--restart-at-most", settings->restart_at_most_s, "seconds of a restart");
  return [settings](Session& session) { return Run(*settings, session); };
}

}  // namespace wan
