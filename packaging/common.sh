# Shared by the scripts of this folder, which source it: where things are, and which versions of tools are used.
# shellcheck shell=bash disable=SC2034

set -euo pipefail
IFS=$'\n\t'
export LC_ALL=C TZ=UTC
umask 022

source_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' "$source_root/Cargo.toml")
cache=${PUSHBACK_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/pushback}

# Every time that an artefact holds: that of the commit, so that two builds of it are the same.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$source_root" log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH

# The compiler of what is published. Another one builds other bytes.
RUSTUP_TOOLCHAIN=${RUSTUP_TOOLCHAIN:-1.95.0}
export RUSTUP_TOOLCHAIN

cargo_auditable=0.7.7
cargo_cyclonedx=0.5.9
cargo_zigbuild=0.24.1
# Zig's C compiler and C libraries, from PyPI.
ziglang=0.15.2

fail() {
    printf '%s: %s\n' "$(basename "$0")" "$1" >&2
    exit 1
}

# The folder with a cargo tool, which is built once a version, outside of the checkout.
cargo_tool() {
    local name=$1 version=$2 root=$cache/$1-$2
    if [ ! -x "$root/bin/$name" ]; then
        cargo install "$name" --version "$version" --locked --debug --quiet --root "$root" >&2
    fi
    printf '%s\n' "$root/bin"
}

# The targets that $1 holds a binary for.
built_targets() {
    local binary
    for binary in "$1"/bin/*/pushback "$1"/bin/*/pushback.exe; do
        if [ -f "$binary" ]; then basename "$(dirname "$binary")"; fi
    done
}

# A tar archive that depends on its content alone: of the folder $1, to standard output.
archive() {
    tar --directory "$1" --sort=name --format=gnu --mtime="@$SOURCE_DATE_EPOCH" \
        --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --create . | gzip --no-name --best
}

# What Debian, Kubernetes and OCI call the processor of a target.
architecture() {
    case $1 in
        x86_64-*) echo amd64 ;;
        aarch64-*) echo arm64 ;;
        *) fail "no name for the processor of $1" ;;
    esac
}
