#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "server/calls/all_devices.h"
#include "server/calls/server_description.h"
#include "server/calls/stream_heartbeat.h"
#include "server/calls/wake_timer.h"
#include "server/conversion/convert.h"
#include "server/conversion/errors.h"
#include "server/rpc/call_service.h"
#include "server/rpc/services.h"
#include "server/rpc/stream.h"
#include "wan/v1/telemetry.grpc.pb.h"

namespace wan::server {
namespace {

constexpr absl::Duration kDefaultInterval = absl::Seconds(1);
constexpr absl::Duration kShortestInterval = absl::Milliseconds(100);
constexpr absl::Duration kLongestInterval = absl::Hours(1);

struct WatchPlan {
  absl::Duration interval = kDefaultInterval;
  int rounds = 0;  // 0: the stream has no last round
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
    // Send rounds at fixed intervals. If a slow caller has missed rounds, skip the missed rounds.
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

  // Capture a weak pointer, so that the timer does not keep the stream alive after its call.
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
  TelemetryService(const ServiceShared& shared, const ServerDescription& description)
      : CallService(wan::v1::Telemetry::service_full_name(), shared), description_(description) {
    AddStream<wan::v1::WatchDevicesRequest, wan::v1::WatchDevicesResponse>(
        "WatchDevices", [this](grpc::CallbackServerContext& /*context*/, const auto& admitted) {
          return std::make_shared<DeviceStream>(admitted.message, description_.devices(),
                                                this->heartbeat(), this->shared());
        });
    AddUnary<wan::v1::GetServerInfoRequest, wan::v1::ServerInfo>(
        "GetServerInfo", [this](const Call& call, const wan::v1::GetServerInfoRequest&) {
          return absl::StatusOr<wan::v1::ServerInfo>(description_.Info(call.VisibleOwner()));
        });
  }

 private:
  const ServerDescription& description_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeTelemetryService(const ServiceShared& shared,
                                                    const ServerDescription& description) {
  return std::make_unique<TelemetryService>(shared, description);
}

}  // namespace wan::server
