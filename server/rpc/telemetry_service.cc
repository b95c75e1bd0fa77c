#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "server/calls/wake_timer.h"
#include "server/conversion/convert.h"
#include "server/conversion/errors.h"
#include "server/conversion/names.h"
#include "server/jobs/job_service.h"
#include "server/rpc/all_devices.h"
#include "server/rpc/call_service.h"
#include "server/rpc/health_service.h"
#include "server/rpc/services.h"
#include "server/rpc/stream.h"
#include "server/calls/stream_heartbeat.h"
#include "wan/v1/telemetry.grpc.pb.h"

namespace wan::server {
namespace {

constexpr absl::Duration kDefaultInterval = absl::Seconds(1);
constexpr absl::Duration kShortestInterval = absl::Milliseconds(100);
constexpr absl::Duration kLongestInterval = absl::Hours(1);

struct WatchPlan {
  absl::Duration interval = kDefaultInterval;
  int rounds = 0;  // 0: the stream does not end by itself
};

absl::StatusOr<WatchPlan> PlanOf(const wan::v1::WatchDevicesRequest& request) {
  WatchPlan plan;
  std::vector<FieldViolation> violations;
  if (request.has_interval()) {
    plan.interval =
        absl::Seconds(request.interval().seconds()) + absl::Nanoseconds(request.interval().nanos());
    if (plan.interval < kShortestInterval || plan.interval > kLongestInterval) {
      violations.push_back({"interval", absl::StrCat("is ", absl::FormatDuration(plan.interval),
                                                     "; must be from 100 ms to 1 h")});
    }
  }
  plan.rounds = request.count();
  if (plan.rounds < 0) {
    violations.push_back(
        {"count", absl::StrCat("is ", plan.rounds, "; must be 0 (no end) or more")});
  }
  if (!violations.empty()) return InvalidFields(violations);
  return plan;
}

class DeviceStream final : public Stream<wan::v1::WatchDevicesResponse> {
 public:
  DeviceStream(const wan::v1::WatchDevicesRequest& request, const AllDevices& devices,
               const HeartbeatOptions& heartbeat, const ServiceShared& shared)
      : Stream(shared.pool),
        plan_(PlanOf(request)),
        devices_(devices),
        clock_(heartbeat.clock),
        timer_(heartbeat.timer),
        heartbeat_(heartbeat),
        stopping_(shared.stopping) {}

  ~DeviceStream() override {
    if (!timer_key_.empty()) timer_.Remove(timer_key_);
  }

 private:
  Next Produce(wan::v1::WatchDevicesResponse* round, absl::Status* status) override {
    if (!plan_.ok()) {
      *status = plan_.status();
      return Next::kEnd;
    }
    if (plan_->rounds > 0 && sent_ == plan_->rounds) return Next::kEnd;
    if (timer_key_.empty()) Subscribe();
    if (stopping_.stop_requested()) {
      *status = ServerStoppingError();
      return Next::kEnd;
    }
    const absl::Time now = clock_.Steady().Now();
    if (now < due_) {
      timer_.WakeAt(timer_key_, due_);
      if (!heartbeat_.Due(WeakWake())) return Next::kPending;
      round->mutable_heartbeat();
      return Next::kMessage;
    }
    // The rounds keep a fixed rhythm. If a slow caller has missed rounds, skip them.
    due_ = sent_ == 0 ? now + plan_->interval : std::max(due_ + plan_->interval, now);
    ++sent_;
    heartbeat_.MessageSent();
    // A new reader has no interval to average over yet, so the first round uses the last second of
    // the monitor.
    const std::vector<DeviceSample> samples =
        reader_ == nullptr ? devices_.Sample() : reader_->Sample();
    if (reader_ == nullptr) reader_ = devices_.StartReader();
    const absl::Time taken = clock_.Now();
    for (const DeviceSample& sample : samples) {
      wan::v1::DeviceSample& device = *round->add_devices();
      device = ToProto(sample, taken);
      const std::optional<int> group = devices_.GroupOf(sample);
      if (group.has_value()) device.set_group(*group);
    }
    return Next::kMessage;
  }

  // The pointer is weak, so that the timer does not keep the stream alive after its call.
  std::function<void()> WeakWake() {
    return [weak = weak_from_this()] {
      if (const auto stream = weak.lock()) stream->Wake();
    };
  }

