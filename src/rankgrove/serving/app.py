"""The service as an ASGI application, by Starlette."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from rankgrove._version import __version__
from rankgrove.data.dataset_checks import check_absent
from rankgrove.errors import RankgroveError
from rankgrove.parallel import available_threads
from rankgrove.serving.coding import decode, encode
from rankgrove.serving.metrics import Metrics
from rankgrove.serving.problems import Problem
from rankgrove.serving.registry import Registry, Served

log = logging.getLogger("rankgrove.serve")
Handler = Callable[[Request], Awaitable[Response]]
Result = TypeVar("Result")


class Service:
    """The state that all routes share: models, metrics, limits and worker threads.

    Parameters
    ----------
    files : name -> model file; the first answers requests without a name
    max_body : maximum bytes of a request
    max_documents : maximum documents of a request
    timeout : seconds within which a request's body must arrive
    watch : seconds between two checks of the model files for changes; 0: they are not checked
    absent : the value of features that a document does not name: ``"zero"``, ``"missing"``, or
        None: as in the model's training data
    """

    def __init__(
        self,
        files: Mapping[str, Path],
        *,
        max_body: int = 1 << 24,
        max_documents: int = 10_000,
        timeout: float = 30.0,
        watch: float = 2.0,
        absent: str | None = None,
    ) -> None:
        if absent is not None:
            check_absent(absent, type(self).__name__)
        self.registry = Registry(files, max_documents, absent)
        self.metrics = Metrics()
        self.max_body = max_body
        self.timeout = timeout
        self.watch = watch
        self._threads = ThreadPoolExecutor(available_threads(), thread_name_prefix="rank")

    # -- the routes -------------------------------------------------------------------------------

    async def rank(self, request: Request) -> Response:
        """POST /rank, /models/{name}/rank: documents in, ranked ids and scores out."""
        served = self.registry.get(request.path_params.get("name"))
        body = await self._body(request)
        began = time.perf_counter()
        n, answer = await self._work(partial(_answer, served, body))
        self.metrics.ranked(served.name, n, time.perf_counter() - began)
        return _json(200, answer)

    async def health(self, request: Request) -> Response:
        """GET /health: whether the service works, and which models failed to reload."""
        errors = dict(self.registry.errors)
        content = {
            "status": "stale" if errors else "ok",
            "rankgrove": __version__,
            "models": list(self.registry.models),
            "reload_errors": errors,
        }
        return _json(200, encode(content))

    async def list_models(self, request: Request) -> Response:
        """GET /models: a short description of every model."""
        kept = ("name", "kind", "version", "file", "loaded", "n_features", "n_trees")
        models = [served.about() for served in self.registry.models.values()]
        content = {"models": [{key: about[key] for key in kept} for about in models]}
        return _json(200, encode(content | {"default": models[0]["name"]}))

    async def show_model(self, request: Request) -> Response:
        """GET /models/{name}: one model, with its features and measures."""
        served = self.registry.get(request.path_params["name"])
        error = self.registry.errors.get(served.name)
        return _json(200, encode(served.about() | {"reload_error": error}))

    async def reload(self, request: Request) -> Response:
        """POST /reload, /models/{name}/reload: read model files again."""
        errors = await self._work(partial(self.registry.reload, request.path_params.get("name")))
        tell(errors)
        models = {
            name: {"reloaded": error is None, "error": error} for name, error in errors.items()
        }
        failed = any(error is not None for error in errors.values())
        return _json(409 if failed else 200, encode({"models": models}))

    async def show_metrics(self, request: Request) -> Response:
        """GET /metrics: counts and latencies."""
        return _json(200, encode(self.metrics.to_dict()))

    # -- helpers ----------------------------------------------------------------------------------

    async def _body(self, request: Request) -> bytes:
        """Return the body; refuse one that is too long or arrives too slowly."""
        declared = request.headers.get("content-length", "")
        if declared.isdecimal() and len(declared) < 20 and int(declared) > self.max_body:
            raise self._too_large()
        chunks, size = [], 0
        try:
            async with asyncio.timeout(self.timeout):
                async for chunk in request.stream():
                    size += len(chunk)
                    if size > self.max_body:
                        raise self._too_large()
                    chunks.append(chunk)
        except TimeoutError:
            raise Problem(
                408,
                f"The body did not arrive within {self.timeout:g} seconds.",
                rule="A request is sent without pauses.",
                remedy="Send it again.",
            ) from None
        return b"".join(chunks)

    def _too_large(self) -> Problem:
        return Problem(
            413,
            "The body is too long.",
            rule=f"A body has at most {self.max_body:,} bytes.",
            remedy="Send fewer documents, or start the service with a larger --max-body.",
        )

    async def _work(self, function: Callable[[], Result]) -> Result:
        """Run a slow function on a worker thread, so that other requests need not wait."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, function)

    def _guarded(self, handler: Handler) -> Handler:
        """Return the handler with errors answered as JSON, and all answers counted."""

        async def answer(request: Request) -> Response:
            try:
                response = await handler(request)
            except Problem as problem:
                response = _problem(problem)
            except ClientDisconnect:
                response = Response(status_code=400)  # nobody reads it
            except Exception:
                log.exception("%s %s", request.method, request.scope["path"])
                response = _problem(_FAILURE)
            self.metrics.answered(response.status_code)
            return response

        return answer

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Watch files and SIGHUP while the service runs."""
        loop = asyncio.get_running_loop()
        tasks: set[asyncio.Task[None]] = set()

        def start(work: Callable[[], Awaitable[None]]) -> None:
            task = asyncio.ensure_future(work())
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        async def reload_all() -> None:
            tell(await self._work(self.registry.reload))

        hup = getattr(signal, "SIGHUP", None)
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            if hup is not None:
                loop.add_signal_handler(hup, lambda: start(reload_all))
        if self.watch > 0:
            start(self._watch)
        try:
            yield
        finally:
            for task in list(tasks):
                task.cancel()
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                if hup is not None:
                    loop.remove_signal_handler(hup)
            self._threads.shutdown(wait=True)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self.watch)
            tell(await self._work(self.registry.reload_changed))

    def app(self) -> Starlette:
        """Return the ASGI application."""
        get, post = ["GET"], ["POST"]
        routes = [
            ("/rank", self.rank, post),
            ("/models/{name}/rank", self.rank, post),
            ("/models", self.list_models, get),
            ("/models/{name}", self.show_model, get),
            ("/models/{name}/reload", self.reload, post),
            ("/reload", self.reload, post),
            ("/health", self.health, get),
            ("/metrics", self.show_metrics, get),
        ]
        return Starlette(
            routes=[
                Route(path, self._guarded(handler), methods=methods)
                for path, handler, methods in routes
            ],
            lifespan=self.lifespan,
            exception_handlers={HTTPException: self._no_route},
        )

    async def _no_route(self, request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        wrong = "is not allowed" if status == 405 else "does not exist"
        self.metrics.answered(status)
        response = _problem(
            Problem(
                status,
                f"{request.method} {request.scope['path'][:200]} {wrong}.",
                rule="There are POST /rank, /models/{name}/rank, /reload and "
                "/models/{name}/reload; GET /models, /models/{name}, /health and /metrics.",
                remedy="Use one of these.",
            )
        )
        if isinstance(error, HTTPException) and error.headers:
            response.headers.update(error.headers)
        return response


def _answer(served: Served, body: bytes) -> tuple[int, bytes]:
    """Return the number of documents in a request, and its answer."""
    request = served.form.read(decode(body))
    try:
        answer = served.rank(request)
    except RankgroveError as error:  # input that the model itself refuses
        raise Problem(
            422,
            str(error),
            rule="The model must be able to score the documents.",
            remedy="Change their features as the message says.",
        ) from None
    return len(request.ids), encode(answer)


def tell(errors: Mapping[str, str | None]) -> None:
    """Log the result of reloading."""
    for name, error in errors.items():
        if error is None:
            log.info("model %s: reloaded", name)
        else:
            log.error("model %s: not reloaded: %s", name, error)


_FAILURE = Problem(
    500,
    "The service failed.",
    rule="Every request is answered, or refused with the reason.",
    remedy="The service's log says more.",
)


def _problem(problem: Problem) -> Response:
    return _json(problem.status, encode({"error": problem.content}))


def _json(status: int, content: bytes) -> Response:
    return Response(content, status, media_type="application/json")
