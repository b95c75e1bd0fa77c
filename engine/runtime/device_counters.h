// The counters of one device.
#pragma once

#include <memory>

#include "engine/api/exchange_meter.h"
#include "engine/api/held_bytes.h"

namespace wan {

// Each may be null.
struct DeviceCounters {
  std::shared_ptr<HeldBytes> weights;        // bytes of weights on a GPU
  std::shared_ptr<ExchangeMeter> exchanges;  // exchanges with the others of its group
};

}  // namespace wan
