"""The messages and enums of the contract, wan.v1; the .proto files document them."""

from wanserve_client._proto.wan.v1.administration_pb2 import *  # noqa: F401,F403
from wanserve_client._proto.wan.v1.generation_pb2 import *  # noqa: F401,F403
from wanserve_client._proto.wan.v1.model_management_pb2 import *  # noqa: F401,F403
from wanserve_client._proto.wan.v1.telemetry_pb2 import *  # noqa: F401,F403
from wanserve_client._proto.wan.v1.video_generation_pb2 import *  # noqa: F401,F403
