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
complete -c plumb -n "__fish_plumb_needs_command" -f -a "diagnose" -d 'Find storage problems: check every layer, watch I/O, recommend fixes'
complete -c plumb -n "__fish_plumb_needs_command" -f -a "analyze" -d 'Analyze traces of any known format for misaligned and split I/O'
complete -c plumb -n "__fish_plumb_needs_command" -f -a "check" -d 'Check the alignment of every storage layer (read-only)'
complete -c plumb -n "__fish_plumb_needs_command" -f -a "compare" -d 'Compare measurements before and after a change, with a verdict'
complete -c plumb -n "__fish_plumb_needs_command" -f -a "convert" -d 'Write a trace in another format'
complete -c plumb -n "__fish_plumb_needs_command" -f -a "record" -d 'Record every I/O of the disks to a file, with sender and latency'
complete -c plumb -n "__fish_plumb_needs_command" -f -a "watch" -d 'Show the I/O of the disks live: misalignment, latency, senders'
complete -c plumb -n "__fish_plumb_needs_command" -f -a "agent" -d 'Count the I/O of all disks all the time, into a history'
complete -c plumb -n "__fish_plumb_needs_command" -f -a "history" -d 'Print, check or copy the history of the disks'
complete -c plumb -n "__fish_plumb_needs_command" -f -a "serve" -d 'Serve a history over HTTP (read-only)'
complete -c plumb -n "__fish_plumb_needs_command" -f -a "fleet" -d 'Profile and rank the disks of many hosts'
complete -c plumb -n "__fish_plumb_needs_command" -f -a "probe" -d 'Measure the block grid of a device and the cost of misaligned I/O'
complete -c plumb -n "__fish_plumb_needs_command" -f -a "bench" -d 'Load devices or files and measure their speed'
complete -c plumb -n "__fish_plumb_needs_command" -f -a "replay" -d 'Send the I/O of a trace again, as it was or as a plan places it'
complete -c plumb -n "__fish_plumb_needs_command" -f -a "plan" -d 'Compute a layout: starts, sizes, and the commands that make it'
complete -c plumb -n "__fish_plumb_needs_command" -f -a "fix" -d 'Repair labels, and move partitions with their data, crash-safely'
complete -c plumb -n "__fish_plumb_needs_command" -f -a "help" -d 'Print the help of a command, with all options and examples'
complete -c plumb -n "__fish_plumb_needs_command" -f -a "explain" -d 'Explain a finding: its meaning, its cost, and its fix'
complete -c plumb -n "__fish_plumb_needs_command" -f -a "version" -d 'Print the version; --verbose also prints commit and protections'
complete -c plumb -n "__fish_plumb_needs_command" -f -a "generate" -d 'Write manual pages, shell completions and other generated files'
complete -c plumb -n "__fish_plumb_using_subcommand diagnose" -l for -d 'How long to watch I/O; 0 looks at the layout alone' -r
complete -c plumb -n "__fish_plumb_using_subcommand diagnose" -l grid -d 'Unit of the disks: GRANULARITY or GRANULARITY@OFFSET; may be given several times' -r
complete -c plumb -n "__fish_plumb_using_subcommand diagnose" -l segment -d 'Segment of the hardware array that shows the disks, for instance 48k' -r
complete -c plumb -n "__fish_plumb_using_subcommand diagnose" -l disk-type -d 'Known array or drive to take for disks whose model is unknown, for instance sun-zfs-appliance-8k' -r
complete -c plumb -n "__fish_plumb_using_subcommand diagnose" -l known -d 'More known arrays, in TOML' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand diagnose" -l page -d 'Page of the database on top: its usual I/O' -r
complete -c plumb -n "__fish_plumb_using_subcommand diagnose" -l config -d 'Read the accepted findings from FILE instead of /etc/plumb/config.toml' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand diagnose" -l ignore -d 'Ignore the findings of a rule, on one device or on all; may be given several times' -r
complete -c plumb -n "__fish_plumb_using_subcommand diagnose" -l html -d 'Write a page with the findings, the stack and pictures of the I/O, in the place of a file that has the name' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand diagnose" -l save -d 'Save the profile of the watch, in the place of a file that has the name: `plumb analyze` reads it' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand diagnose" -l fail-on -d 'Severity from which the exit status is 1' -r -f -a "note\t'Any finding'
warning\t'Warnings and worse'
critical\t'Only critical ones'
none\t'Never'"
complete -c plumb -n "__fish_plumb_using_subcommand diagnose" -l color -d 'When to colour' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c plumb -n "__fish_plumb_using_subcommand diagnose" -l json -d 'Print one JSON document instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand diagnose" -s v -l verbose -d 'Print the evidence of each finding, the I/O and the stack; -vv prints everything'
complete -c plumb -n "__fish_plumb_using_subcommand diagnose" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand diagnose" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l state-dir -d 'Folder of the history for history:DEVICE@SPAN (default: state_dir of /etc/plumb/agent.toml, else /var/lib/plumb-agent)' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l grid -d 'Grid to judge by: GRANULARITY or GRANULARITY@OFFSET; may be given several times' -r
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l chunk -d 'Chunk of a stripe: shows the I/O that it splits' -r
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l members -d 'Members of that stripe: shows the load of each' -r
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l record -d 'Record of a file system: shows the bytes that requests of another size move' -r
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l shift -d 'Move every start: shows the fit if the partition began elsewhere, for instance +1s' -r
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l device -d 'Only this device, as the trace names it; may be given several times' -r
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l op -d 'Only these operations: read, write, discard, flush, write-zeroes, other, or their letters' -r
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l partition -d 'Only this partition, by number, where the trace reveals partitions' -r
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l range -d 'Only I/O that start in this part of the device, the end excluded: 1m-5g' -r
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l layer -d 'Layer: vfs, bio or request; when not given the lowest present, but all of them where Parquet is written' -r
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l since -d 'Only from this time on: 90s, 5m since the first I/O, or a UTC time' -r
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l until -d 'Only before this time' -r
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l format -d 'Format of the traces, if their contents do not show it' -r
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l html -d 'Write a page with pictures, in the place of a file that has the name' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l save -d 'Save the profile, in the place of a file that has the name: a small file that answers the same questions later' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l fail-on -d 'Severity from which the exit status is 1' -r -f -a "note\t'Any finding'
warning\t'Warnings and worse'
critical\t'Only critical ones'
none\t'Never'"
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l color -d 'When to colour' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l together -d 'Take devices of equal names in several files for one device (default: only in pieces of one recording, which have one clock and times that follow each other)'
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l json -d 'Print one JSON document instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand check" -l from -d 'Check another host by the output of its tools, or by its collection' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand check" -l root -d 'Take the sysfs and mounts below this directory for those of a host, instead of this one\'s; no device is opened' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand check" -l profile -d 'Join a saved profile, so that rules that need sizes of I/O use the real ones' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand check" -l collect -d 'Collect this host into a new file, for --from elsewhere' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand check" -l images -d 'Gather the positions of these images of guests as well, and the layout of the virtual disk inside them' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand check" -l join -d 'Join a disk of a guest with its device on the host' -r
complete -c plumb -n "__fish_plumb_using_subcommand check" -l grid -d 'Unit of the disks: GRANULARITY or GRANULARITY@OFFSET; may be given several times' -r
complete -c plumb -n "__fish_plumb_using_subcommand check" -l segment -d 'Segment of the hardware array that shows the disks, for instance 48k' -r
complete -c plumb -n "__fish_plumb_using_subcommand check" -l disk-type -d 'Known array or drive to take for disks whose model is unknown, for instance sun-zfs-appliance-8k' -r
complete -c plumb -n "__fish_plumb_using_subcommand check" -l known -d 'More known arrays, in TOML' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand check" -l page -d 'Page of the database on top: its usual I/O' -r
complete -c plumb -n "__fish_plumb_using_subcommand check" -l config -d 'Read the accepted findings from FILE instead of /etc/plumb/config.toml' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand check" -l ignore -d 'Ignore the findings of a rule, on one device or on all; may be given several times' -r
complete -c plumb -n "__fish_plumb_using_subcommand check" -l reads -d 'Reads a second that are asked of TARGET, or of the only volume' -r
complete -c plumb -n "__fish_plumb_using_subcommand check" -l writes -d 'Writes a second' -r
complete -c plumb -n "__fish_plumb_using_subcommand check" -l disk-rate -d 'Measured rate of one disk for such I/O, a second; without --reads and --writes the rates are those of the profile or of iostat' -r
complete -c plumb -n "__fish_plumb_using_subcommand check" -l response -d 'Largest mean response of a disk: 50ms' -r
complete -c plumb -n "__fish_plumb_using_subcommand check" -l as -d 'Print the result for another program' -r -f -a "nagios\t'One line with performance data'
junit\t'The report of a test run'
csv\t'A line for each finding'
markdown\t'The verdict and a table'
prometheus\t'Metrics for node_exporter'"
complete -c plumb -n "__fish_plumb_using_subcommand check" -l output -d 'With --json or --as: write the result to FILE, whole or not at all, in the place of a file that has the name' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand check" -l fail-on -d 'Severity from which the exit status is 1' -r -f -a "note\t'Any finding'
warning\t'Warnings and worse'
critical\t'Only critical ones'
none\t'Never'"
complete -c plumb -n "__fish_plumb_using_subcommand check" -l color -d 'When to colour' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c plumb -n "__fish_plumb_using_subcommand check" -l image -d 'Read the file TARGET as a disk: raw, qcow2, VHD, VHDX or VMDK'
complete -c plumb -n "__fish_plumb_using_subcommand check" -l json -d 'Print one JSON document instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand check" -l full -d 'With --json: every extent of every file, not the first 16'
complete -c plumb -n "__fish_plumb_using_subcommand check" -s v -l verbose -d 'Print the evidence of each finding, the I/O and the stack; -vv prints everything'
complete -c plumb -n "__fish_plumb_using_subcommand check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand check" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand compare" -l state-dir -d 'Folder of the history for history:DEVICE@SPAN (default: state_dir of /etc/plumb/agent.toml, else /var/lib/plumb-agent)' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand compare" -l device -d 'Only this device, and its name after the change; may be given several times' -r
complete -c plumb -n "__fish_plumb_using_subcommand compare" -l grid -d 'Grid to judge the I/O by: GRANULARITY or GRANULARITY@OFFSET; may be given several times' -r
complete -c plumb -n "__fish_plumb_using_subcommand compare" -l layer -d 'Layer of a trace: vfs, bio or request; when not given the lowest present' -r
complete -c plumb -n "__fish_plumb_using_subcommand compare" -l format -d 'Format of the traces, if their contents do not show it' -r
complete -c plumb -n "__fish_plumb_using_subcommand compare" -l first -d 'The first report of iostat: left out where it is an average since boot, kept, or left out' -r -f -a "auto\t'Left out where it is an average since boot'
keep\t'Kept'
drop\t'Left out'"
complete -c plumb -n "__fish_plumb_using_subcommand compare" -l margin -d 'Ignore changes up to this percentage' -r
complete -c plumb -n "__fish_plumb_using_subcommand compare" -l html -d 'Write a page with the changes drawn' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand compare" -l color -d 'When to colour' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c plumb -n "__fish_plumb_using_subcommand compare" -l force -d 'Compare devices even if their names or sizes differ'
complete -c plumb -n "__fish_plumb_using_subcommand compare" -l json -d 'Print one JSON document instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand compare" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand compare" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand convert" -l to -d 'Format to write, for any ending: parquet, fio-iolog, msr-csv' -r
complete -c plumb -n "__fish_plumb_using_subcommand convert" -l device -d 'Only this device, as the trace names it; may be given several times' -r
complete -c plumb -n "__fish_plumb_using_subcommand convert" -l op -d 'Only these operations: read, write, discard, flush, write-zeroes, other, or their letters' -r
complete -c plumb -n "__fish_plumb_using_subcommand convert" -l partition -d 'Only this partition, by number, where the trace reveals partitions' -r
complete -c plumb -n "__fish_plumb_using_subcommand convert" -l range -d 'Only I/O that start in this part of the device, the end excluded: 1m-5g' -r
complete -c plumb -n "__fish_plumb_using_subcommand convert" -l layer -d 'Layer: vfs, bio or request; when not given the lowest present, but all of them where Parquet is written' -r
complete -c plumb -n "__fish_plumb_using_subcommand convert" -l since -d 'Only from this time on: 90s, 5m since the first I/O, or a UTC time' -r
complete -c plumb -n "__fish_plumb_using_subcommand convert" -l until -d 'Only before this time' -r
complete -c plumb -n "__fish_plumb_using_subcommand convert" -l format -d 'Format of the traces, if their contents do not show it' -r
complete -c plumb -n "__fish_plumb_using_subcommand convert" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand convert" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand record" -s o -l output -d 'File to write, a name that is free; only you can read it: FILE.parquet' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand record" -l duration -d 'End after this time; without it, at Ctrl-C' -r
complete -c plumb -n "__fish_plumb_using_subcommand record" -l max-size -d 'Size that a file does not exceed: the recording ends there, or goes on in another file with --files' -r
complete -c plumb -n "__fish_plumb_using_subcommand record" -l files -d 'Keep at most N files, FILE-0001.parquet and on: the oldest is deleted for a new one' -r
complete -c plumb -n "__fish_plumb_using_subcommand record" -l buffer -d 'Room for I/O that completed and are not taken up yet: a power of two' -r
complete -c plumb -n "__fish_plumb_using_subcommand record" -l layer -d 'Layer at which disks are recorded' -r -f -a "auto\t'Requests, and bios of disks that make none (md, dm, zram)'
request\t'Requests, as the driver of a disk receives them'
bio\t'Bios, as a disk receives them, before they are merged and split'"
complete -c plumb -n "__fish_plumb_using_subcommand record" -l op -d 'Only these operations: read, write, discard, flush, write-zeroes, other, or their letters' -r
complete -c plumb -n "__fish_plumb_using_subcommand record" -l pid -d 'Only I/O of these processes, by number; at most 16' -r
complete -c plumb -n "__fish_plumb_using_subcommand record" -l fail-on -d 'Severity from which the exit status is 1' -r -f -a "note\t'Any finding'
warning\t'Warnings and worse'
critical\t'Only critical ones'
none\t'Never'"
complete -c plumb -n "__fish_plumb_using_subcommand record" -l json -d 'Print one JSON document instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand record" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand record" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand watch" -l from -d 'Play a recording (any trace that `plumb analyze` reads) instead of watching this host, on a terminal in its own time; or the windows of a history (history:DEVICE@FROM..TO), on a terminal one a second; a longer --interval joins windows' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand watch" -l state-dir -d 'Folder of the history for history:DEVICE@SPAN (default: state_dir of /etc/plumb/agent.toml, else /var/lib/plumb-agent)' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand watch" -l speed -d 'Play a recording N times as fast as it was recorded, or N windows of a history a second: 0.01 to 1000000' -r
complete -c plumb -n "__fish_plumb_using_subcommand watch" -l interval -d 'Interval length' -r
complete -c plumb -n "__fish_plumb_using_subcommand watch" -l count -d 'Stop after N intervals (default: until Ctrl-C)' -r
complete -c plumb -n "__fish_plumb_using_subcommand watch" -l grid -d 'Grid to judge by: GRANULARITY or GRANULARITY@OFFSET; may be given several times' -r
complete -c plumb -n "__fish_plumb_using_subcommand watch" -l layer -d 'Layer at which disks are watched' -r -f -a "auto\t'Requests, and bios of disks that make none (md, dm, zram)'
request\t'Requests, as the driver of a disk receives them'
bio\t'Bios, as a disk receives them, before they are merged and split'"
complete -c plumb -n "__fish_plumb_using_subcommand watch" -l op -d 'Only these operations: read, write, discard, flush, write-zeroes, other, or their letters' -r
complete -c plumb -n "__fish_plumb_using_subcommand watch" -l pid -d 'Only I/O of this process' -r
complete -c plumb -n "__fish_plumb_using_subcommand watch" -l comm -d 'Only I/O of threads with this command name, as in /proc/PID/comm' -r
complete -c plumb -n "__fish_plumb_using_subcommand watch" -l cgroup -d 'Only I/O of a cgroup of version 2 and those below it: its directory' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand watch" -l save -d 'Save the profile of the whole time, in the place of a file that has the name: `plumb analyze` reads it' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand watch" -l fail-on -d 'Severity from which the exit status is 1' -r -f -a "note\t'Any finding'
warning\t'Warnings and worse'
critical\t'Only critical ones'
none\t'Never'"
complete -c plumb -n "__fish_plumb_using_subcommand watch" -l color -d 'When to colour' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c plumb -n "__fish_plumb_using_subcommand watch" -l app -d 'Watch I/O of processes to file systems too, and compare it with the bytes at the device; costs time in each system call, and keeps its privileges to the end, to see files that others have mapped'
complete -c plumb -n "__fish_plumb_using_subcommand watch" -l sync -d 'Write out the cache of the file systems when the watch begins and ends, so that bytes written can be compared'
complete -c plumb -n "__fish_plumb_using_subcommand watch" -l plain -d 'Print each interval instead of the full-screen view, also on a terminal'
complete -c plumb -n "__fish_plumb_using_subcommand watch" -l json -d 'Print a JSON document a line for each interval instead of text; the last has the findings of the whole time'
complete -c plumb -n "__fish_plumb_using_subcommand watch" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand watch" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand agent" -l state-dir -d 'Folder of the history (default: /var/lib/plumb-agent); it is made if it is missing' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand agent" -l interval -d 'Time between two readings of the counts: 1s to 60s (default: 10s)' -r
complete -c plumb -n "__fish_plumb_using_subcommand agent" -l duration -d 'End after this time; without it, at SIGTERM or Ctrl-C' -r
complete -c plumb -n "__fish_plumb_using_subcommand agent" -l config -d 'Read the configuration from this file (default: /etc/plumb/agent.toml if it is there); flags override it' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand agent" -l check-config -d 'Check the configuration and print it; it starts nothing'
complete -c plumb -n "__fish_plumb_using_subcommand agent" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand agent" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand history; and not __fish_seen_subcommand_from list show senders findings changes export import dump backup prune verify estimate" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand history; and not __fish_seen_subcommand_from list show senders findings changes export import dump backup prune verify estimate" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand history; and not __fish_seen_subcommand_from list show senders findings changes export import dump backup prune verify estimate" -f -a "list" -d 'List the devices, and the time that the history of each covers'
complete -c plumb -n "__fish_plumb_using_subcommand history; and not __fish_seen_subcommand_from list show senders findings changes export import dump backup prune verify estimate" -f -a "show" -d 'Print the I/O of a device over time: rate, misfit, latency'
complete -c plumb -n "__fish_plumb_using_subcommand history; and not __fish_seen_subcommand_from list show senders findings changes export import dump backup prune verify estimate" -f -a "senders" -d 'Print the processes that sent the I/O of a device, with their units, pods or VMs'
complete -c plumb -n "__fish_plumb_using_subcommand history; and not __fish_seen_subcommand_from list show senders findings changes export import dump backup prune verify estimate" -f -a "findings" -d 'Print the findings of the agent: when each appeared, changed and went'
complete -c plumb -n "__fish_plumb_using_subcommand history; and not __fish_seen_subcommand_from list show senders findings changes export import dump backup prune verify estimate" -f -a "changes" -d 'Search for changes: a misfit that rose, a latency that grew, other sizes'
complete -c plumb -n "__fish_plumb_using_subcommand history; and not __fish_seen_subcommand_from list show senders findings changes export import dump backup prune verify estimate" -f -a "export" -d 'Print the totals of each window for other programs'
complete -c plumb -n "__fish_plumb_using_subcommand history; and not __fish_seen_subcommand_from list show senders findings changes export import dump backup prune verify estimate" -f -a "import" -d 'Add saved profiles, for instance those of `plumb watch --save`, or RRDs of io-profiler'
complete -c plumb -n "__fish_plumb_using_subcommand history; and not __fish_seen_subcommand_from list show senders findings changes export import dump backup prune verify estimate" -f -a "dump" -d 'Write the profiles of a time to one file, to analyze or send them'
complete -c plumb -n "__fish_plumb_using_subcommand history; and not __fish_seen_subcommand_from list show senders findings changes export import dump backup prune verify estimate" -f -a "backup" -d 'Copy the history to another folder while the agent runs'
complete -c plumb -n "__fish_plumb_using_subcommand history; and not __fish_seen_subcommand_from list show senders findings changes export import dump backup prune verify estimate" -f -a "prune" -d 'Delete windows that are older than a time; the agent must not run'
complete -c plumb -n "__fish_plumb_using_subcommand history; and not __fish_seen_subcommand_from list show senders findings changes export import dump backup prune verify estimate" -f -a "verify" -d 'Read all records and check them'
complete -c plumb -n "__fish_plumb_using_subcommand history; and not __fish_seen_subcommand_from list show senders findings changes export import dump backup prune verify estimate" -f -a "estimate" -d 'Print the size of the history, and the time that it will cover'
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from list" -l state-dir -d 'Folder of the history (default: state_dir of /etc/plumb/agent.toml, else /var/lib/plumb-agent)' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from list" -l json -d 'Print one JSON document instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from list" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from show" -l state-dir -d 'Folder of the history (default: state_dir of /etc/plumb/agent.toml, else /var/lib/plumb-agent)' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from show" -l json -d 'Print one JSON document instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from show" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from senders" -l state-dir -d 'Folder of the history (default: state_dir of /etc/plumb/agent.toml, else /var/lib/plumb-agent)' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from senders" -l json -d 'Print one JSON document instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from senders" -s h -l help -d 'Print help'
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from senders" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from findings" -l state-dir -d 'Folder of the history (default: state_dir of /etc/plumb/agent.toml, else /var/lib/plumb-agent)' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from findings" -l json -d 'Print one JSON document instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from findings" -s h -l help -d 'Print help'
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from findings" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from changes" -l state-dir -d 'Folder of the history (default: state_dir of /etc/plumb/agent.toml, else /var/lib/plumb-agent)' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from changes" -l json -d 'Print one JSON document instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from changes" -s h -l help -d 'Print help'
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from changes" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from export" -l last -d 'The last TIME of all devices: 15m, 2h, 7d' -r
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from export" -l fleet -d 'Folder for objects that `plumb fleet` reads: each day of all devices that is over; known objects stay as they are' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from export" -l tier -d 'Windows for --fleet: 5m, 1h or 1d; may be given several times (default: 1h and 1d)' -r
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from export" -l as -d 'Form of the output' -r -f -a "csv\t'Comma-separated values, a line for each window'
json\t'One JSON document'
parquet\t'Parquet, a row for each window'"
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from export" -s o -l output -d 'File for the output (default: standard output; Parquet needs a file, or - for standard output)' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from export" -l state-dir -d 'Folder of the history (default: state_dir of /etc/plumb/agent.toml, else /var/lib/plumb-agent)' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from export" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from export" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from import" -l as -d 'WWN, UUID or serial number of the device (default: that of the device with the name of the profile at its time, else the name)' -r
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from import" -l counted-over -d 'Time of each count in an RRD: 10s (default: that of the version of io-profiler with its data sources, 300s or 10s)' -r
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from import" -l state-dir -d 'Folder of the history (default: state_dir of the configuration, else /var/lib/plumb-agent)' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from import" -l config -d 'Configuration of the agent with the bounds of the history (default: /etc/plumb/agent.toml if it is there)' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from import" -s h -l help -d 'Print help'
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from import" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from dump" -l last -d 'The last TIME of all devices: 15m, 2h, 7d' -r
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from dump" -s o -l output -d 'File for the profiles; plumb analyze, compare and check read it' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from dump" -l state-dir -d 'Folder of the history (default: state_dir of /etc/plumb/agent.toml, else /var/lib/plumb-agent)' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from dump" -s h -l help -d 'Print help'
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from dump" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from backup" -l state-dir -d 'Folder of the history (default: state_dir of the configuration, else /var/lib/plumb-agent)' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from backup" -l config -d 'Configuration of the agent with the bounds of the history (default: /etc/plumb/agent.toml if it is there)' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from backup" -s h -l help -d 'Print help'
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from backup" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from prune" -l keep -d 'Keep this time before now, in hours or days: 12h, 90d' -r
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from prune" -l state-dir -d 'Folder of the history (default: state_dir of the configuration, else /var/lib/plumb-agent)' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from prune" -l config -d 'Configuration of the agent with the bounds of the history (default: /etc/plumb/agent.toml if it is there)' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from prune" -s h -l help -d 'Print help'
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from prune" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from verify" -l state-dir -d 'Folder of the history (default: state_dir of the configuration, else /var/lib/plumb-agent)' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from verify" -l config -d 'Configuration of the agent with the bounds of the history (default: /etc/plumb/agent.toml if it is there)' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from verify" -l json -d 'Print one JSON document instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from verify" -s h -l help -d 'Print help'
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from verify" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from estimate" -l state-dir -d 'Folder of the history (default: state_dir of the configuration, else /var/lib/plumb-agent)' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from estimate" -l config -d 'Configuration of the agent with the bounds of the history (default: /etc/plumb/agent.toml if it is there)' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from estimate" -l json -d 'Print one JSON document instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from estimate" -s h -l help -d 'Print help'
complete -c plumb -n "__fish_plumb_using_subcommand history; and __fish_seen_subcommand_from estimate" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand serve" -l state-dir -d 'Folder of the history (default: state_dir of /etc/plumb/agent.toml, else /var/lib/plumb-agent)' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand serve" -l listen -d 'Address to listen at; one beyond loopback needs the three files, and port 0 is any free port' -r
complete -c plumb -n "__fish_plumb_using_subcommand serve" -l tls-certificate -d 'Certificate of this host in PEM, for TLS' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand serve" -l tls-key -d 'Private key of the certificate in PEM; other users must not be able to read it' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand serve" -l token-file -d 'Tokens of at least 32 characters, one a line; other users must not be able to read them' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand serve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand serve" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand fleet; and not __fish_seen_subcommand_from report profile merge rows" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand fleet; and not __fish_seen_subcommand_from report profile merge rows" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand fleet; and not __fish_seen_subcommand_from report profile merge rows" -f -a "report" -d 'Rank the disks of all hosts by wasted I/O and by lost time'
complete -c plumb -n "__fish_plumb_using_subcommand fleet; and not __fish_seen_subcommand_from report profile merge rows" -f -a "profile" -d 'Profile the recordings of many hosts into one file'
complete -c plumb -n "__fish_plumb_using_subcommand fleet; and not __fish_seen_subcommand_from report profile merge rows" -f -a "merge" -d 'Merge fleet files into one; a file that is given twice changes nothing'
complete -c plumb -n "__fish_plumb_using_subcommand fleet; and not __fish_seen_subcommand_from report profile merge rows" -f -a "rows" -d 'Write the residue rows of all devices as Parquet, for SQL'
complete -c plumb -n "__fish_plumb_using_subcommand fleet; and __fish_seen_subcommand_from report" -l grid -d 'Grid to judge by: GRANULARITY or GRANULARITY@OFFSET; may be given several times' -r
complete -c plumb -n "__fish_plumb_using_subcommand fleet; and __fish_seen_subcommand_from report" -l state -d 'Keep the profiles in this fleet file, and read only inputs that it does not have yet' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand fleet; and __fish_seen_subcommand_from report" -l engine -d 'Let a Spark cluster read the sources: spark://HOST:PORT, yarn or k8s://https://HOST:PORT' -r
complete -c plumb -n "__fish_plumb_using_subcommand fleet; and __fish_seen_subcommand_from report" -l inventory -d 'Attributes of hosts, such as image, rack, model or kernel: CSV, JSON or collections' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand fleet; and __fish_seen_subcommand_from report" -l plans -d 'Write the plan of each host in a group into this folder, for plumb fix plan' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand fleet; and __fish_seen_subcommand_from report" -l since -d 'Show the changes since an earlier fleet file, or since a time: 7d, 2026-11-23' -r
complete -c plumb -n "__fish_plumb_using_subcommand fleet; and __fish_seen_subcommand_from report" -l silent-after -d 'Age of the newest I/O of a host, against those of the fleet, from which the host has stopped reporting' -r
complete -c plumb -n "__fish_plumb_using_subcommand fleet; and __fish_seen_subcommand_from report" -l top -d 'Entries of each ranking and list' -r
complete -c plumb -n "__fish_plumb_using_subcommand fleet; and __fish_seen_subcommand_from report" -l as -d 'Print another format instead of text' -r -f -a "csv\t'A line for each device of each group, with its command'
openmetrics\t'Metrics'"
complete -c plumb -n "__fish_plumb_using_subcommand fleet; and __fish_seen_subcommand_from report" -l html -d 'Write a page in one file' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand fleet; and __fish_seen_subcommand_from report" -l fail-on -d 'Severity from which the exit status is 1' -r -f -a "note\t'Any finding'
warning\t'Warnings and worse'
critical\t'Only critical ones'
none\t'Never'"
complete -c plumb -n "__fish_plumb_using_subcommand fleet; and __fish_seen_subcommand_from report" -l color -d 'When to colour' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c plumb -n "__fish_plumb_using_subcommand fleet; and __fish_seen_subcommand_from report" -l skip-bad -d 'Name and count the files that cannot be read, and go on without them'
complete -c plumb -n "__fish_plumb_using_subcommand fleet; and __fish_seen_subcommand_from report" -l json -d 'Print one JSON document instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand fleet; and __fish_seen_subcommand_from report" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand fleet; and __fish_seen_subcommand_from report" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand fleet; and __fish_seen_subcommand_from profile" -l shard -d 'Only the inputs of this shard: I/N, I from 0. All shards need the same SOURCE and grids' -r
complete -c plumb -n "__fish_plumb_using_subcommand fleet; and __fish_seen_subcommand_from profile" -l grid -d 'Grid to judge by: GRANULARITY or GRANULARITY@OFFSET; may be given several times' -r
complete -c plumb -n "__fish_plumb_using_subcommand fleet; and __fish_seen_subcommand_from profile" -s o -l output -d 'File for the profiles, in the place of a file that has the name' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand fleet; and __fish_seen_subcommand_from profile" -l skip-bad -d 'Name and count the files that cannot be read, and go on without them'
complete -c plumb -n "__fish_plumb_using_subcommand fleet; and __fish_seen_subcommand_from profile" -s h -l help -d 'Print help'
complete -c plumb -n "__fish_plumb_using_subcommand fleet; and __fish_seen_subcommand_from profile" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand fleet; and __fish_seen_subcommand_from merge" -s o -l output -d 'File for the result, in the place of a file that has the name' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand fleet; and __fish_seen_subcommand_from merge" -s h -l help -d 'Print help'
complete -c plumb -n "__fish_plumb_using_subcommand fleet; and __fish_seen_subcommand_from merge" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand fleet; and __fish_seen_subcommand_from rows" -s o -l output -d 'File for the result, in the place of a file that has the name' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand fleet; and __fish_seen_subcommand_from rows" -s h -l help -d 'Print help'
complete -c plumb -n "__fish_plumb_using_subcommand fleet; and __fish_seen_subcommand_from rows" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand probe" -l grid -d 'Granularity to look for besides powers of two, and to confirm or refute; may be given several times' -r
complete -c plumb -n "__fish_plumb_using_subcommand probe" -l range -d 'Measure only this part of the target, the end excluded: 1m-5g' -r
complete -c plumb -n "__fish_plumb_using_subcommand probe" -l cache -d 'Size of the cache before the medium, or 0 for none; without it, the probe looks for one. It reads at least twice that size' -r
complete -c plumb -n "__fish_plumb_using_subcommand probe" -l depth -d 'I/O in flight' -r
complete -c plumb -n "__fish_plumb_using_subcommand probe" -l limit -d 'Time limit: questions that are still open then are inconclusive' -r
complete -c plumb -n "__fish_plumb_using_subcommand probe" -l margin -d 'Difference in percent that does not matter' -r
complete -c plumb -n "__fish_plumb_using_subcommand probe" -l seed -d 'Repeats the order of all I/O of another probe: the seed in its --json' -r
complete -c plumb -n "__fish_plumb_using_subcommand probe" -l yes -d 'The name of the target, typed once more, in place of the question' -r
complete -c plumb -n "__fish_plumb_using_subcommand probe" -l html -d 'Write a page with pictures' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand probe" -l fail-on -d 'Severity from which the exit status is 1' -r -f -a "note\t'Any finding'
warning\t'Warnings and worse'
critical\t'Only critical ones'
none\t'Never'"
complete -c plumb -n "__fish_plumb_using_subcommand probe" -l color -d 'When to colour' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c plumb -n "__fish_plumb_using_subcommand probe" -l write -d 'Measure writes: data are read, and written back to the same place'
complete -c plumb -n "__fish_plumb_using_subcommand probe" -l json -d 'Print one JSON document instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand probe" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand probe" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand bench" -l read -d 'Percentage of reads; the others are writes' -r
complete -c plumb -n "__fish_plumb_using_subcommand bench" -l size -d 'Length of an I/O, or several with their weights: 4k:3,64k:1' -r
complete -c plumb -n "__fish_plumb_using_subcommand bench" -l random -d 'Percentage of random starts; the others continue the stream of their thread' -r
complete -c plumb -n "__fish_plumb_using_subcommand bench" -l stride -d 'As --sequential, with this distance from start to start' -r
complete -c plumb -n "__fish_plumb_using_subcommand bench" -l zipf -d 'Random places by a Zipf distribution of this exponent: at 1, the k-th most popular one is drawn k times less often' -r
complete -c plumb -n "__fish_plumb_using_subcommand bench" -l shift -d 'Move every start: shows the cost for a partition that begins later by this distance' -r
complete -c plumb -n "__fish_plumb_using_subcommand bench" -l align -d 'Starts are multiples of this, plus the shift; without it, of the length of each I/O' -r
complete -c plumb -n "__fish_plumb_using_subcommand bench" -l range -d 'Only this part of the target, the end excluded: 1m-5g' -r
complete -c plumb -n "__fish_plumb_using_subcommand bench" -l hit-area -d 'A part at the beginning for the I/O of --hit-percent alone, so that a cache answers those: all others go behind it' -r
complete -c plumb -n "__fish_plumb_using_subcommand bench" -l hit-percent -d 'Percentage of I/O at random places of --hit-area' -r
complete -c plumb -n "__fish_plumb_using_subcommand bench" -l threads -d 'Threads a target' -r
complete -c plumb -n "__fish_plumb_using_subcommand bench" -l depth -d 'I/O in flight a thread' -r
complete -c plumb -n "__fish_plumb_using_subcommand bench" -l batch -d 'I/O that a thread hands over and waits for at once: less work for the processor, and times that contain the wait for the others of the batch' -r
complete -c plumb -n "__fish_plumb_using_subcommand bench" -l rate -d 'Maximum I/O per second and target [default: no limit]' -r
complete -c plumb -n "__fish_plumb_using_subcommand bench" -l open -d 'I/O come at the rate, however slow the target is, like those of many users' -r -f -a "exponential\t'At random, independent of each other'
uniform\t'At random, with gaps of any length up to twice their mean'
even\t'At even distances'"
complete -c plumb -n "__fish_plumb_using_subcommand bench" -l for -d 'How long to measure' -r
complete -c plumb -n "__fish_plumb_using_subcommand bench" -l ios -d 'Stop after N I/O for each target; with --for, at the earlier of both ends' -r
complete -c plumb -n "__fish_plumb_using_subcommand bench" -l warmup -d 'Warm-up time' -r
complete -c plumb -n "__fish_plumb_using_subcommand bench" -l interval -d 'Interval length [default: 1s]' -r
complete -c plumb -n "__fish_plumb_using_subcommand bench" -l vdbench -d 'Run a parameter file of Vdbench' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand bench" -l set -d 'Value of $NAME and !NAME in that file; may be given several times' -r
complete -c plumb -n "__fish_plumb_using_subcommand bench" -l fio -d 'Run a job file of fio' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand bench" -l study -d 'Measure the gain for an application of small records' -r -f -a "gather\t'I/O and records a second, by threads, random or in sequence, and records in an I/O'"
complete -c plumb -n "__fish_plumb_using_subcommand bench" -l record -d 'Of a study: length of a record, or of a logical block where that is longer' -r
complete -c plumb -n "__fish_plumb_using_subcommand bench" -l gather -d 'Of a study: how many records one I/O takes' -r
complete -c plumb -n "__fish_plumb_using_subcommand bench" -l at-threads -d 'Of a study: how many threads have an I/O in flight' -r
complete -c plumb -n "__fish_plumb_using_subcommand bench" -l yes -d 'The name of a target, typed once more, in place of the question; given for each of them' -r
complete -c plumb -n "__fish_plumb_using_subcommand bench" -l engine -d 'I/O engine; if the kernel refuses io_uring, blocking I/O is used' -r -f -a "io_uring\t'By a ring that the kernel shares, many at once'
blocking\t'By pread and pwrite, a thread for each I/O in flight'"
complete -c plumb -n "__fish_plumb_using_subcommand bench" -l seed -d 'The same number draws the same I/O' -r
complete -c plumb -n "__fish_plumb_using_subcommand bench" -l trace -d 'Write every I/O of the measurement to a file, a name that is free: FILE.parquet; of several runs each has a file of its own: FILE-1.parquet' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand bench" -l html -d 'Write a page with pictures' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand bench" -l color -d 'When to colour' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c plumb -n "__fish_plumb_using_subcommand bench" -l sequential -d 'Sequential I/O: the threads of a target share one stream'
complete -c plumb -n "__fish_plumb_using_subcommand bench" -l write -d 'Allow writes: they destroy the data on the targets'
complete -c plumb -n "__fish_plumb_using_subcommand bench" -l json -d 'Print one JSON document instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand bench" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand bench" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand replay" -l speed -d 'Speed relative to the recording, or max: each I/O as soon as those that it depends on have completed' -r
complete -c plumb -n "__fish_plumb_using_subcommand replay" -l depth -d 'Keep N I/O in flight, regardless of their processes: none waits for another' -r
complete -c plumb -n "__fish_plumb_using_subcommand replay" -l shift -d 'Move every start' -r
complete -c plumb -n "__fish_plumb_using_subcommand replay" -l layout -d 'Move I/O that start at OLD or behind it, up to the next OLD, to NEW: the present and the planned start of a partition; may be given several times' -r
complete -c plumb -n "__fish_plumb_using_subcommand replay" -l modulus -d 'Modulus of the fold: starts move by whole multiples of this' -r
complete -c plumb -n "__fish_plumb_using_subcommand replay" -l pairs -d 'Pairs of slices, spread over the trace' -r
complete -c plumb -n "__fish_plumb_using_subcommand replay" -l margin -d 'Ignore changes up to this percentage' -r
complete -c plumb -n "__fish_plumb_using_subcommand replay" -l seed -d 'The same number draws the same order' -r
complete -c plumb -n "__fish_plumb_using_subcommand replay" -l device -d 'Only this device, as the trace names it; may be given several times' -r
complete -c plumb -n "__fish_plumb_using_subcommand replay" -l op -d 'Only these operations: read, write, discard, flush, write-zeroes, other, or their letters' -r
complete -c plumb -n "__fish_plumb_using_subcommand replay" -l partition -d 'Only this partition, by number, where the trace reveals partitions' -r
complete -c plumb -n "__fish_plumb_using_subcommand replay" -l range -d 'Only I/O that start in this part of the device, the end excluded: 1m-5g' -r
complete -c plumb -n "__fish_plumb_using_subcommand replay" -l layer -d 'Layer: vfs, bio or request; when not given the lowest present, but all of them where Parquet is written' -r
complete -c plumb -n "__fish_plumb_using_subcommand replay" -l since -d 'Only from this time on: 90s, 5m since the first I/O, or a UTC time' -r
complete -c plumb -n "__fish_plumb_using_subcommand replay" -l until -d 'Only before this time' -r
complete -c plumb -n "__fish_plumb_using_subcommand replay" -l format -d 'Format of the traces, if their contents do not show it' -r
complete -c plumb -n "__fish_plumb_using_subcommand replay" -l yes -d 'The name of the target, typed once more, in place of the question' -r
complete -c plumb -n "__fish_plumb_using_subcommand replay" -l engine -d 'I/O engine; if the kernel refuses io_uring, blocking I/O is used' -r -f -a "io_uring\t'By a ring that the kernel shares, many at once'
blocking\t'By pread and pwrite, a thread for each I/O in flight'"
complete -c plumb -n "__fish_plumb_using_subcommand replay" -l trace -d 'Write every I/O of the replay to a file, a name that is free: FILE.parquet' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand replay" -l html -d 'Write a page with pictures' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand replay" -l color -d 'When to colour' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c plumb -n "__fish_plumb_using_subcommand replay" -l compare -d 'Send slices to today\'s places and to the planned ones in turn, and print the gain of the plan'
complete -c plumb -n "__fish_plumb_using_subcommand replay" -l write -d 'Send writes as writes: they destroy the data on the target'
complete -c plumb -n "__fish_plumb_using_subcommand replay" -l json -d 'Print one JSON document instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand replay" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand replay" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and not __fish_seen_subcommand_from partition stripe softpart filesystem record resync disks writes" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and not __fish_seen_subcommand_from partition stripe softpart filesystem record resync disks writes" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and not __fish_seen_subcommand_from partition stripe softpart filesystem record resync disks writes" -f -a "partition" -d 'Aligned start of a partition or slice, and the commands that put it there'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and not __fish_seen_subcommand_from partition stripe softpart filesystem record resync disks writes" -f -a "stripe" -d 'Chunk size of a stripe'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and not __fish_seen_subcommand_from partition stripe softpart filesystem record resync disks writes" -f -a "softpart" -d 'Offsets of soft partitions of Solaris Volume Manager'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and not __fish_seen_subcommand_from partition stripe softpart filesystem record resync disks writes" -f -a "filesystem" -d 'Stripe options of a file system'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and not __fish_seen_subcommand_from partition stripe softpart filesystem record resync disks writes" -f -a "record" -d 'Record that suits a page, or the I/O of a profile'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and not __fish_seen_subcommand_from partition stripe softpart filesystem record resync disks writes" -f -a "resync" -d 'The I/O size of mirror resyncs of Solaris Volume Manager'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and not __fish_seen_subcommand_from partition stripe softpart filesystem record resync disks writes" -f -a "disks" -d 'Number of disks for a required rate'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and not __fish_seen_subcommand_from partition stripe softpart filesystem record resync disks writes" -f -a "writes" -d 'Gain from writing in sequence, or from gathering records'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from partition" -l grid -d 'Grid for the start: GRANULARITY or GRANULARITY@OFFSET; may be given several times' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from partition" -l alignment-offset -d 'Offset of the first aligned block, as sysfs states it; added to every grid' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from partition" -l from -d 'Take the disk from the output of other tools: prtvtoc, sfdisk -d, …' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from partition" -l label -d 'Kind of label; without it that of the disk if it is on this host, else gpt' -r -f -a "gpt\t'GPT'
dos\t'DOS (MBR)'
efi\t'EFI label of Solaris'
smi\t'SMI label (VTOC) on SPARC'
smi-x86\t'SMI label inside an fdisk partition on x86'"
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from partition" -l sector -d 'Logical block of the disk: 512 or 4096' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from partition" -l disk-size -d 'Size of the disk' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from partition" -l after -d 'First position that may be used' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from partition" -l before -d 'First position that may not be used' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from partition" -l size -d 'Length [default: all free space]. An existing partition may shrink by up to 1 MiB to make room for the new start' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from partition" -l number -d 'Number of the partition or slice' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from partition" -l current -d 'Present start; without it that of the partition if it is on this host' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from partition" -l geometry -d 'Heads and sectors of an SMI label, as prtvtoc prints them: 27x107' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from partition" -l fdisk-start -d 'Start of the Solaris fdisk partition that holds an SMI label on x86' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from partition" -l holds -d 'Content: lvm=GROUP, md=ARRAY, zfs=POOL or svm=MIRROR,SUBMIRROR' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from partition" -l new-label -d 'Make the label as well'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from partition" -l json -d 'Print one JSON document instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from partition" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from partition" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from stripe" -l io -d 'Length of the I/O: the page' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from stripe" -l share -d 'Largest share of I/O that may cross from one chunk to the next: 1/128, 1%' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from stripe" -l base -d 'Start of the data, relative to a stripe boundary' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from stripe" -l chunk -d 'Judge this chunk' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from stripe" -l segment -d 'Segment of the array below: chunks are whole ones' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from stripe" -l parity -d 'Members of each stripe that hold parity' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from stripe" -l manager -d 'Volume manager of the stripe' -r -f -a "svm\t'Solaris Volume Manager'
md\t'Linux md'
lvm\t'LVM'"
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from stripe" -l any-sector -d 'I/O begin at any sector, and not at multiples of their length'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from stripe" -l json -d 'Print one JSON document instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from stripe" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from stripe" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from softpart" -l unit -d 'Grid for their starts: interlace, full stripe, page' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from softpart" -l from -d 'Take them from metastat -p, and the starts of slices from prtvtoc' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from softpart" -l existing -d 'One that exists: NAME:OFFSET:LENGTH, as in d11:512s:1g; may be given several times' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from softpart" -l new -d 'One to be added behind them: NAME:LENGTH; may be given several times' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from softpart" -l base -d 'Start of the component on its disk' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from softpart" -l component-size -d 'Length of the component' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from softpart" -l json -d 'Print one JSON document instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from softpart" -s h -l help -d 'Print help (see more with \'--help\')'
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
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from filesystem" -l mount -d 'Mount point' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from filesystem" -l json -d 'Print one JSON document instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from filesystem" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from filesystem" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from record" -l page -d 'Page of the application, read and written at multiples of it' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from record" -l profile -d 'Saved profile of the vfs layer, made by plumb analyze --save' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from record" -l keeper -d 'Program that keeps the records' -r -f -a "zfs\t'A file system of ZFS: recordsize'
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
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from resync" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from resync" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from disks" -l reads -d 'Reads a second' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from disks" -l writes -d 'Writes a second' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from disks" -l growth -d 'How many times that' -r
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from disks" -l disk-rate -d 'Measured rate of one disk for such I/O, a second' -r
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
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from writes" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from writes" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and not __fish_seen_subcommand_from relabel undo backup-label plan move resume rollback status" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and not __fish_seen_subcommand_from relabel undo backup-label plan move resume rollback status" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and not __fish_seen_subcommand_from relabel undo backup-label plan move resume rollback status" -f -a "relabel" -d 'Move the start of a partition on an empty disk, or label a blank disk'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and not __fish_seen_subcommand_from relabel undo backup-label plan move resume rollback status" -f -a "undo" -d 'Restore the label that relabel or backup-label replaced'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and not __fish_seen_subcommand_from relabel undo backup-label plan move resume rollback status" -f -a "backup-label" -d 'Rewrite the broken or stranded copy of a GPT from the good one'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and not __fish_seen_subcommand_from relabel undo backup-label plan move resume rollback status" -f -a "plan" -d 'Carry out plans, or the remedies of a check, as far as Plumb can do that here, and print the others'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and not __fish_seen_subcommand_from relabel undo backup-label plan move resume rollback status" -f -a "move" -d 'Move a partition with its data to another start, so that a crash at any point loses no byte'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and not __fish_seen_subcommand_from relabel undo backup-label plan move resume rollback status" -f -a "resume" -d 'Resume an interrupted move'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and not __fish_seen_subcommand_from relabel undo backup-label plan move resume rollback status" -f -a "rollback" -d 'Revert an unfinished move: the partition returns to its old place'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and not __fish_seen_subcommand_from relabel undo backup-label plan move resume rollback status" -f -a "status" -d 'Show the progress of a move'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from relabel" -l start -d 'New start of the partition; without this and --plan, at about 1 MiB, on the grid of the disk' -r
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from relabel" -l plan -d 'Take start and length from a plan: the output of plumb plan partition --json' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from relabel" -l size -d 'Length; when not given the end stays where it is, or is that of the disk' -r
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from relabel" -l number -d 'Number of the partition, of Solaris that of the slice; not needed where there is only one' -r
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from relabel" -l label -d 'Label to create [default: gpt]' -r -f -a "gpt\t'GPT'
dos\t'DOS (MBR)'
efi\t'EFI label of Solaris'
smi\t'SMI label (VTOC) on SPARC'
smi-x86\t'SMI label inside an fdisk partition on x86: one that is there is changed, a new one is not made'"
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from relabel" -l geometry -d 'Heads and sectors of a new SMI label: 27x107' -r
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from relabel" -l sector -d 'Logical block of an image without a label: 512 or 4096; disks tell theirs' -r
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from relabel" -l yes -d 'Write for real; NAME must match the target that the dry run shows' -r
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from relabel" -l ignore-marker -d 'Ignore marks of a move in the partitions of the disk of this name: no move of it is unfinished' -r
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from relabel" -l save -d 'File for the old label; a new one in /var/lib/plumb when not given' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from relabel" -l new-label -d 'Make a new label in the place of the one that is there'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from relabel" -l json -d 'Print one JSON document instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from relabel" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from relabel" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from undo" -l yes -d 'Write for real; NAME must match the target that the dry run shows' -r
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from undo" -l ignore-marker -d 'Ignore marks of a move in the partitions of the disk of this name: no move of it is unfinished' -r
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from undo" -l save -d 'File for the old label; a new one in /var/lib/plumb when not given' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from undo" -l force -d 'Revert also if somebody has written to the places of the label since, or the partitions that go away hold something'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from undo" -l json -d 'Print one JSON document instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from undo" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from undo" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from backup-label" -l yes -d 'Write for real; NAME must match the target that the dry run shows' -r
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from backup-label" -l ignore-marker -d 'Ignore marks of a move in the partitions of the disk of this name: no move of it is unfinished' -r
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from backup-label" -l save -d 'File for the old label; a new one in /var/lib/plumb when not given' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from backup-label" -l json -d 'Print one JSON document instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from backup-label" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from backup-label" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from plan" -l yes -d 'Write for real; NAME is the partition or device to change, as the dry run shows it' -r
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from plan" -l journal -d 'File for the journal, on another disk; a new one in /var/lib/plumb when not given' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from plan" -l probe -d 'Probe afterwards which grid is really there: reads only, see plumb probe'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from plan" -l journal-same-disk -d 'Let the journal be on the disk of the partition: safe against a crash, not against a broken disk'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from plan" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from plan" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from move" -l to -d 'New start: 2048s' -r
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from move" -l journal -d 'File for the journal, on another disk; a new one in /var/lib/plumb when not given' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from move" -l yes -d 'Write for real; NAME must match the target that the dry run shows' -r
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from move" -l ignore-marker -d 'Ignore marks of a move in the partitions of the disk of this name: no move of it is unfinished' -r
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from move" -l aligned -d 'Let it begin at the nearest start on the grid of its disk that has room'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from move" -l journal-same-disk -d 'Let the journal be on the disk of the partition: safe against a crash, not against a broken disk'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from move" -l scan -d 'Read the whole partition and the free part of its new place first'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from move" -l scan-write -d 'As --scan, and fill the free part of the new place with zeros before the move begins: a disk replaces bad blocks when they are written'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from move" -l json -d 'Print one JSON document instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from move" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from move" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from resume" -l disk -d 'The disk, where it has another name than when the move began' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from resume" -l yes -d 'Continue although other users can write the journal; NAME must match the disk that the refusal shows' -r
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from resume" -l accept-loss -d 'Go on over bytes that cannot be read or do not match their sum: unreadable blocks become zeros, and all these bytes are named in JOURNAL.lost'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from resume" -l json -d 'Print one JSON document instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from resume" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from resume" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from rollback" -l disk -d 'The disk, where it has another name than when the move began' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from rollback" -l yes -d 'Continue although other users can write the journal; NAME must match the disk that the refusal shows' -r
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from rollback" -l accept-loss -d 'Go on over bytes that cannot be read or do not match their sum: unreadable blocks become zeros, and all these bytes are named in JOURNAL.lost'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from rollback" -l json -d 'Print one JSON document instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from rollback" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from rollback" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from status" -l json -d 'Print one JSON document instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from status" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from status" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand help" -s h -l help -d 'Print help'
complete -c plumb -n "__fish_plumb_using_subcommand help" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand explain" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand explain" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand version" -s v -l verbose -d 'Also print commit, target, features and the protections that this kernel enforces'
complete -c plumb -n "__fish_plumb_using_subcommand version" -s h -l help -d 'Print help'
complete -c plumb -n "__fish_plumb_using_subcommand version" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand generate" -l repository -d 'Source tree: write every generated file of it' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand generate" -l check -d 'Write nothing; fail if a file is not fresh'
complete -c plumb -n "__fish_plumb_using_subcommand generate" -s h -l help -d 'Print help'
complete -c plumb -n "__fish_plumb_using_subcommand generate" -s V -l version -d 'Print version'

