"""The server of the page: static files, and what a browser cannot do by itself."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, HTTPException, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.staticfiles import StaticFiles

from measureflow.explorer import circuit, fits, papers
from measureflow.explorer.jobs import Job, Jobs, Simulation
from measureflow.explorer.limits import Crowd, Gate, Limits, Sealed, body_of

STATIC = Path(__file__).parent / "static"
HOSTS = ["127.0.0.1", "localhost", "[::1]"]  # a page elsewhere that points its name at us is turned away
EXAMPLES = {"penguins": "Palmer penguins", "faithful": "Old Faithful eruptions"}  # the page opens with the first


def create_app(
    data: Path | None = None,
    *,
    results: Path = Path("out"),
    artefacts: Mapping[str, Sequence[str]] | None = None,
    records: papers.Records | None = None,
    limits: Limits | None = None,
    hosts: Sequence[str] = HOSTS,
    warm: bool = False,
) -> FastAPI:
    """The whole server; ``data`` is the table the page opens with, ``artefacts`` what each paper has to show.

    ``records`` describe the runs whose results ship with the package. A ``warm`` server compiles in the background what
    the first fit needs.
    """
    limits = limits or Limits()
    jobs = Jobs(limits.running, limits.waiting)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        if warm:
            threading.Thread(target=fits.warm, name="warm", daemon=True).start()
        yield
        jobs.close()

    app = FastAPI(title="measureflow", lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.limits, app.state.jobs = limits, jobs
    app.state.gate = Gate(limits.running, limits.waiting)
    app.state.data, app.state.results, app.state.artefacts = data, results, artefacts or {}
    app.state.records = records or {}
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
def example(request: Request, name: str) -> Response:
    """One of them, as text that the page can read."""
    own = request.app.state.data
    if name == "own" and own:
        body = own.read_bytes()
        return Response(body if fits.page_can_read(body) else fits.as_csv(body), media_type="text/csv")
    if name not in EXAMPLES:
        raise HTTPException(404, f"there is no example {name!r}")
    return Response((files("measureflow.data") / f"{name}.csv").read_bytes(), media_type="text/csv")


Columns = Annotated[list[str], Query(default_factory=list)]


async def _about_a_table(request: Request, work: Callable[..., Any], columns: list[str], *more: Any) -> Any:
    """What ``work`` says of the table in the body, which is a file as it is; 422 with the reason if it cannot."""
    body = await body_of(request, request.app.state.limits.body)
    try:
        return await request.app.state.gate.run(work, body, tuple(columns), *more)
    except (TypeError, ValueError) as error:
        raise HTTPException(422, str(error)) from None


@routes.post("/table")
async def table(request: Request, columns: Columns) -> Any:
    """A file as the library reads it, and as a CSV that the page can read."""
    return await _about_a_table(request, fits.describe, columns)


@routes.post("/fit")
async def fit(
    request: Request, columns: Columns, n_clusters: int | None = Query(None, ge=1), snr_db: float | None = None
) -> Any:
    """The clusters of a file by `FlowMixture`, without choosing K."""
    return await _about_a_table(request, fits.fit, columns, n_clusters, snr_db, request.app.state.limits.rows)


@routes.post("/stability")
async def stability(
    request: Request,
    columns: Columns,
    n_clusters: int | None = Query(None, ge=1),
    snr_db: float | None = None,
    n: int = Query(10, ge=1, le=100),
) -> Any:
    """How often the number of clusters, and each of them, come back when parts of the rows are fitted again."""
    return await _about_a_table(request, fits.stability, columns, n_clusters, snr_db, n)


@routes.post("/dial")
async def dial(request: Request, columns: Columns, db: Annotated[list[float], Query(max_length=64)]) -> list[int]:
    """The number of clusters at each of these signal-to-noise ratios."""
    return await _about_a_table(request, fits.dial, columns, tuple(db))


@routes.post("/peers")
async def peers(request: Request, columns: Columns, n_clusters: int = Query(ge=1)) -> Any:
    """What other clusterers make of the same rows."""
    return await _about_a_table(request, fits.peers, columns, n_clusters)


@routes.post("/simulate", status_code=202)
async def simulate(request: Request, simulation: Simulation) -> dict[str, Any]:
    """Start a simulation; ask for it by its id until it is over."""
    return request.app.state.jobs.start(simulation).report()


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


class Circuit(BaseModel):
    """Which circuit to take apart, and the points it is shown, if not some of its own."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    algorithm: str = "lloyd"
    k: int = Field(3, ge=1, le=8)
    n: int = Field(24, ge=2, le=60)
    layers: int = Field(6, ge=1, le=12)
    seed: int = Field(0, ge=0, lt=2**31)
    points: list[tuple[float, float]] | None = Field(None, max_length=60)


@routes.post("/circuit")
async def take_apart(request: Request, settings: Circuit) -> Response:
    """A k-means transformer with every matrix of every layer."""
    try:
        content = await request.app.state.gate.run(_circuit, settings.model_dump_json())
    except ValueError as error:
        raise HTTPException(422, str(error)) from None
    return Response(content, media_type="application/json")


@lru_cache(maxsize=64)
def _circuit(settings: str) -> bytes:
    return json.dumps(circuit.take_apart(**json.loads(settings))).encode()


@routes.get("/papers")
def shelf(request: Request) -> list[dict[str, Any]]:
    """The papers, what each has to show, and what of it has been made here."""
    state = request.app.state
    return papers.shelf(state.results, state.artefacts, state.records)


@routes.post("/papers/{paper}/{name}")
async def make(request: Request, paper: str, name: str) -> Any:
    """Make a table or figure here, at size tiny, as ``measureflow reproduce`` does; what came of it."""
    state = request.app.state
    if name not in state.artefacts.get(paper, ()):
        raise HTTPException(404, f"{paper} has no {name}")
    try:
        return await state.gate.run(papers.make, state.results, paper, name, state.records)
    except ValueError as error:
        raise HTTPException(422, str(error)) from None


@routes.get("/papers/{paper}/{name}/{file}")
def paper_file(request: Request, paper: str, name: str, file: str, download: bool = False) -> Any:
    """A picture, or a table: its head, or all of it as a file."""
    for ending in (".png", ".csv"):
        path = papers.find(request.app.state.results, paper, name, file, ending)
        if path is not None and ending == ".csv" and not download:
            return papers.table(path)
        if path is not None:
            return FileResponse(path, filename=path.name if download else None)
    raise HTTPException(404, "there is no such picture or table")


def serve(app: FastAPI, port: int = 0, *, host: str = "127.0.0.1", browser: bool = True) -> None:
    """Serve until interrupted; port 0 takes any that is free. The address is printed, and opened if ``browser``.

    A ValueError says why a port is not available.
    """
    import socket
    import webbrowser

    import uvicorn

    try:
        listener = socket.create_server((host, port))
    except OSError as error:
        why = str(error.strerror).partition(" (")[0].lower()
        raise ValueError(f"port {port} is not available: {why}; leave out --port to take a free one") from None
    with listener:
        address = f"http://{host}:{listener.getsockname()[1]}/"
        print(f"The explorer is at {address} (Ctrl-C ends it)", flush=True)
        if browser:
            webbrowser.open(address)
        settings = uvicorn.Config(app, log_level="warning", server_header=False, timeout_graceful_shutdown=2)
        uvicorn.Server(settings).run(sockets=[listener])


__all__ = ["create_app", "serve"]
