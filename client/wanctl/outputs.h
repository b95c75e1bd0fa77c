// Writes the output files of wanctl's commands.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/wanctl/display.h"
#include "client/wanctl/exit_code.h"
#include "client/wanctl/options.h"
#include "client/wanctl/session.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "wan/v1/generation.pb.h"

namespace wan::client {

// Returns INVALID_ARGUMENT if one of the files could not be written (see CheckDestination). Call
// CheckOutputs before you create a job.
absl::Status CheckOutputs(const std::vector<OutputFile>& outputs);

// Returns the output files of one of several videos: with `index` 0, cat.mp4 becomes cat-1.mp4.
std::vector<OutputFile> NumberedOutputs(std::vector<OutputFile> outputs, int index);

// Downloads the artifact of each output and prints the file's name on stdout. If `artifacts` has
// none of the kind that an output needs, says so on stderr and returns `if_missing`.
ExitCode FetchOutputs(Session& session, Display& display, const std::string& job,
                      const google::protobuf::RepeatedPtrField<wan::v1::Artifact>& artifacts,
                      const std::vector<OutputFile>& outputs, ExitCode if_missing);

// Writes the first frame of each preview as FOLDER/step-0010.jpg, with its step's number, and the
// others as step-0010-middle.jpg and step-0010-last.jpg. The names of the second of several videos
// begin with "2-".
class PreviewWriter {
 public:
  // If `folder` is empty, the object writes nothing. `video` is the video's number, counted from 1;
  // 0: there is only one.
  explicit PreviewWriter(std::string folder, int video = 0)
      : folder_(std::move(folder)), video_(video) {}

  // Creates the folder if it is missing.
  absl::Status Prepare() const;

  absl::Status Write(const wan::v1::Event::Preview& preview) const;

 private:
  const std::string folder_;
  const int video_;
};

}  // namespace wan::client
