// Makes receipts: the inputs from which a job's video was made.
#pragma once

#include <span>
#include <vector>

#include "engine/api/model_file.h"
#include "server/store/file_digests.h"
#include "server/store/job_store.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// Returns the store's rows for the files of a job's model. Maximum number of bytes of such
// artifacts that the server holds for requests that are not stored yet.
std::vector<JobFile> JobFilesOf(std::span<const ModelFile> files);

// Returns a job's receipt; `files` are those of its latest attempt. These files are the right ones
// even if that attempt continued a savepoint, because an attempt does so only with the same files
// and provenance.
wan::v1::Receipt MakeReceipt(const wan::v1::Job& job, std::span<const JobFile> files,
                             const FileDigests& digests);

}  // namespace wan::server
