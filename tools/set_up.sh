# shellcheck shell=bash
# Functions that set up a build folder, for the scripts of this folder: Debian packages, then Meson. A
# script sources the file in the repository's root. A function that fails stops the script with one line.

# shellcheck disable=SC2034 # for those who source this
build_packages=(g++ meson ninja-build pkg-config nlohmann-json3-dev libspdlog-dev libfmt-dev
  libcli11-dev libgtest-dev libbenchmark-dev zlib1g-dev python3 python3-pytest python3-jsonschema nodejs npm)

say() { printf '\n== %s\n' "$*"; }

stop() {
  printf '%s: %s\n' "$(basename "$0")" "$1" >&2
  exit "${2:-1}"
}

# is_installed PACKAGE: true if the package is installed, or if another installed package provides it, as some packages of
# nodejs provide npm.
is_installed() {
  dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q '^install ok installed$' ||
    dpkg-query -W -f '${db:Status-Status}, ${Provides}\n' | awk -F ', *' -v name="$1" '
      $1 == "installed" { for (i = 2; i <= NF; i++) { sub(/ .*/, "", $i); if ($i == name) found = 1 } }
      END { exit !found }'
}

# need_packages PACKAGE...: installs packages that are missing. Without the right to do so, names them and
# stops with status 2.
need_packages() {
  local package missing=()
  if ! command -v dpkg-query >/dev/null; then
    say "Not a Debian system: taking for granted what these packages hold: $*"
    return
  fi
  for package in "$@"; do
    is_installed "$package" || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  if [ "$(id -u)" -ne 0 ]; then
    stop "these packages are missing; as root: apt-get install ${missing[*]}" 2
  fi
  say "Installing ${missing[*]}"
  apt-get update || stop 'apt-get update failed'
  DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}" ||
    stop 'apt-get install failed'
}

# set_up_folder FOLDER [MESON-ARGUMENT...]: configures the build folder unless it is configured already.
set_up_folder() {
  local folder=$1
  shift
  if [ ! -f "$folder/build.ninja" ]; then
    say "Configuring $folder"
    meson setup "$folder" "$@" || stop "meson could not configure $folder (see above)"
  fi
}

# set_option FOLDER NAME VALUE: sets the option of a configured build folder, unless it has this value already.
set_option() {
  python3 -c 'import json, sys
options = json.load(open(sys.argv[1] + "/meson-info/intro-buildoptions.json"))
values = {option["name"]: json.dumps(option["value"]) for option in options}
sys.exit(values[sys.argv[2]] != sys.argv[3])' "$@" && return
  say "Configuring $1 anew with -D$2=$3"
  meson configure "$1" "-D$2=$3" || stop "meson could not configure $1 (see above)"
}

# build_folder FOLDER [TARGET...]: builds the targets; without targets, everything.
build_folder() {
  say "Building $1"
  ninja -C "$@" || stop "the build of $1 failed (see above)"
}
