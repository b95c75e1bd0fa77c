// Reads the state dicts that torch.save writes (".pth"): a zip archive with a pickle, and one
// record for each storage.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "engine/formats/tensor_file.h"

namespace wan {

// Maps the archive and reads its pickle, which must be a dict (or OrderedDict) from names to
// tensors. DATA_LOSS, naming file and record, global name or tensor, for everything that
// zip_directory.h and pickle.h refuse. DATA_LOSS also if the size of a storage differs from what
// the pickle says, if no tensor uses a storage, if a tensor reaches beyond its storage, or if a
// name occurs twice. UNIMPLEMENTED if the archive is big-endian or a tensor is not contiguous.
// Thread-safe.
absl::StatusOr<TensorFile> ReadTorchArchive(const std::string& path);

}  // namespace wan
