#include "server/open_objects.h"

#include <string>
#include <utility>
#include <variant>

#include "server/metrics/metrics.h"
#include "server/objects/object_place.h"
#include "server/objects/object_request.h"
#include "server/objects/s3_object_store.h"
#include "server/store/folder_object_store.h"

namespace wan::server {
namespace {

constexpr absl::Duration kFirstPatience = absl::Seconds(3);

using Opened = absl::StatusOr<std::unique_ptr<ObjectStore>>;

Opened OpenFolder(const FolderPlace& place) {
  auto store = std::make_unique<FolderObjectStore>(place.folder);
  const absl::Status there = store->CheckFolder();
  // Nobody but an operator can make or mount it, so do not begin without it.
  if (!there.ok()) return absl::FailedPreconditionError(there.message());
  return store;
}

Opened OpenBucket(const S3Place& place, const ServerConfig& config, Clock& clock, Logger& logger,
                  Metrics& metrics) {
  metrics.AddObjects();
  absl::StatusOr<S3Options> options =
      S3OptionsOf(place, config.objects_ca, ProcessEnvironment(),
                  [&metrics](const ObjectRequest& request) { metrics.OnObjectRequest(request); });
  if (!options.ok()) return options.status();
  auto store = std::make_unique<S3ObjectStore>(*std::move(options), place.prefix, clock);
  const absl::Status there =
      store->List("", [](const ObjectFacts&) { return false; }, {kFirstPatience, {}});
  if (absl::IsUnavailable(there)) {
    logger.Log(LogLevel::kWarning,
               "the object store is away; jobs run, and wait for it before they complete",
               {{"objects", store->Name()}, {"problem", std::string(there.message())}});
  } else if (!there.ok()) {
    return there;
  }
  return store;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ObjectStore>> OpenObjects(const ServerConfig& config, Clock& clock,
                                                         Logger& logger, Metrics& metrics) {
  if (config.objects.empty()) return nullptr;
  const auto place = ParseObjectPlace(config.objects);
  if (!place.ok()) return place.status();
  const auto* const folder = std::get_if<FolderPlace>(&*place);
  Opened store = folder != nullptr
                     ? OpenFolder(*folder)
                     : OpenBucket(std::get<S3Place>(*place), config, clock, logger, metrics);
  if (store.ok()) {
    logger.Log(LogLevel::kInfo, "files of jobs are also kept in an object store",
               {{"objects", (*store)->Name()}});
  }
  return store;
}

}  // namespace wan::server
