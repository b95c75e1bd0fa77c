"""Schemas of the Prometheus operator's kinds, which no package of Kubernetes' schemas has.

They have the fields that deploy/ sets and no others: types, required fields and values are those of the custom resource
definitions that the GitHub repository prometheus-operator/prometheus-operator publishes (monitoring.coreos.com/v1 of its
version 0.93). A field that is not here is reported; look it up there before adding it.
"""

TEXT = {"type": "string"}
NAME = {"type": "string", "minLength": 1}
TEXTS = {"type": "object", "additionalProperties": TEXT}
DURATION = {"type": "string", "pattern": r"^(0|(\d+y)?(\d+w)?(\d+d)?(\d+h)?(\d+m)?(\d+s)?(\d+ms)?)$", "minLength": 1}


def fields(required=(), **properties):
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def array(items):
    return {"type": "array", "items": items}


# A key of a Secret.
SECRET = fields(["key"], name=TEXT, key=TEXT)

ENDPOINT = fields(
    port=TEXT,
    path=TEXT,
    interval=DURATION,
    scheme={"enum": ["http", "https", "HTTP", "HTTPS"]},
    tlsConfig=fields(ca=fields(secret=SECRET), cert=fields(secret=SECRET), keySecret=SECRET, serverName=TEXT),
)

# The operator's webhook refuses a rule that has both or neither.
RULE = fields(["expr"], alert=NAME, record=NAME, expr=NAME, labels=TEXTS, annotations=TEXTS,
              **{"for": DURATION, "keep_firing_for": DURATION})
RULE["oneOf"] = [{"required": ["alert"]}, {"required": ["record"]}]

SPECS = {
    "ServiceMonitor": fields(["endpoints", "selector"], endpoints=array(ENDPOINT),
                             selector=fields(matchLabels=TEXTS)),
    "PrometheusRule": fields(groups=array(fields(["name"], name=NAME, interval=DURATION, rules=array(RULE)))),
}


def schema_of(kind):
    """The schema of a manifest of this kind; None if deploy/ is not known to have any."""
    if kind not in SPECS:
        return None
    return fields(["apiVersion", "kind", "metadata", "spec"], apiVersion={"const": "monitoring.coreos.com/v1"},
                  kind={"const": kind}, metadata={"type": "object"}, spec=SPECS[kind])
