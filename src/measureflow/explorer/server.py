"""The server of the page: static files, and what a browser cannot do by itself."""

from __future__ import annotations

import contextlib
import json
import threading
import warnings
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from fastapi import APIRouter, FastAPI, HTTPException, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.staticfiles import StaticFiles

from measureflow.explorer import circuit, papers, tables
from measureflow.explorer.jobs import Job, Jobs, Simulation
from measureflow.explorer.limits import Crowd, Gate, Limits, Sealed, body_of

STATIC = Path(__file__).parent / "static"
HOSTS = ["127.0.0.1", "localhost", "[::1]"]  # a page elsewhere that points its name at us is turned away
FITTING = threading.Lock()  # one fit at a time: it uses all cores anyway, and what Python warns of has no owner
EXAMPLES = {"faithful": "Old Faithful eruptions", "penguins": "Palmer penguins"}


def create_app(
    data: Path | None = None,
    *,
    results: Path = Path("out"),
    artefacts: Mapping[str, Sequence[str]] | None = None,
    limits: Limits | None = None,
    hosts: Sequence[str] = HOSTS,
) -> FastAPI:
    """The whole server; ``data`` is the table the page opens with, ``artefacts`` what each paper has to show."""
    limits = limits or Limits()
    jobs = Jobs(limits.running, limits.waiting)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        jobs.close()

    app = FastAPI(title="measureflow", lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.limits, app.state.jobs = limits, jobs
    app.state.gate = Gate(limits.running, limits.waiting)
    app.state.data, app.state.results, app.state.artefacts = data, results, artefacts or {}
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts))
    app.add_middleware(Sealed)
    app.add_middleware(Crowd, most=limits.requests)
    app.add_exception_handler(RequestValidationError, _say_what_is_wrong)
    app.include_router(routes)
    app.mount("/", StaticFiles(directory=STATIC, html=True), name="page")
    return app


async def _say_what_is_wrong(request: Request, error: Exception) -> JSONResponse:
    first = error.errors()[0] if isinstance(error, RequestValidationError) else {"msg": str(error)}
    where = ".".join(str(part) for part in first.get("loc", ())[1:])
    return JSONResponse({"detail": f"{where}: {first['msg']}" if where else first["msg"]}, 422)


routes = APIRouter(prefix="/api")


@routes.get("/models")
async def models() -> list[dict[str, Any]]:
    """The models the page can run, with their range of SNR and number of layers."""
    index = STATIC / "models" / "models.json"
    return json.loads(index.read_text()) if index.is_file() else []


@routes.get("/examples")
async def examples(request: Request) -> list[dict[str, str]]:
    """The tables at hand, the user's own first."""
    own = request.app.state.data
    mine = [{"name": "own", "title": own.name}] if own else []
    return mine + [{"name": name, "title": title} for name, title in EXAMPLES.items()]


@routes.get("/examples/{name}")
async def example(request: Request, name: str) -> Response:
    """One of them, as CSV."""
    own = request.app.state.data
    if name == "own" and own:
        return FileResponse(own, media_type="text/csv")
    if name not in EXAMPLES:
        raise HTTPException(404, f"there is no example {name!r}")
    return Response((files("measureflow.data") / f"{name}.csv").read_bytes(), media_type="text/csv")


@routes.post("/fit")
async def fit(request: Request, n_clusters: int | None = Query(None, ge=1), snr_db: float | None = None) -> Any:
    """Cluster a table (CSV, or JSON with ``points``) by `FlowMixture`, without choosing K."""
    limits: Limits = request.app.state.limits
    body = await body_of(request, limits.body)
    as_json = "json" in request.headers.get("content-type", "")
    return await request.app.state.gate.run(_fit, body, as_json, {"n_clusters": n_clusters, "snr_db": snr_db}, limits)


