// Receipts: the inputs from which a job's video was made.
#pragma once

#include <span>
#include <vector>

#include "engine/api/model_file.h"
#include "server/store/file_digests.h"
#include "server/store/job_store.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// The rows of the store for the files of a job's model. Digests are not part of it: they are
// computed later, and found by their keys.
std::vector<JobFile> JobFilesOf(std::span<const ModelFile> files);

// Puts a job's receipt together. The files are those of its latest attempt. That attempt has
// computed the latents, or it has gone on from a savepoint, which it does only with the same files
// and the same provenance.
wan::v1::Receipt MakeReceipt(const wan::v1::Job& job, std::span<const JobFile> files,
                             const FileDigests& digests);

}  // namespace wan::server
