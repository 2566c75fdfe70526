"""Writes a wheel: wheel.py SOURCE BINARY PLATFORM FOLDER LICENSE… BILL. Prints its path.

What the wheel says of itself is read from SOURCE/pyproject.toml, so that `pip install ./python` says the same.
"""

import base64
import hashlib
import pathlib
import sys
import tomllib
import zipfile

source, binary, platform, folder, *licenses, bill = sys.argv[1:]
source = pathlib.Path(source)
project = tomllib.loads((source / "pyproject.toml").read_text())["project"]
name, version = project["name"], project["version"]
info = f"{name}-{version}.dist-info"

metadata = [
    "Metadata-Version: 2.4",
    f"Name: {name}",
    f"Version: {version}",
    f"Summary: {project['description']}",
    f"Requires-Python: {project['requires-python']}",
    f"License-Expression: {project['license']['text']}",
    *(f"License-File: {pathlib.Path(license).name}" for license in licenses),
    *(f"Requires-Dist: {needed}" for needed in project.get("dependencies", [])),
]
for extra, needs in project["optional-dependencies"].items():
    metadata.append(f"Provides-Extra: {extra}")
    metadata += [f"Requires-Dist: {needed} ; extra == '{extra}'" for needed in needs]

metadata += ["Description-Content-Type: text/markdown", "", (source / project["readme"]).read_text()]

files = {}
for path in sorted((source / name).rglob("*")):
    if path.suffix == ".py" or path.name == "py.typed":
        files[path.relative_to(source).as_posix()] = (path.read_bytes(), 0o644)
files[f"{name}-{version}.data/scripts/{name}"] = (pathlib.Path(binary).read_bytes(), 0o755)
files[f"{info}/METADATA"] = ("\n".join(metadata).encode(), 0o644)
wheel = f"Wheel-Version: 1.0\nGenerator: kvdyno\nRoot-Is-Purelib: false\nTag: py3-none-{platform}\n"
files[f"{info}/WHEEL"] = (wheel.encode(), 0o644)
for path in map(pathlib.Path, licenses):
    files[f"{info}/licenses/{path.name}"] = (path.read_bytes(), 0o644)
files[f"{info}/sboms/{pathlib.Path(bill).name}"] = (pathlib.Path(bill).read_bytes(), 0o644)

record = []
for path, (content, _) in files.items():
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    record.append(f"{path},sha256={digest},{len(content)}\n")
files[f"{info}/RECORD"] = ("".join(record) + f"{info}/RECORD,,\n").encode(), 0o644

written = pathlib.Path(folder) / f"{name}-{version}-py3-none-{platform}.whl"
with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
    for path, (content, mode) in files.items():
        # The time of files in it: that of no machine.
        entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(entry, content)
print(written)
