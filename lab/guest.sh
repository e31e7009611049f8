# Builds and runs a QEMU guest for the scripts of this directory; they source it. Nothing is mounted and no device of
# the host is touched: the guest has Debian's cloud kernel, from the package's files, and an initramfs in memory.
#
#   guest_work NAME               a temporary directory $work, removed at the end, and the guest with it
#   need COMMAND PACKAGE ...      installs the packages whose command is missing
#   guest_kernel [SERIES]         sets $vmlinuz and $module_files (the directory of its modules); SERIES as in 6.12, else the
#                                 one that Debian's meta package names
#   guest_root PROGRAM ...        $work/root with busybox and these programs, each with its libraries
#   guest_modules MODULE ...      these modules and all they need; `modprobe` in the guest finds them
#   guest_run SECONDS MIB ARG ... runs /init of $work/root, or, if there is none, the system on a disk of ARG; what the guest prints goes
#                                 to $work/serial; fails unless it says done
#   guest_keep DIRECTORY          instead of that: DIRECTORY/run ARG ... boots it later, any number of times, and is QEMU itself:
#                                 to be given commands, and to be killed. Its commands and answers are on standard input and
#                                 output, in the guest a port of virtio-serial (module virtio_console); arguments say where
#                                 the console goes (-serial file:LOG)
#
# The guest runs under TCG: slow, so times mean nothing, but no need of KVM.

PATH=$PATH:/usr/sbin:/sbin
sudo=()
[[ $(id -u) == 0 ]] || sudo=(sudo)

