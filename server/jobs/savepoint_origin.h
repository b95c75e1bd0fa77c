// Makes and compares the origins of savepoints: what decides a job's latents.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/api/engine.h"
#include "engine/api/generation.h"
#include "engine/api/model_file.h"
#include "server/store/file_digests.h"
#include "server/store/savepoint_store.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// Returns the files of the job's model from which the job's video is made: not LoRAs of other jobs,
// nor a decoder that the job does not decode with.
std::vector<ModelFile> FilesUsedBy(const wan::v1::Job& job, const ModelDescription& model);

// Returns the part of a provenance that decides latents.
wan::v1::Provenance LatentsProvenance(wan::v1::Provenance provenance);

// Returns the SHA-256 of what the plan decides for each step. The files' contents do not decide it
// alone: the model's name, or that of its folder, may give its default schedule.
std::string ScheduleDigest(const GenerationPlan& plan);

// How an attempt computes.
struct Computation {
  wan::v1::Provenance provenance = {};
  std::string schedule = {};  // ScheduleDigest
  std::string cpu_name = {};  // counts only if the provenance has components on the CPU
};

// Returns the origin of a savepoint that the attempt would write, with the digests that are known.
// It does not depend on paths and times of files, nor on the server's version.
SavepointOrigin OriginOf(const wan::v1::Job& job, const Computation& computation,
                         const ModelDescription& model, const FileDigests& digests);

// Returns OK if an attempt with the origin `now`, which uses `files`, gives the same bits from the
// savepoint of `kept` as from its start. A file whose size, time, inode and path are the same is
// taken to be the same. For others the contents are compared, which may read files for minutes.
// Fails with FAILED_PRECONDITION and a message that completes "The savepoint ..."; CANCELLED once
// `stop` is requested.
absl::Status CheckOrigin(const SavepointOrigin& kept, const SavepointOrigin& now,
                         const std::vector<ModelFile>& files, FileDigests& digests,
                         const std::stop_token& stop);

}  // namespace wan::server
