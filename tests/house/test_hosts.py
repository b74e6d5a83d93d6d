"""No file of the project names a machine, a registry or a path of a build."""

import os
import subprocess

from tests.house.source import PACKAGE, ROOT


def tracked() -> list[str]:
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode:
        return [str(path.relative_to(ROOT)) for path in PACKAGE.rglob("*") if path.is_file()]
    return listing.stdout.split("\n")


def test_no_file_names_a_machine_or_a_registry():
    places = ["/" + "root/", "/" + "work/main", "/" + "work/shared", "/" + "home/runner"]
    hosts = ["pypi." + "org", "pythonhosted" + ".org", "artifact" + "ory", "localhost:" + "3141"]
    host = os.uname().nodename
    names = [*places, *hosts, *([host] if len(host) > 6 else [])]
    hits = []
    for name in tracked():
        path = ROOT / name
        if not path.is_file() or path.suffix in (".gz", ".npz", ".onnx", ".bin", ".png", ".zst"):
            continue
        text = path.read_text("utf-8", "replace")
        hits += [f"{name}: {bad}" for bad in names if bad in text]
    assert not hits
