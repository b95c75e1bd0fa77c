"""Schemas of kinds that do not belong to Kubernetes, so that no package of Kubernetes' schemas has them.

They have the fields that deploy/ sets and no others: types, required fields and values are those of the custom resource
definitions that the GitHub repositories prometheus-operator/prometheus-operator (monitoring.coreos.com/v1 of its version
0.93) and kubernetes-sigs/gateway-api (gateway.networking.k8s.io/v1, the standard channel of its version 1.2) publish. A
field that is not here is reported; look it up there before adding it.
"""

TEXT = {"type": "string"}
NAME = {"type": "string", "minLength": 1}
TEXTS = {"type": "object", "additionalProperties": TEXT}
DURATION = {"type": "string", "pattern": r"^(0|(\d+y)?(\d+w)?(\d+d)?(\d+h)?(\d+m)?(\d+s)?(\d+ms)?)$", "minLength": 1}


def fields(required=(), **properties):
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def array(items):
    return {"type": "array", "items": items}


# Refers to a key of a Secret.
SECRET = fields(["key"], name=TEXT, key=TEXT)

ENDPOINT = fields(
    port=TEXT,
    path=TEXT,
    interval=DURATION,
    scheme={"enum": ["http", "https", "HTTP", "HTTPS"]},
    tlsConfig=fields(ca=fields(secret=SECRET), cert=fields(secret=SECRET), keySecret=SECRET, serverName=TEXT),
)

# The operator's webhook refuses a rule that has both of these or neither.
RULE = fields(["expr"], alert=NAME, record=NAME, expr=NAME, labels=TEXTS, annotations=TEXTS,
              **{"for": DURATION, "keep_firing_for": DURATION})
RULE["oneOf"] = [{"required": ["alert"]}, {"required": ["record"]}]

# Kinds of the Gateway API.
HOST_NAME = r"^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
PORT = {"type": "integer", "minimum": 1, "maximum": 65535}
GATEWAY = fields(["name"], group=TEXT, kind=NAME, namespace=NAME, name=NAME, sectionName=NAME)
GATEWAY_DURATION = {"type": "string", "pattern": r"^([0-9]{1,5}(h|m|s|ms)){1,4}$"}
ROUTE_RULE = fields(backendRefs=array(fields(["name", "port"], name=NAME, port=PORT)),
                    timeouts=fields(request=GATEWAY_DURATION, backendRequest=GATEWAY_DURATION))

MONITORING = "monitoring.coreos.com/v1"
SPECS = {
    (MONITORING, "ServiceMonitor"): fields(["endpoints", "selector"], endpoints=array(ENDPOINT),
                                           selector=fields(matchLabels=TEXTS)),
    (MONITORING, "PrometheusRule"): fields(groups=array(fields(["name"], name=NAME, interval=DURATION,
                                                               rules=array(RULE)))),
    ("gateway.networking.k8s.io/v1", "HTTPRoute"): fields(
        parentRefs=array(GATEWAY) | {"maxItems": 32},
        hostnames=array({"type": "string", "minLength": 1, "maxLength": 253, "pattern": HOST_NAME}) | {"maxItems": 16},
        rules=array(ROUTE_RULE) | {"minItems": 1, "maxItems": 16}),
}
GROUPS = {version.split("/")[0] for version, _ in SPECS}


def is_custom(version):
    """Returns whether the schemas of this apiVersion's kinds are here."""
    return version.split("/")[0] in GROUPS


def schema_of(version, kind):
    """Returns the schema for a manifest of this kind; None if deploy/ is not known to have such manifests."""
    spec = SPECS.get((version, kind))
    if spec is None:
        return None
    return fields(["apiVersion", "kind", "metadata", "spec"], apiVersion={"const": version}, kind={"const": kind},
                  metadata={"type": "object"}, spec=spec)
