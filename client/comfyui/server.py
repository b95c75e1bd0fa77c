"""Which server the nodes talk to, and which models and LoRAs it offers."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import time

from wanserve_client import Client, Tls, WanError

DEFAULT_ADDRESS = "localhost:50051"
# The choice that leaves the model out of the request, so that the client takes the only one.
ONLY_MODEL = "(the only model)"
NO_LORA = "(no LoRA)"


@dataclasses.dataclass(frozen=True)
class Server:
    """The address, and the name of the environment variable that has the token. A workflow never contains a token."""

    address: str = DEFAULT_ADDRESS
    token_variable: str = "WAN_TOKEN"
    tls: bool = False
    # A PEM file with the authorities of the server's certificate. Empty: those of this machine.
    tls_ca: str = ""

    @staticmethod
    def of_environment() -> Server:
        """The server of nodes to which no 'Wan Server' is linked."""
        tls_ca = os.environ.get("WAN_TLS_CA", "")
        return Server(address=_named_address("WAN_TOKEN") or DEFAULT_ADDRESS,
                      tls=bool(tls_ca) or os.environ.get("WAN_TLS", "") not in ("", "0"), tls_ca=tls_ca)

    def connect(self, timeout: float = 30.0) -> Client:
        """Returns a client that does not wait by itself while a model is being loaded, so that the wait can be interrupted."""
        tls = None
        if self.tls or self.tls_ca:
            tls = Tls(ca=pathlib.Path(self.tls_ca).read_bytes() if self.tls_ca else None)
        return Client(self.address, token=self._token(), tls=tls, timeout=timeout, load_timeout=0)

    def _token(self) -> str | None:
        """A workflow may come from a stranger. So it can neither read any other variable than a token of wanserve, nor send a
        token to an address that this machine's environment does not name for it."""
        if not self.token_variable.startswith("WAN_TOKEN"):
            raise ValueError(f"token_variable: is {self.token_variable}; must be WAN_TOKEN, or begin with WAN_TOKEN_, for "
                             "example WAN_TOKEN_GPU2")
        token = os.environ.get(self.token_variable)
        if not token:
            return None
        allowed = _named_address(self.token_variable) or DEFAULT_ADDRESS
        if self.address != allowed:
            raise ValueError(
                f"address: is {self.address}; the token in {self.token_variable} is only for {allowed}. If you trust this "
                "server, set the environment variables WAN_SERVER_NAME to its address and WAN_TOKEN_NAME to its token, "
                "and choose WAN_TOKEN_NAME as token_variable")
        return token


def _named_address(token_variable: str) -> str | None:
    """The address that belongs to a token: WAN_SERVER to WAN_TOKEN, and WAN_SERVER_GPU2 to WAN_TOKEN_GPU2."""
    return os.environ.get(token_variable.replace("WAN_TOKEN", "WAN_SERVER", 1))


@dataclasses.dataclass(frozen=True)
class Offer:
    models: tuple[str, ...] = ()
    loras: tuple[str, ...] = ()


class Offers:
    """What the environment's server offers. ComfyUI asks for the choices of a node several times for one prompt, so an answer,
    or that there was none, counts for a few seconds."""

    _KEPT_SECONDS = 10.0
    _TIMEOUT_SECONDS = 2.0

    def __init__(self) -> None:
        self._offer = Offer()
        self._asked: tuple[Server, float] | None = None

    def current(self) -> Offer:
        server = Server.of_environment()
        now = time.monotonic()
        if self._asked is None or self._asked[0] != server or now - self._asked[1] > self._KEPT_SECONDS:
            self._offer = self._ask(server)
            self._asked = (server, time.monotonic())
        return self._offer

    def _ask(self, server: Server) -> Offer:
        """An empty offer if the server does not answer: the nodes must load, and the job will say what is wrong."""
        try:
            with server.connect(self._TIMEOUT_SECONDS) as client:
                models = client.models()
        except (WanError, ValueError, OSError):
            return Offer()
        loras = {lora.name: None for model in models for lora in model.loras}
        return Offer(tuple(model.name.removeprefix("models/") for model in models), tuple(loras))
