"""Running the service with uvicorn."""

from __future__ import annotations

import logging
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rankgrove.errors import MissingExtraError, ParameterError


def serve(
    files: Mapping[str, Path], host: str, port: int, *, quiet: bool = False, **limits: Any
) -> None:
    """Answer requests until Ctrl-C or SIGTERM; open requests are finished first.

    Parameters
    ----------
    files : name -> model file; the first answers requests without a name
    host, port : where to listen; port 0 takes a free one
    quiet : log only warnings and errors
    limits : parameters of :class:`rankgrove.serving.app.Service`
    """
    try:
        import uvicorn

        from rankgrove.serving.app import Service
    except ImportError as error:
        raise MissingExtraError(error.name or "starlette", "serve", "The service") from None
    service = Service(files, **limits)
    listener = _listen(host, port)
    level = logging.WARNING if quiet else logging.INFO
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(message)s")
    # only h11 limits the size of headers; naming it makes limits independent of installed packages
    config = uvicorn.Config(
        service.app(),
        http="h11",
        ws="none",
        log_config=None,
        log_level=level,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=30,
    )
    address = listener.getsockname()
    shown = f"[{address[0]}]" if listener.family == socket.AF_INET6 else address[0]
    print(f"serving {', '.join(files)} on http://{shown}:{address[1]}", flush=True)
    try:
        uvicorn.Server(config).run(sockets=[listener])
    except KeyboardInterrupt:
        pass  # uvicorn has shut down, and raises the signal again
    finally:
        listener.close()


def _listen(host: str, port: int) -> socket.socket:
    """Return a listening socket, so that a port in use is reported at once."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # asyncio sends small answers without delay only if the protocol is given
        listener = socket.socket(family, kind, protocol)
    except (OSError, OverflowError) as error:
        raise ParameterError(
            f"--host {host}: {error}. Give an address of this machine, such as 127.0.0.1."
        ) from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
    except OSError as error:
        listener.close()
        raise ParameterError(
            f"--host {host} --port {port}: {error.strerror}. Give another --port, or 0 for a "
            "free one."
        ) from None
    return listener
