#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
# Installs the Debian packages of a folder on this machine, as root, runs a program through the
# installed server, and purges them. For a bare root without a service manager: `tools/dev/fresh 12
# root packages` calls it. The folder also has the program, saxpy_driver.
#   tests/deploy/packages.sh FOLDER
set -eu
folder=$(cd "$1" && pwd)
work=$(mktemp -d)
server=
balancer=
end() {
	for process in $server $balancer; do kill "$process" 2>/dev/null || true; done
	rm -rf "$work"
}
trap end EXIT
trap 'exit 130' INT TERM
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
fail() {
	echo "FAIL $*" >&2
	exit 1
}
ok() { echo "ok   $*"; }

# files: every file of the system but those that any package changes, and what runs here
files() {
	find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /root -o -path /home -o -path /var/lib/apt -o -path /var/lib/dpkg \
		-o -path /var/cache/apt -o -path /var/cache/debconf -o -path /var/cache/ldconfig -o -path /var/log \) -prune -o -print | sort
}
install() { apt-get install -y -qq --no-install-recommends "$@" >"$work/apt.log" 2>&1 || { cat "$work/apt.log" >&2; fail "apt-get install $*"; }; }
# The numbers of users and groups stay, as Debian's packages leave them.
expect_nothing() {
	files >"$work/after"
	left=$(comm -13 "$work/before" "$work/after" | grep -vxE '/etc/(passwd|group|shadow|gshadow)-|/etc/\.pwd\.lock' || true)
	[ -z "$left" ] || fail "purging leaves: $left"
}

apt-get update -qq
for program in gcc cc dh meson; do
	! command -v $program >/dev/null || fail "this root has $program: it does not show that the packages need no compiler"
done
[ "$(dpkg --print-architecture)" = "$(dpkg -f "$folder"/outboard_*.deb Architecture)" ] || fail "the packages are for another architecture"
# These make users and folders without systemd, whose own traces in /run would be counted otherwise.
install systemd-standalone-sysusers systemd-standalone-tmpfiles
files >"$work/before"

# The client alone: no server, no pictures. The first of the three steps of a user.
now() { date +%s%N; }
seconds() { awk -v ns=$(($2 - $1)) 'BEGIN { printf "%.2f", ns / 1e9 }'; }
begun=$(now)
install "$folder"/outboard_*.deb
installed=$(seconds "$begun" "$(now)")
outboard --version | grep -q '^outboard [0-9]' || fail "outboard --version"
[ ! -e /usr/bin/outboard-server ] || fail "the client brings the server"
status=0
outboard check --server unix:/nowhere >"$work/out" 2>&1 || status=$?
[ $status = 1 ] || fail "outboard check without a server: exit status $status: $(cat "$work/out")"
status=0
outboard run --direct -- true >"$work/out" 2>&1 || status=$?
[ $status != 0 ] || fail "outboard run --direct without the server has the exit status 0"
grep -q 'the software device comes with the server' "$work/out" || fail "outboard run --direct without the server: $(cat "$work/out")"
[ "$(ldconfig -p | grep -c 'outboard/libcuda')" = 0 ] || fail "the linker's cache has the client library"
for page in man1/outboard.1 man7/outboard.7; do [ -s /usr/share/man/$page.gz ] || fail "no $page"; done
ok "the client, with $(grep -c '^Unpacking' "$work/apt.log") packages"

