# ngtcp2's HTTP/3 server, with a certificate of its own. A path that is a number is a file of so many
# bytes.
#
#     sh ngtcp2_server.sh ADDRESS CUBIC|RENO|BBR
for program in gtlsserver openssl; do
    command -v $program >/dev/null ||
        { echo "this host has no $program (Debian: ngtcp2-server, openssl)"; exit 127; }
done
cd /tmp || exit 1
printf '[req]\ndistinguished_name = name\n[name]\n' > req.cnf
openssl req -config req.cnf -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
    -days 3650 -subj /CN=server -keyout key.pem -out cert.pem 2>/dev/null
exec gtlsserver -q --cc "$2" "$1" 4433 key.pem cert.pem