def _fit(body: bytes, as_json: bool, options: dict[str, Any], limits: Limits) -> dict[str, Any]:
    from measureflow import FlowMixture  # loads torch: the page itself should open at once

    try:
        table, said = tables.read_json(body) if as_json else (tables.read_csv(body), {})
        options |= {name: said[name] for name in options if name in said}
        if len(table.values) > limits.rows:
            raise ValueError(f"the table has {len(table.values)} rows, more than {limits.rows}")
        with FITTING, warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            model = FlowMixture(**options, random_state=0).fit(table.values)
    except (TypeError, ValueError) as error:
        raise HTTPException(422, str(error)) from None
    names = ("labels_", "cluster_centers_", "weights_", "noise_variance_", "snr_db_", "n_clusters_")
    report = {name.rstrip("_"): _plain(getattr(model, name)) for name in (*names, "n_clusters_posterior_")}
    notes = [str(one.message) for one in warned if issubclass(one.category, UserWarning)]
    return {"columns": table.columns, "dropped": table.dropped, "notes": notes, **report}


def _plain(value: Any) -> Any:
    """Arrays and their scalars as what JSON can say."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return np.asarray(value).tolist()


@routes.post("/simulate", status_code=202)
async def simulate(request: Request, asked: Simulation) -> dict[str, Any]:
    """Start a simulation; ask for it by its id until it is over."""
    return request.app.state.jobs.start(asked).report()


@routes.get("/simulate/{job}")
async def watch(request: Request, job: str) -> dict[str, Any]:
    """Where a simulation stands, and its result when it is done."""
    return _job(request, job).report()


@routes.delete("/simulate/{job}")
async def cancel(request: Request, job: str) -> dict[str, Any]:
    """End a simulation."""
    found = _job(request, job)
    found.stop.set()
    return found.report()


def _job(request: Request, job: str) -> Job:
    if job not in request.app.state.jobs.jobs:
        raise HTTPException(404, "there is no such simulation; finished ones are forgotten after a while")
    return request.app.state.jobs.jobs[job]


@routes.get("/circuit")
async def take_apart(
    request: Request,
    algorithm: str = "lloyd",
    k: int = Query(3, ge=1, le=8),
    n: int = Query(24, ge=2, le=60),
    layers: int = Query(6, ge=1, le=12),
    seed: int = Query(0, ge=0, lt=2**31),
) -> Response:
    """A k-means transformer with every matrix of every layer."""
    try:
        content = await request.app.state.gate.run(_circuit, algorithm, k, n, layers, seed)
    except ValueError as error:
        raise HTTPException(422, str(error)) from None
    return Response(content, media_type="application/json")


@lru_cache(maxsize=64)
def _circuit(*asked: Any) -> bytes:
    return json.dumps(circuit.take_apart(*asked)).encode()


@routes.get("/papers")
def shelf(request: Request) -> list[dict[str, Any]]:
    """The papers, what each has to show, and what of it has been made here."""
    return papers.shelf(request.app.state.results, request.app.state.artefacts)


@routes.get("/papers/{paper}/{name}/{file}")
def paper_file(request: Request, paper: str, name: str, file: str) -> Any:
    """A picture, or the head of a table."""
    for ending in (".png", ".csv"):
        path = papers.find(request.app.state.results, paper, name, file, ending)
        if path is not None:
            return FileResponse(path) if ending == ".png" else papers.table(path)
    raise HTTPException(404, "there is no such picture or table")


def serve(app: FastAPI, port: int = 0, *, host: str = "127.0.0.1", browser: bool = True) -> None:
    """Serve until interrupted; port 0 takes any that is free. The address is printed, and opened unless told not to."""
    import socket
    import webbrowser

    import uvicorn

    with socket.create_server((host, port)) as listener:
        address = f"http://{host}:{listener.getsockname()[1]}/"
        print(f"The explorer is at {address} (Ctrl-C ends it)", flush=True)
        if browser:
            webbrowser.open(address)
        settings = uvicorn.Config(app, log_level="warning", server_header=False, timeout_graceful_shutdown=2)
        uvicorn.Server(settings).run(sockets=[listener])


__all__ = ["create_app", "serve"]
