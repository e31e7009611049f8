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
complete -c plumb -n "__fish_plumb_needs_command" -f -a "analyze" -d 'Read traces of any known format: which I/O does not fit, by how much, at which offset'
complete -c plumb -n "__fish_plumb_needs_command" -f -a "check" -d 'How each layer of each stack of storage stands on the layers below: no load, no writing'
complete -c plumb -n "__fish_plumb_needs_command" -f -a "convert" -d 'Write a trace in another format'
complete -c plumb -n "__fish_plumb_needs_command" -f -a "generate" -d 'Write manual pages or shell completions'
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l grid -d 'Grid to judge by: GRANULARITY or GRANULARITY@OFFSET; may be given several times' -r
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l chunk -d 'Chunk of a stripe: shows what it splits' -r
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l members -d 'Members of that stripe: shows the load of each' -r
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l record -d 'Record of a file system: shows what requests of another size move' -r
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l shift -d 'Move every start: shows the fit if the partition began elsewhere, for instance +1s' -r
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l device -d 'Only this device, as the trace names it; may be given several times' -r
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l op -d 'Only these operations: read, write, discard, flush, write-zeroes, other, or their letters' -r
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l partition -d 'Only this partition, by number, where the trace reveals partitions' -r
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l range -d 'Only I/O that start in this part of the device, the end excluded: 1m-5g' -r
complete -c plumb -n "__fish_plumb_using_subcommand analyze" -l layer -d 'Layer: vfs, bio or request; the lowest present when not given' -r
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
complete -c plumb -n "__fish_plumb_using_subcommand check" -l profile -d 'Join a saved profile, so that rules that need sizes of I/O use the real ones' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand check" -l collect -d 'Gather what a check reads of this host into a file, for --from elsewhere: sysfs, mounts and what volume managers print; no data, no keys, no serial numbers' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand check" -l grid -d 'Unit of the disks: GRANULARITY or GRANULARITY@OFFSET; may be given several times' -r
complete -c plumb -n "__fish_plumb_using_subcommand check" -l segment -d 'Segment of the hardware array that shows the disks, for instance 48k' -r
complete -c plumb -n "__fish_plumb_using_subcommand check" -l disk-type -d 'Known array or drive to take for disks whose model is unknown, for instance sun-zfs-appliance-8k' -r
complete -c plumb -n "__fish_plumb_using_subcommand check" -l known -d 'More known arrays, in TOML' -r -F
complete -c plumb -n "__fish_plumb_using_subcommand check" -l page -d 'Page of the database on top: its usual I/O' -r
complete -c plumb -n "__fish_plumb_using_subcommand check" -l fail-on -d 'Severity from which the exit status is 1' -r -f -a "note\t'Any finding'
warning\t'Warnings and worse'
critical\t'Only critical ones'
none\t'Never'"
complete -c plumb -n "__fish_plumb_using_subcommand check" -l color -d 'When to colour' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c plumb -n "__fish_plumb_using_subcommand check" -l image -d 'Read a regular file as a disk instead of following it down to its device'
complete -c plumb -n "__fish_plumb_using_subcommand check" -l json -d 'Print one JSON document instead of text'
complete -c plumb -n "__fish_plumb_using_subcommand check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c plumb -n "__fish_plumb_using_subcommand check" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand convert" -l to -d 'Format to write, whatever the ending: parquet, fio-iolog, msr-csv' -r
complete -c plumb -n "__fish_plumb_using_subcommand convert" -l device -d 'Only this device, as the trace names it; may be given several times' -r
complete -c plumb -n "__fish_plumb_using_subcommand convert" -l op -d 'Only these operations: read, write, discard, flush, write-zeroes, other, or their letters' -r
complete -c plumb -n "__fish_plumb_using_subcommand convert" -l partition -d 'Only this partition, by number, where the trace reveals partitions' -r
complete -c plumb -n "__fish_plumb_using_subcommand convert" -l range -d 'Only I/O that start in this part of the device, the end excluded: 1m-5g' -r
complete -c plumb -n "__fish_plumb_using_subcommand convert" -l layer -d 'Layer: vfs, bio or request; the lowest present when not given' -r
complete -c plumb -n "__fish_plumb_using_subcommand convert" -l since -d 'Only from this time on: 90s, 5m since the first I/O, or a UTC time' -r
complete -c plumb -n "__fish_plumb_using_subcommand convert" -l until -d 'Only before this time' -r
complete -c plumb -n "__fish_plumb_using_subcommand convert" -l format -d 'Format of the traces, when it cannot be told from their contents' -r
complete -c plumb -n "__fish_plumb_using_subcommand convert" -s h -l help -d 'Print help'
complete -c plumb -n "__fish_plumb_using_subcommand convert" -s V -l version -d 'Print version'
complete -c plumb -n "__fish_plumb_using_subcommand generate" -s h -l help -d 'Print help'
complete -c plumb -n "__fish_plumb_using_subcommand generate" -s V -l version -d 'Print version'
