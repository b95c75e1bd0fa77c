"""A stand-in for the parts of ComfyUI that the nodes of client/comfyui import, and a runner of workflows in its API format,
which calls the nodes as ComfyUI does."""

import importlib.util
import inspect
import json
import pathlib
import sys
import types

import numpy
import PIL.Image

# The name under which the node pack is imported.
PACK = "custom_nodes_wanserve"


class Interrupted(Exception):
    """As comfy.model_management.InterruptProcessingException."""


class VideoFromFile:
    """As comfy_api.input_impl.VideoFromFile."""

    def __init__(self, file):
        self.file = pathlib.Path(file)


class Tensor(numpy.ndarray):
    """An array with the methods of a CPU tensor that the nodes call."""

    def cpu(self):
        return self

    def numpy(self):
        return self.view(numpy.ndarray)


class _LoadImage:
    """ComfyUI's own node, as far as the example needs it."""

    RETURN_TYPES = ("IMAGE", "MASK")
    FUNCTION = "load"

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"image": ("STRING", {})}}

    def load(self, image):
        pixels = numpy.array(PIL.Image.open(ComfyUi.current.folder / image).convert("RGB"))
        return (pixels[None].astype(numpy.float32) / 255).view(Tensor), None


class _SaveVideo:
    """ComfyUI's own node, as far as the examples need it."""

    RETURN_TYPES = ()
    FUNCTION = "save"

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {name: ("STRING", {}) for name in ("filename_prefix", "format", "codec")} |
                            {"video": ("VIDEO", {})}}

    def save(self, video, **_):
        ComfyUi.current.saved.append(video.file)
        return ()


class ComfyUi:
    """One ComfyUI with the node pack in `pack`; it is the one that the stood-in modules belong to."""

    current = None

    def __init__(self, folder, pack):
        ComfyUi.current = self
        self.folder = folder
        self.progress = []
        self.previews = []
        self.saved = []
        # Called at each step of a bar.
        self.on_progress = lambda: None
        self.interrupted = False
        self._stand_in()
        self.nodes = {"LoadImage": _LoadImage, "SaveVideo": _SaveVideo, **self._load(pack).NODE_CLASS_MAPPINGS}

    def run(self, graph):
        """Runs all nodes of a graph, each after those that it is linked to, and returns what each returned."""
        results = {}
        while len(results) < len(graph):
            ready = [key for key, node in graph.items() if key not in results and
                     all(value[0] in results for value in node["inputs"].values() if isinstance(value, list))]
            assert ready, "the graph has a circle"
            for key in ready:
                inputs = {name: results[value[0]][value[1]] if isinstance(value, list) else value
                          for name, value in graph[key]["inputs"].items()}
                results[key] = self._call(self.nodes[graph[key]["class_type"]], inputs)
        return results

    def workflow(self, path, **changes):
        """The workflow of a file, with changes like {"3.steps": 2}."""
        graph = json.loads(path.read_text())
        for name, value in changes.items():
            node, _, field = name.partition(".")
            graph[node]["inputs"][field] = value
        return graph

    def _call(self, node, inputs):
        kinds = node.INPUT_TYPES()
        known = {**kinds["required"], **kinds.get("optional", {})}
        assert set(kinds["required"]) <= set(inputs) <= set(known), (node, inputs)
        checked = inspect.getfullargspec(node.VALIDATE_INPUTS).args[1:] if hasattr(node, "VALIDATE_INPUTS") else []
        for name, value in inputs.items():
            kind = known[name][0]
            assert not isinstance(kind, list) or name in checked or value in kind, (name, value)
        assert all(node.VALIDATE_INPUTS(**{name: inputs[name]}) is True for name in checked)
        outputs = getattr(node(), node.FUNCTION)(**inputs)
        assert len(outputs) == len(node.RETURN_TYPES), node
        return outputs

    def _load(self, pack):
        """Imports a folder as ComfyUI imports those in custom_nodes, anew for each ComfyUI."""
        for name in [each for each in sys.modules if each.partition(".")[0] == PACK]:
            del sys.modules[name]
        spec = importlib.util.spec_from_file_location(PACK, pack / "__init__.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        return module

    def _stand_in(self):
        comfy = self

        class ProgressBar:
            def __init__(self, total):
                self.total = total

            def update_absolute(self, value, total=None, preview=None):
                comfy.progress.append((value, total))
                if preview is not None:
                    comfy.previews.append(preview)
                comfy.on_progress()

        def throw_exception_if_processing_interrupted():
            if comfy.interrupted:
                comfy.interrupted = False
                raise Interrupted()

        modules = {
            "comfy": {},
            "comfy.utils": {"ProgressBar": ProgressBar},
            "comfy.model_management": {
                "throw_exception_if_processing_interrupted": throw_exception_if_processing_interrupted},
            "comfy_api": {},
            "comfy_api.input_impl": {"VideoFromFile": VideoFromFile},
            "folder_paths": {"get_temp_directory": lambda: str(comfy.folder / "temp")},
            "torch": {"from_numpy": lambda array: array.view(Tensor)},
        }
        for name, members in modules.items():
            sys.modules[name] = types.ModuleType(name)
            vars(sys.modules[name]).update(members)
            parent, _, child = name.rpartition(".")
            if parent:
                setattr(sys.modules[parent], child, sys.modules[name])
