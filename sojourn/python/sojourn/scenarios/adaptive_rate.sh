# Keeps the queue of a line short although its rate is not known: pings through the line ten times a
# second, lowers the rate of cake when an answer is late, and otherwise raises it.
#
#     sh adaptive_rate.sh DEVICE ADDRESS
device=$1 address=$2
least=1000 most=9500    # kbit/s
late=10                 # ms above the shortest answer

command -v ping >/dev/null || { echo "this host has no ping (Debian: iputils-ping)"; exit 127; }
rate=$most shortest=100000
ping -n -i 0.1 "$address" | while read -r line; do
    case $line in *time=*) ;; *) continue ;; esac
    rtt=${line##*time=}
    rtt=${rtt%% *}
    rtt=${rtt%%.*}
    [ "$rtt" -lt "$shortest" ] && shortest=$rtt
    before=$rate
    if [ $((rtt - shortest)) -gt $late ]; then
        rate=$((rate * 90 / 100))
    else
        rate=$((rate + 30))
    fi
    [ "$rate" -gt $most ] && rate=$most
    [ "$rate" -lt $least ] && rate=$least
    [ "$rate" = "$before" ] || tc qdisc change dev "$device" root cake bandwidth "${rate}kbit"
    echo "rtt $rtt ms, rate $rate kbit/s"
done
