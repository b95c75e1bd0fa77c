#include <google/protobuf/repeated_ptr_field.h>
#include <google/protobuf/struct.pb.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/administration_client.h"
#include "client/health_client.h"
#include "client/model_client.h"
#include "client/telemetry_client.h"
#include "client/wanctl/commands.h"
#include "client/wanctl/listings.h"
#include "client/wanctl/model_download.h"

namespace wan::client {
namespace {

ExitCode ShowModel(Session& session, const absl::StatusOr<wan::v1::Model>& model) {
  if (!model.ok()) return session.Fail(model.status());
  session.Show(*model, ModelTable({*model}, session.out_colours()));
  return kExitDone;
}

// Sets the schedule of all LoRAs of this name. Returns the number of these LoRAs.
int SetSchedule(const wan::v1::LoraSource& named,
                google::protobuf::RepeatedPtrField<wan::v1::LoraSource>& loras) {
  int count = 0;
  for (wan::v1::LoraSource& lora : loras) {
    if (lora.name() != named.name()) continue;
    *lora.mutable_schedule() = named.schedule();
    ++count;
  }
  return count;
}

}  // namespace

ExitCode Run(Session& session, const ListModelsCommand&) {
  const absl::StatusOr<wan::v1::ListModelsResponse> response =
      ModelClient(session.connection()).ListModels(session.stop());
  if (!response.ok()) return session.Fail(response.status());
  session.Show(*response, ModelTable({response->models().begin(), response->models().end()},
                                     session.out_colours()));
  return kExitDone;
}

ExitCode Run(Session& session, const LoadModelCommand& command) {
  wan::v1::LoadModelRequest request = command.request;
  request.set_wait(true);
  for (const wan::v1::LoraSource& named : command.schedules) {
    const int given = SetSchedule(named, *request.mutable_loras()) +
                      SetSchedule(named, *request.mutable_added_loras());
    if (given > 0) continue;
    return session.Fail(absl::InvalidArgumentError(
        absl::StrCat("--lora-schedule is for '", named.name(),
                     "'; must name a LoRA of --lora or --add-lora of this command")));
  }
  return ShowModel(session, ModelClient(session.connection()).LoadModel(request, session.stop()));
}

ExitCode Run(Session& session, const DownloadModelCommand& command) {
  const absl::StatusOr<ModelLists> lists = FindModelLists(session.program_folder());
  if (!lists.ok()) return session.RefuseUsage(lists.status());
  const std::vector<std::string> names = lists->names();
  if (std::find(names.begin(), names.end(), command.name) == names.end()) {
    return session.RefuseUsage(absl::InvalidArgumentError(absl::StrCat(
        "NAME: is '", command.name, "'; must be one of ", absl::StrJoin(names, ", "))));
  }
  std::string folder = command.folder;
  if (folder.empty()) {
    if (session.data_home().empty()) {
      return session.RefuseUsage(absl::InvalidArgumentError(
          "FOLDER: is not given; must be, because neither $XDG_DATA_HOME nor $HOME is set"));
    }
    folder = absl::StrCat(session.data_home(), "/wanserve/models/", command.name);
  }
  const absl::Status status =
      DownloadModel(*lists, command.name, folder, command.base, session.stop());
  if (!status.ok()) {
    session.Say(std::string(status.message()));
    return absl::IsCancelled(status) ? kExitCancelled : kExitFailed;
  }
  session.console().out << folder << '\n' << std::flush;
  session.Say(absl::StrCat("serve it with: wanserve --model ", command.name, "=", folder));
  return kExitDone;
}

ExitCode Run(Session& session, const UnloadModelCommand& command) {
  return ShowModel(session,
                   ModelClient(session.connection()).UnloadModel(command.request, session.stop()));
}

ExitCode Run(Session& session, const WarmupModelCommand& command) {
  wan::v1::WarmupModelRequest request = command.request;
  request.set_wait(true);
  return ShowModel(session, ModelClient(session.connection()).WarmupModel(request, session.stop()));
}

ExitCode Run(Session& session, const DevicesCommand& command) {
  wan::v1::WatchDevicesRequest request;
  request.set_count(command.watch ? 0 : 1);
  const absl::Status status =
      TelemetryClient(session.connection())
          .WatchDevices(
              request,
              [&](const wan::v1::WatchDevicesResponse& samples) {
                session.Show(samples, DeviceTable(samples, session.out_colours()));
              },
              session.stop());
  // Ctrl-C is the usual way to end --watch, so it is not an error.
  if (command.watch && session.stop().stop_requested()) return kExitDone;
  return status.ok() ? kExitDone : session.Fail(status);
}

ExitCode Run(Session& session, const InfoCommand&) {
  const absl::StatusOr<wan::v1::ServerInfo> info =
      TelemetryClient(session.connection()).GetServerInfo(session.stop());
  if (!info.ok()) return session.Fail(info.status());
  session.Show(*info, ServerInfoText(*info));
  return kExitDone;
}

ExitCode Run(Session& session, const HealthCommand& command) {
  const absl::StatusOr<Health> health =
      HealthClient(session.connection()).Check(command.service, session.stop());
  if (!health.ok()) return session.Fail(health.status());
  google::protobuf::Struct answer;
  auto& fields = *answer.mutable_fields();
  fields["status"].set_string_value(health->status);
  for (const wan::v1::NotServingReason& reason : health->reasons) {
    auto& entry = *fields["reasons"].mutable_list_value()->add_values()->mutable_struct_value();
    (*entry.mutable_fields())["reason"].set_string_value(reason.reason());
    (*entry.mutable_fields())["message"].set_string_value(reason.message());
  }
  std::string text = health->status;
  if (!health->reasons.empty()) text += ": " + ReasonsText(health->reasons);
  session.Show(answer, text + "\n");
  return health->status == "SERVING" ? kExitDone : kExitRejected;
}

ExitCode Run(Session& session, const UsageCommand& command) {
  const absl::StatusOr<wan::v1::Usage> usage =
      session.Videos().GetUsage(command.principal, session.stop());
  if (!usage.ok()) return session.Fail(usage.status());
  session.Show(*usage, UsageText(*usage));
  return kExitDone;
}

ExitCode Run(Session& session, const DrainCommand& command) {
  const absl::StatusOr<wan::v1::DrainResponse> drained =
      AdministrationClient(session.connection()).Drain(command.request, session.stop());
  if (!drained.ok()) {
    return session.Fail(drained.status(), /*accepted=*/false,
                        session.stop().stop_requested()
                            ? "the drain goes on; 'wanctl drain' waits for its end again"
                            : "");
  }
  session.Show(*drained, DrainText(*drained));
  return kExitDone;
}

ExitCode Run(Session& session, const UndrainCommand&) {
  const absl::StatusOr<wan::v1::UndrainResponse> undrained =
      AdministrationClient(session.connection()).Undrain(session.stop());
  if (!undrained.ok()) return session.Fail(undrained.status());
  session.Show(*undrained, UndrainText(*undrained));
  return kExitDone;
}

}  // namespace wan::client