install "$folder"/*.deb
outboard-server --version | grep -q '^outboard-server [0-9]' || fail "outboard-server --version"
for unit in /etc/systemd/system/*.wants/outboard*; do [ ! -e "$unit" ] || fail "$unit: the installation has enabled a service"; done
grep -q '^outboard-server:' /etc/passwd || fail "there is no user outboard-server"
[ "$(stat -c '%U %a' /run/outboard /var/cache/outboard | tr '\n' ' ')" = 'outboard-server 755 outboard-server 700 ' ] || fail "folders: $(ls -ld /run/outboard /var/cache/outboard)"
outboard config check /etc/outboard/server.ini || fail "the settings of the package"
ok "the server, with $(grep -c '^Unpacking' "$work/apt.log") packages"

# await FILE EXPRESSION PROCESS: what sed finds in a log, as soon as it is there
await() {
	for _ in $(seq 600); do
		found=$(sed -n "s/$2/\\1/p" "$1" 2>/dev/null | head -1) # the process may not have opened it yet
		[ -z "$found" ] || break
		kill -0 "$3" 2>/dev/null || break
		sleep 0.1
	done
	[ -n "$found" ] || { cat "$1" >&2; fail "not in $1: $2"; }
	echo "$found"
}

# A pool by the settings of the packages; then what a user does: apt install, outboard login, outboard run.
if [ -f /etc/outboard/balancer.ini ]; then
	outboard-balancer --check-config /etc/outboard/balancer.ini || fail "the settings of the balancer"
	outboard cert --cert /etc/outboard/balancer.crt --key /etc/outboard/balancer.key --names localhost >"$work/pin"
	outboard token create --file /etc/outboard/balancer.tokens --name rack --scope serve >"$work/serve.token"
	mkdir -p /var/lib/outboard-balancer
	sed 's,0.0.0.0:14900$,127.0.0.1:0,; s,^http = .*,,' /etc/outboard/balancer.ini >"$work/balancer.ini"
	outboard-balancer --config "$work/balancer.ini" 2>"$work/balancer.log" &
	balancer=$!
	pool=$(await "$work/balancer.log" '.*listening on \(tls:[^ ,;]*\).*' $balancer)
	outboard cert --cert "$work/server.crt" --key "$work/server.key" --names localhost >/dev/null
	OUTBOARD_LOG=info OUTBOARD_TLS_PIN=$(cat "$work/pin") outboard-server --listen tls://127.0.0.1:0 --tls-cert "$work/server.crt" --tls-key "$work/server.key" --driver soft \
		--pool "$pool" --pool-name gpu-1 --pool-token-file "$work/serve.token" 2>"$work/log" &
	server=$!
	await "$work/log" '.*pool: registered as \(gpu-1\) .*' $server >/dev/null
	text=$(outboard token create --file /etc/outboard/balancer.tokens --name alice --pool "$pool" --cert /etc/outboard/balancer.crt)
	mkdir "$work/home"
	begun=$(now)
	HOME=$work/home outboard login "$text" >"$work/out" 2>&1 || { cat "$work/out" "$work/balancer.log" >&2; fail "outboard login"; }
	logged_in=$(seconds "$begun" "$(now)")
	for _ in $(seq 600); do
		! HOME=$work/home outboard server list | grep -q '^gpu-1 *ready' || break
		sleep 0.1
	done
	begun=$(now)
	HOME=$work/home outboard run -- "$folder/saxpy_driver" >"$work/out" 2>&1 || { cat "$work/out" "$work/log" "$work/balancer.log" >&2; fail "outboard run in the pool"; }
	ran=$(seconds "$begun" "$(now)")
	grep -q 'all right' "$work/out" || { cat "$work/out" >&2; fail "outboard run in the pool: wrong output"; }
	kill $server
	wait $server || fail "the server of the pool ended with exit status $?"
	kill $balancer
	wait $balancer || fail "the balancer ended with exit status $?"
	server=
	balancer=
	rm -rf /etc/outboard/balancer.crt /etc/outboard/balancer.key /etc/outboard/balancer.tokens /var/lib/outboard-balancer/*
	ok "a user's three steps: apt install $installed s, outboard login $logged_in s, outboard run $ran s"
fi

# Other programs of this machine may have the ports.
sed 's/:14800$/:0/; s/:9464$/:0/' /etc/outboard/server.ini >"$work/server.ini"
outboard-server --config "$work/server.ini" 2>"$work/log" &
server=$!
url=$(await "$work/log" '.*listening on \(tcp:[^ ]*\).*' $server)
for address in "$url" unix:/run/outboard/server.sock shm:/run/outboard/server.sock; do
	OUTBOARD_SERVER=$address outboard run -- "$folder/saxpy_driver" >"$work/out" 2>&1 || { cat "$work/out" "$work/log" >&2; fail "a program over $address"; }
	grep -q 'all right' "$work/out" || { cat "$work/out" >&2; fail "a program over $address: wrong output"; }
done
outboard check --server "$url" >"$work/out" || { cat "$work/out" >&2; fail "outboard check"; }
kill $server
wait $server || fail "the server ended with exit status $?"
server=
ok "a program over tcp, unix and shm"

cp "$folder/saxpy_driver" "$work/"
outboard run --direct -- "$work/saxpy_driver" | grep -q 'all right' || fail "outboard run --direct"
ok "a program without a server"

# What a server leaves that runs for longer.
mkdir -p /var/log/outboard
touch /var/log/outboard/audit.log /var/cache/outboard/kept
# The package manager knows which file a setting was changed in, and keeps it until it is purged.
echo '; changed' >>/etc/outboard/server.ini
apt-get remove -y -qq outboard-server >/dev/null 2>&1
grep -q '; changed' /etc/outboard/server.ini || fail "removing the package removes the settings"
packages=$(dpkg-query -W -f '${Package} ${Status}\n' '*outboard*' | awk '$NF != "not-installed" { print $1 }')
# Libraries that came with them go, too, also those that another package recommends.
# shellcheck disable=SC2086
apt-get -o APT::AutoRemove::RecommendsImportant=false -o APT::AutoRemove::SuggestsImportant=false purge -y -qq --autoremove $packages >"$work/apt.log" 2>&1 || { cat "$work/apt.log" >&2; fail "apt-get purge"; }
expect_nothing
[ ! -e /var/log/outboard ] || fail "purging leaves the logs"
ok "purged: nothing is left"
