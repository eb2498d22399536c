# Fetches some bytes by ngtcp2's HTTP/3 client and prints how long it takes.
#
#     sh ngtcp2_client.sh ADDRESS BYTES
command -v gtlsclient >/dev/null ||
    { echo "this host has no gtlsclient (Debian: ngtcp2-client)"; exit 127; }
begun=$(date +%s%N)
gtlsclient -q --exit-on-all-streams-close "$1" 4433 "https://server/$2" || exit 1
echo "$2 bytes in $(($(date +%s%N) / 1000000 - begun / 1000000)) ms"
