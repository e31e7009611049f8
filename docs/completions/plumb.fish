# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_plumb_global_optspecs
    string join \n h/help V/version
end

function __fish_plumb_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_plumb_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_plumb_using_subcommand
    set -l cmd (__fish_plumb_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c plumb -n "__fish_plumb_needs_command" -s h -l help -d 'Print help'
complete -c plumb -n "__fish_plumb_needs_command" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_needs_command" -f -a "diagnose" -d 'What is wrong with the storage of this host: check every layer, watch the I/O, and say what to do'
complete -c plumb -n "__fish_plumb_needs_command" -f -a "analyze" -d 'Read traces of any known format: which I/O does not fit, by how much, at which offset'
complete -c plumb -n "__fish_plumb_needs_command" -f -a "check" -d 'How each layer of each stack of storage stands on the layers below: no load, no writing'
complete -c plumb -n "__fish_plumb_needs_command" -f -a "convert" -d 'Write a trace in another format'
complete -c plumb -n "__fish_plumb_needs_command" -f -a "record" -d 'Write every I/O of this host\'s disks to a file, with who sent it and how long it took'
complete -c plumb -n "__fish_plumb_needs_command" -f -a "watch" -d 'Show what the disks of this host receive, live: which I/O does not fit, and who sends it'
complete -c plumb -n "__fish_plumb_needs_command" -f -a "probe" -d 'Measure which grid a device really has, and what reads off it cost: nothing is written'
complete -c plumb -n "__fish_plumb_needs_command" -f -a "plan" -d 'Work out a layout: where to start, how large, and the commands for it'
complete -c plumb -n "__fish_plumb_needs_command" -f -a "generate" -d 'Write manual pages or shell completions'
complete -c plumb -n "__fish_plumb_using_subcommand diagnose" -l for -d 'How long to watch I/O; 0 looks at the layout alone' -r
complete -c plumb -n "__fish_plumb_using_subcommand diagnose" -l grid -d 'Unit of the disks: GRANULARITY or GRANULARITY@OFFSET; may be given several times' -r
complete -c plumb -n "__fish_plumb_using_subcommand diagnose" -l segment -d 'Segment of the hardware array that shows the disks, for instance 48k' -r
complete -c plumb -n "__fish_plumb_using_subcommand diagnose" -l disk-type -d 'Known array or drive to take for disks whose model is unknown, for instance sun-zfs-appliance-8k' -r
complete -c plumb -n "__fish_plumb_using_subcommand diagnose" -l known -d 'More known arrays, in TOML' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand diagnose" -l page -d 'Page of the database on top: its usual I/O' -r
complete -c plumb -n "__fish_plumb_using_subcommand diagnose" -l html -d 'Write a page with the findings, the stack and pictures of the I/O' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand diagnose" -l save -d 'Save the profile of the watch: `plumb analyze` reads it' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand diagnose" -l fail-on -d 'Severity from which the exit status is 1' -r -f -a "note\t'Any finding'
warning\t'Warnings and worse'
critical\t'Only critical ones'
none\t'Never'"
complete -c plumb -n "__fish_plumb_using_subcommand diagnose" -l color -d 'When to colour' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c plumb -n "__fish_plumb_using_subcommand diagnose" -l json -d 'Print one JSON document instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand diagnose" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand diagnose" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l grid -d 'Grid to judge by: GRANULARITY or GRANULARITY@OFFSET; may be given several times' -r
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l chunk -d 'Chunk of a stripe: shows what it splits' -r
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l members -d 'Members of that stripe: shows the load of each' -r
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l record -d 'Record of a file system: shows what requests of another size move' -r
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l shift -d 'Move every start: shows the fit if the partition began elsewhere, for instance +1s' -r
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l device -d 'Only this device, as the trace names it; may be given several times' -r
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l op -d 'Only these operations: read, write, discard, flush, write-zeroes, other, or their letters' -r
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l partition -d 'Only this partition, by number, where the trace reveals partitions' -r
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l range -d 'Only I/O that start in this part of the device, the end excluded: 1m-5g' -r
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l layer -d 'Layer: vfs, bio or request; when not given the lowest present, but all of them where Parquet is written' -r
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l since -d 'Only from this time on: 90s, 5m since the first I/O, or a UTC time' -r
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l until -d 'Only before this time' -r
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l format -d 'Format of the traces, when it cannot be told from their contents' -r
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l html -d 'Write a page with pictures' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l save -d 'Save the profile: a small file that answers the same questions later' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l fail-on -d 'Severity from which the exit status is 1' -r -f -a "note\t'Any finding'
warning\t'Warnings and worse'
critical\t'Only critical ones'
none\t'Never'"
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l color -d 'When to colour' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l json -d 'Print one JSON document instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand check" -l from -d 'What tools print of another host, in any mix, for instance prtvtoc, metastat -p, lsblk -J -O -b, or what --collect gathered there; - for standard input' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand check" -l root -d 'Take the sysfs and mounts below this directory for those of a host, instead of this one\'s; no device is opened' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand check" -l profile -d 'Join a saved profile, so that rules that need sizes of I/O use the real ones' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand check" -l collect -d 'Gather what a check reads of this host into a file, for --from elsewhere: sysfs, mounts, tables of mapped devices, labels and superblocks, what NVMe drives say of themselves and where files lie that a device stands on; no content of files, no keys' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand check" -l images -d 'Gather of these images of guests as well where they lie, and how the virtual disk lies in them' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand check" -l join -d 'A disk of a guest and what its host made it of, for instance vda=kvm3:/dev/vg/web1 or web1:vda=kvm3:/srv/web1.qcow2: what is below the disk is then known as far as the host\'s collection tells. A host is called as it calls itself, or as its collection without .tar.zst; without one it is this host. May be given several times' -r
complete -c plumb -n "__fish_plumb_using_subcommand check" -l grid -d 'Unit of the disks: GRANULARITY or GRANULARITY@OFFSET; may be given several times' -r
complete -c plumb -n "__fish_plumb_using_subcommand check" -l segment -d 'Segment of the hardware array that shows the disks, for instance 48k' -r
complete -c plumb -n "__fish_plumb_using_subcommand check" -l disk-type -d 'Known array or drive to take for disks whose model is unknown, for instance sun-zfs-appliance-8k' -r
complete -c plumb -n "__fish_plumb_using_subcommand check" -l known -d 'More known arrays, in TOML' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand check" -l page -d 'Page of the database on top: its usual I/O' -r
complete -c plumb -n "__fish_plumb_using_subcommand check" -l reads -d 'Reads a second that are asked of TARGET, or of the only volume' -r
complete -c plumb -n "__fish_plumb_using_subcommand check" -l writes -d 'Writes a second' -r
complete -c plumb -n "__fish_plumb_using_subcommand check" -l disk-rate -d 'What one disk gives of such I/O a second, measured; without --reads and --writes the rates are those of the profile or of iostat' -r
complete -c plumb -n "__fish_plumb_using_subcommand check" -l response -d 'Largest mean response of a disk: 50ms' -r
complete -c plumb -n "__fish_plumb_using_subcommand check" -l fail-on -d 'Severity from which the exit status is 1' -r -f -a "note\t'Any finding'
warning\t'Warnings and worse'
critical\t'Only critical ones'
none\t'Never'"
complete -c plumb -n "__fish_plumb_using_subcommand check" -l color -d 'When to colour' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c plumb -n "__fish_plumb_using_subcommand check" -l image -d 'Read TARGET, a regular file, as a disk, raw, qcow2, VHD, VHDX or VMDK, instead of following it down to its device'
complete -c plumb -n "__fish_plumb_using_subcommand check" -l json -d 'Print one JSON document instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand check" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand convert" -l to -d 'Format to write, whatever the ending: parquet, fio-iolog, msr-csv' -r
complete -c plumb -n "__fish_plumb_using_subcommand convert" -l device -d 'Only this device, as the trace names it; may be given several times' -r
complete -c plumb -n "__fish_plumb_using_subcommand convert" -l op -d 'Only these operations: read, write, discard, flush, write-zeroes, other, or their letters' -r
complete -c plumb -n "__fish_plumb_using_subcommand convert" -l partition -d 'Only this partition, by number, where the trace reveals partitions' -r
complete -c plumb -n "__fish_plumb_using_subcommand convert" -l range -d 'Only I/O that start in this part of the device, the end excluded: 1m-5g' -r
complete -c plumb -n "__fish_plumb_using_subcommand convert" -l layer -d 'Layer: vfs, bio or request; when not given the lowest present, but all of them where Parquet is written' -r
complete -c plumb -n "__fish_plumb_using_subcommand convert" -l since -d 'Only from this time on: 90s, 5m since the first I/O, or a UTC time' -r
complete -c plumb -n "__fish_plumb_using_subcommand convert" -l until -d 'Only before this time' -r
complete -c plumb -n "__fish_plumb_using_subcommand convert" -l format -d 'Format of the traces, when it cannot be told from their contents' -r
complete -c plumb -n "__fish_plumb_using_subcommand convert" -s h -l help -d 'Print help'
complete -c plumb -n "__fish_plumb_using_subcommand convert" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand record" -s o -l output -d 'File to write, a name that is free: FILE.parquet' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand record" -l duration -d 'End after this time; without it, at Ctrl-C' -r
complete -c plumb -n "__fish_plumb_using_subcommand record" -l max-size -d 'Size that a file does not exceed: the recording ends there, or goes on in another file with --files' -r
complete -c plumb -n "__fish_plumb_using_subcommand record" -l files -d 'Keep so many files, FILE-0001.parquet and on: the oldest is deleted for a further one' -r
complete -c plumb -n "__fish_plumb_using_subcommand record" -l buffer -d 'Room for I/O that completed and are not taken up yet: a power of two' -r
complete -c plumb -n "__fish_plumb_using_subcommand record" -l layer -d 'Layer at which disks are recorded' -r -f -a "auto\t'Requests, and bios of disks that make none (md, dm, zram)'
request\t'Requests: what the driver of a disk was sent'
bio\t'Bios: what a disk was given, before it was merged and split'"
complete -c plumb -n "__fish_plumb_using_subcommand record" -l op -d 'Only these operations: read, write, discard, flush, write-zeroes, other, or their letters' -r
complete -c plumb -n "__fish_plumb_using_subcommand record" -l pid -d 'Only what these processes send, by number; at most 16' -r
complete -c plumb -n "__fish_plumb_using_subcommand record" -l json -d 'Print one JSON document instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand record" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand record" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand watch" -l interval -d 'How long an interval is' -r
complete -c plumb -n "__fish_plumb_using_subcommand watch" -l count -d 'End after so many intervals; without it, at Ctrl-C' -r
complete -c plumb -n "__fish_plumb_using_subcommand watch" -l grid -d 'Grid to judge by: GRANULARITY or GRANULARITY@OFFSET; may be given several times' -r
complete -c plumb -n "__fish_plumb_using_subcommand watch" -l layer -d 'Layer at which disks are watched' -r -f -a "auto\t'Requests, and bios of disks that make none (md, dm, zram)'
request\t'Requests: what the driver of a disk was sent'
bio\t'Bios: what a disk was given, before it was merged and split'"
complete -c plumb -n "__fish_plumb_using_subcommand watch" -l op -d 'Only these operations: read, write, discard, flush, write-zeroes, other, or their letters' -r
complete -c plumb -n "__fish_plumb_using_subcommand watch" -l pid -d 'Only what this process sends' -r
complete -c plumb -n "__fish_plumb_using_subcommand watch" -l comm -d 'Only what threads with this command send, as in /proc/PID/comm' -r
complete -c plumb -n "__fish_plumb_using_subcommand watch" -l cgroup -d 'Only what a cgroup of version 2 and those below it send: its directory' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand watch" -l save -d 'Save the profile of the whole time: `plumb analyze` reads it' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand watch" -l fail-on -d 'Severity from which the exit status is 1' -r -f -a "note\t'Any finding'
warning\t'Warnings and worse'
critical\t'Only critical ones'
none\t'Never'"
complete -c plumb -n "__fish_plumb_using_subcommand watch" -l color -d 'When to colour' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c plumb -n "__fish_plumb_using_subcommand watch" -l app -d 'Watch what processes ask of file systems too, and set it against the bytes at the device; costs time in each system call, and keeps its privileges to the end, to see what others have mapped'
complete -c plumb -n "__fish_plumb_using_subcommand watch" -l sync -d 'Write out the cache of the file systems when the watch begins and ends, so that bytes written can be compared'
complete -c plumb -n "__fish_plumb_using_subcommand watch" -l plain -d 'Print each interval instead of the full-screen view, also on a terminal'
complete -c plumb -n "__fish_plumb_using_subcommand watch" -l json -d 'Print a JSON document a line for each interval instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand watch" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand watch" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand probe" -l grid -d 'Granularity to look for besides powers of two, and to confirm or refute; may be given several times' -r
complete -c plumb -n "__fish_plumb_using_subcommand probe" -l range -d 'Read only this part of the target, the end excluded: 1m-5g' -r
complete -c plumb -n "__fish_plumb_using_subcommand probe" -l depth -d 'Reads in flight' -r
complete -c plumb -n "__fish_plumb_using_subcommand probe" -l limit -d 'Time after which what is not decided is inconclusive' -r
complete -c plumb -n "__fish_plumb_using_subcommand probe" -l margin -d 'Difference in percent that does not matter' -r
complete -c plumb -n "__fish_plumb_using_subcommand probe" -l seed -d 'Repeats the order of all reads of another probe, which printed it' -r
complete -c plumb -n "__fish_plumb_using_subcommand probe" -l html -d 'Write a page with pictures' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand probe" -l fail-on -d 'Severity from which the exit status is 1' -r -f -a "note\t'Any finding'
warning\t'Warnings and worse'
critical\t'Only critical ones'
none\t'Never'"
complete -c plumb -n "__fish_plumb_using_subcommand probe" -l color -d 'When to colour' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c plumb -n "__fish_plumb_using_subcommand probe" -l json -d 'Print one JSON document instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand probe" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand probe" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and not __fish_seen_subcommand_from partition stripe softpart filesystem record resync disks writes" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and not __fish_seen_subcommand_from partition stripe softpart filesystem record resync disks writes" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and not __fish_seen_subcommand_from partition stripe softpart filesystem record resync disks writes" -f -a "partition" -d 'Where a partition or slice may start, and the commands that put it there'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and not __fish_seen_subcommand_from partition stripe softpart filesystem record resync disks writes" -f -a "stripe" -d 'How large the chunks of a stripe should be'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and not __fish_seen_subcommand_from partition stripe softpart filesystem record resync disks writes" -f -a "softpart" -d 'Offsets of soft partitions of Solaris Volume Manager'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and not __fish_seen_subcommand_from partition stripe softpart filesystem record resync disks writes" -f -a "filesystem" -d 'What a file system has to be told of the stripe below it'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and not __fish_seen_subcommand_from partition stripe softpart filesystem record resync disks writes" -f -a "record" -d 'Which record suits a page, or the I/O of a profile'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and not __fish_seen_subcommand_from partition stripe softpart filesystem record resync disks writes" -f -a "resync" -d 'The I/O size of mirror resyncs of Solaris Volume Manager'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and not __fish_seen_subcommand_from partition stripe softpart filesystem record resync disks writes" -f -a "disks" -d 'How many disks a demanded rate takes'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and not __fish_seen_subcommand_from partition stripe softpart filesystem record resync disks writes" -f -a "writes" -d 'What writing in sequence, or gathering records, gives'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from partition" -l grid -d 'What the start has to be on: GRANULARITY or GRANULARITY@OFFSET; may be given several times' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from partition" -l alignment-offset -d 'Offset of the first aligned block, as sysfs states it; added to every grid' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from partition" -l from -d 'Take the disk from the output of other tools: prtvtoc, sfdisk -d, …' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from partition" -l label -d 'Kind of label' -r -f -a "gpt\t'GPT'
dos\t'DOS (MBR)'
efi\t'EFI label of Solaris'
smi\t'SMI label (VTOC) on SPARC'
smi-x86\t'SMI label inside an fdisk partition on x86'"
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from partition" -l sector -d 'Logical block of the disk: 512 or 4096' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from partition" -l disk-size -d 'Size of the disk' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from partition" -l after -d 'First position that may be used' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from partition" -l before -d 'First position that may not be used' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from partition" -l size -d 'Length; all that is free when not given. Of one that exists up to 1 MiB is given up where its start needs the room' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from partition" -l number -d 'Number of the partition or slice' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from partition" -l current -d 'Where it starts now' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from partition" -l geometry -d 'Heads and sectors of an SMI label, as prtvtoc prints them: 27x107' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from partition" -l fdisk-start -d 'Start of the Solaris fdisk partition that holds an SMI label on x86' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from partition" -l holds -d 'What it holds: lvm=GROUP, md=ARRAY, zfs=POOL or svm=MIRROR,SUBMIRROR' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from partition" -l new-label -d 'Make the label as well'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from partition" -l json -d 'Print one JSON document instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from partition" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from partition" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from stripe" -l io -d 'Length of the I/O: the page' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from stripe" -l share -d 'Largest share of I/O that may cross from one chunk to the next: 1/128, 1%' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from stripe" -l base -d 'Where the data begin, past a boundary of the stripe' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from stripe" -l chunk -d 'Judge this chunk' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from stripe" -l segment -d 'Segment of the array below: chunks are whole ones' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from stripe" -l parity -d 'Members of each stripe that hold parity' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from stripe" -l manager -d 'Whose stripe' -r -f -a "svm\t'Solaris Volume Manager'
md\t'Linux md'
lvm\t'LVM'"
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from stripe" -l any-sector -d 'I/O begin at any sector, and not at multiples of their length'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from stripe" -l json -d 'Print one JSON document instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from stripe" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from stripe" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from softpart" -l unit -d 'What they have to be on: interlace, full stripe, page' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from softpart" -l from -d 'Take them from metastat -p, and where slices start from prtvtoc' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from softpart" -l existing -d 'One that exists: NAME:OFFSET:LENGTH, as in d11:512s:1g; may be given several times' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from softpart" -l new -d 'One to be added behind them: NAME:LENGTH; may be given several times' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from softpart" -l base -d 'Where the component starts on its disk' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from softpart" -l component-size -d 'Length of the component' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from softpart" -l json -d 'Print one JSON document instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from softpart" -s h -l help -d 'Print help'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from softpart" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from filesystem" -l type -d 'Kind of file system' -r -f -a "ext4\t'ext2, ext3, ext4'
xfs\t'XFS'
btrfs\t'btrfs'
ufs\t'UFS of Solaris'
zfs\t'ZFS'"
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from filesystem" -l chunk -d 'Chunk of the stripe below; without one the device is on one disk, or on a mirror' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from filesystem" -l members -d 'Members of that stripe' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from filesystem" -l parity -d 'Of them, those that hold parity in each stripe' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from filesystem" -l copies -d 'Copies of each chunk: 2 for RAID 10' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from filesystem" -l block -d 'Block of the file system' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from filesystem" -l physical -d 'Physical block of the disks' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from filesystem" -l page -d 'Page of the database on it' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from filesystem" -l mount -d 'Where it is mounted' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from filesystem" -l json -d 'Print one JSON document instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from filesystem" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from filesystem" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from record" -l page -d 'Page of the application, read and written at multiples of it' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from record" -l profile -d 'Saved profile of the vfs layer, made by plumb analyze --save' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from record" -l keeper -d 'What keeps the records' -r -f -a "zfs\t'A file system of ZFS: recordsize'
zvol\t'A volume of ZFS: volblocksize'
ufs\t'UFS: block and fragment'"
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from record" -l current -d 'The record now' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from record" -l json -d 'Print one JSON document instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from record" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from record" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from resync" -l size -d 'I/O size wanted' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from resync" -l maxphys -d 'maxphys of the host now' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from resync" -l mirror -d 'Bytes to be copied' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from resync" -l json -d 'Print one JSON document instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from resync" -s h -l help -d 'Print help'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from resync" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from disks" -l reads -d 'Reads a second' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from disks" -l writes -d 'Writes a second' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from disks" -l growth -d 'How many times that' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from disks" -l disk-rate -d 'What one disk gives of such I/O a second, measured' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from disks" -l raid -d 'Redundancy' -r -f -a "0\t'Stripe'
1\t'Mirror of two'
10\t'Stripe of mirrors'
5\t'One parity'
6\t'Two parities'"
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from disks" -l margin -d 'Share of the load to be left over' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from disks" -l response -d 'Largest mean response of a disk: 50ms' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from disks" -l chunk -d 'Chunk for the commands' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from disks" -l json -d 'Print one JSON document instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from disks" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from disks" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from writes" -l record -d 'Length of a record' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from writes" -l gather -d 'Records that one write can hold' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from writes" -l demand -d 'Records a second that are demanded' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from writes" -l random -d 'Measured: random writes of a record a second' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from writes" -l sequential -d 'Measured: the same in sequence' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from writes" -l gathered -d 'Measured: random gathered writes a second' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from writes" -l both -d 'Measured: gathered writes in sequence' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from writes" -l json -d 'Print one JSON document instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from writes" -s h -l help -d 'Print help'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from writes" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand generate" -s h -l help -d 'Print help'
complete -c plumb -n "__fish_plumb_using_subcommand generate" -s V -l version -d 'Print version'
