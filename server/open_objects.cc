#include "server/open_objects.h"

#include <string>
#include <utility>
#include <variant>

#include "server/objects/object_place.h"
#include "server/objects/s3_object_store.h"
#include "server/store/folder_object_store.h"

namespace wan::server {
namespace {

constexpr absl::Duration kFirstPatience = absl::Seconds(3);

absl::StatusOr<std::unique_ptr<ObjectStore>> MakeStore(const ServerConfig& config, Clock& clock,
                                                       OnObjectRequest on_request) {
  const auto place = ParseObjectPlace(config.objects);
  if (!place.ok()) return place.status();
  if (const auto* const folder = std::get_if<FolderPlace>(&*place)) {
    return std::make_unique<FolderObjectStore>(folder->folder);
  }
  const auto& s3 = std::get<S3Place>(*place);
  absl::StatusOr<S3Options> options =
      S3OptionsOf(s3, config.objects_ca, ProcessEnvironment(), std::move(on_request));
  if (!options.ok()) return options.status();
  return std::make_unique<S3ObjectStore>(*std::move(options), s3.prefix, clock);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ObjectStore>> OpenObjects(const ServerConfig& config, Clock& clock,
                                                         Logger& logger,
                                                         OnObjectRequest on_request) {
  if (config.objects.empty()) return nullptr;
  absl::StatusOr<std::unique_ptr<ObjectStore>> store =
      MakeStore(config, clock, std::move(on_request));
  if (!store.ok()) return store;
  const absl::Status there =
      (*store)->List("", [](const ObjectFacts&) { return false; }, {kFirstPatience, {}});
  const std::string message(there.message());
  if (absl::IsUnavailable(there)) {
    logger.Log(LogLevel::kWarning,
               "the object store is away; jobs run, and wait for it before they complete",
               {{"objects", (*store)->Name()}, {"problem", message}});
  } else if (!there.ok()) {
    return there;
  } else {
    logger.Log(LogLevel::kInfo, "files of jobs are also kept in an object store",
               {{"objects", (*store)->Name()}});
  }
  return store;
}

}  // namespace wan::server
