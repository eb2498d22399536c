# A dumbbell for ns-2: N greedy TCP flows over one bottleneck, tuned for speed, one JSON line on stdout.
#
#   ns dumbbell.tcl flows 10 rate 100e6 rtt_min 50 rtt_max 50 queue DropTail limit 100 tcp Newreno ...
#
# Every parameter is a word and a value; `defaults` below names them all. Tuned means: only the packet headers that
# the run uses (default headers cost up to 3 times), routes written by hand (all-pairs routing takes longer than
# many runs), one source node per distinct RTT rather than per flow, and no monitor unless `monitor 1` asks for it.
# A run is deterministic, so counts are taken from a monitored run and the time from an unmonitored one.
#
#   source(s) --access--> L --bottleneck, 10 ms--> R --1 ms--> sink        RTT = 2 * (left + 10 ms + 1 ms)
#
# The window that is timed lies between `warmup` and `duration`; start times are uniform over `start_spread` seconds.

proc defaults {} {
    return {
        flows 10  rate 100e6  access 1e9  rtt_min 50  rtt_max 50  rtt_law even
        queue DropTail  limit 100
        red_min 0  red_max 0  red_weight -1  red_linterm 10  red_gentle true  red_adaptive 0  red_bytes true
        red_wait true  red_mean_packet 500  red_target 0.005
        tcp Newreno  delack 0  window 100000  initial_window 2  min_rto 0.2  jitter 0
        duration 60  warmup 10  start_spread 1  seed 1
        monitor 0  scheduler Calendar  trace_queue ""  trace_cwnd ""  trace_interval 0.01
    }
}

array set p [defaults]
if {[llength $argv] % 2} {
    puts stderr "error: parameters come as word and value; [llength $argv] words is odd"
    exit 2
}
foreach {word value} $argv {
    if {![info exists p($word)]} {
        puts stderr "error: unknown parameter `$word`"
        puts stderr "hint: one of [lsort [array names p]]"
        exit 2
    }
    set p($word) $value
}

foreach {word known} {queue {DropTail RED} tcp {Newreno Sack1 Reno Tahoe Vegas} scheduler {Calendar Heap Map Splay List} \
        rtt_law {even uniform}} {
    if {$p($word) ni $known} {
        puts stderr "error: $word is `$p($word)`"
        puts stderr "hint: one of $known"
        exit 2
    }
}
foreach word {flows rate access rtt_min rtt_max limit duration warmup start_spread window seed} {
    if {![string is double -strict $p($word)] || $p($word) < 0} {
        puts stderr "error: $word is `$p($word)`"
        puts stderr "hint: write a number; times are s, RTTs ms, rates bit/s, limits packets"
        exit 2
    }
}
if {$p(flows) < 1 || $p(rate) <= 0 || $p(duration) <= $p(warmup)} {
    puts stderr "error: flows $p(flows), rate $p(rate), duration $p(duration), warmup $p(warmup)"
    puts stderr "hint: at least one flow, a rate above zero, a duration above the warm-up"
    exit 2
}

# CPU seconds of this process so far: schedstat counts in ns, stat (the fallback) in ticks of 10 ms.
proc cpu_seconds {} {
    if {![catch {open /proc/self/schedstat} file]} {
        set fields [split [gets $file]]
        close $file
        if {[lindex $fields 0] > 0} { return [expr {[lindex $fields 0] * 1e-9}] }
    }
    set file [open /proc/self/stat]
    set fields [split [gets $file]]
    close $file
    return [expr {([lindex $fields 13] + [lindex $fields 14]) * 0.01}]
}

proc peak_rss_bytes {} {
    set file [open /proc/self/status]
    set text [read $file]
    close $file
    if {[regexp {VmHWM:\s+(\d+) kB} $text all kilobytes]} { return [expr {$kilobytes * 1024}] }
    return 0
}

set cpu_start [cpu_seconds]
remove-all-packet-headers
add-packet-header Common IP TCP Flags
set ns [new Simulator]
$ns use-scheduler $p(scheduler)
$ns rtproto Manual
ns-random $p(seed)

# Streams of their own for start times and RTTs; RED draws from the default one.
set starts [new RNG]
$starts seed [expr {$p(seed) * 1000 + 1}]
set lengths [new RNG]
$lengths seed [expr {$p(seed) * 1000 + 2}]

