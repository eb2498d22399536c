"""Tests the recipes in packaging/ without OpenWrt's tree. Stubs replace OpenWrt's makefiles and
shell functions, so the tests check how our recipes use them."""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from test_readme import understand
from tree import ROOT

from sojourn.cli import cli

OPENWRT = ROOT / "packaging" / "openwrt"
INIT, CONFIG = OPENWRT / "files" / "sojourn-probe.init", OPENWRT / "files" / "sojourn-probe.config"
SHELLS = [
    words for words in (["dash"], ["bash", "--posix"], ["busybox", "ash"]) if shutil.which(words[0])
]

# Stubs of OpenWrt's include/package.mk and its feed's rust-package.mk. With them the tests check that
# our recipe passes the package's name and MAKE_PATH, and installs by its own rules.
STUBS = {
    "rules.mk": "INSTALL_DIR:=install -d -m0755\nINSTALL_BIN:=install -m0755\nINSTALL_CONF:=install -m0600\n",
    "include/package.mk": "define BuildPackage\nbuilt:\n$(call Package/$(1)/install,$(DEST))\nendef\n",
    "feeds/packages/lang/rust/rust-package.mk": (
        "define RustBinPackage\nshow:\n\t@echo $(1) $(PKG_VERSION) $(MAKE_PATH) $(CARGO_PKG_PROFILE) "
        "$(PKG_LICENSE_FILES)\nendef\n"
    ),
}
# Stubs of OpenWrt's /lib/functions.sh and procd.sh. They read one section from a file, and print
# the command for procd, one word per line.
FUNCTIONS = """
config_load() { [ "$1" = sojourn-probe ]; }
config_foreach() { "$1" first; }
config_get() { eval "$1=\\$(sed -n \\"s/^[[:space:]]*option $3 '\\(.*\\)'$/\\1/p\\" "$CONFIG")"; }
config_get_bool() { config_get "$@"; }
procd_open_instance() { :; }
procd_close_instance() { :; }
procd_set_param() { [ "$1" != command ] || { shift; printf '%s\\n' "$@"; }; }
procd_append_param() { shift; printf '%s\\n' "$@"; }
procd_add_reload_trigger() { :; }
"""


def made(folder: Path, *words: str) -> str:
    for name, text in STUBS.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    settings = (f"TOPDIR={folder}", f"INCLUDE_DIR={folder}/include")
    done = subprocess.run(
        ["make", "-s", "-C", str(OPENWRT), *settings, *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_recipe_builds_the_program_of_this_tree(tmp_path: Path) -> None:
    name, version, crate, profile, licence = made(tmp_path, "show").split()
    whole = tomllib.loads((ROOT / "Cargo.toml").read_text())
    assert version == whole["workspace"]["package"]["version"]
    (program,) = tomllib.loads((ROOT / crate / "Cargo.toml").read_text())["bin"]
    assert program["name"] == name == "sojourn-probe"
    assert profile in whole["profile"]
    assert (ROOT / licence).is_file()


def test_the_recipe_installs_program_script_and_configuration(tmp_path: Path) -> None:
    built, there = tmp_path / "built", tmp_path / "there"
    (built / "bin").mkdir(parents=True)
    (built / "bin" / "sojourn-probe").write_text("program")
    made(tmp_path, "built", f"DEST={there}", f"PKG_INSTALL_DIR={built}")
    installed = {
        str(file.relative_to(there)): (file.read_bytes(), file.stat().st_mode & 0o777)
        for file in there.rglob("*")
        if file.is_file()
    }
    assert installed == {
        "usr/bin/sojourn-probe": (b"program", 0o755),
        "etc/init.d/sojourn-probe": (INIT.read_bytes(), 0o755),
        "etc/config/sojourn-probe": (CONFIG.read_bytes(), 0o600),
    }


def started(shell: list[str], folder: Path, **options: str) -> list[str]:
    """Returns the command that procd has to run, with these options in the configuration."""
    text = CONFIG.read_text()
    for name, value in options.items():
        (line,) = [line for line in text.splitlines() if line.startswith(f"\toption {name} ")]
        text = text.replace(line, f"\toption {name} '{value}'")
    config, functions = folder / "config", folder / "functions.sh"
    config.write_text(text)
    functions.write_text(FUNCTIONS)
    done = subprocess.run(
        [*shell, "-c", f". {functions}; . {INIT}; start_service && service_triggers"],
        env={"PATH": "/usr/bin:/bin", "CONFIG": str(config)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_the_init_script_starts_the_configured_server(shell: list[str], tmp_path: Path) -> None:
    assert started(shell, tmp_path) == []
    serve = ["/usr/bin/sojourn-probe", "serve", "--bind", "192.168.1.1", "--port", "35500"]
    assert started(shell, tmp_path, enabled="1") == serve
    secret = started(shell, tmp_path, enabled="1", secret="/etc/a secret", port="")
    assert secret == [*serve[:4], "--secret", "@/etc/a secret"]
    # The options are those of `sojourn serve`.
    understand(cli, serve[1:])


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="needs shellcheck")
def test_shellcheck_finds_nothing_in_the_init_script() -> None:
    # rc.common uses the variables that seem unused. Every shell of OpenWrt has `local`.
    words = ["shellcheck", "--shell=sh", "--exclude=SC2034,SC3043", str(INIT)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_accepts_every_line_of_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "sojourn-probe.service"
    text = (ROOT / "packaging" / "systemd" / "sojourn-probe.service").read_text()
    # A program that exists here: the administrator installs ours.
    unit.write_text(text.replace("/usr/local/bin/sojourn-probe", shutil.which("true") or ""))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "sojourn-probe.service" not in done.stderr, done.stderr
