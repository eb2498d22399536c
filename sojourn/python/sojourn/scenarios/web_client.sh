# Fetches the file every two seconds and prints how long it takes.
#
#     sh web_client.sh ADDRESS
for number in 1 2 3 4 5 6 7; do
    curl -s -o /dev/null -w 'connect %{time_connect} s, whole %{time_total} s\n' "http://$1/file"
    sleep 2
done