set red Queue/RED
foreach {variable value} [list thresh_ $p(red_min) maxthresh_ $p(red_max) q_weight_ $p(red_weight) \
        linterm_ $p(red_linterm) gentle_ $p(red_gentle) adaptive_ $p(red_adaptive) wait_ $p(red_wait) \
        bytes_ $p(red_bytes) queue_in_bytes_ $p(red_bytes) mean_pktsize_ $p(red_mean_packet) \
        targetdelay_ $p(red_target)] {
    $red set $variable $value
}

foreach {variable value} [list packetSize_ 1460 window_ $p(window) windowInit_ $p(initial_window) \
        minrto_ $p(min_rto) overhead_ $p(jitter)] {
    Agent/TCP set $variable $value
}

set bottleneck_delay 0.010
set right_delay 0.001
set left [$ns node]
set right [$ns node]
set sink_node [$ns node]

proc wire {from to rate delay queue limit} {
    global ns
    $ns simplex-link $from $to $rate $delay $queue
    $ns queue-limit $from $to $limit
}
proc route {at destination next} {
    global ns
    $at add-route [$destination node-addr] [[$ns link $at $next] head]
}

wire $left $right $p(rate) $bottleneck_delay $p(queue) $p(limit)
wire $right $left $p(rate) $bottleneck_delay DropTail 1000000
wire $right $sink_node $p(access) $right_delay DropTail 1000000
wire $sink_node $right $p(access) $right_delay DropTail 1000000
route $left $sink_node $right
route $right $sink_node $sink_node

# RTTs in ms, evenly spaced from rtt_min to rtt_max, or drawn uniformly.
proc base_rtt {i} {
    global p lengths
    if {$p(rtt_min) == $p(rtt_max) || $p(flows) == 1} { return $p(rtt_min) }
    if {$p(rtt_law) eq "uniform"} { return [$lengths uniform $p(rtt_min) $p(rtt_max)] }
    return [expr {$p(rtt_min) + ($p(rtt_max) - $p(rtt_min)) * $i / double($p(flows) - 1)}]
}

proc source_node {rtt} {
    global ns p source_of left right sink_node bottleneck_delay right_delay
    if {[info exists source_of($rtt)]} { return $source_of($rtt) }
    set delay [expr {$rtt * 0.5e-3 - $bottleneck_delay - $right_delay}]
    if {$delay < 0} {
        puts stderr "error: an RTT of $rtt ms is shorter than the 22 ms of the bottleneck and the right side"
        exit 2
    }
    set node [$ns node]
    wire $node $left $p(access) $delay DropTail 1000000
    wire $left $node $p(access) $delay DropTail 1000000
    route $node $sink_node $left
    route $sink_node $node $right
    route $right $node $left
    route $left $node $node
    set source_of($rtt) $node
    return $node
}

switch $p(tcp) {
    Sack1   { set sink_class [expr {$p(delack) ? "TCPSink/Sack1/DelAck" : "TCPSink/Sack1"}] }
    default { set sink_class [expr {$p(delack) ? "TCPSink/DelAck" : "TCPSink"}] }
}
set sender_class [expr {$p(tcp) eq "Tahoe" ? "Agent/TCP" : "Agent/TCP/$p(tcp)"}]

for {set i 0} {$i < $p(flows)} {incr i} {
    set node [source_node [base_rtt $i]]
    set sender($i) [new $sender_class]
    set receiver($i) [new Agent/$sink_class]
    $ns attach-agent $node $sender($i)
    $ns attach-agent $sink_node $receiver($i)
    $ns connect $sender($i) $receiver($i)
    $sender($i) set fid_ $i
    set ftp [new Application/FTP]
    $ftp attach-agent $sender($i)
    $ns at [$starts uniform 0 $p(start_spread)] "$ftp start"
}

if {$p(monitor)} {
    set watch [$ns monitor-queue $left $right ""]
    set bytes_integral [$watch get-bytes-integrator]
    set packets_integral [$watch get-pkts-integrator]
}
if {$p(trace_queue) ne ""} {
    $ns trace-queue $left $right [open $p(trace_queue) w]
}
if {$p(trace_cwnd) ne ""} {
    set cwnd_file [open $p(trace_cwnd) w]
    proc sample {} {
        global ns p sender cwnd_file
        set line [$ns now]
        for {set i 0} {$i < $p(flows)} {incr i} { append line " " [$sender($i) set cwnd_] " " [$sender($i) set ssthresh_] }
        puts $cwnd_file $line
        $ns at [expr {[$ns now] + $p(trace_interval)}] sample
    }
    $ns at 0 sample
}