# Devices of this host.
function __fish_plumb_devices
    for device in /sys/class/block/*
        string replace -r '.*/' '' $device
    end
end

complete -c plumb -n "__fish_plumb_using_subcommand diagnose" -a "(__fish_plumb_devices)" -d 'Device'
complete -c plumb -n "__fish_plumb_using_subcommand check" -a "(__fish_plumb_devices)" -d 'Device'
complete -c plumb -n "__fish_plumb_using_subcommand record" -a "(__fish_plumb_devices)" -d 'Device'
complete -c plumb -n "__fish_plumb_using_subcommand watch" -a "(__fish_plumb_devices)" -d 'Device'
complete -c plumb -n "__fish_plumb_using_subcommand probe" -a "(__fish_plumb_devices)" -d 'Device'
complete -c plumb -n "__fish_plumb_using_subcommand bench" -a "(__fish_plumb_devices)" -d 'Device'
complete -c plumb -n "__fish_plumb_using_subcommand replay" -a "(__fish_plumb_devices)" -d 'Device'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from partition" -a "(__fish_plumb_devices)" -d 'Device'
complete -c plumb -n "__fish_plumb_using_subcommand plan; and __fish_seen_subcommand_from filesystem" -a "(__fish_plumb_devices)" -d 'Device'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from relabel" -a "(__fish_plumb_devices)" -d 'Device'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from undo" -a "(__fish_plumb_devices)" -d 'Device'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from backup-label" -a "(__fish_plumb_devices)" -d 'Device'
complete -c plumb -n "__fish_plumb_using_subcommand fix; and __fish_seen_subcommand_from move" -a "(__fish_plumb_devices)" -d 'Device'
complete -c plumb -n "__fish_plumb_using_subcommand help" -f -a "diagnose analyze check compare convert record watch agent history serve fleet probe bench replay plan fix help explain version"
complete -c plumb -n "__fish_plumb_using_subcommand explain" -f -a "misaligned-io split-io record-mismatch odd-length-io small-random-writes looks-sequential member-skew throughput-inflation failing-io stalled-io saturated-device misfit-rose latency-grew little-headroom sizes-changed misaligned-target misaligned-partition soft-partition-drift narrow-stripe stripe-segment-mismatch parity-small-writes indirection-unit geometry-mismatch discard-misaligned implausible-hint misstated-grid queue-setting read-ahead-off read-ahead-too-large too-few-disks single-path software-stripe-on-hardware-raid software-raid5 read-policy mirror-write-copy small-resync-io small-maxphys no-direct-io no-logging small-segmap too-many-metadevices double-counted broken-label stranded-backup-label overlapping-partitions unfinished-move sector-size-mismatch broken-superblock hidden-sectors ashift-below-block beyond-device contradiction"
complete -c plumb -n "__fish_plumb_using_subcommand check" -l ignore -x -a "misaligned-io split-io record-mismatch odd-length-io small-random-writes looks-sequential member-skew throughput-inflation failing-io stalled-io saturated-device misfit-rose latency-grew little-headroom sizes-changed misaligned-target misaligned-partition soft-partition-drift narrow-stripe stripe-segment-mismatch parity-small-writes indirection-unit geometry-mismatch discard-misaligned implausible-hint misstated-grid queue-setting read-ahead-off read-ahead-too-large too-few-disks single-path software-stripe-on-hardware-raid software-raid5 read-policy mirror-write-copy small-resync-io small-maxphys no-direct-io no-logging small-segmap too-many-metadevices double-counted broken-label stranded-backup-label overlapping-partitions unfinished-move sector-size-mismatch broken-superblock hidden-sectors ashift-below-block beyond-device contradiction"
complete -c plumb -n "__fish_plumb_using_subcommand diagnose" -l ignore -x -a "misaligned-io split-io record-mismatch odd-length-io small-random-writes looks-sequential member-skew throughput-inflation failing-io stalled-io saturated-device misfit-rose latency-grew little-headroom sizes-changed misaligned-target misaligned-partition soft-partition-drift narrow-stripe stripe-segment-mismatch parity-small-writes indirection-unit geometry-mismatch discard-misaligned implausible-hint misstated-grid queue-setting read-ahead-off read-ahead-too-large too-few-disks single-path software-stripe-on-hardware-raid software-raid5 read-policy mirror-write-copy small-resync-io small-maxphys no-direct-io no-logging small-segmap too-many-metadevices double-counted broken-label stranded-backup-label overlapping-partitions unfinished-move sector-size-mismatch broken-superblock hidden-sectors ashift-below-block beyond-device contradiction"
