# lighttpd with one file of a megabyte.
#
#     sh web_server.sh ADDRESS
mkdir /tmp/www
head -c 1000000 /dev/zero > /tmp/www/file
cat > /tmp/lighttpd.conf <<END
server.bind = "$1"
server.port = 80
server.document-root = "/tmp/www"
END
exec lighttpd -D -f /tmp/lighttpd.conf
