# Five machines, each with a network, processes and a /var/tmp of its own, and an sshd: deployments/ssh.toml as it is.
mount -t tmpfs none /run
mkdir /run/sshd bin
ssh-keygen -q -t ed25519 -N '' -f key
ip link add bridge type bridge
ip addr add 10.9.2.1/24 dev bridge
ip link set bridge up
# What a user has in ~/.ssh. It stands still once it has done what PAUSE_AT names.
cat > bin/ssh <<CLIENT
#!/bin/sh
/usr/bin/ssh -i $PWD/key -o LogLevel=ERROR "\$@"
code=\$?
if [ -n "\$PAUSE_AT" ]; then
  case "\$STEP \$*" in *"\$PAUSE_AT"*) touch "$PWD/paused"; sleep 600;; esac
fi
exit \$code
CLIENT
chmod +x bin/ssh
export PATH=$PWD/bin:$PATH KVDYNO_STATE=$PWD/state PAUSE_AT=
machine() {
  cat > "sshd-$1" <<CONFIG
ListenAddress 10.9.2.1$1
HostKey $PWD/key
AuthorizedKeysFile $PWD/key.pub
PidFile none
StrictModes no
UsePAM no
SetEnv PATH=$PATH
CONFIG
  ip netns add "m$1"
  ip link add "to-$1" type veth peer name out netns "m$1"
  ip link set "to-$1" master bridge up
  ip -n "m$1" link set lo up
  ip -n "m$1" addr add "10.9.2.1$1/24" dev out
  ip -n "m$1" link set out up
  ip netns exec "m$1" unshare --uts --mount --pid --fork --kill-child --mount-proc sh -c \
    "mount -t tmpfs none /var/tmp; hostname m$1; exec /usr/sbin/sshd -D -e -f $PWD/sshd-$1" 2> "sshd-$1.log" &
}
for number in 1 2 3 4 5; do machine $number; done
user() { /usr/bin/ssh -i key -o LogLevel=ERROR -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null "$@"; }
for number in 1 2 3 4 5; do until_it user 10.9.2.1$number true; done

# Whatever is left on a machine, by another way than the file's own.
left() {
  local asked=
  for number in 1 2 3 4 5; do
    user 10.9.2.1$number 'ls /var/tmp; grep -x 2048 /proc/sys/net/core/somaxconn; pgrep -l "redis-server|kvdyno|sleep"' |
      sed "s/^/m$number: /" &
    asked="$asked $!"
  done
  wait $asked
}
start() {
  exec kvdyno run "$@" --deployment deployment.toml --var CONSOLE=10.9.2.1 --var SECONDS_APART=300ms \
    --var SERVERS="10.9.2.11 10.9.2.12 10.9.2.13" --var CLIENTS="10.9.2.14 10.9.2.15" --yes --quiet
}
unset KVDYNO_TOKEN
(start counted.toml --out whole)
code whole
left > left-whole
ls state/deployments > records

# Killed where it stands, at each step: the next one says so, and what was left behind goes.
killed_at() {
  rm -f paused
  export PAUSE_AT=$2
  (start ${3:-$LONG} --out "killed-$1") & job=$!
  if [ -n "$2" ]; then until_it test -e paused; else under_load "killed-$1"; fi
  kill -9 $job
  wait $job
  export PAUSE_AT=
  kvdyno run quick --store map: --dry-run > /dev/null 2> "notice-$1"
  kvdyno deployment sweep 2> "swept-$1"
  code "swept-$1"
  left > "left-$1"
  kvdyno deployment sweep > "again-$1"
}
killed_at ready "ready "
killed_at prepare "mkdir -p"
killed_at start "redis-server --bind"
killed_at run ""
(start counted.toml --out keeps --var PROGRAM=no-such-file)
code failed
left > left-failed
killed_at destroy "sweep " counted.toml
