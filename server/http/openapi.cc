#include "server/http/openapi.h"

#include <nlohmann/json.hpp>

#include "server/http/api_answer.h"

namespace wan::server {

HttpAnswer OpenApiAnswer(const OptionalRoutes& optional) {
  // Use the ordered type to keep the order of the file, which was chosen for human readers.
  nlohmann::ordered_json description = nlohmann::ordered_json::parse(kOpenApi);
  if (!optional.page) description["paths"].erase("/");
  if (!optional.health) description["paths"].erase("/health");
  HttpAnswer answer = JsonTextAnswer(200, description.dump(1));
  answer.fields.emplace_back("Cache-Control", "no-cache");
  return answer;
}

}  // namespace wan::server
