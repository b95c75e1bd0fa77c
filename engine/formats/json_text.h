// JSON out of files that may be damaged.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace wan {

// DATA_LOSS with the position for text that is no JSON, for a key that occurs twice in an object
// and for nesting beyond 64 levels. `file` is for messages.
absl::StatusOr<nlohmann::json> ParseJson(std::string_view text, std::string_view file);

// As ParseJson; errors of opening the file besides. The root must be an object.
absl::StatusOr<nlohmann::json> ReadJsonObject(const std::string& path);

// Reads typed fields of an object; every problem is kept, so that one pass finds them all. A field
// that is absent, null, of another type or out of range gives the type's zero value.
class JsonFields {
 public:
  // Both must outlive the reader.
  JsonFields(const nlohmann::json& object, const std::string& file);

  bool Has(std::string_view key) const;  // present and not null

  int64_t Integer(std::string_view key, int64_t min, int64_t max);
  double Number(std::string_view key);
  bool Bool(std::string_view key);
  std::string Text(std::string_view key);
  std::vector<int64_t> Integers(std::string_view key, int64_t min, int64_t max);
  std::vector<double> Numbers(std::string_view key);
  std::vector<bool> Bools(std::string_view key);

  // DATA_LOSS: what the caller found wrong about the fields.
  void AddProblem(std::string_view what);
  // UNIMPLEMENTED: what the caller cannot work with.
  void Refuse(std::string_view what);

  const std::vector<absl::Status>& problems() const { return problems_; }

 private:
  template <typename T, typename Accepts>
  T Scalar(std::string_view key, std::string_view expected, Accepts accepts);
  template <typename T, typename Accepts>
  std::vector<T> Array(std::string_view key, std::string_view expected, Accepts accepts);
  const nlohmann::json* Find(std::string_view key);
  void Wrong(std::string_view key, std::string_view expected, const nlohmann::json& found);

  const nlohmann::json& object_;
  const std::string& file_;
  std::vector<absl::Status> problems_;
};

}  // namespace wan
