#!/bin/sh
# Build wheel and sdist into dist/, install the wheel into the clean environment build/wheel-venv (made by the
# Makefile) with nothing of this folder in sight, and try it.
set -eu
cd "$(dirname "$0")/../.."
venv=build/wheel-venv

mkdir -p build
rm -rf build/lib build/bdist.* dist
echo "Building wheel and sdist"
"$PYTHON" -m build --no-isolation --outdir dist . > build/wheel.log 2>&1 || { tail -20 build/wheel.log; exit 1; }

"$PYTHON" tests/wheel/contents.py dist

"$venv/bin/python" -m pip install -qq --disable-pip-version-check --no-deps --force-reinstall dist/*.whl

echo "Trying what was installed"
root=$PWD
elsewhere=$(mktemp -d)
trap 'rm -rf "$elsewhere"' EXIT
cd "$elsewhere"
"$root/$venv/bin/measureflow" --version
"$root/$venv/bin/measureflow" doctor
"$root/$venv/bin/python" -I "$root/tests/wheel/smoke.py" "$root"
