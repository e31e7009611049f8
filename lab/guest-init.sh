# What the guests of this directory begin with; their /init sources it. Mounts, LVM without udev, the disk to write results
# to ($result), and disks of declared geometry.
#
#   say WORDS                     a line of the serial console that the host looks at
#   geometry DISKS PARAMETER...   disks of scsi_debug; sets $disks, and $disk to the first; each of $megabytes
#   partition DISK START          a partition of 40 MiB from START on, in logical blocks; waits for its node
#   finish                        hands over /tmp/out and ends
/bin/busybox --install -s /bin
ln -s bin /sbin; mkdir -p /usr; ln -s ../bin /usr/sbin; ln -s ../bin /usr/bin
export PATH=/bin LVM_SUPPRESS_FD_WARNINGS=1 DM_DISABLE_UDEV=1
mount -t devtmpfs dev /dev; mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t tmpfs tmp /tmp; mount -t tmpfs -o mode=755 run /run
mkdir -p /run/lock /run/cryptsetup /run/lvm /etc/lvm /tmp/out /mnt /dev/shm
ln -s /proc/self/mounts /etc/mtab
cat >/etc/lvm/lvm.conf <<LVM
global { use_lvmpolld = 0 }
activation { udev_sync = 0 udev_rules = 0 monitoring = 0 }
devices { obtain_device_list_from_udev = 0 external_device_info_source = "none" use_devicesfile = 0 }
LVM
for sys in /sys/block/nvme*; do
    case $(cat $sys/device/serial) in
    result*) result=/dev/${sys##*/} ;;
    esac
done
say() { echo "GUEST: $*"; }

# Answers are not for the console: a message of the kernel, or of a program in the background, may come in the middle of a
# line there, and the host would wait for a line that it does not recognize.
#
#   listen              commands and answers over the port of virtio-serial from now on, the first by `next_line`
#   next_line           sets $word and $rest to those of the next command; fails at the end
#   step WORDS          names the step that is taken; its name is all that `watch_steps` knows
#   watch_steps LIMIT   prints the state of every process on the console when a step takes more than so many seconds
listen() {
    port=''
    waited=0
    while [ $waited -lt 300 ]; do
        for found in /sys/class/virtio-ports/*; do
            [ "$(cat $found/name 2>/dev/null)" = commands ] && port=/dev/${found##*/}
        done
        [ -c "$port" ] && break
        waited=$((waited + 1)); sleep 0.1
    done
    [ -c "$port" ] || { say "no port of virtio-serial for commands"; poweroff -f; }
    exec 9<>$port
    say() { echo "GUEST: $*" >&9; }
}
next_line() { read -r word rest <&9; }
seconds() { read -r uptime idle </proc/uptime; uptime=${uptime%%.*}; }   # sets $uptime
step() { seconds; echo "$uptime $*" >/tmp/step.new; mv /tmp/step.new /tmp/step; }
watch_steps() {
    (
        told=''
        while sleep 5; do
            [ -e /tmp/step ] || continue
            read -r begun name </tmp/step
            [ "$begun $name" = "$told" ] && continue
            seconds
            [ $((uptime - begun)) -gt $1 ] || continue
            told="$begun $name"
            tell_state
        done
    ) </dev/null >/dev/console 2>&1 9>&- &
}
tell_state() {
    echo "STATE: more than the limit in: $name"
    for process in /proc/[0-9]*; do
        [ -s $process/cmdline ] || continue
        for task in $process/task/*; do
            echo "$task $(tr '\0' ' ' <$process/cmdline): $(cat $task/wchan), $(cat $task/syscall)"
            cat $task/stack
        done
        ls -l $process/fd
    done
    cat /proc/locks /proc/mounts /proc/mdstat /proc/interrupts
    grep . /sys/block/sd*/inflight
    echo 8 >/proc/sys/kernel/printk; echo w >/proc/sysrq-trigger; echo 1 >/proc/sys/kernel/printk
    echo "STATE: end"
}

modprobe sd_mod; modprobe loop

# Disks of a declared geometry: DISKS PARAMETER...; sets $disks, and $disk to the first.
geometry() {
    hosts=$1; shift
    mdadm --stop --scan >/dev/null 2>&1
    # With the disks of before it would keep what they were told to do.
    waited=0
    while [ -e /sys/module/scsi_debug ] && [ $waited -lt 100 ]; do
        modprobe -r scsi_debug 2>/dev/null || sleep 0.1
        waited=$((waited + 1))
    done
    modprobe scsi_debug dev_size_mb=$megabytes add_host=$hosts num_tgts=1 per_host_store=1 lbprz=0 delay=0 "$@" || say "no scsi_debug $*"
    waited=0 disks=''
    while [ $waited -lt 100 ]; do
        disks=$(for disk in /sys/bus/pseudo/drivers/scsi_debug/adapter*/host*/target*/*:*/block/*; do [ -e $disk ] && echo /dev/${disk##*/}; done)
        [ "$(echo $disks | wc -w)" = $hosts ] && break
        waited=$((waited + 1)); sleep 0.1
    done
    [ "$disks" ] || { say "no disks with $*"; poweroff -f; }
    disk=${disks%%
*}
}
megabytes=64

# A partition from START on, in logical blocks; waits for its node. One sgdisk makes the label and the partition: each of them sleeps for
# seconds when it writes.
partition() { # DISK START
    sgdisk -o -a 1 -n 1:$2:+40M $1 >/dev/null || say "sgdisk failed on $1"
    blockdev --rereadpt $1 2>/dev/null
    waited=0; while [ ! -b ${1}1 ] && [ ! -b ${1}p1 ] && [ $waited -lt 50 ]; do waited=$((waited + 1)); sleep 0.1; done
}

finish() {
    plumb --version >/tmp/out/plumb-version; uname -r >/tmp/out/kernel
    lvm version >/tmp/out/lvm-version 2>&1; mdadm --version >/tmp/out/mdadm-version 2>&1
    parted --version >/tmp/out/parted-version; sgdisk -V >/tmp/out/sgdisk-version
    tar cf $result -C /tmp/out . && sync
    say done
    poweroff -f
}