# The state of every counter at one moment, as a list: all rates are differences of two of these.
proc snapshot {} {
    global p sender receiver watch bytes_integral packets_integral
    set delivered {}
    set sent 0
    set resent 0
    set timeouts 0
    for {set i 0} {$i < $p(flows)} {incr i} {
        lappend delivered [$receiver($i) set bytes_]
        incr sent [$sender($i) set ndatapack_]
        incr resent [$sender($i) set nrexmitpack_]
        incr timeouts [$sender($i) set nrexmit_]
    }
    set queue {0 0 0 0}
    if {$p(monitor)} {
        set now [[Simulator instance] now]
        $bytes_integral newpoint $now [$bytes_integral set lasty_]
        $packets_integral newpoint $now [$packets_integral set lasty_]
        set queue [list [$watch set parrivals_] [$watch set pdepartures_] [$watch set pdrops_] [$packets_integral set sum_]]
    }
    return [list [cpu_seconds] $delivered $sent $resent $timeouts $queue]
}

proc finish {} {
    global p before cpu_start
    set after [snapshot]
    set seconds [expr {$p(duration) - $p(warmup)}]
    foreach {cpu0 delivered0 sent0 resent0 timeouts0 queue0} $before {}
    foreach {cpu1 delivered1 sent1 resent1 timeouts1 queue1} $after {}
    set sum 0.0
    set squares 0.0
    foreach a $delivered0 b $delivered1 {
        set x [expr {$b - $a}]
        set sum [expr {$sum + $x}]
        set squares [expr {$squares + double($x) * $x}]
    }
    set jain [expr {$squares > 0 ? $sum * $sum / ($p(flows) * $squares) : 1.0}]
    set fields [list \
        "\"simulator\": \"ns-2\"" \
        "\"flows\": $p(flows)" \
        "\"cpu_window_s\": [format %.4f [expr {$cpu1 - $cpu0}]]" \
        "\"cpu_s\": [format %.4f [expr {$cpu1 - $cpu_start}]]" \
        "\"setup_cpu_s\": [format %.4f [expr {$p(cpu_built) - $cpu_start}]]" \
        "\"peak_rss_mb\": [format %.2f [expr {[peak_rss_bytes] * 1e-6}]]" \
        "\"rss_before_mb\": [format %.2f [expr {$p(rss_built) * 1e-6}]]" \
        "\"goodput_mbps\": [format %.5f [expr {$sum * 8e-6 / $seconds * 1460 / 1500}]]" \
        "\"delivered_packets\": [format %.0f [expr {$sum / 1500.0}]]" \
        "\"sent_packets\": [expr {$sent1 - $sent0}]" \
        "\"retransmitted_packets\": [expr {$resent1 - $resent0}]" \
        "\"timeouts\": [expr {$timeouts1 - $timeouts0}]" \
        "\"jain\": [format %.5f $jain]"]
    if {$p(monitor)} {
        foreach {arrived0 left0 dropped0 waiting0} $queue0 {}
        foreach {arrived1 left1 dropped1 waiting1} $queue1 {}
        set arrived [expr {$arrived1 - $arrived0}]
        set forwarded [expr {$left1 - $left0}]
        set dropped [expr {$dropped1 - $dropped0}]
        lappend fields \
            "\"forwarded_packets\": [format %.0f $forwarded]" \
            "\"forwarded_packets_whole\": [format %.0f $left1]" \
            "\"utilisation\": [format %.6f [expr {$forwarded * 12000.0 / $seconds / $p(rate)}]]" \
            "\"loss\": [format %.7f [expr {$arrived > 0 ? double($dropped) / $arrived : 0.0}]]" \
            "\"queue_delay_ms\": [format %.5f [expr {$forwarded > 0 ? ($waiting1 - $waiting0) / $forwarded * 1e3 : 0.0}]]"
    }
    puts "{[join $fields {, }]}"
    exit 0
}

set p(cpu_built) [cpu_seconds]
set p(rss_built) [peak_rss_bytes]
$ns at $p(warmup) {set before [snapshot]}
$ns at $p(duration) finish
$ns run
