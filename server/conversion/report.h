// Converts the parts of a job's report, except its stages.
#pragma once

#include <span>

#include "engine/api/device_monitor.h"
#include "engine/api/engine.h"
#include "engine/api/generation.h"
#include "engine/api/system_facts.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "wan/v1/telemetry.pb.h"

namespace wan::server {

// Sets all fields except server_version and server_revision.
wan::v1::SystemDescription ToProto(const SystemFacts& facts);

// Returns the numbers of the steps that reuse blocks, in the order of the plan.
std::vector<int> ReusedSteps(const GenerationPlan& plan);

// `model` describes the model of the plan.
wan::v1::PlanReport ReportOf(const GenerationPlan& plan, const ModelDescription& model);

google::protobuf::RepeatedPtrField<wan::v1::DeviceSample> ToProto(
    std::span<const TimelinePoint> timeline);

}  // namespace wan::server