need() {
    local missing=()
    while (($#)); do
        command -v "$1" >/dev/null || missing+=("$2")
        shift 2
    done
    ((${#missing[@]})) || return 0
    echo "installing: ${missing[*]}" >&2
    DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get install -y --no-install-recommends "${missing[@]}" >&2
}

qemu=''
guest_clean_up() {
    set +e
    [[ $qemu ]] && kill "$qemu" 2>/dev/null
    rm -rf --one-file-system "$work"
}

guest_work() {
    work=$(mktemp -d "${TMPDIR:-/tmp}/plumb-$1.XXXXXX")
    trap guest_clean_up EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
}

# The package is fetched and unpacked once, and kept: each guest would need some seconds of a processor for that.
guest_kernel() {
    need qemu-system-x86_64 qemu-system-x86  busybox busybox-static  cpio cpio  depmod kmod
    if ldd "$(command -v busybox)" >/dev/null 2>&1; then
        echo "busybox is dynamically linked: install busybox-static" >&2; exit 5
    fi
    local series=${1:-} cache=${PLUMB_GUEST:-$lab/../target/guest} pattern kernel
    mkdir -p "$cache"
    cache=$(realpath "$cache")
    if [[ $series ]]; then
        cache=$cache/$series
        mkdir -p "$cache"
    fi
    pattern="$cache/linux-image-*.deb"
    # Guests begin side by side: one of them fetches the package, the others wait for it.
    (
        flock -w 600 9 || { echo "waited 600 s for another script to fetch the kernel's package into $cache" >&2; exit 5; }
        if ! compgen -G "$pattern" >/dev/null; then
            fetch_kernel_package "$cache" "$series"
        fi
        kernel=$(compgen -G "$pattern" | head -n 1)
        kernel=${kernel%.deb}
        if [[ ! -e $kernel/complete ]]; then
            unpack_kernel "$kernel"
        fi
    ) 9>"$cache/lock"
    kernel=$(compgen -G "$pattern" | head -n 1)
    kernel=${kernel%.deb}
    vmlinuz=$(compgen -G "$kernel/boot/vmlinuz-*")
    module_files=$(compgen -G "$kernel/lib/modules/*")
}

fetch_kernel_package() { # DIRECTORY SERIES
    local cache=$1 series=$2 package
    if [[ $series ]]; then
        package=$(apt-cache pkgnames "linux-image-$series" | grep -E 'cloud-amd64$' | sort -V | tail -n 1)
    else
        # The meta package names the newest one.
        package=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends: linux-image-/ { print $2; exit }')
    fi
    [[ $package ]] || { echo "apt knows no kernel ${series:-linux-image-cloud-amd64} (apt-get update first?)" >&2; exit 5; }
    # A download that is cut must not look like the package.
    rm -rf "$cache/partial"
    mkdir "$cache/partial"
    (cd "$cache/partial" && apt-get download -q "$package" >/dev/null 2>&1) || { echo "apt-get cannot download $package" >&2; exit 5; }
    mv "$cache"/partial/linux-image-*.deb "$cache"
}

# The directory has the name of the package without `.deb`.
unpack_kernel() { # DIRECTORY
    local kernel=$1
    rm -rf "$kernel"
    dpkg -x "$kernel.deb" "$kernel"
    depmod -b "$kernel" "$(basename "$(compgen -G "$kernel/lib/modules/*")")"
    touch "$kernel/complete"
}

guest_program() { # PROGRAM [DIRECTORY]: with its libraries, each where the loader looks for it
    local path=$1 library
    cp -L "$path" "$work/root/${2:-bin}/"
    # A static program has none.
    { ldd "$path" 2>/dev/null || true; } | { grep -o '/[^ ]*' || true; } | while read -r library; do
        mkdir -p "$work/root$(dirname "$library")"
        cp -Lu "$library" "$work/root$library"
    done
}

guest_root() {
    mkdir -p "$work"/root/{bin,dev,proc,sys,tmp,etc,run}
    local program
    for program in busybox "$@"; do
        guest_program "$(command -v "$program")"
    done
}

guest_modules() {
    local release to
    release=$(basename "$module_files") to=$work/root/lib/modules/$(basename "$module_files")
    mkdir -p "$to"
    local name file
    for name in "$@"; do
        # What is built into the kernel has no file.
        { modprobe -d "${module_files%/lib/modules/*}" -S "$release" --show-depends "$name" || true; } 2>/dev/null | awk '$1 == "insmod" { print $2 }'
    done | sort -u | while read -r file; do
        mkdir -p "$to/$(dirname "${file#"$module_files"/}")"
        cp "$file" "$to/${file#"$module_files"/}"
    done
    cp "$module_files"/modules.builtin* "$module_files"/modules.order "$to/"
    depmod -b "$work/root" "$release"
    guest_program "$(command -v modprobe)"
}

# A processor without AVX: its instructions are slow to emulate, and programs choose them where they find them.
guest_emulator=qemu-system-x86_64
guest_options=(-accel tcg,thread=multi -cpu Westmere -no-reboot -display none -monitor none)
# On a busy machine the timer's interrupts come too late for the kernel's check of them.
# Nobody attacks a guest: without mitigations every system call takes less.
guest_append="console=ttyS0 panic=-1 quiet no_timer_check mitigations=off"

guest_initrd() { # FILE, not compressed: the guest would unpack it slowly
    chmod +x "$work/root/init"
    (cd "$work/root" && find . | cpio -o -H newc --quiet) >"$1"
}

guest_keep() {
    guest_initrd "$1/initrd"
    cp "$vmlinuz" "$1/vmlinuz"
    cat >"$1/run" <<RUN
#!/bin/sh
exec qemu-system-x86_64 ${guest_options[*]} -chardev stdio,id=commands -device virtio-serial-pci \\
    -device virtserialport,chardev=commands,name=commands -kernel '$1/vmlinuz' -initrd '$1/initrd' -append '$guest_append' "\$@"
RUN
    chmod +x "$1/run"
}

# The emulator may run an instruction that the kernel is just patching (int3 in kernel text): nothing of this is the doing
# of the programs in the guest, and the guest begins again.
guest_run() {
    local seconds=$1 mib=$2 status tries=3 memory=()
    shift 2
    if [[ -e $work/root/init ]]; then
        guest_initrd "$work/initrd"
        memory=(-initrd "$work/initrd")
    fi
    while ((tries--)); do
        status=0
        timeout "$seconds" "$guest_emulator" "${guest_options[@]}" -m "$mib" -serial "file:$work/serial" \
            -kernel "$vmlinuz" "${memory[@]}" -append "$guest_append" "$@" &
        qemu=$!
        wait "$qemu" || status=$?
        qemu=''
        grep -q 'GUEST: done' "$work/serial" && return
        grep -q 'Oops: int3' "$work/serial" || break
        echo "the emulator stopped the guest's kernel by an instruction that was being patched: the guest begins again" >&2
    done
    cat "$work/serial" >&2
    echo "the guest did not finish (qemu ended with $status)" >&2
    exit 1
}
