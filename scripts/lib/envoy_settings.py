"""Takes the sidecar's settings out of rendered manifests: envoy_settings.py MANIFESTS FOLDER.

Fails, with a line for each problem, if a file is missing or does not fit the pod that reads it.
"""

import pathlib
import sys

import yaml


def find(documents, kind, key):
    """Returns the one document of a kind whose data has the key, or none."""
    found = [d for d in documents if d and d["kind"] == kind and key in d.get("data", {})]
    return found[0] if len(found) == 1 else None


def main(manifests, folder):
    with open(manifests, encoding="utf-8") as file:
        documents = list(yaml.safe_load_all(file))
    problems = []
    settings = find(documents, "ConfigMap", "envoy.yaml")
    if settings is None:
        return ["no ConfigMap has envoy.yaml"]
    for name, text in settings["data"].items():
        if name.startswith("envoy"):
            pathlib.Path(folder, name).write_text(text, encoding="utf-8")

    envoy = yaml.safe_load(settings["data"]["envoy.yaml"])
    listener = envoy["static_resources"]["listeners"][0]
    port = listener["address"]["socket_address"]["port_value"]
    manager = listener["filter_chains"][0]["filters"][0]["typed_config"]
    route = manager["route_config"]["virtual_hosts"][0]["routes"][-1]["route"]
    cluster = envoy["static_resources"]["clusters"][0]
    if route != {"cluster": cluster["name"], "timeout": "0s"}:
        problems.append("calls must lead to the cluster, and must not end after a time")
    if manager["codec_type"] != "HTTP2":
        problems.append("callers must speak HTTP/2")

    pod = next(d for d in documents if d and d["kind"] == "Deployment")["spec"]["template"]["spec"]
    sidecars = [c for c in pod["initContainers"] if c["name"] == "envoy"]
    if len(sidecars) != 1 or sidecars[0].get("restartPolicy") != "Always":
        return problems + ["the pod must have one sidecar, envoy, with restartPolicy Always"]
    if [p["containerPort"] for p in sidecars[0]["ports"]] != [port]:
        problems.append("the sidecar must have the port on which it listens")
    server = yaml.safe_load(settings["data"]["config.yaml"])
    over_tls = "tls_cert" in server
    if ("transport_socket" in cluster) != over_tls:
        problems.append("the sidecar must speak to the server as the server does")
    if ("transport_socket" in listener["filter_chains"][0]) != over_tls:
        problems.append("the sidecar must have the certificate if there is one")
    if ("envoy-certificate.yaml" in settings["data"]) != over_tls:
        problems.append("the sidecar's certificate needs a file of its own")
    return problems


if __name__ == "__main__":
    found_problems = main(sys.argv[1], sys.argv[2])
    print("\n".join(found_problems))
    sys.exit(1 if found_problems else 0)
