"""Validates manifests against the schemas of a Kubernetes release, and the settings inside them.

usage: validate_manifests.py SCHEMAS RELEASE FILE...

SCHEMAS has a folder vRELEASE.0-local-strict. Kinds of the Prometheus operator and the Gateway API have no schema there;
those of custom_schemas.py are used. Prints every problem; the exit status is 1 if there is any.
"""

import json
import pathlib
import sys

import jsonschema
import yaml

import custom_schemas


def schema_name(document):
    group, _, version = document["apiVersion"].rpartition("/")
    group = group.split(".")[0]
    return f"{document['kind'].lower()}-{group + '-' if group else ''}{version}.json"


def errors_of(validator, document):
    for error in validator.iter_errors(document):
        yield f"{'/'.join(map(str, error.absolute_path))}: {error.message}"


def group_problems(document):
    """Checks that the names of a PrometheusRule's groups differ, because they are its keys."""
    names = [group["name"] for group in document["spec"].get("groups", [])]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"two groups have the name {name}"


def problems_of(document, folder):
    if custom_schemas.is_custom(document["apiVersion"]):
        schema = custom_schemas.schema_of(document["apiVersion"], document["kind"])
        if schema is None:
            yield f"custom_schemas.py does not know {document['apiVersion']} {document['kind']}"
            return
        yield from errors_of(jsonschema.Draft7Validator(schema), document)
        yield from group_problems(document)
        return
    path = folder / schema_name(document)
    if not path.exists():
        yield f"{document['apiVersion']} {document['kind']} does not exist in this release"
        return
    schema = json.loads(path.read_text())
    definitions = json.loads((folder / "_definitions.json").read_text())
    # Load every schema that another one names, so that nothing is looked up on the network.
    resolver = jsonschema.RefResolver.from_schema(schema, store={definitions["$id"]: definitions})
    yield from errors_of(jsonschema.Draft7Validator(schema, resolver=resolver), document)


def backends(document):
    """Yields (Service, port) of every backend of an Ingress or a route."""
    for rule in document["spec"].get("rules", []):
        if document["kind"] == "Ingress":
            for path in rule["http"]["paths"]:
                service = path["backend"]["service"]
                yield service["name"], service["port"]["number"]
        else:
            for backend in rule["backendRefs"]:
                yield backend["name"], backend["port"]


def reference_problems(documents):
    """Checks that what manifests name of other manifests exists."""
    names = {(document["kind"], document["metadata"]["name"]) for document in documents}
    if len(names) != len(documents):
        yield "two manifests have one kind and name"
    for document in documents:
        template = document.get("spec", {}).get("template")
        if template is None:
            continue
        spec = template["spec"]
        volumes = {volume["name"]: volume for volume in spec.get("volumes", [])}
        for container in spec["containers"] + spec.get("initContainers", []):
            for mount in container.get("volumeMounts", []):
                if mount["name"] not in volumes:
                    yield f"{container['name']} mounts {mount['name']}, which is no volume"
        for volume in volumes.values():
            if "configMap" in volume and ("ConfigMap", volume["configMap"]["name"]) not in names:
                yield f"there is no ConfigMap {volume['configMap']['name']}"
    labels = [document["spec"]["template"]["metadata"]["labels"] for document in documents if document["kind"] == "Deployment"]
    for document in documents:
        selector = document.get("spec", {}).get("selector") if document["kind"] == "Service" else None
        if selector and not any(selector.items() <= of.items() for of in labels):
            yield f"Service {document['metadata']['name']} selects no pod"
    ports = {(document["metadata"]["name"], port["port"])
             for document in documents if document["kind"] == "Service" for port in document["spec"]["ports"]}
    for document in documents:
        if document["kind"] in ("Ingress", "HTTPRoute"):
            for name, port in backends(document):
                if (name, port) not in ports:
                    yield f"{document['kind']} {document['metadata']['name']} leads to port {port} of {name}, which no Service has"


def main(schemas, release, *files):
    folder = pathlib.Path(schemas).resolve() / f"v{release}.0-local-strict"
    failed = False
    for file in files:
        documents = [document for document in yaml.safe_load_all(pathlib.Path(file).read_text()) if document]
        found = [f"{document['kind']} {document['metadata']['name']}: {problem}"
                 for document in documents for problem in problems_of(document, folder)]
        for problem in found + list(reference_problems(documents)):
            failed = True
            print(f"{file}, Kubernetes {release}: {problem}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
