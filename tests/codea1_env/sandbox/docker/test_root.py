"""What an image of this interpreter holds."""

from __future__ import annotations

import io
import os
import sys
import tarfile
from pathlib import Path

import pytest

from codea1_env.sandbox.docker import root as docker_root
from codea1_env.sandbox.docker.root import Root, path_in_image

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with an allowed package, an allowed module and others."""
    site = tmp_path / "site"
    for package in ("allowed", "allowed.libs", "other"):
        (site / package).mkdir(parents=True)
    (site / "allowed" / "__init__.py").write_text("a = 1\n")
    (site / "allowed" / "__init__.py").chmod(0o600)
    (site / "allowed.libs" / "library.so").write_text("")
    (site / "single.py").write_text("")
    return site


def members_of(root: Root) -> dict[str, tarfile.TarInfo]:
    file = io.BytesIO()
    root.write(file)
    file.seek(0)
    with tarfile.open(fileobj=file) as archive:
        # What lies in the folder of temporary files here lies elsewhere in the image.
        return {f"/{member.name}".removeprefix("/outside") or "/": member for member in archive.getmembers()}


def test_it_holds_python_and_the_allowed_packages_readable_by_any_user(site: Path) -> None:
    root = Root({"allowed": str(site), "single": str(site)})
    members = members_of(root)
    assert members[root.python].mode == 0o755
    assert os.path.realpath(os.__file__) in members
    assert {f"{site}/allowed/__init__.py", f"{site}/allowed.libs/library.so", f"{site}/single.py"} <= set(members)
    assert not any("site-packages" in name or name.endswith("/other") for name in members)
    assert all(member.mode & 0o004 and member.uid == member.gid == 0 for member in members.values())


def test_what_a_container_would_hide_lies_elsewhere() -> None:
    assert path_in_image("/tmp/venv/lib/numpy") == "/outside/tmp/venv/lib/numpy"
    assert path_in_image("/usr/lib/python3") == "/usr/lib/python3"


def test_folders_come_before_what_lies_in_them_and_nothing_lies_below_a_link(site: Path) -> None:
    seen: set[str] = {"/"}
    for name, member in members_of(Root({"allowed": str(site)})).items():
        assert os.path.dirname(name) in seen, name
        if member.isdir():
            seen.add(name)
    assert str(site / "allowed") in seen


def test_links_on_the_way_to_a_file_are_kept_as_links(site: Path, tmp_path: Path) -> None:
    (tmp_path / "by-name").symlink_to("site")
    (site / "allowed" / "data.txt").symlink_to("../other/data.txt")
    (site / "other" / "data.txt").write_text("found\n")
    members = members_of(Root({"allowed": str(tmp_path / "by-name")}))
    assert members[f"{tmp_path}/by-name"].linkname == "site"
    assert members[f"{site}/allowed/data.txt"].linkname == "../other/data.txt"
    assert members[f"{site}/other/data.txt"].isfile()


def test_the_digest_follows_content_names_and_modes_but_no_times(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docker_root.sysconfig, "get_path", lambda name: str(site / "other"))  # a small library
    monkeypatch.setattr(docker_root, "_libraries", lambda python, packages: iter(()))
    file = site / "allowed" / "__init__.py"

    def digest() -> str:
        return Root({"allowed": str(site)}).digest()

    digests = [digest()]
    os.utime(file, (1, 1))
    assert digest() == digests[0]
    file.write_text("a = 2\n")
    digests.append(digest())
    file.chmod(0o700)
    digests.append(digest())
    file.rename(file.with_name("renamed.py"))
    digests.append(digest())
    assert len(set(digests)) == 4
