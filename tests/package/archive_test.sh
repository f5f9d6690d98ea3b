#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# archive_test.sh BUILD WORK CPACK: makes the archive of a finished build, unpacks it somewhere else, and runs it: with the
# libraries it carries, glibc's and NVIDIA's alone, and in a root folder that has nothing else where this user may.
set -euo pipefail
build=$1 work=$2 cpack=$3
rm -rf "$work"
mkdir -p "$work/root"
command -v patchelf >/dev/null || { echo 'skipped: patchelf is not installed'; exit 77; }
"$cpack" -G TGZ -B "$work" --config "$build/CPackConfig.cmake" >"$work/log" || { cat "$work/log"; exit 1; }
tar -xzf "$work"/plumbline-*.tar.gz -C "$work/root"
[ "$(ls "$work/root")" = "$(basename "$work"/plumbline-*.tar.gz .tar.gz)" ] || { ls "$work/root"; echo 'not one folder'; exit 1; }
mv "$work"/root/plumbline-* "$work/root/anywhere"
prefix="$work/root/anywhere"

faults=0
for program in bench bench-compare; do
    # Every library comes from the archive, from glibc, or is NVIDIA's.
    while read -r name _ path _; do
        case $name in
        linux-vdso* | */ld-linux* | libc.so* | libm.so* | libdl.so* | librt.so* | libpthread.so* | libresolv.so*) continue ;;
        libcuda* | libcublas* | libcudnn* | libnv*) continue ;;
        esac
        if [[ $path != "$prefix/"* ]]; then
            echo "FAULT: $program takes $name from $path"
            faults=$((faults + 1))
        fi
    done < <(env -i ldd "$prefix/bin/$program")
    env -i "$prefix/bin/$program" --help >/dev/null || { echo "FAULT: $program --help ended with $?"; faults=$((faults + 1)); }
done
env -i HOME="$work" "$prefix/bin/bench" --list --backend=cpu >"$work/list" 2>"$work/said" ||
    grep -q 'no such backend\|not built\|no backend' "$work/said" || { cat "$work/said"; faults=$((faults + 1)); }
for file in share/plumbline/recipes/nightly.sh share/bash-completion/completions/bench share/zsh/site-functions/_bench \
    share/plumbline/suites/standard.json share/plumbline/schema/baseline-1.json; do
    [ -s "$prefix/$file" ] || { echo "FAULT: no $file"; faults=$((faults + 1)); }
done
[ -x "$prefix/share/plumbline/recipes/nightly.sh" ] || { echo 'FAULT: nightly.sh cannot be executed'; faults=$((faults + 1)); }
[ "$faults" = 0 ] || exit 1
cpu=yes
grep -q 'no such backend\|not built\|no backend' "$work/said" && cpu=no

# A bare root: the unpacked archive, glibc, /proc, and NVIDIA's libraries where the program needs them.
glibc=()
while read -r name _ path _; do
    case $name in
    linux-vdso*) ;;
    */ld-linux*) glibc+=("$name") ;;
    libc.so* | libm.so* | libdl.so* | librt.so* | libpthread.so* | libresolv.so*) glibc+=("$path") ;;
    esac
done < <(ldd "$prefix/bin/bench")
for path in "${glibc[@]}"; do
    mkdir -p "$work/root$(dirname "$path")"
    cp -L "$path" "$work/root$path"
done
mkdir -p "$work/root/proc" "$work/root/tmp" "$work/root/usr/local/cuda" "$work/root/dev"
cat >"$work/inside.sh" <<END
set -e
mount -t proc proc "$work/root/proc"
if [ -d /usr/local/cuda/ ]; then mount --rbind "$(readlink -f /usr/local/cuda)" "$work/root/usr/local/cuda"; fi
run() { chroot "$work/root" "\$@"; }
run /anywhere/bin/bench --fingerprint --backend=cpu >"$work/fingerprint.json"
run /anywhere/bin/bench --baseline=/tmp/b.json --suite=/tmp/tiny.json --backend=cpu --sessions=1 --force
run /anywhere/bin/bench-compare /tmp/b.json /tmp/b.json --output=/tmp/report
END
echo '{"name": "tiny", "cpu": ["gemm/fp32/tn/m64n64k64/hot"]}' >"$work/root/tmp/tiny.json"
if [ "$cpu" = no ]; then
    echo 'the bare root is left out: this build has no CPU backend'
    exit 0
fi
if [ "$(id -u)" != 0 ] || ! unshare --mount --pid --fork true 2>/dev/null; then
    # No compiler, no tools and no library path: the next best thing.
    cd "$work/root/tmp"
    env -i PATH=/nonexistent "$prefix/bin/bench" --baseline=b.json --suite=tiny.json --backend=cpu --sessions=1 --force
    env -i PATH=/nonexistent "$prefix/bin/bench-compare" b.json b.json
    echo 'the bare root is left out: this user may not mount; ran without environment and PATH'
    exit 0
fi
unshare --mount --pid --fork sh "$work/inside.sh" >"$work/inside.log" 2>&1 ||
    { echo "bare root: ended with $?"; cat "$work/inside.log"; exit 1; }
grep -q '"build.plumbline"' "$work/fingerprint.json" || { echo 'bare root: no fingerprint'; exit 1; }
grep -q 'gemm/fp32/tn/m64n64k64/hot' "$work/root/tmp/report" || { echo 'bare root: no comparison'; exit 1; }
echo 'measured and compared in a bare root'