  void Subscribe() {
    timer_key_ = timer_.Add(WeakWake());
    on_stop_.emplace(stopping_, WeakWake());
  }

  const absl::StatusOr<WatchPlan> plan_;
  const AllDevices& devices_;
  std::unique_ptr<DeviceReader> reader_;  // null before the first round
  Clock& clock_;
  WakeTimer& timer_;
  StreamHeartbeat heartbeat_;
  const std::stop_token stopping_;
  std::string timer_key_;
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;
  absl::Time due_ = absl::InfinitePast();
  int sent_ = 0;
};

class TelemetryService final : public CallService {
 public:
  TelemetryService(const ServiceShared& shared, ServerFacts facts, const AllDevices& devices,
                   std::function<NotServingReasons()> not_serving, JobService& jobs)
      : CallService(wan::v1::Telemetry::service_full_name(), shared),
        facts_(std::move(facts)),
        devices_(devices),
        not_serving_(std::move(not_serving)),
        jobs_(jobs) {
    AddStream<wan::v1::WatchDevicesRequest, wan::v1::WatchDevicesResponse>(
        "WatchDevices", [this](grpc::CallbackServerContext& /*context*/, const auto& admitted) {
          return std::make_shared<DeviceStream>(admitted.message, devices_, this->heartbeat(),
                                                this->shared());
        });
    AddUnary<wan::v1::GetServerInfoRequest, wan::v1::ServerInfo>(
        "GetServerInfo", [this](const Call& call, const wan::v1::GetServerInfoRequest&) {
          return absl::StatusOr<wan::v1::ServerInfo>(Info(call.VisibleOwner()));
        });
  }

 private:
  // Returns the server's info with the jobs of `owner`, or of all owners.
  wan::v1::ServerInfo Info(const std::optional<std::string>& owner) const {
    wan::v1::ServerInfo info;
    info.set_version(facts_.version);
    info.mutable_libraries()->insert(facts_.libraries.begin(), facts_.libraries.end());
    *info.mutable_start_time() = ToProto(facts_.start_time);
    info.set_dtype(facts_.dtype);
    const JobStats stats = jobs_.Stats();
    AddGroups(stats, owner, info);
    info.set_queued_jobs(stats.queued_total);
    info.set_running_jobs(stats.running_total);
    info.set_queue_capacity(stats.queue_capacity);
    info.set_draining(stats.draining);
    AddTo(not_serving_(), info);
    return info;
  }

  void AddGroups(const JobStats& stats, const std::optional<std::string>& owner,
                 wan::v1::ServerInfo& info) const {
    std::set<std::string> devices;
    info.mutable_groups()->Assign(facts_.groups.begin(), facts_.groups.end());
    for (wan::v1::DeviceGroup& group : *info.mutable_groups()) {
      for (const std::string& device : group.devices()) {
        if (devices.insert(device).second) info.add_devices(device);
      }
      const JobStats::Group& state = stats.groups[static_cast<size_t>(group.number())];
      if (MaySee(owner, state.job)) group.set_job(state.job);
      if (!state.problem.ok()) *group.mutable_error() = ToProto(state.problem);
    }
    for (const wan::v1::Model& model : jobs_.models().List()) {
      for (const wan::v1::ModelPlacement& placement : model.placements()) {
        if (placement.state() != wan::v1::MODEL_STATE_READY) continue;
        info.mutable_groups(placement.group())
            ->add_resident_models(std::string(BareModelName(model.name())));
      }
    }
  }

  bool MaySee(const std::optional<std::string>& owner, const std::string& job) const {
    if (!owner.has_value() || job.empty()) return true;
    const absl::StatusOr<std::string> found = jobs_.OwnerOf(job, "name");
    return found.ok() && *found == *owner;
  }

  const ServerFacts facts_;
  const AllDevices& devices_;
  const std::function<NotServingReasons()> not_serving_;
  JobService& jobs_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeTelemetryService(const ServiceShared& shared, ServerFacts facts,
                                                    const AllDevices& devices,
                                                    std::function<NotServingReasons()> not_serving,
                                                    JobService& jobs) {
  return std::make_unique<TelemetryService>(shared, std::move(facts), devices,
                                            std::move(not_serving), jobs);
}

}  // namespace wan::server
