#!/bin/sh
# Build wheel and sdist into dist/, install the wheel into build/wheel-venv with nothing of this folder in sight, try it.
set -eu
cd "$(dirname "$0")/../.."
venv=build/wheel-venv

mkdir -p build
rm -rf build/lib build/bdist.* dist
echo "Building wheel and sdist"
"$PYTHON" -m build --no-isolation --outdir dist . > build/wheel.log 2>&1 || { tail -20 build/wheel.log; exit 1; }

"$PYTHON" tests/wheel/contents.py dist

stamp=$(cat requirements.lock | cksum | cut -d' ' -f1)
if [ ! -e "$venv/.packages-$stamp" ]; then
  echo "Making a clean environment in $venv (a few minutes the first time)"
  rm -rf "$venv"
  "$PYTHON" -m venv "$venv"
  pip="$venv/bin/python -m pip install -qq --disable-pip-version-check"
  $pip --require-hashes --no-deps -r requirements.lock
  $pip ${TORCH_PIP_ARGS:-} torch==2.13.0
  touch "$venv/.packages-$stamp"
fi
"$venv/bin/python" -m pip install -qq --disable-pip-version-check --no-deps --force-reinstall dist/*.whl

echo "Trying what was installed"
root=$PWD
elsewhere=$(mktemp -d)
trap 'rm -rf "$elsewhere"' EXIT
cd "$elsewhere"
"$root/$venv/bin/measureflow" --version
"$root/$venv/bin/measureflow" doctor
"$root/$venv/bin/python" -I "$root/tests/wheel/smoke.py" "$root"
